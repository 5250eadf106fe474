"""The differential Sharpe ratio: what one return adds to the ratio of a moving average."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID, SHARPE_ID = "dqn.differential_sharpe", "dqn.sharpe"
FLOOR = float(np.float32(1e-12))
STILL = float(np.float32(1e-5))
"""A deviation no larger than this part of the mean is rounding, and counts as none."""
READINGS = ("previous_moments",)
WRONG = {
    "updated_moments": "D of the moments after the update",
    "root_of_variance": "divided by (B - A^2)^(1/2)",
    "half_missing": "B dA - A dB",
    "reset_every_bar": "moments start again: A = eta R, B = eta R^2",
    "variance_floored": "divided by max(variance, floor), where D is 0",
    "moments_kept_on_floor": "moments stand still where the variance is at the floor",
    "no_warm_up": "D from the first step on",
    "rate_on_previous": "A = eta A + (1 - eta) R",
}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Take B as drawn for a variance: B = A^2 + variance."""
    A = np.asarray(values["A"])
    return values | {
        "B": A * A + np.asarray(values["B"]),
        "step": np.floor(np.asarray(values["step"])),
    }


def _constant(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"A": np.full(sizes["n"], 0.5), "B": np.zeros(sizes["n"])}


def _warming(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"step": np.full(1, 3.0)}


def _losing(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"A": -np.abs(np.asarray(values["A"])) - 0.5}


def _near_stationary(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    A, variance = np.asarray(values["A"]), np.asarray(values["B"])
    return values | {"R": A + np.sqrt(variance) * 0.01 * np.asarray(values["R"])}


FAMILIES = (
    Family("no_variance", "B = A^2: D is 0, and the moments move on", _constant),
    Family("warming", "a step of the warm-up: D is 0, and the moments move", _warming),
    Family("losing", "a negative mean", _losing),
    Family("near_mean", "a return near the mean: both differences are small", _near_stationary),
)


def differential_sharpe_by_variance(
    R: F64, A: F64, B: F64, step: F64, eta: float, warm_up: float, floor: float = FLOOR
) -> tuple[F64, F64, F64]:
    """Write the numerator with the variance: var dA - A (dA^2 - var) / 2."""
    dA, dB = R - A, R * R - B
    variance = B - A * A
    dull = (variance <= floor) | (step < warm_up)
    top = variance * dA - (0.5 * A) * (dA * dA - variance)
    variance = np.where(dull, 1.0, variance)
    D = np.where(dull, np.zeros_like(top), top / (variance * np.sqrt(variance)))
    return D, A + eta * dA, B + eta * dB


@equation(
    ID,
    title="Differential Sharpe ratio",
    source="Moody and Saffell, IEEE Trans. Neural Networks 12(4), 2001; DQN programme, rewards",
    grade="as printed; floor and warm-up proposed",
    formula="D = (B dA - A dB / 2) / (B - A^2)^(3/2); A += eta dA, B += eta dB",
    axes=("n",),
    inputs=(
        Symbol("R", ("n",), Domain("real", -2.0, 2.0), "net return of the bar"),
        Symbol("A", ("n",), Domain("real", -1.0, 1.0), "running mean of returns"),
        Symbol("B", ("n",), Domain("positive", 0.3, 2.0), "running mean of squared returns"),
        Symbol("step", ("1",), Domain("nonnegative", 10.0, 99.0), "bars seen so far"),
        Symbol("eta", (), Domain("positive", 0.01, 0.2), "rate"),
        Symbol("warm_up", (), Domain("nonnegative", 5.0, 9.0), "bars without a reward"),
        Symbol("floor", (), Domain("positive", 1e-12, 1e-12), "least variance", True),
    ),
    outputs=(
        Symbol("D", ("n",), Domain("real"), "reward of the bar"),
        Symbol("A_next", ("n",), Domain("real"), "mean after the bar"),
        Symbol("B_next", ("n",), Domain("positive"), "mean square after the bar"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={"previous_moments": (differential_sharpe_by_variance,)},
    families=FAMILIES,
    notes="D is the derivative of A / sqrt(B - A^2) by eta at eta = 0. B - A^2 and the numerator "
    "both cancel: the moments belong in float64.",
    prepare=_prepare,
)
def differential_sharpe(
    R: F64,
    A: F64,
    B: F64,
    step: F64,
    eta: float,
    warm_up: float,
    floor: float = FLOOR,
    *,
    reading: str = "previous_moments",
) -> tuple[F64, F64, F64]:
    """Reward each of n portfolios for what a bar did to its Sharpe ratio.

    Equation: Moody and Saffell (2001), Eq. 14; floor and warm-up as the DQN programme has them
        dA = R - A,  dB = R^2 - B,  D = (B dA - A dB / 2) / (B - A^2)^(3/2)
        A = A + eta dA,  B = B + eta dB
        D = 0 where B - A^2 <= floor, and before warm_up bars; A and B move all the same
    Shapes: R, A, B (n,); step (1,); eta, warm_up, floor scalars. Returns (D, A, B).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    A_next, B_next = _moments(R, A, B, eta, reading)
    if reading == "updated_moments":
        A, B = A_next, B_next
    variance = B - A * A
    dull = variance <= floor
    D = _ratio(R, A, B, np.where(dull, 1.0, variance), reading)
    if reading == "variance_floored":
        D = np.where(dull, _ratio(R, A, B, 1e-12, reading), D)
    else:
        D = np.where(dull, np.zeros_like(R), D)
    if reading == "moments_kept_on_floor":
        A_next, B_next = np.where(dull, A, A_next), np.where(dull, B, B_next)
    if reading != "no_warm_up":
        D = np.where(step < warm_up, np.zeros_like(R), D)
    return D, A_next, B_next


def _moments(R: F64, A: F64, B: F64, eta: float, reading: str) -> tuple[F64, F64]:
    if reading == "reset_every_bar":
        return eta * R, eta * (R * R)
    if reading == "rate_on_previous":
        return eta * A + (1.0 - eta) * R, eta * B + (1.0 - eta) * (R * R)
    return A + eta * (R - A), B + eta * (R * R - B)


def _ratio(R: F64, A: F64, B: F64, variance: F64 | float, reading: str) -> F64:
    dA, dB = R - A, R * R - B
    top = B * dA - A * dB if reading == "half_missing" else B * dA - A * dB / 2.0
    root = np.sqrt(variance)
    return top / root if reading == "root_of_variance" else top / (variance * root)


_SHARPE_WRONG = {
    "population": "the deviation is divided by n",
    "not_annualised": "without sqrt(bars)",
    "annualised_by_bars": "times bars",
    "about_zero": "the root mean square instead of the deviation",
}
_SHARPE_KNOWN = ("sample", *_SHARPE_WRONG)


@equation(
    SHARPE_ID,
    title="Sharpe ratio by year",
    source="DQN programme, reward scalars",
    grade="proposed by the programme",
    formula="mean / std (one degree of freedom taken) sqrt(bars per year)",
    axes=("n",),
    inputs=(
        Symbol("returns", ("n",), Domain("real", -2.0, 2.0), "net returns, bar by bar"),
        Symbol("bars", (), Domain("positive", 100.0, 300.0), "bars of a year"),
    ),
    outputs=(Symbol("sharpe", ("1",), Domain("real"), "ratio; 0 where nothing varies"),),
    readings=("sample",),
    wrong=_SHARPE_WRONG,
    forms={"sample": (lambda returns, bars: _sharpe_by_sums(returns, bars),)},
    families=(
        Family(
            "offset",
            "a mean that is large",
            lambda rng, sizes, v: v | {"returns": 3.0 + v["returns"]},
        ),
        Family(
            "constant",
            "nothing varies",
            lambda rng, sizes, v: v | {"returns": np.full(sizes["n"], 0.25)},
            True,
        ),
    ),
    notes="The annualiser belongs into the telemetry beside the number.",
)
def sharpe(returns: F64, bars: float, *, reading: str = "sample") -> F64:
    """Give the Sharpe ratio of a series, by year.

    Equation: DQN programme, reward scalars
        mean(r) / std(r) sqrt(bars), the deviation with one degree of freedom taken
    Shapes: returns (n,); bars a scalar; gives (1,). Fewer than two bars, or equal ones (a deviation
    of at most 1e-5 of the mean), give 0.
    """
    if reading not in _SHARPE_KNOWN:
        raise UnknownReading(SHARPE_ID, reading, _SHARPE_KNOWN)
    count = returns.shape[0]
    mean = np.sum(returns) / count
    off = returns if reading == "about_zero" else returns - mean
    free = count if reading == "population" else max(count - 1, 1)
    deviation = np.sqrt(np.sum(off * off) / free)
    still = deviation <= STILL * np.abs(mean)
    scale = {"not_annualised": 1.0 + 0.0 * mean, "annualised_by_bars": bars}.get(
        reading, np.sqrt(bars)
    )
    ratio = np.where(still, 0.0 * mean, mean / np.where(still, 1.0, deviation) * scale)
    return np.reshape(ratio, (1,))


def _sharpe_by_sums(returns: F64, bars: float) -> F64:
    """Centre twice, which leaves a smaller error in the mean, and divide the variance."""
    count = returns.shape[0]
    mean = np.sum(returns) / count
    off = returns - mean
    variance = np.sum(off * off) / max(count - 1, 1)
    still = variance <= (STILL * mean) ** 2
    ratio = np.sqrt(bars / np.where(still, 1.0, variance)) * mean
    return np.reshape(np.where(still, 0.0 * mean, ratio), (1,))
