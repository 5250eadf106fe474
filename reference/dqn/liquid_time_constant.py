"""Liquid time constants: the fused step, its derivatives, and the modulation they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.liquid_step"
READINGS = ("fused",)
WRONG_FORMULAS = {
    "explicit_euler": "x + dt (-(1/tau + f) x + f A): unstable for dt above 2 tau_sys",
    "tau_for_rate": "tau in place of 1 / tau",
    "target_missing": "without A: x / den",
    "f_missing_in_den": "den = 1 + dt / tau",
    "dt_missing_in_target": "x + f A over den",
}
WRONG = tuple(WRONG_FORMULAS)
BACKWARD_WRONG = {
    "df_target_only": "df = dt A / den",
    "df_without_A": "df = -dt x' / den",
    "dtau_sign": "dtau = -x' dt / (tau^2 den)",
    "dtau_without_square": "dtau = x' dt / (tau den)",
    "dx_one": "dx = 1",
    "dA_without_dt": "dA = f / den",
}
MOD_WRONG = {
    "inverse": "1 + tau f",
    "f_only": "1 / (1 + f)",
    "tau_sys_as_mod": "tau / (1 + tau f)",
    "both": "tau and the rate are both modulated",
    "neither": "the modulation is computed and multiplies nothing",
}


def _long_step(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"dt": 10.0}


def _no_time(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"dt": 0.0}


def _at_rest(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    f, A, tau = (np.asarray(values[name]) for name in ("f", "A", "tau"))
    return values | {"x": f * A / (1.0 / tau + f)}


def _no_input(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"f": np.zeros_like(values["f"])}


STEP_FAMILIES = (
    Family("long_step", "dt = 10: an explicit step is unstable", _long_step),
    Family("no_time", "dt = 0: nothing moves", _no_time, True),
    Family("at_rest", "x at its fixed point stays there", _at_rest, True),
)
_N = ("n",)
_STEP = (
    Symbol("x", _N, Domain("real", -2.0, 2.0), "state"),
    Symbol("f", _N, Domain("nonnegative", 0.0, 2.0), "conductance from the inputs"),
    Symbol("A", _N, Domain("real", -2.0, 2.0), "reversal potential: where f pulls to"),
    Symbol("tau", _N, Domain("positive", 0.2, 5.0), "time constant without input"),
    Symbol("dt", (), Domain("nonnegative", 0.01, 1.0), "step"),
)
_SOURCE = "DQN programme; liquid time-constant networks, arXiv:2006.04439"


def liquid_step_by_tau(x: F64, f: F64, A: F64, tau: F64, dt: float) -> F64:
    """Write the step with the reciprocal of tau formed last: (x + dt f A) / (1 + dt/tau + dt f)."""
    return (x + dt * (f * A)) / ((1.0 + dt / tau) + dt * f)


def liquid_step_backward_by_tau(
    d_next: F64, x: F64, f: F64, A: F64, tau: F64, dt: float
) -> tuple[F64, F64, F64, F64]:
    """Write the derivatives with dt / tau, and dtau with its square divided twice."""
    den = (1.0 + dt / tau) + dt * f
    moved = (x + dt * (f * A)) / den
    scaled = d_next / den
    step = dt * scaled
    return scaled, step * A - step * moved, step * f, (step * moved) / tau / tau


def liquid_mod_by_tau_sys(f: F64, tau: F64, rate: F64) -> tuple[F64, F64, F64]:
    """Form tau_sys first: mod = tau_sys / tau."""
    tau_sys = tau / (1.0 + tau * f)
    return tau_sys / tau, tau_sys, 1.0 * rate


@equation(
    ID,
    title="Liquid time constant, fused step",
    source=_SOURCE,
    grade="published",
    formula="x' = (x + dt f A) / (1 + dt (1 / tau + f))",
    axes=_N,
    inputs=_STEP,
    outputs=(Symbol("x_next", _N, Domain("real"), "state after the step"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"fused": (liquid_step_by_tau,)},
    families=STEP_FAMILIES,
    notes="Stable for any dt: x' lies between x and the fixed point f A / (1 / tau + f).",
)
def liquid_step(x: F64, f: F64, A: F64, tau: F64, dt: float, *, reading: str = "fused") -> F64:
    """Step dx/dt = -(1/tau + f) x + f A, half implicitly.

    Equation: DQN programme; arXiv:2006.04439, fused solver
        x' = (x + dt f A) / (1 + dt (1 / tau + f))
    Shapes: x, f, A, tau (n,); dt a scalar. Returns x' (n,).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "explicit_euler":
        return x + dt * (f * A - (1.0 / tau + f) * x)
    rate = tau if reading == "tau_for_rate" else 1.0 / tau
    pull = rate if reading == "f_missing_in_den" else rate + f
    target = f * A if reading == "dt_missing_in_target" else dt * f * A
    if reading == "target_missing":
        target = 0.0 * target
    return (x + target) / (1.0 + dt * pull)


@equation(
    "dqn.liquid_step_backward",
    title="Liquid time constant, fused step, backward",
    source=_SOURCE,
    grade="derived",
    formula="dx = d / den;  df = d (dt A - dt x') / den;  dA = d dt f / den;  "
    "dtau = d x' dt / (tau^2 den)",
    axes=_N,
    inputs=(Symbol("d_next", _N, Domain("real", -2.0, 2.0), "gradient at x'"), *_STEP),
    outputs=(
        Symbol("dx", _N, Domain("real"), "gradient of x"),
        Symbol("df", _N, Domain("real"), "gradient of f"),
        Symbol("dA", _N, Domain("real"), "gradient of A"),
        Symbol("dtau", _N, Domain("real"), "gradient of tau"),
    ),
    readings=READINGS,
    wrong=BACKWARD_WRONG,
    forms={"fused": (liquid_step_backward_by_tau,)},
    families=STEP_FAMILIES,
    notes="x' is computed anew: nothing is saved.",
)
def liquid_step_backward(
    d_next: F64, x: F64, f: F64, A: F64, tau: F64, dt: float, *, reading: str = "fused"
) -> tuple[F64, F64, F64, F64]:
    """Take a gradient back through the fused step.

    Equation: DQN programme, with den = 1 + dt (1 / tau + f)
        dx'/dx = 1 / den;  dx'/df = (dt A - dt x') / den;  dx'/dA = dt f / den
        dx'/dtau = x' dt / (tau^2 den)
    Shapes: d_next, x, f, A, tau (n,); dt a scalar. Returns (dx, df, dA, dtau).
    """
    if reading not in READINGS + tuple(BACKWARD_WRONG):
        raise UnknownReading("dqn.liquid_step_backward", reading, READINGS + tuple(BACKWARD_WRONG))
    den = 1.0 + dt * (1.0 / tau + f)
    moved = (x + dt * f * A) / den
    scaled = d_next / den
    df = scaled * (dt * (A - moved))
    if reading == "df_target_only":
        df = scaled * (dt * A)
    elif reading == "df_without_A":
        df = scaled * (-dt * moved)
    dtau = scaled * moved * dt / (tau if reading == "dtau_without_square" else tau * tau)
    if reading == "dtau_sign":
        dtau = -dtau
    dx = d_next if reading == "dx_one" else scaled
    dA = scaled * f if reading == "dA_without_dt" else scaled * (dt * f)
    return dx, df, dA, dtau


@equation(
    "dqn.liquid_mod",
    title="Liquid modulation",
    source=_SOURCE,
    grade="name fixed by the programme, rule proposed",
    formula="mod = tau_sys / tau = 1 / (1 + tau f), multiplies tau or the averaging rate",
    axes=_N,
    inputs=(
        Symbol("f", _N, Domain("nonnegative", 0.0, 2.0), "conductance from the inputs"),
        Symbol("tau", _N, Domain("positive", 0.2, 5.0), "time constant without input"),
        Symbol("rate", _N, Domain("unit", 0.01, 0.5), "rate of a running average"),
    ),
    outputs=(
        Symbol("mod", _N, Domain("unit"), "in (0, 1]"),
        Symbol("tau_eff", _N, Domain("positive"), "time constant to use"),
        Symbol("rate_eff", _N, Domain("unit"), "averaging rate to use"),
    ),
    readings={"on_tau": "tau_eff = tau mod: faster", "on_rate": "rate_eff = rate mod: slower"},
    wrong=MOD_WRONG,
    forms={"on_tau": (liquid_mod_by_tau_sys,)},
    families=(Family("no_input", "f = 0: nothing is modulated", _no_input, True),),
    notes="The two readings act in opposite directions: which one holds has to be declared.",
)
def liquid_mod(f: F64, tau: F64, rate: F64, *, reading: str = "on_tau") -> tuple[F64, F64, F64]:
    """Modulate a time constant, or an averaging rate, by how strongly inputs drive the unit.

    Equation: DQN programme: mod = 1 / (1 + tau f); tau_sys = tau / (1 + tau f)
    Readings: ``on_tau`` multiplies tau, ``on_rate`` the averaging rate.
    Shapes: f, tau, rate (n,). Returns (mod, tau_eff, rate_eff).
    """
    known = ("on_tau", "on_rate", *MOD_WRONG)
    if reading not in known:
        raise UnknownReading("dqn.liquid_mod", reading, known)
    den = 1.0 + (f if reading == "f_only" else tau * f)
    mod = den if reading == "inverse" else 1.0 / den
    if reading == "tau_sys_as_mod":
        mod = tau / den
    on_tau = reading not in ("on_rate", "neither")
    on_rate = reading in ("on_rate", "both")
    return mod, tau * mod if on_tau else 1.0 * tau, rate * mod if on_rate else 1.0 * rate


def fire_rate_verdict(rates: Sequence[float]) -> str:
    """Say ``WIRED`` where a mechanism fired in every fold, else ``DELETE-OR-FIX``; [] never is."""
    fired = len(rates) > 0 and all(rate > 0.0 for rate in rates)
    return "WIRED" if fired else "DELETE-OR-FIX"
