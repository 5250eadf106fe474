"""The symmetric logarithm, its inverse, and the derivative of each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID, BACKWARD_ID = "dqn.symlog", "dqn.symlog_backward"
INVERSE_ID, INVERSE_BACKWARD_ID = "dqn.symexp", "dqn.symexp_backward"
SOURCE = "DreamerV3, arXiv:2301.04104, Eq. 9"
GRADE = "as printed"
DERIVED = "derived from the print"


def _tiny(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"x": 1e-8 * np.asarray(values["x"])}


def _large(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"x": 1e6 * np.asarray(values["x"])}


def _zero(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"x": np.zeros(sizes["n"])}


def _steep(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"x": 8.0 * np.asarray(values["x"])}


_TINY = Family("tiny", "arguments whose 1 + |x| is 1 in float32", _tiny)
_LARGE = Family("large", "arguments in the millions", _large)
_STEEP = Family("steep", "exponents of some 20", _steep)
_ZERO = Family("zero", "symlog and symexp of 0 are 0", _zero, right_kernel_only=True)


def _signed(x: F64, magnitude: F64) -> F64:
    """Give the magnitude the sign of x; NaN stays."""
    return np.where(x < 0.0, -magnitude, magnitude)


def _x(meaning: str) -> Symbol:
    return Symbol("x", ("n",), Domain("real", -3.0, 3.0), meaning)


_DY = Symbol("dy", ("n",), Domain("real", -2.0, 2.0), "gradient at the output")
_Y = (Symbol("y", ("n",), Domain("real"), "transformed"),)
_DX = (Symbol("dx", ("n",), Domain("real"), "gradient at the input"),)


_SYMLOG_WRONG = {
    "log_of_signed": "ln(1 + x) for negative x as well: NaN from -1 on",
    "unsigned": "ln(1 + |x|)",
    "log_of_magnitude": "sign(x) ln(max(|x|, 1))",
    "base_two": "sign(x) log2(1 + |x|)",
    "identity_beyond_float32": "ln of the float32 nearest to 1 + |x|",
}
_SYMLOG_KNOWN = ("log1p", *_SYMLOG_WRONG)


@equation(
    ID,
    title="Symmetric logarithm",
    source=SOURCE,
    grade=GRADE,
    formula="y = sign(x) ln(1 + |x|)",
    axes=("n",),
    inputs=(_x("any number"),),
    outputs=_Y,
    readings=("log1p",),
    wrong=_SYMLOG_WRONG,
    forms={"log1p": (lambda x: np.sign(x) * np.log1p(np.abs(x)),)},
    families=(_TINY, _LARGE, _ZERO),
    notes="Odd, monotone, slope 1 at 0. ln(1 + |x|) formed with a rounded sum is 0 below 6e-8.",
)
def symlog(x: F64, *, reading: str = "log1p") -> F64:
    """Compress numbers of any size and sign.

    Equation: DreamerV3, arXiv:2301.04104, Eq. 9
        y = sign(x) ln(1 + |x|)
    Shapes: x, y (n,).
    """
    if reading == "log1p":
        return _signed(x, np.log1p(np.abs(x)))
    if reading == "log_of_signed":
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(1.0 + x)
    if reading == "unsigned":
        return np.log1p(np.abs(x))
    if reading == "log_of_magnitude":
        size = np.abs(x)
        return _signed(x, np.log(np.where(size > 1.0, size, 1.0)))
    if reading == "base_two":
        return _signed(x, np.log2(1.0 + np.abs(x)))
    if reading == "identity_beyond_float32":
        return _signed(x, np.log(_float32_sum(np.abs(x))))
    raise UnknownReading(ID, reading, _SYMLOG_KNOWN)


def _float32_sum(size: F64) -> F64:
    """Give 1 + size on the grid of float32 between 1 and 2, where it is below 2."""
    grid = 2.0**23
    return np.where(size < 1.0, np.rint((1.0 + size) * grid) / grid, 1.0 + size)


_SYMLOG_BACKWARD_WRONG = {
    "signed": "dy / (1 + x)",
    "sign_kept": "sign(x) dy / (1 + |x|)",
    "squared": "dy / (1 + x^2)",
    "slope_missing": "dy",
}
_SYMLOG_BACKWARD_KNOWN = ("reciprocal", *_SYMLOG_BACKWARD_WRONG)


@equation(
    BACKWARD_ID,
    title="Symmetric logarithm, backward",
    source=SOURCE,
    grade=DERIVED,
    formula="dx = dy / (1 + |x|)",
    axes=("n",),
    inputs=(_x("input of the forward pass"), _DY),
    outputs=_DX,
    readings=("reciprocal",),
    wrong=_SYMLOG_BACKWARD_WRONG,
    forms={"reciprocal": (lambda x, dy: dy * (1.0 / (1.0 + np.abs(x))),)},
    families=(_TINY, _LARGE, _ZERO),
)
def symlog_backward(x: F64, dy: F64, *, reading: str = "reciprocal") -> F64:
    """Take a gradient back through the symmetric logarithm.

    Equation: DreamerV3, arXiv:2301.04104, Eq. 9, differentiated
        dx = dy / (1 + |x|)
    Shapes: x, dy, dx (n,).
    """
    size = np.abs(x)
    if reading == "reciprocal":
        return dy / (1.0 + size)
    if reading == "signed":
        return dy / (1.0 + x)
    if reading == "sign_kept":
        return _signed(x, dy / (1.0 + size))
    if reading == "squared":
        return dy / (1.0 + x * x)
    if reading == "slope_missing":
        return dy * 1.0
    raise UnknownReading(BACKWARD_ID, reading, _SYMLOG_BACKWARD_KNOWN)


_SYMEXP_WRONG = {
    "unsigned": "exp(|x|) - 1",
    "expm1_of_signed": "exp(x) - 1",
    "one_kept": "sign(x) exp(|x|)",
    "hyperbolic_sine": "(exp(x) - exp(-x)) / 2",
}
_SYMEXP_KNOWN = ("expm1", *_SYMEXP_WRONG)


@equation(
    INVERSE_ID,
    title="Symmetric exponential",
    source=SOURCE,
    grade=GRADE,
    formula="y = sign(x) (exp(|x|) - 1)",
    axes=("n",),
    inputs=(_x("any number below the overflow of exp"),),
    outputs=_Y,
    readings=("expm1",),
    wrong=_SYMEXP_WRONG,
    forms={"expm1": (lambda x: np.sign(x) * np.expm1(np.abs(x)),)},
    families=(_TINY, _STEEP, _ZERO),
)
def symexp(x: F64, *, reading: str = "expm1") -> F64:
    """Undo the symmetric logarithm.

    Equation: DreamerV3, arXiv:2301.04104, Eq. 9
        y = sign(x) (exp(|x|) - 1)
    Shapes: x, y (n,).
    """
    if reading == "expm1":
        return _signed(x, np.expm1(np.abs(x)))
    if reading == "unsigned":
        return np.expm1(np.abs(x))
    if reading == "expm1_of_signed":
        return np.expm1(x)
    if reading == "one_kept":
        return _signed(x, np.exp(np.abs(x)))
    if reading == "hyperbolic_sine":
        return np.sinh(x)
    raise UnknownReading(INVERSE_ID, reading, _SYMEXP_KNOWN)


_SYMEXP_BACKWARD_WRONG = {
    "signed": "dy exp(x)",
    "output_for_slope": "dy (exp(|x|) - 1)",
    "sign_kept": "sign(x) dy exp(|x|)",
}
_SYMEXP_BACKWARD_KNOWN = ("exponential", *_SYMEXP_BACKWARD_WRONG)


@equation(
    INVERSE_BACKWARD_ID,
    title="Symmetric exponential, backward",
    source=SOURCE,
    grade=DERIVED,
    formula="dx = dy exp(|x|)",
    axes=("n",),
    inputs=(_x("input of the forward pass"), _DY),
    outputs=_DX,
    readings=("exponential",),
    wrong=_SYMEXP_BACKWARD_WRONG,
    forms={"exponential": (lambda x, dy: dy * (1.0 + np.expm1(np.abs(x))),)},
    families=(_TINY, _STEEP, _ZERO),
)
def symexp_backward(x: F64, dy: F64, *, reading: str = "exponential") -> F64:
    """Take a gradient back through the symmetric exponential.

    Equation: DreamerV3, arXiv:2301.04104, Eq. 9, differentiated
        dx = dy exp(|x|)
    Shapes: x, dy, dx (n,).
    """
    if reading == "exponential":
        return dy * np.exp(np.abs(x))
    if reading == "signed":
        return dy * np.exp(x)
    if reading == "output_for_slope":
        return dy * np.expm1(np.abs(x))
    if reading == "sign_kept":
        return _signed(x, dy * np.exp(np.abs(x)))
    raise UnknownReading(INVERSE_BACKWARD_ID, reading, _SYMEXP_BACKWARD_KNOWN)
