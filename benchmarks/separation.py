"""How far right and wrong implementations of every equation lie from their bounds.

For each equation of the catalogue, each of its readings and a few sizes, the largest
error/allowed over all input families:

* of right machines: the reference itself, really rounded to float32 after every operation, with
  its sums taken in eight orders (BLAS, sequential, reversed, random, pairwise tree, 32 and 256
  lanes and a tree, a chain of fused multiply-adds), and the equation's other forms;
* of wrong ones: every other reading, every known wrong variant, undeclared bfloat16 sums and
  tf32 products, and twice the result, each with the family that finds it best;
* of the shipped kernels, where `--backend` names one.

All right ones must stay at or below 0.9, and every wrong one must be found by some family; else
the exit status is 1. Nothing is tuned per equation.

    python benchmarks/separation.py [--equation ID] [--reading NAME] [--sizes N] [--seed N]
                                    [--backend host|cuda]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds import (
    BoundsError,
    Evaluator,
    Precision,
    judge,
    judge_confirmed,
    machine,
)
from trueup.oracle.contract.expressions import parse
from trueup.oracle.inputs.draw import ordinary, rounded, widened
from trueup.oracle.inputs.families import GENERIC
from trueup.reference import Equation, NotApplicable, catalogue

Array = NDArray[Any]
ORDERS = ("blas", "sequential", "reversed", "random", "pairwise", "lanes32", "lanes256", "fma")
LIMIT = 0.9
F32 = np.dtype(np.float32)
BASE = Precision()
# Undeclared short arithmetic.
SHORT = {"bf16 sums": Precision(accumulate="bf16"), "tf32 products": Precision(multiply="tf32")}
# The sizes an equation is tried at: its axes take these in turn. Ragged, small, and past a block.
SIZES = ((7, 33, 5), (65, 31, 9), (1, 3, 2))


@dataclass
class Line:
    """One reading at one size: what right and wrong implementations came to."""

    equation: str
    reading: str
    sizes: Mapping[str, int]
    right: float = 0.0
    right_by: str = ""
    wrong: dict[str, tuple[float, str]] = field(default_factory=dict)
    unjudged: int = 0
    systematic: int = 0
    elements: int = 0
    seconds: float = 0.0
    notes: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Column:
    """A further implementation to hold against the bounds: a kernel on some backend.

    `run` takes the equation, the reading and the inputs and returns the outputs, or None where
    it does not apply.
    """

    name: str
    run: Callable[[Equation, str, Mapping[str, Any]], Sequence[Array] | None]


def inputs_of(equation: Equation, sizes: Mapping[str, int], family: str, seed: int) -> Any:
    """The inputs of one family, born in float32."""
    rng = np.random.default_rng([seed, *family.encode()])
    names = frozenset(equation.axes)
    values: dict[str, Any] = {}
    for symbol in equation.inputs:
        shape = tuple(parse(entry, names, symbol.name).value(sizes) for entry in symbol.shape)
        values[symbol.name] = ordinary(symbol.domain, shape, rng, sizes)
    domains = {symbol.name: symbol.domain for symbol in equation.inputs}
    own = {f.name: f for f in equation.families}
    if family in own:
        values = dict(own[family].make(rng, sizes, values))
    else:
        change = next(f for f in GENERIC if f.name == family).change
        for name, value in values.items():
            if np.ndim(value) and domains[name].kind == "real":
                values[name] = change(rng, np.asarray(value, dtype=np.float64))
    if equation.prepare is not None:
        values = dict(equation.prepare(rng, sizes, values))
    wide = {k: widened(rounded(v, F32, domains[k])) for k, v in values.items()}
    return {k: v.item() if not v.ndim else v for k, v in wide.items()}


def families_of(equation: Equation) -> list[tuple[str, bool]]:
    """Every family, with whether it is there for right kernels only."""
    own = [(f.name, f.right_kernel_only) for f in equation.families]
    taken = {name for name, _ in own}
    return own + [(f.name, f.right_kernel_only) for f in GENERIC if f.name not in taken]


def sizes_of(equation: Equation, count: int) -> list[dict[str, int]]:
    """A few sizes; an equation without axes has one."""
    if not equation.axes:
        return [{}]
    return [dict(zip(equation.axes, s, strict=False)) for s in SIZES[:count]]


def fitting(equation: Equation, reading: str, sizes: dict[str, int], seed: int) -> dict[str, int]:
    """The sizes, made equal where a reading is defined for square matrices only."""
    try:
        equation.form(reading)[0](**inputs_of(equation, sizes, "unit", seed))
    except NotApplicable:
        return dict.fromkeys(sizes, max(sizes.values()))
    return sizes


def float32(outputs: Sequence[Array]) -> list[Array]:
    """The outputs as a kernel stores them."""
    with np.errstate(all="ignore"):
        return [
            x.astype(np.float32).astype(np.float64) if x.dtype.kind == "f" else x for x in outputs
        ]


def right_machines(forms: Sequence[Any], inputs: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Every right implementation of a reading."""
    for order in ORDERS:
        yield order, machine(forms[0], inputs, BASE, order, seed=seed)
    for i, form in enumerate(forms[1:], start=1):
        yield f"form {i}", machine(form, inputs, BASE, "lanes32", seed=seed)
        yield f"form {i}, fma", machine(form, inputs, BASE, "fma", seed=seed)


def wrong_machines(
    equation: Equation, reading: str, inputs: Any, plain: Sequence[Array]
) -> Iterator[tuple[str, Any]]:
    """Every wrong implementation: other readings, wrong variants, short sums, twice the value."""
    for name in equation.known():
        if name == reading:
            continue
        try:
            yield name, machine(equation.form(name)[0], inputs, BASE, "lanes32")
        except (NotApplicable, BoundsError):
            continue
    yield "twice", [2 * x for x in plain]
    form = equation.form(reading)[0]
    right = machine(form, inputs, BASE, "sequential")
    for name, precision in SHORT.items():
        made = machine(form, inputs, precision, "sequential")
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(made, right, strict=True)):
            yield name, made  # an equation without sums or products has no such mutant


def try_family(
    equation: Equation, line: Line, family: tuple[str, bool], seed: int, columns: Sequence[Column]
) -> None:
    """Judge every implementation on one family and keep the telling figures."""
    name, right_only = family
    inputs = inputs_of(equation, line.sizes, name, seed)
    forms = equation.form(line.reading)
    plain = _outputs(forms[0](**inputs))
    evaluator = Evaluator(forms, inputs, BASE, ["f32"] * len(plain), seed=seed)
    evaluation = evaluator.evaluation()
    line.notes.update(n for n in evaluation.notes if "systematic" not in n)
    line.systematic += any(evaluation.systematic)
    rights = list(right_machines(forms, inputs, seed))
    for column in columns:
        made = column.run(equation, line.reading, inputs)
        if made is not None:
            rights.append((column.name, made))
    for who, outputs in rights:
        judged = judge_confirmed(evaluator, float32(outputs))
        worst = max(max(j.worst_ratio, j.coherent / 8.0) for j in judged)
        line.elements += sum(j.judged for j in judged)
        line.unjudged += sum(int(j.not_judged.sum()) for j in judged)
        if worst > line.right:
            line.right, line.right_by = worst, f"{who}, {name}"
    if right_only:
        return
    for who, outputs in wrong_machines(equation, line.reading, inputs, plain):
        given = float32(_outputs(outputs))
        if [x.shape for x in given] != [x.shape for x in plain]:
            found = float("inf")
        else:
            found = max(max(j.worst_ratio, j.coherent / 8.0) for j in judge(evaluation, given))
        best = line.wrong.get(who, (-1.0, ""))
        if found > best[0]:
            line.wrong[who] = (found, name)


def _outputs(result: Any) -> list[Array]:
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(x) for x in parts]


def run(
    equations: Sequence[Equation],
    *,
    reading: str | None,
    sizes: int,
    seed: int,
    columns: Sequence[Column] = (),
) -> list[Line]:
    """All lines, printed as they are done."""
    lines = []
    for equation in equations:
        for name in equation.readings:
            if reading is not None and name != reading:
                continue
            for size in sizes_of(equation, sizes):
                start = time.perf_counter()
                with np.errstate(all="ignore"):
                    line = Line(equation.id, name, fitting(equation, name, size, seed))
                    for family in families_of(equation):
                        try_family(equation, line, family, seed, columns)
                line.seconds = time.perf_counter() - start
                lines.append(line)
                report(line)
    return lines


def report(line: Line) -> None:
    """One line of the table, and the weakest wrong implementations under it."""
    where = ",".join(f"{k}={v}" for k, v in line.sizes.items()) or "scalar"
    found = sum(ratio > 1 for ratio, _ in line.wrong.values())
    flag = "" if line.right <= LIMIT else "  <-- right one near or over its bound"
    print(
        f"{line.equation:28} {line.reading:24} {where:20} right {line.right:6.3f} "
        f"({line.right_by})  wrong {found}/{len(line.wrong)}  "
        f"{line.elements} elements, {line.unjudged} not judged, {line.systematic} systematic "
        f"families  {line.seconds:.1f} s{flag}"
    )
    weakest = sorted(line.wrong.items(), key=lambda item: item[1][0])[:2]
    for who, (ratio, family) in weakest:
        print(f"    {'MISSED' if ratio <= 1 else 'weakest'}: {who} {ratio:.3g} by {family}")
    for note in sorted(line.notes):
        print(f"    note: {note}")
    sys.stdout.flush()


def kernels(backend: str, equation: str | None, seed: int) -> list[str]:
    """The shipped kernels on a backend, over all their numeric cases; what is over the limit."""
    from importlib.util import find_spec

    from trueup.oracle.contract import find_contracts, load_contract
    from trueup.oracle.verdict import Outcome
    from trueup.oracle.verify import verify

    spec = find_spec("trueup.kernels")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    over = []
    for path in find_contracts(folders):
        contract = load_contract(path)
        if equation not in (None, contract.reference):
            continue
        found = verify([contract], backend=backend, lanes=["numeric"], seed=seed)
        for verdict in found.contracts:
            (lane,) = verdict.lanes
            ratio = lane.worst.ratio if lane.worst else float("nan")
            where = lane.worst.where if lane.worst else ""
            print(
                f"{contract.id:28} {verdict.reading:24} kernel on {verdict.backend:10} right "
                f"{ratio:6.3f} ({where})  {lane.cases} cases, {lane.elements} elements"
            )
            if verdict.verdict is not Outcome.PASS or not ratio <= LIMIT:
                over.append(f"{contract.id} on {verdict.backend}: {ratio:.3f} {verdict.verdict}")
        over += [f"{contract.id}: {text}" for text in found.errors]
        over += [f"{s.contract}: skipped, {s.reason}" for s in found.skipped]
    return over


def missed(lines: Sequence[Line]) -> list[str]:
    """The wrong implementations of a reading that no family of any size finds."""
    best: dict[tuple[str, str, str], float] = {}
    for line in lines:
        for who, (ratio, _) in line.wrong.items():
            key = (line.equation, line.reading, who)
            best[key] = max(best.get(key, 0.0), ratio)
    return [f"{e} {r}: {who} ({ratio:.3g})" for (e, r, who), ratio in best.items() if ratio <= 1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where right and wrong do not separate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--equation", help="only this equation")
    parser.add_argument("--reading", help="only this reading")
    parser.add_argument("--sizes", type=int, default=2, help="how many sizes (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=("host", "cuda"), help="shipped kernels as well")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TRUEUP_CACHE", "off")
    equations = [e for e in catalogue() if options.equation in (None, e.id)]
    lines = run(equations, reading=options.reading, sizes=options.sizes, seed=options.seed)
    over = [
        f"{line.equation} {line.reading} {line.right:.3f} ({line.right_by})"
        for line in lines
        if not line.right <= LIMIT
    ]
    if options.backend:
        over += kernels(options.backend, options.equation, options.seed)
    lost = missed(lines)
    for text in over:
        print(f"over {LIMIT}: {text}")
    for text in lost:
        print(f"missed: {text}")
    good = bool(lines) and not over and not lost
    print(f"{len(lines)} lines: " + ("right and wrong separate" if good else "NOT separated"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
