"""Judging a kernel's outputs by an evaluation, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError
from trueup.oracle.bounds.evaluate import Evaluation, Evaluator
from trueup.oracle.bounds.formats import output_format
from trueup.oracle.bounds.rule import INFINITE, NOT_A_NUMBER, Alternative

Array = NDArray[Any]

# Spreads of Σ error·value at which a whole output is wrong although no element shows it.
COHERENT = 8.0

PASS = "pass"
BEYOND = "beyond sampled rounding"
PROVEN = "proven"


@dataclass(frozen=True)
class OutputJudgement:
    """How one output compares with what its case allows.

    Arrays have the output's shape and hold, per element, the alternative it fits best.
    `not_judged` elements have no finite allowance, or hang on more close decisions than could be
    tried: they neither pass nor fail.
    """

    ratio: Array
    error: Array
    allowed: Array
    worst_case: Array
    condition: Array
    exact: Array
    nonfinite_mismatch: Array
    not_judged: Array
    failed: Array
    proven: Array
    coherent: float
    systematic: bool
    worst_index: tuple[int, ...] | None
    zone: str

    @property
    def judged(self) -> int:
        """Elements that were judged."""
        return int(self.not_judged.size - np.count_nonzero(self.not_judged))

    @property
    def passed(self) -> bool:
        """Nothing failed, nothing was left unjudged, there was something to judge."""
        clean = not self.failed.any() and not self.not_judged.any()
        return bool(clean and self.ratio.size and self.coherent <= COHERENT)

    @property
    def rejected(self) -> bool:
        """Something failed: an element, or the whole by its coherent error."""
        return bool(self.failed.any() or self.coherent > COHERENT)

    @property
    def worst_ratio(self) -> float:
        """The largest error/allowed of the judged elements."""
        kept = self.ratio[~self.not_judged]
        return float(kept.max()) if kept.size else 0.0


def judge(evaluation: Evaluation, outputs: Sequence[Array]) -> tuple[OutputJudgement, ...]:
    """Judge the kernel's arrays, widened to float64 (or integers), against an evaluation."""
    if len(outputs) != len(evaluation.outputs):
        raise BoundsError(
            f"{len(outputs)} outputs were given to judge, the case has {len(evaluation.outputs)}"
        )
    return tuple(judge_output(evaluation, i, np.asarray(o)) for i, o in enumerate(outputs))


def judge_output(evaluation: Evaluation, index: int, output: Array) -> OutputJudgement:
    """Judge one of the outputs."""
    with np.errstate(all="ignore"):
        return _judge_output(evaluation, index, output)


def judge_confirmed(evaluator: Evaluator, outputs: Sequence[Array]) -> tuple[OutputJudgement, ...]:
    """As `judge`; a case that would fail is judged again by 256 fresh samples, 64 outcomes."""
    first = judge(evaluator.evaluation(), outputs)
    if not any(j.rejected for j in first):
        return first
    if evaluator.evaluation().exhaustive and _hopeless(first):
        return first
    return judge(evaluator.confirmed(), outputs)


def passing_naturally(
    evaluator: Evaluator, outputs: Sequence[Array]
) -> tuple[OutputJudgement, ...] | None:
    """The judgement by the natural outcome of form 0, if all pass by it; None if not.

    It costs one outcome of one form. An element passes if it fits any alternative, so what passes
    here passes `judge_confirmed`, and nothing fails here.
    """
    first = judge(evaluator.natural(), outputs)
    settled = all(not j.rejected and not j.not_judged.any() for j in first)
    return first if settled else None


# An error this many times the allowed one does not hang on which samples were drawn: 32 of them
# put the spread within a factor of two.
_CLEAR = 64.0


def _hopeless(judgements: Sequence[OutputJudgement]) -> bool:
    """True where no fresh samples could turn the failure: finite allowance, error far above it."""
    for judgement in judgements:
        sure = judgement.failed & (judgement.ratio > _CLEAR) & np.isfinite(judgement.ratio)
        if sure.any():
            return True
    return False


@dataclass
class _Fit:
    """One alternative compared with the output."""

    ratio: Array
    error: Array
    mismatch: Array
    unknown: Array
    beyond: Array
    coherent: float


def _judge_output(evaluation: Evaluation, index: int, output: Array) -> OutputJudgement:
    alternatives = evaluation.outputs[index]
    shape = alternatives[0].value.shape
    if output.shape != shape:
        raise BoundsError(f"output {index} has shape {output.shape}, the reference returns {shape}")
    if output.dtype.kind not in "biuf":
        raise BoundsError(
            f"output {index} has dtype {output.dtype}; widen it to float64 or integers first"
        )
    fits = [_fit(a, output) for a in alternatives]
    rank = np.stack([_score(f) for f in fits])
    best = np.argmin(rank, axis=0)[None]

    def pick(arrays: list[Array]) -> Array:
        if len(arrays) == 1:
            return arrays[0]
        return np.asarray(np.take_along_axis(np.stack(arrays), best, axis=0)[0])

    ratio = pick([f.ratio for f in fits])
    unknown = pick([f.unknown for f in fits])
    unknown = unknown | _unsettled(evaluation, index, ratio)
    failed = (ratio > 1) & ~unknown
    proven = np.logical_and.reduce([f.beyond for f in fits]) & failed
    spread = pick([a.spread for a in alternatives])
    value = pick([a.value.astype(np.float64) for a in alternatives])
    worst_index = _worst(ratio, unknown)
    return OutputJudgement(
        ratio=ratio,
        error=pick([f.error for f in fits]),
        allowed=pick([a.allowed for a in alternatives]),
        worst_case=pick([a.worst for a in alternatives]),
        condition=_condition(spread, value, evaluation.dtypes[index]),
        exact=pick([a.allowed == 0 for a in alternatives]),
        nonfinite_mismatch=pick([f.mismatch for f in fits]) & failed,
        not_judged=unknown,
        failed=failed,
        proven=proven,
        coherent=_coherent(fits, alternatives, output, best, failed),
        systematic=any(a.systematic for a in alternatives),
        worst_index=worst_index,
        zone=_zone(worst_index, failed, proven),
    )


def _fit(a: Alternative, output: Array) -> _Fit:
    value = a.value
    finite, given = np.isfinite(value), np.isfinite(output)
    both = finite & given
    error = np.where(both, np.abs(_difference(output, value)), np.where(finite | given, np.inf, 0))
    same = (np.isnan(value) & np.isnan(output)) | (value == output)
    overflow = finite & np.isinf(output) & ((a.flags & INFINITE) > 0)
    undefined = finite & np.isnan(output) & ((a.flags & NOT_A_NUMBER) > 0)
    fits = same | overflow | undefined
    zero = (error == 0) & both
    ratio = np.where(zero, 0.0, error / np.where(a.allowed == 0, 1.0, a.allowed))
    ratio = np.where((a.allowed == 0) & ~zero, np.inf, ratio)
    ratio = np.where(both, ratio, np.where(fits, 0.0, np.inf))
    unknown = both & ~np.isfinite(a.allowed)
    if a.systematic:
        unknown = unknown | (both & ~np.isfinite(a.worst) & (ratio > 1))
    ratio = np.where(unknown, 0.0, ratio)
    error = np.where(fits & ~both, 0.0, error)
    beyond = ~fits & np.where(both, error > a.worst, True) & ~np.isnan(a.worst)
    coherent = _scale(np.where(both, error, 0.0), a, output)
    return _Fit(ratio, error, ~both & ~fits, unknown, beyond, coherent)


def _difference(output: Array, value: Array) -> Array:
    whole = output.dtype.kind in "iub" and value.dtype.kind in "iub"
    if whole and max(output.dtype.itemsize, value.dtype.itemsize) == 8:
        # Python integers: unsigned and 64-bit differences must not wrap around.
        far = output.astype(object) - value.astype(object)
        return np.asarray(far, dtype=np.float64)
    return np.asarray(output.astype(value.dtype if value.dtype.kind == "f" else float) - value)


def _score(fit: _Fit) -> Array:
    """Order of preference: what fits, then what cannot be judged, then the smallest ratio."""
    return np.where(fit.unknown, 1.0 + 1e-9, fit.ratio)


def _unsettled(evaluation: Evaluation, index: int, ratio: Array) -> Array:
    """Exact elements that hang on more close decisions than combinations were tried."""
    alternatives = evaluation.outputs[index]
    if evaluation.exhaustive or len(alternatives) < 2:
        return np.zeros(ratio.shape, dtype=bool)
    first = alternatives[0]
    varies = np.any([a.value != first.value for a in alternatives[1:]], axis=0)
    exact = np.all([a.allowed == 0 for a in alternatives], axis=0)
    return np.asarray(varies & exact & (ratio > 1))


def _scale(error: Array, a: Alternative, output: Array) -> float:
    value = np.where(np.isfinite(a.value), a.value, 0.0)
    power = float((value * value).sum())
    if power == 0 or not error.any():
        return 0.0
    signed = np.where(np.isfinite(output) & np.isfinite(a.value), _difference(output, a.value), 0.0)
    share = abs(float((signed * value).sum())) / power
    if share == 0:
        return 0.0
    return share / a.coherent if a.coherent > 0 else float("inf")


def _coherent(
    fits: list[_Fit],
    alternatives: Sequence[Alternative],
    output: Array,
    best: Array,
    failed: Array,
) -> float:
    """Spreads of Σ error·value: of the best single alternative, or of the best mixture."""
    single = min(f.coherent for f in fits)
    if len(alternatives) == 1:
        return single
    mixed = np.take_along_axis(np.stack([a.value for a in alternatives]), best, axis=0)[0]
    value = np.where(np.isfinite(mixed), mixed, 0.0)
    signed = np.where(np.isfinite(output) & np.isfinite(mixed), _difference(output, mixed), 0.0)
    power = float((value * value).sum())
    share = abs(float((signed * value).sum())) / power if power else 0.0
    spread = max(a.coherent for a in alternatives)
    composed = 0.0 if share == 0 else share / spread if spread > 0 else float("inf")
    return min(single, composed)


def _condition(spread: Array, value: Array, dtype: str) -> Array:
    """How much larger the element's noise is than one rounding of it."""
    fmt = output_format(dtype)
    unit = (fmt.u if fmt is not None else 1.0) * np.abs(value)
    return np.where(spread == 0, 0.0, spread / np.where(unit == 0, np.nan, unit))


def _worst(ratio: Array, unknown: Array) -> tuple[int, ...] | None:
    if not ratio.size or unknown.all():
        return None
    at = int(np.argmax(np.where(unknown, -1.0, ratio)))
    return tuple(int(i) for i in np.unravel_index(at, ratio.shape))


def _zone(worst: tuple[int, ...] | None, failed: Array, proven: Array) -> str:
    if worst is None or not failed[worst]:
        return PASS
    return PROVEN if proven[worst] else BEYOND
