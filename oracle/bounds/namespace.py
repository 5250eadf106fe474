"""What a reference sees instead of `numpy`, `math`, `float`, `max`, `min`, `round` and `sum`."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any

import numpy as np

# Importing these fills the table of handlers.
from trueup.oracle.bounds import composed, contract, ordering, structure  # noqa: F401
from trueup.oracle.bounds.makers import Makers
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model


class _FloatMeta(type):
    """`isinstance(x, float)` is true for what would be a float in the plain run."""

    real: Any = float

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.real) or (isinstance(x, Rows) and x.floating and x.ndim == 0)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or other is cls.real

    def __hash__(cls) -> int:
        return hash(cls.real)


def _float_type(model: Model, real: Any) -> Any:
    """A stand-in for `float` or `numpy.float64`: a type, a dtype and a function."""

    def make(cls: type, value: Any = 0.0) -> Any:
        if isinstance(value, Rows):
            return model.floats(value).reshape(())
        return real(value)

    meta = type("FloatMeta", (_FloatMeta,), {"real": real})
    return meta(
        real.__name__,
        (),
        {
            "__new__": make,
            "dtype": np.dtype(np.float64),
            "stands_for": "float64",
            "is_integer": staticmethod(lambda x: bool(np.floor(x) == x)),
        },
    )


class _ArrayMeta(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (np.ndarray, Rows))


class _AnyArray(metaclass=_ArrayMeta):
    """`isinstance(x, numpy.ndarray)` is true for rows."""


class Namespace:
    """A module with some names replaced; all others are the module's own."""

    def __init__(self, module: Any, names: dict[str, Any]) -> None:
        """Replace `names` of a module."""
        self._module = module
        self._names = names

    def __getattr__(self, name: str) -> Any:
        """The replacement of a name, or what the module has."""
        names = self.__dict__["_names"]
        if name in names:
            return names[name]
        return getattr(self.__dict__["_module"], name)


_MATH = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "fabs": np.fabs,
    "cbrt": np.cbrt,
    "copysign": np.copysign,
    "fmod": np.fmod,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "degrees": np.rad2deg,
    "radians": np.deg2rad,
}
_TO_INT = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def _math(model: Model) -> dict[str, Any]:
    def either(plain: Any, rows: Any) -> Any:
        def call(*args: Any) -> Any:
            if any(isinstance(a, Rows) for a in args):
                return rows(*(model.lift(a) for a in args))
            return plain(*args)

        return call

    def anchored(name: str, function: Any) -> Any:
        """Row 0 is what `math` itself gives, which may differ from NumPy in the last bit."""
        plain = getattr(math, name)

        def call(*args: Any) -> Any:
            out = function(*args)
            if out.floating and model.tape.outcome == 0 and model.plain:
                native = plain(*(float(a.v) for a in args))
                return model.anchor(out, np.asarray(native, dtype=model.real))
            return out

        return call if model.real is np.float64 else function

    names = {n: either(getattr(math, n), anchored(n, f)) for n, f in _MATH.items()}
    for name, function in _TO_INT.items():
        names[name] = either(getattr(math, name), lambda x, f=function: int(f(x)))
    names["log"] = lambda x, base=None: (
        names["_log"](x) if base is None else names["_log"](x) / names["_log"](base)
    )
    names["_log"] = either(math.log, anchored("log", np.log))
    names["hypot"] = either(math.hypot, np.hypot)
    names["fsum"] = lambda values: np.sum(model.floats(list(values)))
    names["prod"] = lambda values, start=1: start * np.prod(model.lift(list(values)))
    names["isclose"] = lambda a, b, rel_tol=1e-9, abs_tol=0.0: bool(
        abs(model.floats(a) - b) <= np.maximum(rel_tol * np.maximum(abs(a), abs(b)), abs_tol)
    )
    return names


def _extreme(builtin: Any, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        if kwargs or not any(isinstance(v, Rows) and v.floating for v in values):
            return builtin(values, **kwargs)
        out = values[0]
        for value in values[1:]:
            out = function(out, value)
        return out

    return call


class Swap:
    """The replacements for one model, found by the identity of what they replace."""

    def __init__(self, model: Model) -> None:
        """Collect the replacements for one model."""
        self.model = model
        makers = Makers(model)
        names: dict[str, Any] = {
            n: getattr(makers, n) for n in dir(makers) if not n.startswith("_")
        }
        self.float = _float_type(model, float)
        float64 = _float_type(model, np.float64)
        names.update(float64=float64, double=float64, ndarray=_AnyArray)
        names["longdouble"] = float64
        numpy = Namespace(np, names)
        mathematics = Namespace(math, _math(model))
        self.by_id: dict[int, Any] = {id(np): numpy, id(math): mathematics}
        self.by_id[id(float)] = self.float
        for name, value in names.items():
            self.by_id[id(getattr(np, name))] = value
        for name, value in mathematics._names.items():
            if hasattr(math, name):
                self.by_id[id(getattr(math, name))] = value
        self.builtins: dict[str, Any] = {
            "float": self.float,
            "max": _extreme(builtins.max, np.maximum),
            "min": _extreme(builtins.min, np.minimum),
        }

    def replacement(self, value: Any) -> Any:
        """What stands for `value`, or `value` itself."""
        return self.by_id.get(id(value), value)
