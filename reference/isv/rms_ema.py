"""The running root mean square of a layer's output."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "isv.rms_ema"
ALPHA = float(np.float32(0.05))

READINGS = ("rms",)
WRONG_FORMULAS = {
    "mean_absolute": "mean |h|",
    "row_rms": "the mean of each row's root mean square",
    "centred": "the mean subtracted: a standard deviation",
    "sum": "not divided by the number of elements",
    "divided_by_rows": "divided by B alone",
    "square_kept": "without the root",
    "alpha_on_prev": "alpha on the old average, 1 - alpha on the new value",
    "no_sentinel": "blended with the 0 it starts from",
}
WRONG = tuple(WRONG_FORMULAS)


def _set(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"ema": rng.uniform(2.0, 4.0, size=1)}


def _unset(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"ema": np.zeros(1)}


def _unset_negative(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"ema": np.full(1, -1.0)}


def _offset(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"h": 5.0 + np.asarray(values["h"]), "ema": np.full(1, 1.0)}


def _uneven_rows(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    h = np.array(values["h"])
    h[0] *= 100.0
    return values | {"h": h, "ema": np.full(1, 1.0)}


FAMILIES = (
    Family("set", "an average that is set, well away from the observation", _set),
    Family("unset", "an average of 0 is not set: assigned", _unset),
    Family("unset_negative", "nor is a negative one", _unset_negative),
    Family("offset", "a mean far from 0: the root mean square is no spread", _offset),
    Family("uneven_rows", "one loud row: the root is taken once, after the mean", _uneven_rows),
)


def rms_ema_by_difference(h: F64, ema: F64, alpha: float = ALPHA) -> F64:
    """Write the blend as prev + alpha (obs - prev)."""
    rms = np.sqrt(np.sum(h * h) / np.asarray(float(h.shape[0] * h.shape[1])))
    return np.where(ema <= 0.0, rms, ema + alpha * (rms - ema))


def rms_ema_by_reciprocal(h: F64, ema: F64, alpha: float = ALPHA) -> F64:
    """Write the mean as the sum times the rounded 1 / n, as a kernel does that divides once."""
    rms = np.sqrt(np.sum(h * h) * (1.0 / np.asarray(float(h.shape[0] * h.shape[1]))))
    return np.where(ema <= 0.0, rms, (1.0 - alpha) * ema + alpha * rms)


@equation(
    ID,
    title="Running root mean square",
    source="ISV programme, h_s2 RMS",
    grade="quantity fixed by the programme; rate proposed",
    formula="rms = sqrt(sum(h^2) / (B D)), ema = ema <= 0 ? rms : (1 - a) ema + a rms",
    axes=("B", "D"),
    inputs=(
        Symbol("h", ("B", "D"), Domain("real", -2.0, 2.0), "output of the layer, signed"),
        Symbol("ema", ("1",), Domain("sentinel", 2.0, 4.0), "average so far"),
        Symbol("alpha", (), Domain("unit", 0.02, 0.2), "rate, float32(0.05)", True),
    ),
    outputs=(Symbol("ema_next", ("1",), Domain("sentinel"), "average after the step"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"rms": (rms_ema_by_difference, rms_ema_by_reciprocal)},
    families=FAMILIES,
    notes="A root mean square is never negative, so here a value that is not above 0 means 'not "
    "set yet'.",
)
def rms_ema(h: F64, ema: F64, alpha: float = ALPHA, *, reading: str = "rms") -> F64:
    """Update the running root mean square.

    Equation: ISV programme, h_s2 RMS EMA
        rms = sqrt((1 / (B D)) sum h^2),   ema = rms where ema <= 0, else (1 - a) ema + a rms
    Shapes: h (B, D); ema (1,); alpha a scalar, by default the float32 nearest to 0.05.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    rms = _observed(h, reading)
    kept, taken = (alpha, 1.0 - alpha) if reading == "alpha_on_prev" else (1.0 - alpha, alpha)
    blend = kept * ema + taken * rms
    return blend if reading == "no_sentinel" else np.where(ema <= 0.0, rms, blend)


def _observed(h: F64, reading: str) -> Scalar:
    rows, columns = h.shape
    count = float(rows) if reading == "divided_by_rows" else float(rows * columns)
    observed: Scalar
    if reading == "mean_absolute":
        observed = np.sum(np.abs(h)) / count
    elif reading == "row_rms":
        observed = np.sum(np.sqrt(np.sum(h * h, axis=1) / columns)) / rows
    else:
        x = h - np.sum(h) / count if reading == "centred" else h
        mean = np.sum(x * x) / (1.0 if reading == "sum" else count)
        observed = mean if reading == "square_kept" else np.sqrt(mean)
    return observed
