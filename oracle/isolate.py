"""Judges contracts in processes of their own: several at once, or after a device was lost.

A crash on a GPU takes the CUDA context of the whole process with it, so the next contract needs a
new one. Children are spawned, never forked: a driver and a thread pool do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from trueup.oracle.contract import Contract, load_contract
from trueup.oracle.verdict import Judged

if TYPE_CHECKING:
    from trueup.oracle.verify import Task


def isolated(contract: Contract, task: Task) -> Judged:
    """Judge one contract in a new process."""
    return many([contract], task, 1, None)[0]


def many(
    contracts: Sequence[Contract],
    task: Task,
    jobs: int,
    done: Callable[[str, int], None] | None,
) -> list[Judged]:
    """Judge contracts in `jobs` processes at once; the results come in the order given.

    `done` is told each contract's id as it ends, and how many have ended.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(contracts)), context, max_tasks_per_child=1) as pool:
        futures = {
            pool.submit(_child, str(contract.path), task): index
            for index, contract in enumerate(contracts)
        }
        results: dict[int, Judged] = {}
        for ended, future in enumerate(as_completed(futures), start=1):
            contract = contracts[futures[future]]
            try:
                results[futures[future]] = future.result()
            except BrokenProcessPool:
                message = f"{contract.id}: the process that judged it died"
                results[futures[future]] = Judged(contract.id, error=message)
            if done is not None:
                done(contract.id, ended)
    return [results[index] for index in range(len(contracts))]


def _child(path: str, task: Task) -> Judged:
    """Judge one contract here, read again from its file."""
    from trueup.oracle.verify import judge

    return judge(load_contract(path), task)


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
