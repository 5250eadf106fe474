"""Flags of tensors that hold NaN or infinity, and the step that first saw each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.nan_flags"
SLOTS = 48
FORWARD, BACKWARD, RESERVED = (0, 24), (24, 36), (36, 48)
READINGS = ("sticky",)
WRONG = {
    "nan_only": "infinity is let pass",
    "infinity_only": "NaN is let pass",
    "cleared_each_step": "the flag is what this scan found",
    "aliased": "slots 24 to 47 stand in slots 0 to 23",
    "counted": "the number of elements is added to the flag",
    "first_element_only": "only the first element is looked at",
    "last_element_missed": "the last element is not looked at",
    "step_of_last": "the step is written by every scan that finds something",
    "step_always": "the step is written whatever the scan finds",
    "all_slots": "every slot is set",
}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    flags = np.asarray(values["flags"]) > 0.5
    steps = np.floor(np.abs(np.asarray(values["first_seen"])))
    return values | {
        "flags": flags.astype(np.float64),
        "first_seen": np.where(flags, steps, -1.0),
        "slot": np.minimum(np.floor(np.abs(np.asarray(values["slot"]))), SLOTS - 1.0),
        "step": np.floor(np.asarray(values["step"])),
    }


def _spoiled(rng: np.random.Generator, values: Values, at: int, bad: float, slot: int) -> Values:
    x = np.array(values["x"])
    x[at] = bad
    return values | {"x": x, "flags": np.zeros(SLOTS), "slot": np.full(1, float(slot))}


def _nan_last(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _spoiled(rng, values, -1, np.nan, int(rng.integers(24, 36)))


def _nan_first(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _spoiled(rng, values, 0, np.nan, int(rng.integers(24)))


def _infinity(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _spoiled(rng, values, sizes["n"] // 2, -np.inf, 35)


def _again(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    again = _spoiled(rng, values, sizes["n"] // 2, np.inf, 47)
    return again | {"flags": np.ones(SLOTS)}


def _largest(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    x = np.full(sizes["n"], float(np.finfo(np.float32).max))
    x[::2] = 2.0**-149
    return values | {"x": x}


def _set_before(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"flags": np.ones(SLOTS)}


FAMILIES = (
    Family("nan_first", "NaN in the first element", _nan_first),
    Family("nan_last", "NaN in the last element, a slot of the backward kernels", _nan_last),
    Family("infinity", "minus infinity in the middle", _infinity),
    Family("again", "found again: the step of the first time stays", _again),
    Family("largest", "the largest and the smallest number are numbers", _largest),
    Family("set_before", "a flag stays set when the tensor is clean again", _set_before),
)


def nan_flags_by_difference(
    x: F64, flags: F64, first_seen: F64, slot: F64, step: F64
) -> tuple[F64, F64]:
    """Tell NaN and infinity as what is not equal to itself, or beyond every number."""
    bad = np.any((x != x) | (np.abs(x) == np.inf))
    here = (np.arange(SLOTS) == slot) & bad
    return np.where(here, 1.0, flags), np.where(here & (first_seen < 0.0), step, first_seen)


@equation(
    ID,
    title="NaN flags",
    source="DQN programme, NaN flag buffer",
    grade="48 slots fixed by the programme (24 forward, 12 backward, 12 reserved); rest proposed",
    formula="flags[slot] = 1 where any element of x is NaN or infinite; first_seen[slot] = step "
    "where it was below 0",
    axes=("n",),
    inputs=(
        Symbol("x", ("n",), Domain("real", -2.0, 2.0), "tensor that is scanned"),
        Symbol("flags", ("48",), Domain("nonnegative", 0.0, 1.0), "flags, 0 or 1"),
        Symbol("first_seen", ("48",), Domain("nonnegative", 1.0, 90.0), "step, -1 for never"),
        Symbol("slot", ("1",), Domain("nonnegative", 0.0, 48.0), "slot of the tensor"),
        Symbol("step", ("1",), Domain("nonnegative", 100.0, 200.0), "counter of steps"),
    ),
    outputs=(
        Symbol("flags_next", ("48",), Domain("mask"), "flags after the scan"),
        Symbol("first_seen_next", ("48",), Domain("real"), "steps after the scan"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={"sticky": (nan_flags_by_difference,)},
    families=FAMILIES,
    notes="Flags are never cleared by a scan. Every writer stores the same value, so that no "
    "atomic is needed.",
    prepare=_prepare,
)
def nan_flags(
    x: F64, flags: F64, first_seen: F64, slot: F64, step: F64, *, reading: str = "sticky"
) -> tuple[F64, F64]:
    """Scan one tensor, and set its flag where an element is no finite number.

    Equation: DQN programme, NaN flag buffer
        flags[slot] = 1 where any x_i is NaN or infinite, else as it was
        first_seen[slot] = step where it was below 0 and the scan found something
    Shapes: x (n,); flags, first_seen (48,), whole numbers; slot, step (1,), whole numbers.
    Returns (flags, first_seen).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    found = np.isnan(x) | np.isinf(x)
    if reading == "nan_only":
        found = np.isnan(x)
    elif reading == "infinity_only":
        found = np.isinf(x)
    elif reading == "first_element_only":
        found = found[:1]
    elif reading == "last_element_missed":
        found = found[:-1]
    bad = np.any(found)
    place = np.arange(SLOTS)
    here = place == (np.where(slot >= 24.0, slot - 24.0, slot) if reading == "aliased" else slot)
    if reading == "all_slots":
        here = place >= 0
    unseen = first_seen < (np.inf if reading in ("step_of_last", "step_always") else 0.0)
    seen = here & unseen if reading == "step_always" else here & unseen & bad
    return _flagged(flags, here, bad, found, reading), np.where(seen, step, first_seen)


def _flagged(flags: F64, here: Any, bad: Any, found: Any, reading: str) -> F64:
    if reading == "counted":
        return np.where(here, flags + np.sum(np.where(found, 1.0, 0.0)), flags)
    if reading == "cleared_each_step":
        return np.where(here, np.where(bad, 1.0, 0.0 * flags), flags)
    return np.where(here & bad, 1.0, flags)
