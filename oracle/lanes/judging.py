"""Holds a run's outputs against the bounds of its case, and words what it finds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.backends.base import AnyArray, RunResult
from trueup.oracle.bounds import OutputJudgement, certain, judge_confirmed, passing_naturally
from trueup.oracle.bounds.judge import COHERENT
from trueup.oracle.contract import Arg
from trueup.oracle.inputs import Draw
from trueup.oracle.inputs.draw import widened
from trueup.oracle.lanes.tally import Tally, element, first
from trueup.oracle.memory import filled, same_bits, written_mask
from trueup.oracle.session import Session
from trueup.oracle.verdict import Worst

# One rounding of each input says nothing of the roundings between: up to this many times its bound
# a kernel is neither passed nor failed.
_INTERMEDIATE = 16.0
_NONFINITE = (
    "NaN and infinity must stand exactly where the reference has them; "
    "beware of fmaxf, fminf and comparisons, which drop NaN"
)
_UNWRITTEN = (
    "the element holds what was there before the launch: nothing wrote it; "
    "check that the grid covers the array, and the guards"
)
_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def failing(
    session: Session, draw: Draw, judgement: OutputJudgement, arg: Arg
) -> NDArray[np.bool_]:
    """Which written elements are beyond their bound, or not finite where they should be."""
    mask = written_mask(arg, draw.case.axes)
    return np.asarray((judgement.failed | judgement.nonfinite_mismatch) & mask)


def judged(
    session: Session,
    tally: Tally,
    draw: Draw,
    result: RunResult,
    kind: str = "bound",
    *,
    briefly: bool = False,
) -> bool:
    """Judge one run, count its elements, report its worst failing element of each output.

    Before a failure stands, the case is evaluated again with more samples. `briefly`: what passes
    by the natural outcome of the reference is not taken further; nothing else passes by it.
    """
    evaluator = session.evaluator(draw)
    outputs = [widened(np.asarray(o)) for o in session.outputs(result)]
    judgements = passing_naturally(evaluator, outputs) if briefly else None
    notes: tuple[str, ...] = ()
    if judgements is None:
        judgements = judge_confirmed(evaluator, outputs)
        notes = evaluator.evaluation().notes
    good = True
    inputs_only = any(n.startswith("bound: inputs only") for n in notes)
    for note in notes:
        tally.notes[_same_for_all_cases(note, session.contract.outputs)] = None
    for (judgement, arg), value in zip(
        _pairs(session, judgements), evaluator.values(), strict=True
    ):
        mask = written_mask(arg, draw.case.axes)
        unjudged = int((mask & judgement.not_judged).sum())
        tally.elements += int(mask.sum()) - unjudged
        if unjudged:
            tally.notes[f"{draw.case.id}: {unjudged} elements of {arg.name} not judged"] = None
        _weigh(tally, draw, judgement, arg, mask)
        failed = failing(session, draw, judgement, arg)
        if failed.any() and inputs_only and _near(draw, judgement, failed, value, arg):
            tally.doubts[
                f"{arg.name} is beyond a bound that comes from the inputs' rounding alone, by less "
                "than a right kernel's own rounding may be: write the reference in NumPy operations"
            ] = None
        elif failed.any():
            good = False
            _report(
                session,
                tally,
                draw,
                (result.buffers[arg.name], value),
                judgement,
                arg,
                failed,
                kind,
            )
        elif judgement.coherent > COHERENT and mask.all():
            good = False
            tally.find(
                "coherent",
                draw,
                arg.name,
                f"all elements together are off by a common factor: {judgement.coherent:.3g} "
                "spreads, although each element is within its own bound",
                f"at most {COHERENT:g} spreads",
                "look for a constant or a scale that is slightly wrong",
            )
    return good


def holds(session: Session, tally: Tally, draw: Draw, result: RunResult) -> bool:
    """Whether every element passes by the worst case of the reference alone; counts them if so.

    Nothing fails by this: where it is False, the bound is to say.
    """
    evaluator = session.evaluator(draw)
    known = certain(evaluator, 0)
    if known is None:
        return False
    masks, worst = [], []
    for told, arg, output in zip(
        known, session.contract.outputs, session.outputs(result), strict=True
    ):
        out = widened(np.asarray(output))
        mask = written_mask(arg, draw.case.axes)
        with np.errstate(all="ignore"):
            same = (out == told.value) | (np.isnan(out) & np.isnan(told.value))
            error = np.where(same, 0.0, np.abs(out - told.value))
            ratio = np.where(same, 0.0, error / told.largest)
        if not bool((same | (np.isfinite(told.largest) & (ratio <= 1)) | ~mask).all()):
            return False
        masks.append(mask)
        ratio = np.where(mask, ratio, -1.0)
        if ratio.size and ratio.max() > 0:
            at = first(ratio == ratio.max())
            allowed = float(told.largest[at])
            name = element(arg.name, at)
            worst.append(Worst(float(ratio[at]), name, float(error[at]), allowed, draw.case.id))
    tally.elements += sum(int(mask.sum()) for mask in masks)
    for one in worst:
        tally.weigh(one)
    return True


def _pairs(
    session: Session, judgements: Sequence[OutputJudgement]
) -> list[tuple[OutputJudgement, Arg]]:
    return list(zip(judgements, session.contract.outputs, strict=True))


def _near(
    draw: Draw,
    judgement: OutputJudgement,
    failed: NDArray[np.bool_],
    value: AnyArray,
    arg: Arg,
) -> bool:
    """Whether all failing elements are within what intermediate roundings could add.

    Those are of the size of intermediate values, for which the largest of outputs, inputs and 1
    stands in.
    """
    if bool(judgement.nonfinite_mismatch.any()) or arg.dtype not in _DIGITS:
        return False
    known = [value, *(np.asarray(v, dtype=np.float64) for v in draw.wide.values())]
    scale = max(float(np.abs(np.where(np.isfinite(v), v, 0.0)).max(initial=1.0)) for v in known)
    roundings = _INTERMEDIATE * 2.0 ** -_DIGITS[arg.dtype] * scale
    near = np.maximum(_INTERMEDIATE * judgement.allowed, roundings)
    return bool((judgement.error <= near)[failed].all())


def _same_for_all_cases(note: str, outputs: Sequence[Arg]) -> str:
    """Word a note of one evaluation so that those of other cases read alike, and count once."""
    without = re.sub(r" \(witness [^)]*\)", "", note)
    return re.sub(r"^output (\d+)", lambda m: outputs[int(m[1])].name, without)


def _weigh(
    tally: Tally, draw: Draw, judgement: OutputJudgement, arg: Arg, mask: NDArray[np.bool_]
) -> None:
    ratio = np.where(mask & ~judgement.not_judged, judgement.ratio, -1.0)
    if not ratio.size or ratio.max() < 0:
        return
    index = first(ratio == ratio.max())
    tally.weigh(
        Worst(
            float(ratio[index]),
            element(arg.name, index),
            float(judgement.error[index]),
            float(judgement.allowed[index]),
            draw.case.id,
        )
    )


def _report(
    session: Session,
    tally: Tally,
    draw: Draw,
    pair: tuple[AnyArray, AnyArray],
    judgement: OutputJudgement,
    arg: Arg,
    failed: NDArray[np.bool_],
    kind: str,
) -> None:
    output, value = pair
    strange = judgement.nonfinite_mismatch & failed
    count = f"{int(failed.sum())} of {failed.size} elements fail"
    if strange.any():
        index = first(strange)
        tally.find(
            "nonfinite",
            draw,
            element(arg.name, index),
            f"{shown_number(output[index])}; {count}",
            f'{shown_number(value[index])} (nan = "{session.contract.nan}")',
            _UNWRITTEN if _still_fill(output)[index] else _NONFINITE,
        )
        return
    ratio = np.where(failed, judgement.ratio, -1.0)
    index = first(ratio == ratio.max())
    error, allowed = float(judgement.error[index]), float(judgement.allowed[index])
    worst = float(judgement.worst_case[index])
    tally.find(
        kind,
        draw,
        element(arg.name, index),
        f"{shown_number(output[index])}, error {error:.3g}; {count}",
        f"{shown_number(value[index])} within {allowed:.3g}",
        explain((error, allowed, worst), float(value[index]), judgement.condition, index, arg),
    )


def _still_fill(output: AnyArray) -> NDArray[np.bool_]:
    """Which elements hold what was there before the launch."""
    return same_bits(output, filled(output.shape, output.dtype))


def explain(
    sizes: tuple[float, float, float],
    value: float,
    condition: AnyArray | None,
    index: tuple[int, ...],
    arg: Arg,
) -> str:
    """Say how far beyond the bound an element is, and whether rounding could explain it.

    `sizes` are the error, the allowed error and the worst case of float arithmetic.
    """
    error, allowed, worst = sizes
    parts = ["the arithmetic is exact here, so the bits must be equal"]
    if allowed > 0:
        parts = [f"{error / allowed:.3g} times the allowed error"]
    if math.isfinite(worst) and error > worst:
        parts.append("proven: no order of floating-point operations explains it")
    else:
        if math.isfinite(worst) and worst > 0:
            parts.append(f"{error / worst:.2g} of the worst case")
        parts.append("beyond sampled rounding")
    if condition is not None and np.isfinite(condition[index]):
        parts.append(f"condition {float(condition[index]):.2g}")
    ulps = _ulps(error, value, arg)
    if ulps is not None:
        parts.append(f"{ulps:.3g} ULP of {arg.dtype}")
    return "; ".join(parts)


def _ulps(error: float, value: float, arg: Arg) -> float | None:
    digits = _DIGITS.get(arg.dtype)
    if digits is None or value == 0 or not math.isfinite(value):
        return None
    return error / math.ldexp(1.0, math.frexp(value)[1] - digits)


def shown_number(value: object) -> str:
    """Print a number with the digits that tell float32 values apart."""
    return f"{float(np.float64(value)):.9g}"  # type: ignore[arg-type]
