"""Time kernels on a GPU beside torch, against the least time that the device allows.

Used by nl.py and dqn.py. Each kernel's result is held to the equation in float64 first.
"""

from __future__ import annotations

import argparse
import math
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from cases import Case, Given, written
from timing import Ceiling, heading, issue_us, measure_ceiling, time_us

from trueup.kernels.torch.device import Kernel, why_not

HERE = Path(__file__).resolve().parent
HEAD = (
    "kernel",
    "shape",
    "floor us",
    "us",
    "us / floor",
    "error of the step",
    "issue us",
    "torch eager us (issue)",
    "torch.compile us (issue)",
    "max-autotune us (issue)",
    "library us (issue)",
)


def sets_needed(case: Case) -> int:
    """Enough input sets to be three times the L2 cache, at least two, at most sixteen."""
    cache = int(torch.cuda.get_device_properties(0).L2_cache_size)
    return min(max(2, math.ceil(3 * cache / max(case.least_bytes, 1))), 16)


def doubled(given: Given) -> Given:
    """Give copies in float64; integers as they are."""
    return [
        value.double()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
        else value.clone()
        if isinstance(value, torch.Tensor)
        else value
        for value in given
    ]


def launch(case: Case, kernel: Kernel, given: Given) -> list[torch.Tensor]:
    """Queue the kernel, or raise what it says against these arguments; return what it writes."""
    if case.op is not None:
        return list(case.op(*given))
    reason = kernel.attempt(*given)
    if reason is not None:
        raise RuntimeError(reason)
    return [value for _, value in written(kernel, given)]


def error_of(case: Case, kernel: Kernel, given: Given) -> float:
    """Run once; return the largest error against float64, relative (Frobenius) to the step made."""
    if case.equation is None:
        return math.nan
    before = [(updated, value.double()) for updated, value in written(kernel, given)]
    expected = case.equation(*doubled(given))
    results = launch(case, kernel, given)
    torch.cuda.synchronize()
    errors = []
    for got, (updated, old), want in zip(results, before, expected, strict=True):
        step = want.double() - old if updated else want.double()
        error, size = torch.linalg.norm(got.double() - want), torch.linalg.norm(step)
        errors.append(float(error / size) if size > 0 else float(error))
    return max(errors, key=lambda e: math.inf if math.isnan(e) else e)


def guarded(work: Callable[[], str]) -> str:
    """Run one measurement; a failure becomes the cell's text and stops nothing else."""
    try:
        return work()
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        text = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {text[0][:60]}"


def timed(passes: Sequence[Callable[[], object]]) -> str:
    """Give device time and issue cost as a cell."""
    return f"{time_us(passes):.1f} ({issue_us(passes[0]):.0f})"


def beside(case: Case, sets: Sequence[Given], modes: Sequence[str]) -> list[str]:
    """Time the equation in torch, eager and compiled, and a library's operator if there is one."""
    cells = []
    equation: Any = case.equation
    for mode in ("eager", "default", "max-autotune-no-cudagraphs"):
        if mode not in modes or equation is None:
            cells.append("-")
            continue
        torch._dynamo.reset()
        function = equation if mode == "eager" else torch.compile(equation, mode=mode)
        passes = [lambda f=function, one=one: f(*one) for one in sets]
        cells.append(guarded(lambda p=passes: timed(p)))  # type: ignore[misc]
    if case.library is None or "library" not in modes:
        return [*cells, "-"]
    calls = [case.library(*one) for one in sets]
    return [*cells, guarded(lambda: timed(calls))]


def row(case: Case, variant: Any, ceiling: Ceiling, modes: Sequence[str]) -> list[str]:
    """Measure one line of the table."""
    kernel = case.kernel(variant)
    sets = [case.given(kernel) for _ in range(sets_needed(case))]
    error = error_of(case, kernel, sets[0])
    passes = [lambda one=one: launch(case, kernel, one) for one in sets]
    us, issued = time_us(passes), issue_us(passes[0])
    floor = ceiling.floor_us(case.least_bytes, case.operations, case.rate)
    return [
        case.contract,
        f"{case.label}; {variant}" if variant else case.label,
        f"{floor:.1f}",
        f"{us:.1f}",
        f"{us / floor:.2f}",
        f"{error:.1e}",
        f"{issued:.0f}",
        *([] if variant else beside(case, sets, modes)),
    ]


def table(cases: Sequence[Case], args: argparse.Namespace, ceiling: Ceiling) -> list[str]:
    """Measure every case, a line each, printed as they come."""
    lines: list[str] = []

    def put(cells: Sequence[str]) -> None:
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)

    put(HEAD)
    put(["---"] * len(HEAD))
    for case in cases:
        if not any(word in case.contract for word in args.only.split(",")):
            continue
        for variant in (None, *(case.variants if args.sweep else ())):
            put_row = guarded_row(case, variant, ceiling, args.modes.split(","))
            put(put_row)
            torch.cuda.empty_cache()
    return lines


def guarded_row(case: Case, variant: Any, ceiling: Ceiling, modes: Sequence[str]) -> list[str]:
    """Measure one line; a failure is the line."""
    try:
        return row(case, variant, ceiling, modes)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return [case.contract, case.label, f"failed: {error!s:.120}"]


def run(script: str, summary: str, cases: Sequence[Case]) -> int:
    """Run the benchmark named by its script; 2 where there is no GPU."""
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--only", default="", help="contracts whose id holds one of these words")
    parser.add_argument("--sweep", action="store_true", help="try other launches of the kernels")
    parser.add_argument(
        "--modes",
        default="eager,default,max-autotune-no-cudagraphs,library",
        help="what runs beside a kernel, by comma; 'none' for nothing",
    )
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where to write")
    args = parser.parse_args()
    reason = why_not()
    if reason is not None:
        print(f"error: {reason}", file=sys.stderr)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    ceiling = measure_ceiling()
    torch.cuda.empty_cache()
    only = f" --only {args.only}" if args.only else ""
    top = heading(ceiling, f"python benchmarks/{script} --modes {args.modes}{only}")
    print("\n".join(top), flush=True)
    with torch.no_grad():
        lines = table(cases, args, ceiling)
    args.results.mkdir(parents=True, exist_ok=True)
    name = torch.cuda.get_device_name().lower().replace(" ", "-")
    area = script.removesuffix(".py")
    path = args.results / f"{area}-{name}{'-sweep' if args.sweep else ''}.md"
    path.write_text("\n".join([*top, *lines]) + "\n")
    print(f"\nwritten to {path}")
    return 0
