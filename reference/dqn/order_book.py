"""Where the weight of an order book lies: the centre of mass of each side, and their signal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "dqn.order_book"
LEVELS = 10
READINGS = ("ticks_from_mid",)
WRONG = {
    "five_levels": "the first five levels alone",
    "price_without_mid": "the size-weighted price, not its distance from the mid",
    "sign": "(com_bid - com_ask) / (com_bid + com_ask)",
    "not_in_ticks": "distances are not divided by the tick",
    "mid_of_last": "the mid of the last level",
    "empty_side_zero": "an empty side has a centre of 0",
    "sizes_ignored": "the mean distance of the levels",
    "crossed_not_flagged": "a crossed book is taken as it is",
}


def _ladder(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Let the levels go away from the mid, in whole ticks."""
    rows, tick = sizes["B"], 0.25
    best = tick * np.floor(rng.uniform(300.0, 500.0, (rows, 1)))
    steps = np.cumsum(rng.integers(1, 3, (2, rows, LEVELS)), axis=2)
    return values | {
        "bid": best - tick * steps[0],
        "ask": best + tick * (steps[1] - 1),
        "tick": np.full(1, tick),
    }


def _crossed(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Let the best bid meet the best ask, or pass it."""
    book = _ladder(rng, sizes, values)
    bid = np.array(book["bid"])
    bid[:, 0] = np.asarray(book["ask"])[:, 0] + 0.25 * rng.integers(0, 2, sizes["B"])
    return book | {"bid": bid}


def _empty_bids(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"bid_size": np.zeros((sizes["B"], LEVELS))}


def _empty(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    none = np.zeros((sizes["B"], LEVELS))
    return values | {"bid_size": none, "ask_size": none.copy()}


def _deep(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    far = np.array(values["ask_size"])
    far[:, 5:] *= 20.0
    return values | {"ask_size": far}


def _whole(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {
        name: rng.integers(0, 20, (sizes["B"], LEVELS)).astype(np.float64)
        for name in ("bid_size", "ask_size")
    }


FAMILIES = (
    Family("ladder", "levels in order, whole ticks apart", _ladder),
    Family("empty_bids", "a side without sizes lies at its last level", _empty_bids),
    Family("deep", "sizes in the levels beyond the fifth", _deep),
    Family("whole", "sizes in whole numbers, some of them 0", _whole),
    Family("crossed", "the best bid is not below the best ask", _crossed),
    Family("empty", "no sizes at all: the last levels", _empty, right_kernel_only=True),
)


def order_book_by_sums(
    bid: F64, bid_size: F64, ask: F64, ask_size: F64, tick: F64
) -> tuple[F64, F64, F64, F64]:
    """Take the distance from the mid as half the sum of those from both best prices.

    Neighbouring prices differ exactly, so that nothing cancels.
    """
    best_bid, best_ask = bid[:, :1], ask[:, :1]
    two = 2.0 * tick
    far_bid = ((best_bid - bid) + (best_ask - bid)) / two
    far_ask = ((ask - best_bid) + (ask - best_ask)) / two
    return _signal(
        _centre(np.abs(far_bid), bid_size, LEVELS, "ticks_from_mid"),
        _centre(np.abs(far_ask), ask_size, LEVELS, "ticks_from_mid"),
        bid[:, 0] >= ask[:, 0],
        "ticks_from_mid",
    )


_SIDE = ("B", "10")


@equation(
    ID,
    title="Centre of mass of the order book",
    source="DQN programme, order-book centre of mass",
    grade="ten levels and signal fixed by the programme; formula proposed",
    formula="d_i = |p_i - mid| / tick, com = sum q d / sum q, "
    "signal = (com_ask - com_bid) / (com_ask + com_bid)",
    axes=("B",),
    inputs=(
        Symbol("bid", _SIDE, Domain("positive", 50.0, 60.0), "bid prices, best first"),
        Symbol("bid_size", _SIDE, Domain("nonnegative", 0.5, 9.0), "their sizes"),
        Symbol("ask", _SIDE, Domain("positive", 61.0, 70.0), "ask prices, best first"),
        Symbol("ask_size", _SIDE, Domain("nonnegative", 0.5, 9.0), "their sizes"),
        Symbol("tick", ("1",), Domain("positive", 0.1, 0.5), "least step of a price"),
    ),
    outputs=(
        Symbol("signal", ("B",), Domain("real"), "in [-1, 1]; positive where bids are closer"),
        Symbol("com_bid", ("B",), Domain("nonnegative"), "centre of the bids, in ticks"),
        Symbol("com_ask", ("B",), Domain("nonnegative"), "centre of the asks, in ticks"),
        Symbol("crossed", ("B",), Domain("mask"), "1 where the best bid is not below the ask"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={"ticks_from_mid": (order_book_by_sums,)},
    families=FAMILIES,
    notes="An empty side lies at its last level. Both centres at 0 give the signal 0. In float32 "
    "the distance from a rounded mid is off by u price / tick ticks.",
)
def order_book(
    bid: F64, bid_size: F64, ask: F64, ask_size: F64, tick: F64, *, reading: str = "ticks_from_mid"
) -> tuple[F64, F64, F64, F64]:
    """Tell which side of an order book stands closer to the mid.

    Equation: DQN programme, order-book centre of mass
        mid = (bid_0 + ask_0) / 2,   d_i = |p_i - mid| / tick,   com = sum q_i d_i / sum q_i
        signal = (com_ask - com_bid) / (com_ask + com_bid), 0 where the denominator is 0
    Shapes: bid, bid_size, ask, ask_size (B, 10), best first; tick (1,).
    Returns (signal, com_bid, com_ask, crossed), each (B,).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    levels = 5 if reading == "five_levels" else LEVELS
    best = LEVELS - 1 if reading == "mid_of_last" else 0
    mid = (bid[:, best] + ask[:, best]) / 2.0
    if reading == "price_without_mid":
        mid = 0.0 * mid
    step = 1.0 + 0.0 * tick if reading == "not_in_ticks" else tick
    far_bid = np.abs(bid - mid[:, np.newaxis]) / step
    far_ask = np.abs(ask - mid[:, np.newaxis]) / step
    crossed = bid[:, 0] >= ask[:, 0]
    return _signal(
        _centre(far_bid, bid_size, levels, reading),
        _centre(far_ask, ask_size, levels, reading),
        crossed,
        reading,
    )


def _centre(far: F64, size: F64, levels: int, reading: str) -> F64:
    far, size = far[:, :levels], size[:, :levels]
    if reading == "sizes_ignored":
        mean: F64 = np.mean(far, axis=1)
        return mean
    total: Scalar = np.sum(size, axis=1)
    empty = total == 0.0
    centre = np.sum(size * far, axis=1) / np.where(empty, 1.0, total)
    last = 0.0 * total if reading == "empty_side_zero" else far[:, levels - 1]
    return np.where(empty, last, centre)


def _signal(
    com_bid: F64, com_ask: F64, crossed: NDArray[Any], reading: str
) -> tuple[F64, F64, F64, F64]:
    both = com_ask + com_bid
    apart = com_bid - com_ask if reading == "sign" else com_ask - com_bid
    flag = np.zeros_like(both)
    if reading != "crossed_not_flagged":
        flag = np.where(crossed, flag + 1.0, flag)
    signal = np.where(both == 0.0, np.zeros_like(both), apart / np.where(both == 0.0, 1.0, both))
    return signal, com_bid, com_ask, flag
