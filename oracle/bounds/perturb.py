"""Bounds from perturbed inputs alone, for references the array types cannot follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError
from trueup.oracle.bounds.formats import Format
from trueup.oracle.bounds.plain import Inputs, copied, flattened
from trueup.oracle.bounds.rule import Samples, alternative

if TYPE_CHECKING:
    from trueup.oracle.bounds.evaluate import Effort, Evaluator
    from trueup.oracle.bounds.follow import Followed

Array = NDArray[Any]


def perturb(
    job: Evaluator,
    form: Callable[..., Any],
    index: int,
    effort: Effort,
    reason: str,
) -> Followed:
    """Every float input moved by up to one rounding, `effort.samples` times."""
    from trueup.oracle.bounds.follow import Followed

    if job.precision.elementwise.name == "f64":
        raise BoundsError(
            "a float64 kernel cannot be judged by perturbed inputs, whose own rounding is as large "
            f"as the kernel's; the reference could not be followed: {reason}"
        )
    gathered = _gather(job, form, index, job.plain(index), effort, reason)
    found = [
        [alternative(s, np.full(s.value.shape, np.nan), dtype, form=index, outcome=0)]
        for s, dtype in zip(gathered, job.dtypes, strict=True)
    ]
    return Followed(found, 1, True, [f"bound: inputs only ({reason})"])


def _gather(
    job: Evaluator,
    form: Callable[..., Any],
    index: int,
    plain: tuple[Array, ...],
    effort: Effort,
    reason: str,
) -> list[Samples]:
    rng = np.random.default_rng((job.seed, index, effort.stage))
    gathered = [Samples(value) for value in plain]
    failed = 0
    for _ in range(effort.samples):
        moved = _moved(job.inputs, job.precision.elementwise, rng)
        try:
            with np.errstate(all="ignore"):
                rows = [np.asarray(r)[None] for r in flattened(form(**moved))]
        except Exception:  # a perturbed input may leave the reference's domain
            failed += 1
            continue
        if [r.shape[1:] for r in rows] != [v.shape for v in plain]:
            failed += 1
            continue
        for samples, row in zip(gathered, rows, strict=True):
            samples.add(row, row[:0])
    if failed == effort.samples:
        raise BoundsError(
            f"the reference fails on every perturbed input, and could not be followed: {reason}"
        )
    return gathered


def _moved(inputs: Inputs, fmt: Format, rng: np.random.Generator) -> Inputs:
    u, floor = fmt.u, fmt.least / 2.0

    def move(value: Any) -> Any:
        if isinstance(value, float):
            return value * (1.0 + u * rng.uniform(-1.0, 1.0))
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            reach = np.where(value == 0, 0.0, u * np.abs(value) + floor)
            return value + reach * np.sign(value) * rng.uniform(-1.0, 1.0, value.shape)
        return value

    return {name: move(value) for name, value in copied(inputs).items()}
