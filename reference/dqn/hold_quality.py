"""A bonus for leaving a position near the best that it had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.hold_quality"
READINGS = ("range",)
WRONG = {
    "flat_zero": "a path that never moved has quality 0",
    "from_start": "measured from the first value, not from the lowest",
    "inverted": "(max - exit) / (max - min)",
    "bonus_not_centred": "c q",
    "entry_for_exit": "the first value is judged",
}


def _flat(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"pnl": np.full((sizes["B"], sizes["T"]), 0.5)}


def _falling(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"pnl": -np.sort(np.asarray(values["pnl"]), axis=1)}


def hold_quality_by_middle(pnl: F64, bonus: float) -> F64:
    """Measure the exit from the middle of the range: c (2 exit - max - min) / (max - min)."""
    low, high = np.min(pnl, axis=1), np.max(pnl, axis=1)
    span = high - low
    still = span == 0.0
    centred = (pnl[:, -1] - low) - (high - pnl[:, -1])
    reward: F64 = bonus * (centred / np.where(still, 1.0, span))
    return np.where(still, np.zeros_like(span), reward)


@equation(
    ID,
    title="Quality of holding",
    source="DQN programme, reward scalars",
    grade="idea fixed by the programme; rule proposed",
    formula="q = (pnl_exit - min) / (max - min), 0.5 where flat; bonus = c (2 q - 1)",
    axes=("B", "T"),
    inputs=(
        Symbol("pnl", ("B", "T"), Domain("real", -2.0, 2.0), "open profit, bar by bar to the exit"),
        Symbol("bonus", (), Domain("positive", 0.05, 0.5), "size of the bonus"),
    ),
    outputs=(Symbol("reward", ("B",), Domain("real"), "in [-c, c]"),),
    readings=READINGS,
    wrong=WRONG,
    forms={"range": (hold_quality_by_middle,)},
    families=(
        Family("flat", "a position that never moved: no bonus, no malus", _flat),
        Family("falling", "left at the worst: the whole malus", _falling),
    ),
)
def hold_quality(pnl: F64, bonus: float, *, reading: str = "range") -> F64:
    """Reward an exit by where it lies in the range of the open profit.

    Equation: DQN programme, reward scalars
        q = (pnl_exit - min) / (max - min), 0.5 where max = min;   reward = c (2 q - 1)
    Shapes: pnl (B, T), the last column is the exit; bonus a scalar; returns (B,).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    low, high = np.min(pnl, axis=1), np.max(pnl, axis=1)
    last = pnl[:, 0] if reading == "entry_for_exit" else pnl[:, -1]
    base = pnl[:, 0] if reading == "from_start" else low
    span = high - low
    still = span == 0.0
    above = high - last if reading == "inverted" else last - base
    flat = np.zeros_like(span) + (0.0 if reading == "flat_zero" else 0.5)
    q = np.where(still, flat, above / np.where(still, 1.0, span))
    return bonus * q if reading == "bonus_not_centred" else bonus * (2.0 * q - 1.0)


@dataclass
class PositionMemos:
    """What a portfolio remembers of an open position; every memo is reset at its exit.

    ``min_pnl`` is the lowest open profit, ``regime_shift_bar`` the bar of the last change of
    regime, ``pre_entry_conviction`` the conviction just before the entry. -1 and NaN: not set.
    """

    min_pnl: float = float("nan")
    regime_shift_bar: int = -1
    pre_entry_conviction: float = float("nan")

    def enter(self, conviction: float) -> None:
        """Remember the conviction of the bar before the entry."""
        self.reset()
        self.pre_entry_conviction = conviction

    def bar(self, number: int, pnl: float, regime_shifted: bool = False) -> None:
        """Take one bar of an open position into account."""
        if not self.min_pnl <= pnl:  # also where it is not set
            self.min_pnl = pnl
        if regime_shifted:
            self.regime_shift_bar = number

    def reset(self) -> None:
        """Forget everything, as an exit does."""
        self.min_pnl = self.pre_entry_conviction = float("nan")
        self.regime_shift_bar = -1
