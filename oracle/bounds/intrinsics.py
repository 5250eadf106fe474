"""Documented errors of the elementary functions of the CUDA mathematics library.

`ULP` holds the largest error in units in the last place of the single-precision functions, from
the tables of the CUDA C++ Programming Guide. Division, reciprocal and square root are correctly
rounded there unless fast mathematics is asked for. `FAST` gives the fast intrinsics, whose error
depends on the argument: a relative part in ulp and an absolute part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ULP: dict[str, float] = {
    "exp": 2,
    "exp2": 2,
    "expm1": 1,
    "log": 1,
    "log2": 1,
    "log10": 2,
    "log1p": 1,
    "sin": 2,
    "cos": 2,
    "tan": 4,
    "arcsin": 2,
    "arccos": 2,
    "arctan": 2,
    "arctan2": 3,
    "sinh": 3,
    "cosh": 2,
    "tanh": 2,
    "arcsinh": 3,
    "arccosh": 4,
    "arctanh": 3,
    "power": 4,
    "float_power": 4,
    "cbrt": 1,
    "hypot": 3,
    "logaddexp": 4,
    "logaddexp2": 4,
    "deg2rad": 1,
    "rad2deg": 1,
}

Fast = Callable[[Array], tuple[Array | float, float]]


def _exp(x: Array) -> tuple[Array, float]:
    return 2.0 + np.floor(np.abs(1.173 * x)), 0.0


def _log(x: Array) -> tuple[Array, float]:
    near_one = (x >= 0.5) & (x <= 2.0)
    return np.where(near_one, 0.0, 3.0), 2.0**-21.41


FAST: dict[str, Fast] = {
    "exp": _exp,
    "exp2": lambda x: (2.0, 0.0),
    "log": _log,
    "log2": lambda x: (2.0, 2.0**-22.0),
    "log10": lambda x: (3.0, 2.0**-22.0),
    "sin": lambda x: (0.0, 2.0**-21.41),
    "cos": lambda x: (0.0, 2.0**-21.19),
    "tanh": lambda x: (2.0**12.0, 0.0),
    "sqrt": lambda x: (1.0, 0.0),
    "divide": lambda x: (2.0, 0.0),
    "reciprocal": lambda x: (1.0, 0.0),
}

# The arguments at which every library is exact: (function, argument).
EXACT_AT: dict[str, float] = {
    "exp": 0.0,
    "exp2": 0.0,
    "expm1": 0.0,
    "log": 1.0,
    "log2": 1.0,
    "log10": 1.0,
    "log1p": 0.0,
    "sin": 0.0,
    "cos": 0.0,
    "tan": 0.0,
    "arcsin": 0.0,
    "arctan": 0.0,
    "sinh": 0.0,
    "cosh": 0.0,
    "tanh": 0.0,
    "arcsinh": 0.0,
    "arctanh": 0.0,
    "arccos": 1.0,
    "arccosh": 1.0,
    "cbrt": 0.0,
}
