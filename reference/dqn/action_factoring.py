"""Actions as indices: four branches in one number, the older 45 actions, and what pays for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ENCODE_ID, DECODE_ID = "dqn.action_encoding", "dqn.action_factoring"
LEGACY_ID, REWARD_ID = "dqn.legacy_action", "dqn.counterfactual_reward"
SOURCE = "DQN programme, action factoring"
SHORT, HOLD, LONG, FLAT = 0, 1, 2, 3
QUARTER, HALF, FULL = 0, 1, 2
Four: TypeAlias = tuple[F64, F64, F64, F64]


def _floored(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return {name: np.floor(np.asarray(value)) for name, value in values.items()}


def _top(name: str, last: int) -> Family:
    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {name: last - np.floor(0.05 * np.asarray(values[name]))}

    return Family("last", "the highest numbers", make)


def _every(name: str, count: int) -> Family:
    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        drawn = rng.permutation(np.arange(sizes["B"]) % count)
        return values | {name: drawn.astype(np.float64)}

    return Family("every", "every number there is, in any order", make)


def _branch(name: str, below: float, meaning: str) -> Symbol:
    return Symbol(name, ("B",), Domain("nonnegative", 0.0, below - 0.001), meaning)


_BRANCHES = (
    _branch("direction", 4.0, "0 short, 1 hold, 2 long, 3 flat"),
    _branch("magnitude", 3.0, "0 quarter, 1 half, 2 full"),
    _branch("order", 3.0, "kind of order"),
    _branch("urgency", 3.0, "urgency"),
)


_ACTION_ENCODING_WRONG = {
    "column_major": "d + 4 (m + 3 (o + 3 u))",
    "order_and_urgency_swapped": "((d 3 + m) 3 + u) 3 + o",
    "five_directions": "d over the rest's four: ((d 4 + m) 3 + o) 3 + u",
}
_ACTION_ENCODING_KNOWN = ("row_major", *_ACTION_ENCODING_WRONG)


@equation(
    ENCODE_ID,
    title="Four branches as one action",
    source=SOURCE,
    grade="proposed by the programme",
    formula="joint = ((d 3 + m) 3 + o) 3 + u",
    axes=("B",),
    inputs=_BRANCHES,
    outputs=(Symbol("joint", ("B",), Domain("nonnegative"), "action, 0 to 107"),),
    readings=("row_major",),
    wrong=_ACTION_ENCODING_WRONG,
    forms={
        "row_major": (
            lambda direction, magnitude, order, urgency: (
                27.0 * direction + 9.0 * magnitude + 3.0 * order + urgency
            ),
        )
    },
    families=(_top("urgency", 2), _every("direction", 4)),
    prepare=_floored,
)
def action_encoding(
    direction: F64, magnitude: F64, order: F64, urgency: F64, *, reading: str = "row_major"
) -> F64:
    """Number the joint action of four branches.

    Equation: DQN programme, action factoring
        joint = ((d 3 + m) 3 + o) 3 + u, from 0 to 107
    Shapes: all (B,), whole numbers.
    """
    if reading == "row_major":
        return ((direction * 3 + magnitude) * 3 + order) * 3 + urgency
    if reading == "column_major":
        return direction + 4 * (magnitude + 3 * (order + 3 * urgency))
    if reading == "order_and_urgency_swapped":
        return ((direction * 3 + magnitude) * 3 + urgency) * 3 + order
    if reading == "five_directions":
        return ((direction * 4 + magnitude) * 3 + order) * 3 + urgency
    raise UnknownReading(ENCODE_ID, reading, _ACTION_ENCODING_KNOWN)


def _split(number: F64, base: int) -> tuple[F64, F64]:
    """Give quotient and remainder of whole numbers."""
    quotient = np.floor(number / base)
    return quotient, number - base * quotient


def _decoded_by_subtraction(joint: F64) -> tuple[F64, F64, F64, F64, F64]:
    direction = np.floor(joint / 27)
    magnitude = np.floor((joint - 27 * direction) / 9)
    order = np.floor((joint - 27 * direction - 9 * magnitude) / 3)
    urgency = joint - 27 * direction - 9 * magnitude - 3 * order
    moves = np.where((direction == HOLD) | (direction == FLAT), 0.0 * joint, 0.0 * joint + 1.0)
    return direction, magnitude, order, urgency, moves


_ACTION_FACTORING_WRONG = {
    "column_major": "d = joint % 4, m = joint // 4 % 3, o = joint // 12 % 3, u = joint // 36",
    "order_and_urgency_swapped": "o = joint % 3, u = joint // 3 % 3",
    "five_directions": "the older encoding's 9 for a direction: d = joint // 9, m = 0",
    "hold_is_flat": "hold is decoded as flat",
    "magnitude_of_hold_weighs": "only flat ignores the magnitude",
    "magnitude_always_weighs": "every weight is 1",
}
_ACTION_FACTORING_KNOWN = ("row_major", *_ACTION_FACTORING_WRONG)


@equation(
    DECODE_ID,
    title="One action as four branches",
    source=SOURCE,
    grade="proposed by the programme",
    formula="u = joint % 3, o = joint // 3 % 3, m = joint // 9 % 3, d = joint // 27; the weight of "
    "m is 0 for hold and flat",
    axes=("B",),
    inputs=(_branch("joint", 108.0, "action, 0 to 107"),),
    outputs=(
        *(Symbol(s.name, s.shape, Domain("nonnegative"), s.meaning) for s in _BRANCHES),
        Symbol("magnitude_weight", ("B",), Domain("mask"), "0 where the magnitude is ignored"),
    ),
    readings=("row_major",),
    wrong=_ACTION_FACTORING_WRONG,
    forms={"row_major": (_decoded_by_subtraction,)},
    families=(_top("joint", 107), _every("joint", 108)),
    notes="The network gives four indices, 13 values in all, not 108.",
    prepare=_floored,
)
def action_factoring(joint: F64, *, reading: str = "row_major") -> tuple[F64, F64, F64, F64, F64]:
    """Take a joint action apart, and tell where its magnitude means nothing.

    Equation: DQN programme, action factoring
        u = joint % 3,  o = joint // 3 % 3,  m = joint // 9 % 3,  d = joint // 27
        weight of m = 0 where d is hold or flat, else 1
    Shapes: joint (B,), whole numbers. Returns (direction, magnitude, order, urgency, weight).
    """
    if reading not in _ACTION_FACTORING_KNOWN:
        raise UnknownReading(DECODE_ID, reading, _ACTION_FACTORING_KNOWN)
    direction, magnitude, order, urgency = _decoded(joint, reading)
    if reading == "hold_is_flat":
        direction = np.where(direction == HOLD, float(FLAT) + 0.0 * joint, direction)
    ignored = direction == FLAT
    if reading != "magnitude_of_hold_weighs":
        ignored = ignored | (direction == HOLD)
    one = 0.0 * joint + 1.0
    weight = one if reading == "magnitude_always_weighs" else np.where(ignored, 0.0 * joint, one)
    return direction, magnitude, order, urgency, weight


def _decoded(joint: F64, reading: str) -> Four:
    if reading == "column_major":
        rest, direction = _split(joint, 4)
        rest, magnitude = _split(rest, 3)
        urgency, order = _split(rest, 3)
        return direction, magnitude, order, urgency
    rest, urgency = _split(joint, 3)
    rest, order = _split(rest, 3)
    if reading == "five_directions":
        return rest, 0.0 * rest, order, urgency
    direction, magnitude = _split(rest, 3)
    if reading == "order_and_urgency_swapped":
        order, urgency = urgency, order
    return direction, magnitude, order, urgency


def _legacy_by_steps(index: F64) -> Four:
    exposure = np.floor(index / 9)
    order = np.floor((index - 9 * exposure) / 3)
    urgency = index - 9 * exposure - 3 * order
    side = exposure - 2
    direction = np.where(side < 0, 0.0 * side + SHORT, np.where(side > 0, 0.0 * side + LONG, FLAT))
    return direction, np.where(np.abs(side) == 1, 0.0 * side + HALF, FULL), order, urgency


_LEGACY_ACTION_WRONG = {
    "column_major": "e = index % 5",
    "order_and_urgency_swapped": "o = index % 3, u = index // 3 % 3",
    "halves_and_fulls_swapped": "exposures 0 and 4 are half, 1 and 3 full",
    "sides_swapped": "low exposures are long",
    "flat_is_hold": "exposure 2 keeps the position",
}
_LEGACY_ACTION_KNOWN = ("row_major", *_LEGACY_ACTION_WRONG)


@equation(
    LEGACY_ID,
    title="The 45 actions in four branches",
    source=SOURCE,
    grade="encoding fixed by the programme; mapping to branches proposed",
    formula="e = index // 9, o = index // 3 % 3, u = index % 3; e = 0..4 is full short, half "
    "short, flat, half long, full long",
    axes=("B",),
    inputs=(_branch("index", 45.0, "exposure 9 + order 3 + urgency"),),
    outputs=tuple(Symbol(s.name, s.shape, Domain("nonnegative"), s.meaning) for s in _BRANCHES),
    readings=("row_major",),
    wrong=_LEGACY_ACTION_WRONG,
    forms={"row_major": (_legacy_by_steps,)},
    families=(_top("index", 44), _every("index", 45)),
    prepare=_floored,
)
def legacy_action(index: F64, *, reading: str = "row_major") -> Four:
    """Read one of the 45 older actions as direction, magnitude, order and urgency.

    Equation: DQN programme, action factoring
        e = index // 9,  o = index // 3 % 3,  u = index % 3
        (d, m) = (short, full), (short, half), (flat, any), (long, half), (long, full) for e = 0..4
    Shapes: index (B,), whole numbers. A flat exposure is given the magnitude full.
    """
    if reading not in _LEGACY_ACTION_KNOWN:
        raise UnknownReading(LEGACY_ID, reading, _LEGACY_ACTION_KNOWN)
    if reading == "column_major":
        rest, exposure = _split(index, 5)
        urgency, order = _split(rest, 3)
    else:
        rest, urgency = _split(index, 3)
        exposure, order = _split(rest, 3)
    if reading == "order_and_urgency_swapped":
        order, urgency = urgency, order
    if reading == "sides_swapped":
        exposure = 4 - exposure
    side, zero = exposure - 2, 0.0 * exposure
    flat = float(HOLD if reading == "flat_is_hold" else FLAT)
    direction = np.where(side < 0, zero + SHORT, np.where(side > 0, zero + LONG, zero + flat))
    half = np.abs(side) == (2 if reading == "halves_and_fulls_swapped" else 1)
    return direction, np.where(half, zero + HALF, zero + FULL), order, urgency


_COUNTERFACTUAL_REWARD_WRONG = {
    "cost_refunded": "-(pnl - cost): the cost changes its sign",
    "cost_missing": "-pnl",
    "not_flipped": "pnl - cost",
}
_COUNTERFACTUAL_REWARD_KNOWN = ("cost_kept", *_COUNTERFACTUAL_REWARD_WRONG)


@equation(
    REWARD_ID,
    title="Reward of the direction not taken",
    source=SOURCE,
    grade="name fixed by the programme; rule proposed",
    formula="reward of the flipped direction = -pnl - cost",
    axes=("B",),
    inputs=(
        Symbol("pnl", ("B",), Domain("real", -2.0, 2.0), "profit of the direction taken"),
        Symbol("cost", ("B",), Domain("nonnegative", 0.1, 0.5), "cost of trading"),
    ),
    outputs=(Symbol("reward", ("B",), Domain("real"), "reward of the other direction"),),
    readings=("cost_kept",),
    wrong=_COUNTERFACTUAL_REWARD_WRONG,
    forms={"cost_kept": (lambda pnl, cost: -(pnl + cost),)},
    families=(
        Family(
            "flat", "no profit: the cost alone", lambda rng, sizes, v: v | {"pnl": 0.0 * v["pnl"]}
        ),
    ),
    notes="Whichever way one trades, the cost is paid.",
)
def counterfactual_reward(pnl: F64, cost: F64, *, reading: str = "cost_kept") -> F64:
    """Give the reward that the flipped direction would have had.

    Equation: DQN programme, action factoring
        reward = -pnl - cost, where the direction taken had pnl - cost
    Shapes: pnl, cost (B,).
    """
    if reading == "cost_kept":
        return -pnl - cost
    if reading == "cost_refunded":
        return -(pnl - cost)
    if reading == "cost_missing":
        return -pnl
    if reading == "not_flipped":
        return pnl - cost
    raise UnknownReading(REWARD_ID, reading, _COUNTERFACTUAL_REWARD_KNOWN)
