"""Scaling returns by the range between their percentiles; tanh by a fixed scale."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID, TANH_ID = "dqn.percentile_scaling", "dqn.tanh_scaling"
RATE = float(np.float32(0.01))
READINGS = ("counted",)
WRONG = {
    "starts_at_zero": "the first observation is blended with 0, as published code does",
    "small_returns_raised": "divided by max(1e-8, S)",
    "nearest_rank": "the percentile is an order statistic, not interpolated",
    "times_size": "places at q M instead of q (M - 1)",
    "unsorted": "places of the batch as it came",
    "whole_range": "largest minus smallest",
    "not_averaged": "the range of this batch alone",
    "count_kept": "every observation is the first",
}


def _running(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"count": np.full(1, float(rng.integers(1, 90))), "rate": 0.3}


def _first(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    returns = 50.0 * np.asarray(values["returns"])
    return values | {"count": np.zeros(1), "returns": returns, "rate": 0.3}


def _small(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    small = {"returns": 0.01 * np.asarray(values["returns"]), "scale": np.full(1, 0.05)}
    return values | small | {"count": np.full(1, 7.0)}


def _outlier(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    returns = np.array(values["returns"])
    returns[rng.integers(returns.size)] = 1000.0
    return _running(rng, sizes, values | {"returns": returns})


def _constant(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _running(rng, sizes, values | {"returns": np.full(sizes["B"], 3.0)})


FAMILIES = (
    Family("running", "a scale that is set, well away from the observation", _running),
    Family("first", "the first observation is taken as it is", _first),
    Family("small", "returns below 1 are not raised", _small),
    Family("outlier", "one return far away: the percentiles do not follow it", _outlier),
    Family("constant", "equal returns: the range is 0", _constant, right_kernel_only=True),
)


def quantile(x: F64, q: float, reading: str = "counted") -> Scalar:
    """Interpolate linearly between the sorted neighbours of place q (M - 1); x (M,)."""
    size = x.shape[0]
    ordered = x if reading == "unsorted" else np.sort(x)
    place = min(q * size, size - 1) if reading == "times_size" else q * (size - 1)
    low = int(place)
    if reading == "nearest_rank":
        nearest: Scalar = ordered[int(place + 0.5)] * 1.0
        return nearest
    high = min(low + 1, size - 1)
    between: Scalar = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return between


def percentile_scaling_by_difference(
    returns: F64, scale: F64, count: F64, rate: float = RATE
) -> tuple[F64, F64, F64]:
    """Write the average as S + rate (range - S)."""
    spread = quantile(returns, 0.95) - quantile(returns, 0.05)
    new = np.where(count > 0.0, scale + rate * (spread - scale), spread)
    return returns / np.where(new < 1.0, 1.0, new), new, count + 1.0


@equation(
    ID,
    title="Percentile scaling of returns",
    source="DreamerV3, arXiv:2301.04104, Eq. 11-12; DQN programme, scalar transforms",
    grade="as printed; first observation by count proposed",
    formula="S = count > 0 ? (1 - r) S + r (P95 - P5) : P95 - P5; y = returns / max(1, S)",
    axes=("B",),
    inputs=(
        Symbol("returns", ("B",), Domain("real", -20.0, 20.0), "returns of the batch"),
        Symbol("scale", ("1",), Domain("nonnegative", 2.0, 9.0), "range so far"),
        Symbol("count", ("1",), Domain("nonnegative", 1.0, 90.0), "observations so far"),
        Symbol("rate", (), Domain("unit", 0.2, 0.4), "rate, float32(0.01)", True),
    ),
    outputs=(
        Symbol("scaled", ("B",), Domain("real"), "returns, scaled down"),
        Symbol("scale_next", ("1",), Domain("nonnegative"), "range after the step"),
        Symbol("count_next", ("1",), Domain("positive"), "observations after the step"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={"counted": (percentile_scaling_by_difference,)},
    families=FAMILIES,
    notes="Small returns are never raised. The published code starts the average at 0 without a "
    "correction.",
    prepare=lambda rng, sizes, values: values | {"count": np.floor(np.asarray(values["count"]))},
)
def percentile_scaling(
    returns: F64, scale: F64, count: F64, rate: float = RATE, *, reading: str = "counted"
) -> tuple[F64, F64, F64]:
    """Scale returns down by the running range between their 5th and 95th percentile.

    Equation: DreamerV3, arXiv:2301.04104, Eq. 11-12; first observation as the DQN programme has it
        S = EMA(P95 - P5), the first observation taken as it is;   y = returns / max(1, S)
    Shapes: returns (B,); scale, count (1,); rate a scalar. Returns (scaled, scale, count).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    spread = quantile(returns, 0.95, reading) - quantile(returns, 0.05, reading)
    if reading == "whole_range":
        spread = np.max(returns) - np.min(returns)
    blend = (1.0 - rate) * scale + rate * spread
    if reading in ("not_averaged", "count_kept"):
        new = spread + 0.0 * scale
    else:
        start = rate * spread if reading == "starts_at_zero" else spread
        new = np.where(count > 0.0, blend, start)
    floor = 1e-8 if reading == "small_returns_raised" else 1.0
    counted = count if reading == "count_kept" else count + 1.0
    return returns / np.where(new < floor, floor, new), new, counted


_TANH_SCALING_WRONG = {
    "multiplied": "tanh(x scale)",
    "scaled_outside": "scale tanh(x / scale)",
    "clipped": "x / scale limited to [-1, 1]",
    "sigmoid": "1 / (1 + exp(-x / scale))",
}
_TANH_SCALING_KNOWN = ("divided", *_TANH_SCALING_WRONG)


@equation(
    TANH_ID,
    title="Scaling by tanh",
    source="DQN programme, scalar transforms",
    grade="proposed by the programme",
    formula="y = tanh(x / scale)",
    axes=("n",),
    inputs=(
        Symbol("x", ("n",), Domain("real", -3.0, 3.0), "values"),
        Symbol("scale", (), Domain("positive", 0.5, 3.0), "scale of the training split"),
    ),
    outputs=(Symbol("y", ("n",), Domain("real"), "values in (-1, 1)"),),
    readings=("divided",),
    wrong=_TANH_SCALING_WRONG,
    forms={"divided": (lambda x, scale: np.tanh((1.0 / scale) * x),)},
    families=(
        Family("steep", "beyond the knee", lambda rng, sizes, v: v | {"x": 4.0 * v["x"]}),
        Family(
            "tiny", "where tanh is its argument", lambda rng, sizes, v: v | {"x": 1e-5 * v["x"]}
        ),
    ),
    notes="The scale comes from the training split alone.",
)
def tanh_scaling(x: F64, scale: Scalar, *, reading: str = "divided") -> F64:
    """Squash values by a fixed scale.

    Equation: DQN programme, scalar transforms
        y = tanh(x / scale)
    Shapes: x, y (n,); scale a scalar.
    """
    if reading == "divided":
        return np.tanh(x / scale)
    if reading == "multiplied":
        return np.tanh(x * scale)
    if reading == "scaled_outside":
        return scale * np.tanh(x / scale)
    if reading == "clipped":
        y = x / scale
        return np.where(y < -1.0, -1.0, np.where(y > 1.0, 1.0, y))
    if reading == "sigmoid":
        return 1.0 / (1.0 + np.exp(-x / scale))
    raise UnknownReading(TANH_ID, reading, _TANH_SCALING_KNOWN)
