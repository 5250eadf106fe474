"""The cap on the position, from the Kelly fraction of shrunk win statistics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.kelly_cap"
FRACTION = 0.5
PRIOR = 20.0
LOW = float(np.float32(0.05))
HIGH = 1.0

READINGS = ("shrunk",)
WRONG_FORMULAS = {
    "not_divided": "f = p b - q, without / b",
    "unclipped": "negative: a short position where none is wanted",
    "unshrunk": "p as it is, however few the trades",
    "payoff_unguarded": "all wins divide by a mean loss of 0",
    "payoff_inverted": "b = mean loss / mean win",
    "loss_signed": "the mean loss taken with its negative sign",
    "health_unclipped": "health is not clipped to [0, 1]",
    "health_missing": "no damping by health",
    "whole_fraction": "f instead of half of it",
    "nan_hidden": "a NaN health counts as 0",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"count": np.floor(np.asarray(values["count"]))}


def _at(**given: float) -> Make:
    """Make the family in which some inputs have given values."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {name: np.full(1, value) for name, value in given.items()}

    return make


FAMILIES = (
    Family("good", "a strategy worth a position", _at(p=0.62, mean_win=1.5, mean_loss=0.8)),
    Family("bad", "expected loss: the least cap", _at(p=0.3, mean_win=1.0, mean_loss=1.25)),
    Family("none", "no trade yet", _at(count=0.0, mean_win=0.0, mean_loss=0.0)),
    Family("all_wins", "no loss to divide by: the payoff counts as 1", _at(p=1.0, mean_loss=0.0)),
    Family("all_losses", "no win: the payoff counts as 1", _at(p=0.0, mean_win=0.0)),
    Family("overflow", "a payoff past float32 counts as 1", _at(mean_win=1e38, mean_loss=1e-30)),
    Family("few", "few trades are shrunk to a coin", _at(p=0.9, count=3.0)),
    Family("great", "so good that the largest cap holds", _at(p=0.99, count=1e6, mean_win=9.0,
                                                            health=1.0)),
    Family("healthy", "a health above 1 counts as 1", _at(health=1.5)),
    Family("sick", "a health below 0 counts as 0", _at(health=-0.5)),
    Family("nan", "a NaN health is passed on", _at(health=np.nan)),
)  # fmt: skip


def kelly_cap_by_odds(
    p: F64,
    mean_win: F64,
    mean_loss: F64,
    count: F64,
    health: F64,
    fraction: float = FRACTION,
    prior: float = PRIOR,
    low: float = LOW,
    high: float = HIGH,
) -> F64:
    """Write f as (q (b + 1) - 1) / b."""
    b = _payoff(mean_win, mean_loss, count, "shrunk")
    q = (count * p + 0.5 * prior) / (count + prior)
    f = (q * (b + 1.0) - 1.0) / b
    return clip(fraction * f * clip(health, 0.0, 1.0), low, high)


@equation(
    ID,
    title="Kelly cap",
    source="ISV programme, KELLY_CAP_EFF; Kelly (1956)",
    grade="mechanism fixed by the programme; shrinkage and constants proposed",
    formula="f = p - (1 - p) / b with p shrunk to (n p + n0 / 2) / (n + n0); "
    "cap = clip(frac f clip(h, 0, 1), c_min, c_max)",
    axes=(),
    inputs=(
        Symbol("p", ("1",), Domain("unit", 0.52, 0.7), "win rate"),
        Symbol("mean_win", ("1",), Domain("nonnegative", 0.9, 2.0), "mean win"),
        Symbol("mean_loss", ("1",), Domain("nonnegative", 0.5, 1.0), "mean absolute loss"),
        Symbol("count", ("1",), Domain("nonnegative", 30.0, 400.0), "closed trades n"),
        Symbol("health", ("1",), Domain("real", 0.4, 0.95), "learning health"),
        Symbol("fraction", (), Domain("unit", 0.3, 0.7), "part of the Kelly fraction", True),
        Symbol("prior", (), Domain("positive", 10.0, 40.0), "weight of the coin n0", True),
        Symbol("low", (), Domain("unit", 0.01, 0.06), "least cap c_min", True),
        Symbol("high", (), Domain("unit", 0.8, 1.0), "largest cap c_max", True),
    ),
    outputs=(Symbol("cap", ("1",), Domain("unit"), "cap on the position"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"shrunk": (kelly_cap_by_odds,)},
    families=FAMILIES,
    prepare=_prepare,
    notes="f maximises p ln(1 + b f) + (1 - p) ln(1 - f).",
)
def kelly_cap(
    p: F64,
    mean_win: F64,
    mean_loss: F64,
    count: F64,
    health: F64,
    fraction: float = FRACTION,
    prior: float = PRIOR,
    low: float = LOW,
    high: float = HIGH,
    *,
    reading: str = "shrunk",
) -> F64:
    """Give the cap on the position.

    Equation: ISV programme, KELLY_CAP_EFF
        b = mean win / mean loss, 1 where count = 0, where either is not above 0, or b is not finite
        q = (n p + n0 / 2) / (n + n0),   f = q - (1 - q) / b
        cap = clip(fraction f clip(h, 0, 1), c_min, c_max)
    Shapes: all inputs and cap (1,); constants are scalars, by default the float32 that a kernel
    holds. Whether b is finite is decided in float32, the kernel's format. A NaN health gives NaN.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "nan_hidden":
        health = np.where(np.isnan(health), 0.0, health)
    b = _payoff(mean_win, mean_loss, count, reading)
    shrunk = (count * p + 0.5 * prior) / (count + prior)
    q = p if reading == "unshrunk" else shrunk
    f = q * b - (1.0 - q) if reading == "not_divided" else q - (1.0 - q) / b
    h = health if reading == "health_unclipped" else clip(health, 0.0, 1.0)
    if reading == "health_missing":
        h = np.ones(1)
    wanted = f * h if reading == "whole_fraction" else fraction * f * h
    return wanted if reading == "unclipped" else clip(wanted, low, high)


_LARGEST = float(np.finfo(np.float32).max)


def _payoff(mean_win: F64, mean_loss: F64, count: F64, reading: str) -> F64:
    if reading == "payoff_unguarded":
        return mean_win / mean_loss
    usable = (mean_win > 0.0) & (mean_loss > 0.0) & (count > 0.0)
    over = np.where(usable, mean_loss, 1.0)
    with np.errstate(over="ignore"):  # an infinite ratio is taken as 1
        ratio = np.where(usable, mean_win, 1.0) / over
    ratio = np.where(ratio <= _LARGEST, ratio, 1.0)
    if reading == "payoff_inverted":
        return 1.0 / ratio
    return -ratio if reading == "loss_signed" else ratio
