"""Run mutants and tell what finds them: wrong kernels lane by lane, wrong variants by the bounds.

Kernels are run on the host backend as the tests run them. Variants are rounded like a kernel and
judged by the bounds of the default reading, on the families of inputs that the equation declares.
`mutants.py` keeps what is found and writes the page.
"""

from __future__ import annotations

import hashlib
import math
import sys
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trueup.oracle.bounds import BoundsError, Evaluator, Precision, judge, machine
from trueup.oracle.contract import load_contract
from trueup.oracle.contract.expressions import parse
from trueup.oracle.inputs.draw import ordinary, rounded, widened
from trueup.oracle.verdict import LaneVerdict, Outcome
from trueup.oracle.verify import open_session
from trueup.reference import Equation, NotApplicable, catalogue

KERNELS = Path(__file__).resolve().parent.parent / "tests" / "wrong_kernels"
F32 = np.dtype(np.float32)
PLAIN = Precision()
SIZES = ((7, 33, 5), (65, 31, 9), (4, 4, 4))  # axes take these in turn; ragged, long, even


@dataclass(frozen=True)
class Found:
    """One mutant as it was found, or not: an empty lane says that nothing found it."""

    digest: str
    why: str
    lane: str = ""
    ratio: str = ""
    where: str = ""


def wrong_kernels() -> list[Path]:
    """List the folders of wrong kernels."""
    return sorted(path.parent for path in KERNELS.glob("*/expect.toml"))


def ratio_text(ratio: float) -> str:
    """Write a ratio with two digits, which no other machine's rounding changes."""
    return "∞" if not math.isfinite(ratio) else f"{ratio:.1e}" if ratio >= 100 else f"{ratio:.2g}"


def digest_of(paths: Iterable[Path]) -> str:
    """Digest files by their content."""
    parts = hashlib.sha256()
    for path in sorted(paths):
        parts.update(path.read_bytes())
    return parts.hexdigest()[:16]


def kernel_digest(folder: Path) -> str:
    """Digest a wrong kernel: all that stands in its folder."""
    return digest_of(path for path in folder.iterdir() if path.is_file())


def variant_digest(entry: Equation) -> str:
    """Digest an equation: its module, and the modules that its names come from."""
    names = {entry.function.__module__}
    for value in vars(sys.modules[entry.function.__module__]).values():
        module = str(getattr(value, "__module__", ""))
        if module.startswith("trueup.reference."):
            names.add(module)
    files = [sys.modules[name].__file__ for name in names if name in sys.modules]
    return digest_of(Path(file) for file in files if file)


def run_kernel(name: str) -> dict[str, Found]:
    """Run a wrong kernel's lanes until one fails."""
    folder = KERNELS / name
    expect = tomllib.loads((folder / "expect.toml").read_text("utf-8"))
    found = Found(kernel_digest(folder), expect["why"])
    contract = load_contract(folder / "contract.toml")
    limit = 2.0 if "hangs" in name else 20.0
    opened = open_session(contract, "host", time_limit=limit)
    for lane in expect["lane"]:
        verdict = opened.run(lane, stop_after=1)
        if verdict.verdict is Outcome.FAIL:
            return {name: Found(found.digest, found.why, lane, *_of_lane(verdict))}
    return {name: found}


def _of_lane(verdict: LaneVerdict) -> tuple[str, str]:
    """Give the ratio, or the rule, of a lane that failed, and where or as what."""
    first = verdict.findings[0]
    within = verdict.worst is None or verdict.worst.ratio <= 1.0
    bound = first.rule.endswith(".bound") and not within
    ratio = ratio_text(verdict.worst.ratio) if bound and verdict.worst else f"`{first.rule}`"
    as_what = ", ".join(f"matches `{name}`" for name in verdict.matches)
    return ratio, as_what or f"{first.where.split(':')[-1].strip()} in {first.case}"


def run_equation(id: str) -> dict[str, Found]:
    """Judge an equation's wrong variants on its families; the one that finds each best is told."""
    entry = next(one for one in catalogue() if one.id == id)
    digest = variant_digest(entry)
    told = {name: entry.formulas.get(name, name.replace("_", " ")) for name in entry.wrong}
    found = {name: Found(digest, why) for name, why in told.items()}
    best: dict[str, float] = {}
    for sizes in _sizes(entry):
        for family in ("unit", *(f.name for f in entry.families if not f.right_kernel_only)):
            missed = [name for name in entry.wrong if name not in best or best[name] <= 1.0]
            wanted = missed if sizes != next(_sizes(entry)) else list(entry.wrong)
            for name, ratio in _judged(entry, wanted, sizes, family).items():
                if ratio > max(best.get(name, -1.0), 1.0):
                    best[name] = ratio
                    where = ",".join(f"{axis}={size}" for axis, size in sizes.items()) or "scalar"
                    where = f"{where}/{family}"
                    found[name] = Found(digest, told[name], "numeric", ratio_text(ratio), where)
        if len(best) == len(entry.wrong):
            break  # further sizes are tried for what this one does not find
    return {f"{id}/{name}": one for name, one in found.items()}


def _sizes(entry: Equation) -> Iterator[dict[str, int]]:
    for sizes in SIZES if entry.axes else SIZES[:1]:
        yield dict(zip(entry.axes, sizes * 4, strict=False))


def _judged(
    entry: Equation, names: list[str], sizes: dict[str, int], family: str
) -> dict[str, float]:
    """Give error/allowed of variants on one family, of those that apply to it."""
    out: dict[str, float] = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = _inputs(entry, sizes, family)
        try:
            plain = _arrays(entry.call(entry.default_reading, **inputs))
        except NotApplicable:
            return out
        forms = entry.form(entry.default_reading)
        evaluator = Evaluator(forms, inputs, PLAIN, ["f32"] * len(plain), seed=0)
        for name in names:
            try:
                wrong = _arrays(_rounded_run(entry, name, inputs))
            except NotApplicable:
                continue
            if [x.shape for x in wrong] != [x.shape for x in plain]:
                out[name] = math.inf
                continue
            given = [x.astype(np.float32).astype(np.float64) for x in wrong]
            judged = judge(evaluator.evaluation(), given)
            out[name] = max(max(j.worst_ratio, j.coherent / 8.0) for j in judged)
    return out


def _rounded_run(entry: Equation, name: str, inputs: dict[str, Any]) -> Any:
    try:
        return machine(entry.form(name)[0], inputs, PLAIN, "lanes32")
    except BoundsError:  # what the array types do not follow runs as it stands
        return entry.call(name, **inputs)


def _inputs(entry: Equation, sizes: dict[str, int], family: str) -> dict[str, Any]:
    """Draw the inputs of one family, born in float32."""
    rng = np.random.default_rng([0, *family.encode()])
    names = frozenset(entry.axes)
    values: dict[str, Any] = {}
    for symbol in entry.inputs:
        shape = tuple(parse(part, names, symbol.name).value(sizes) for part in symbol.shape)
        values[symbol.name] = ordinary(symbol.domain, shape, rng, sizes)
    for one in entry.families:
        if one.name == family:
            values = dict(one.make(rng, sizes, values))
    if entry.prepare is not None:
        values = dict(entry.prepare(rng, sizes, values))
    domains = {symbol.name: symbol.domain for symbol in entry.inputs}
    out: dict[str, Any] = {}
    for key, value in values.items():
        if domains[key].kind == "index":
            out[key] = np.rint(np.asarray(value)).astype(np.int64)
        else:
            wide = widened(rounded(value, F32, domains[key]))
            out[key] = wide if wide.ndim else wide.item()
    return out


def _arrays(result: Any) -> list[Any]:
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(part, dtype=np.float64) for part in parts]
