"""State at the boundary of a fold: kept, drawn towards its initial value, or set to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "isv.soft_reset"
READINGS = ("towards_init",)
WRONG_FORMULAS = {
    "init_forgotten": "kappa x",
    "kappa_inverted": "x + kappa (init - x)",
    "applied_twice": "kappa^2",
    "hard": "init, whatever kappa",
    "never": "the state stays as it is",
}
WRONG = tuple(WRONG_FORMULAS)


def _set(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values


def _half(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"kappa": np.full(sizes["n"], 0.5)}


def _kept(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"kappa": np.ones(sizes["n"])}


def _hard(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"kappa": np.zeros(sizes["n"])}


def _kept_hazards(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """What arithmetic would change: a skip keeps it."""
    state = np.array(values["state"])
    state[::3], state[1::3] = -0.0, np.nan
    return values | {"state": state, "kappa": np.ones(sizes["n"])}


FAMILIES = (
    Family("mixed", "every word with its own kappa", _set),
    Family("half", "the programme's kappa", _half),
    Family("kept", "kappa = 1 is a skip", _kept),
    Family("hard", "kappa = 0 is the initial value, bit for bit", _hard),
    Family("kept_hazards", "NaN and -0 survive kappa = 1", _kept_hazards, right_kernel_only=True),
)


def soft_reset_by_lerp(state: F64, init: F64, kappa: F64) -> F64:
    """Write the blend as (1 - kappa) init + kappa x."""
    blend = (1.0 - kappa) * init + kappa * state
    return np.where(kappa == 1.0, state, np.where(kappa == 0.0, init, blend))


@equation(
    ID,
    title="Soft reset",
    source="ISV programme, StateResetRegistry",
    grade="category fixed by the programme; formula proposed",
    formula="x = init + kappa (x - init); kappa = 1 skips, kappa = 0 assigns",
    axes=("n",),
    inputs=(
        Symbol("state", ("n",), Domain("real", -2.0, 2.0), "state before the boundary"),
        Symbol("init", ("n",), Domain("real", -2.0, 2.0), "initial values"),
        Symbol("kappa", ("n",), Domain("unit", 0.1, 0.9), "what is kept of the distance"),
    ),
    outputs=(Symbol("state_next", ("n",), Domain("real"), "state after the boundary"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"towards_init": (soft_reset_by_lerp,)},
    families=FAMILIES,
    notes="A hard reset is kappa = 0, persistent state kappa = 1.",
)
def soft_reset(state: F64, init: F64, kappa: F64, *, reading: str = "towards_init") -> F64:
    """Reset state at the boundary of a fold.

    Equation: ISV programme, StateResetRegistry [proposed]
        x = init + kappa (x - init),   0 <= kappa <= 1
    kappa = 1 is a skip and kappa = 0 an assignment, bit for bit. Shapes: all (n,).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "never":
        return state + 0.0 * kappa
    if reading == "hard":
        return init + 0.0 * kappa
    if reading == "init_forgotten":
        return kappa * state
    k = 1.0 - kappa if reading == "kappa_inverted" else kappa
    if reading == "applied_twice":
        k = k * k
    return np.where(k == 1.0, state, np.where(k == 0.0, init, init + k * (state - init)))
