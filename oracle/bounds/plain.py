"""Running a reference as it is, on plain arrays."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError
from trueup.reference import ReferenceError_

Array = NDArray[Any]
Inputs = dict[str, Any]


def checked(inputs: Mapping[str, Any]) -> Inputs:
    """The inputs as float64 or integer arrays, floats and ints; copies, so that nothing moves."""
    out: Inputs = {}
    for name, value in inputs.items():
        if isinstance(value, (bool, int, float)):
            out[name] = value
            continue
        if isinstance(value, (np.generic, np.ndarray)):
            array = np.array(value)
            if array.dtype.kind not in "biuf":
                raise BoundsError(
                    f"input {name!r} has dtype {array.dtype}; expected floats, integers or booleans"
                )
            if array.dtype.kind == "f" and array.dtype.itemsize < 8:
                array = array.astype(np.float64)
            out[name] = array.item() if isinstance(value, np.generic) else array
            continue
        if value is None or isinstance(value, str):
            out[name] = value
            continue
        raise BoundsError(
            f"input {name!r} is a {type(value).__name__}; expected an array, a float or an int"
        )
    return out


def copied(inputs: Inputs) -> Inputs:
    """The inputs with fresh arrays."""
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}


def flattened(result: Any) -> tuple[Any, ...]:
    """The outputs of a call: one, or the items of a tuple."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def plain_values(form: Callable[..., Any], inputs: Inputs, outputs: int) -> tuple[Array, ...]:
    """The outputs of the reference itself."""
    try:
        with np.errstate(all="ignore"):
            result = flattened(form(**copied(inputs)))
    except (BoundsError, ReferenceError_):
        raise
    except (Exception, SystemExit) as error:  # the reference may be the user's own
        raise BoundsError(
            f"the reference raised {type(error).__name__}: {error}",
            where=_place(error),
            got=", ".join(f"{k} {np.shape(v)}" for k, v in inputs.items()),
            fix="correct the reference, or state the legal sizes in [contract] limits",
        ) from error
    if len(result) != outputs:
        name = getattr(form, "__name__", repr(form))
        raise BoundsError(
            f"{name} returned {len(result)} outputs, {outputs} output dtypes were given"
        )
    values = tuple(np.asarray(value) for value in result)
    for value in values:
        if value.dtype.kind not in "biuf":
            raise BoundsError(
                f"the reference returned {_kind(value)}; expected an array of numbers"
            )
    return values


def _kind(value: Array) -> str:
    """Name what was returned instead of numbers."""
    if value.dtype == object and value.ndim == 0:
        return type(value.item()).__name__
    return f"an array of dtype {value.dtype}"


def _place(error: BaseException) -> str:
    """The innermost line outside NumPy that an error came from."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [f for f in frames if f"{os.sep}numpy{os.sep}" not in f.filename] or frames
    return f"{own[-1].filename}:{own[-1].lineno}" if own else "the reference"
