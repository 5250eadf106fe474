"""The target network's average."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.polyak"
READINGS = ("average",)
WRONG_FORMULAS = {
    "swapped": "the target keeps tau and takes 1 - tau",
    "not_decayed": "th' + tau th",
    "online_only": "tau th",
    "frozen": "never updated",
}
WRONG = tuple(WRONG_FORMULAS)


def _rate(value: float) -> Make:
    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {"tau": np.full(1, value)}

    return make


FAMILIES = (
    Family("copy", "a rate of 1 copies, bit for bit", _rate(1.0)),
    Family("freeze", "a rate of 0 leaves every bit, that of -0 as well", _rate(0.0)),
    Family("slow", "the rates of training", _rate(0.005)),
    Family("nan", "a NaN rate makes the target NaN: it is not hidden", _rate(np.nan)),
)


def polyak_by_difference(target: F64, online: F64, tau: F64) -> F64:
    """Write the average as th' + tau (th - th')."""
    blend = target + tau * (online - target)
    return np.where(tau == 0.0, target, np.where(tau == 1.0, online, blend))


@equation(
    ID,
    title="Average of the target network",
    source="ISV programme, TAU_EFF; Polyak and Juditsky (1992)",
    grade="mechanism fixed by the programme; edge cases proposed",
    formula="th' = (1 - tau) th' + tau th; a copy at tau = 1, nothing at tau = 0",
    axes=("n",),
    inputs=(
        Symbol("target", ("n",), Domain("real", -2.0, 2.0), "parameters of the target, th'"),
        Symbol("online", ("n",), Domain("real", -2.0, 2.0), "parameters in training, th"),
        Symbol("tau", ("1",), Domain("unit", 0.05, 0.4), "rate"),
    ),
    outputs=(Symbol("target_next", ("n",), Domain("real"), "target after the step"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"average": (polyak_by_difference,)},
    families=FAMILIES,
    notes="Parameters only: the bus has no target, and its tail may not be averaged.",
)
def polyak(target: F64, online: F64, tau: F64, *, reading: str = "average") -> F64:
    """Move the target network's parameters towards those in training.

    Equation: ISV programme, Polyak average
        th' = (1 - tau) th' + tau th
    At tau = 1 a copy and at tau = 0 nothing, bit for bit: the formula would turn -0 into +0.
    Shapes: target, online (n,); tau (1,).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "frozen":
        return target + 0.0 * tau
    if reading == "online_only":
        return tau * online
    if reading == "not_decayed":
        return target + tau * online
    if reading == "swapped":
        target, online = online, target
    blend = (1.0 - tau) * target + tau * online
    return np.where(tau == 0.0, target, np.where(tau == 1.0, online, blend))
