"""What is certain of one form without a sample: its value, and the largest error there may be.

One evaluation by the worst case costs a fraction of the sampled bound. It is enough to know which
elements are exact, and to pass an element whose bound needs no finer answer; it fails nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError
from trueup.oracle.bounds.follow import errors_of, followed
from trueup.oracle.bounds.formats import output_format
from trueup.oracle.bounds.rows import Rows
from trueup.oracle.bounds.tape import Tape
from trueup.oracle.bounds.worst import Worst

if TYPE_CHECKING:
    from trueup.oracle.bounds.evaluate import Evaluator

Array = NDArray[Any]

# Stands for an error without bound: a decision within its reach is close, and nothing overflows.
_UNBOUNDED = 1e300


@dataclass(frozen=True)
class Certain:
    """One output: `largest` is 0 where every operation is exact, infinite where nothing is known.

    `clear` says that no decision of the evaluation hangs on rounding, so `value` has no rival.
    """

    value: Array
    largest: Array
    clear: bool


def certain(job: Evaluator, index: int) -> tuple[Certain, ...] | None:
    """Evaluate form `index` by the worst case alone; None where it cannot be followed."""
    model = _Careful(job.precision, Tape(0))
    try:
        outputs = followed(job, job.forms[index], model)
    except BoundsError:
        return None
    plain = job.plain(index)
    if len(outputs) != len(plain):
        return None
    found = []
    for x, error, value, dtype in zip(outputs, errors_of(outputs), plain, job.dtypes, strict=True):
        if x.shape != value.shape or not np.array_equal(x.v, value, equal_nan=True):
            return None
        found.append(Certain(value, error + _stored(value, error, dtype), model.tape.close == 0))
    return tuple(found)


def _stored(value: Array, error: Array, dtype: str) -> Array:
    """The rounding of the output; none where the value is exact and its format holds it."""
    fmt = output_format(dtype)
    if fmt is None:
        return np.zeros(value.shape)
    with np.errstate(all="ignore"):
        reach = np.abs(value).astype(np.float64) + error
        rounding = np.maximum(fmt.u * reach, fmt.least / 2)
        rounding = np.where(reach >= fmt.overflow, np.inf, rounding)
    held = (error == 0) & (fmt.represents(value) | ~np.isfinite(value))
    return np.where(held, 0.0, rounding)


class _Careful(Worst):
    """The worst case that also says which decisions its own errors reach."""

    def spread(self, x: Rows) -> Array | float:
        """The largest error of a value."""
        return _bounded(self._error(x))

    def apart(self, a: Array, b: Array) -> Array | float:
        """Both errors: they need not cancel."""
        if a.shape[0] == b.shape[0] == 1:
            return 0.0
        return _bounded(self.match(a, 2)[1] + self.match(b, 2)[1])


def _bounded(error: Array) -> Array:
    error = np.asarray(error, dtype=np.float64)
    return np.where(np.isfinite(error), np.minimum(error, _UNBOUNDED), _UNBOUNDED)
