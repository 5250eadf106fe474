"""Judges contracts in processes of their own: several at once, or after a device was lost.

A crash on a GPU takes the CUDA context of the whole process with it, so the next contract needs a
new one. Children are spawned, never forked: a driver and a thread pool do not survive a fork.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
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
    results = _pooled(contracts, task, jobs, done)
    for index, contract in enumerate(contracts):
        if index not in results:  # a process died, and took the others' turn with it
            alone = {} if len(contracts) == 1 else _pooled([contract], task, 1, None)
            died = f"{contract.id}: the process that judged it died"
            results[index] = alone.get(0, Judged(contract.id, error=died))
    return [results[index] for index in range(len(contracts))]


def _pooled(
    contracts: Sequence[Contract],
    task: Task,
    jobs: int,
    done: Callable[[str, int], None] | None,
) -> dict[int, Judged]:
    """Judge contracts at once; those whose process died are left out."""
    context = multiprocessing.get_context("spawn")
    results: dict[int, Judged] = {}
    pool = ProcessPoolExecutor(min(jobs, len(contracts)), context, max_tasks_per_child=1)
    try:
        futures = {
            pool.submit(_child, str(contract.path), task): index
            for index, contract in enumerate(contracts)
        }
        for ended, future in enumerate(as_completed(futures), start=1):
            contract = contracts[futures[future]]
            try:
                results[futures[future]] = future.result()
            except BrokenProcessPool:
                continue
            if done is not None:
                done(contract.id, ended)
    except BaseException:  # an interrupt: nothing of what waits is begun any more
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    pool.shutdown()
    return results


def _child(path: str, task: Task) -> Judged:
    """Judge one contract here, read again from its file."""
    from trueup.oracle.verify import judge

    # What a reference or a Python kernel prints must not end up among the parent's results.
    with contextlib.redirect_stdout(sys.stderr):
        return judge(load_contract(path), task)


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
