"""Preprint Algorithm 1 and Eq. 75: M3, a momentum of two time scales with orthogonalised reads."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.m3_families import FAMILIES, SLOW_FAMILIES
from trueup.reference.nl.muon import OTHER_FORMS, Orthogonalise
from trueup.reference.nl.newton_schulz import EPS, newton_schulz
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.m3"
SLOW_ID = "nl.m3_slow"
READINGS = ("quintic5", "cubic5", "quintic5_minus")
WRONG_FORMULAS = {
    "identity": "no orthogonalisation",
    "cubic3": "three cubic steps",
    "tall_skipped": "no orthogonalisation where d_out > d_in",
    "steps_4": "four steps",
    "ema": "M1 and V are averages: (1 - beta) M + beta g",
    "v_decayed": "V' = (1 - beta2) V + beta2 g^2",
    "v_before": "divides by the V before this gradient",
    "v_missing": "no division",
    "eps_under_root": "sqrt(V + epsilon)",
    "slow_missing": "alpha O2 left out",
    "buffer_scaled": "S' = S + beta1 g",
    "buffer_kept": "S' = S",
    "old_momentum": "NS(M1)",
    "ascent": "theta' = theta + eta (...)",
    "divided_before": "NS(M1) / sqrt(V) + alpha O2: the slow part is not divided",
}
WRONG = tuple(WRONG_FORMULAS)
SLOW_READINGS = ("quintic5", "cubic5")
SLOW_WRONG_FORMULAS = {
    "identity": "no orthogonalisation",
    "cubic3": "three cubic steps",
    "tall_skipped": "no orthogonalisation where d_out > d_in",
    "steps_4": "four steps",
    "ema": "M2' = (1 - beta3) M2 + beta3 S",
    "rate_missing": "M2' = M2 + S",
    "buffer_kept": "S is not emptied",
    "old_momentum": "O2 = NS(M2)",
    "buffer_only": "O2 = NS(S)",
}
SLOW_WRONG = tuple(SLOW_WRONG_FORMULAS)
Fast = tuple[F64, F64, F64, F64]


def m3_by(
    theta: F64,
    M1: F64,
    V: F64,
    S: F64,
    O2: F64,
    g: F64,
    beta1: float,
    beta2: float,
    alpha: float,
    eta: float,
    epsilon: float,
    eps: float = EPS,
    *,
    reading: str,
    orthogonalise: Orthogonalise,
) -> Fast:
    """Take the step with another formula of Newton-Schulz."""
    M1_next, V_next = M1 + beta1 * g, V + beta2 * (g * g)
    slow = -alpha if reading.endswith("_minus") else alpha
    step = orthogonalise(M1_next, eps, reading=reading.removesuffix("_minus")) + slow * O2
    return theta - eta * (step / (np.sqrt(V_next) + epsilon)), M1_next, V_next, S + g


_MATRIX = ("d_out", "d_in")
_REAL = Domain("real", -2.0, 2.0)
_EPS = Symbol("eps", (), Domain("positive", 1e-8, 1e-6), "guard of NS's norm, 1e-7", True)


@equation(
    ID,
    title="M3, every step",
    source="Nested Learning, preprint arXiv:2512.24695",
    numbers=("75",),
    grade="preprint, Algorithm 1, seen in two transcriptions that agree; the sign of the slow "
    "part in Eq. 75 is transcribed both ways",
    formula="M1' = M1 + beta1 g;  V' = V + beta2 g^2;  S' = S + g;  "
    "theta' = theta - eta (NS(M1') + alpha O2) / (sqrt(V') + epsilon)",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("theta", _MATRIX, _REAL, "weights"),
        Symbol("M1", _MATRIX, _REAL, "fast momentum, a sum"),
        Symbol("V", _MATRIX, Domain("nonnegative", 0.1, 2.0), "sum of squares"),
        Symbol("S", _MATRIX, _REAL, "gradients since the slow momentum last moved"),
        Symbol("O2", _MATRIX, Domain("real", -1.0, 1.0), "orthogonalised slow momentum"),
        Symbol("g", _MATRIX, _REAL, "gradient at theta"),
        Symbol("beta1", (), Domain("positive", 0.3, 1.0), "weight of g in M1"),
        Symbol("beta2", (), Domain("positive", 0.3, 1.0), "weight of g^2 in V"),
        Symbol("alpha", (), Domain("positive", 0.3, 1.0), "weight of the slow part"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
        Symbol("epsilon", (), Domain("positive", 1e-2, 1e-1), "added to sqrt(V)"),
        _EPS,
    ),
    outputs=(
        Symbol("theta_next", _MATRIX, Domain("real"), "weights after the step"),
        Symbol("M1_next", _MATRIX, Domain("real"), "fast momentum after the step"),
        Symbol("V_next", _MATRIX, Domain("real"), "sum of squares after the step"),
        Symbol("S_next", _MATRIX, Domain("real"), "gradients since the slow momentum moved"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={
        reading: tuple(partial(m3_by, reading=reading, orthogonalise=form) for form in OTHER_FORMS)
        for reading in READINGS
    },
    families=FAMILIES,
    notes="Sums, no averages: nothing decays, and V only grows. After every f-th step nl.m3_slow "
    "follows, and its O2 is used from the next step on. Dividing by sqrt(V) element by element "
    "destroys the orthogonality of the read.",
)
def m3(
    theta: F64,
    M1: F64,
    V: F64,
    S: F64,
    O2: F64,
    g: F64,
    beta1: float,
    beta2: float,
    alpha: float,
    eta: float,
    epsilon: float,
    eps: float = EPS,
    *,
    reading: str = "quintic5",
) -> Fast:
    """Take one step of M3; where t mod f = 0, ``m3_slow`` follows it.

    Equation: Nested Learning (preprint arXiv:2512.24695), Algorithm 1 and Eq. 75
        M1' = M1 + beta1 g,   V' = V + beta2 g * g,   S' = S + g
        theta' = theta - eta (NS(M1') + alpha O2) / (sqrt(V') + epsilon)
    Shapes: theta, M1, V, S, O2, g (d_out, d_in); the rest scalars. All state starts at 0.
    Returns theta', M1', V', S'.
    Readings: ``quintic5`` and ``cubic5`` name the polynomial of NS; ``quintic5_minus`` subtracts
    the slow part, as one transcription of Eq. 75 has it.
    """
    if reading in READINGS:
        return m3_by(
            theta, M1, V, S, O2, g, beta1, beta2, alpha, eta, epsilon, eps,
            reading=reading, orthogonalise=newton_schulz,
        )  # fmt: skip
    if reading not in WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    keep1 = 1 - beta1 if reading == "ema" else 1
    keep2 = 1 - beta2 if reading in ("ema", "v_decayed") else 1
    M1_next, V_next = keep1 * M1 + beta1 * g, keep2 * V + beta2 * (g * g)
    S_next = {"buffer_scaled": S + beta1 * g, "buffer_kept": S}.get(reading, S + g)
    fast = _orthogonalised(M1 if reading == "old_momentum" else M1_next, eps, reading)
    slow = 0.0 * O2 if reading == "slow_missing" else alpha * O2
    root = np.sqrt(V if reading == "v_before" else V_next) + epsilon
    if reading == "eps_under_root":
        root = np.sqrt(V_next + epsilon)
    if reading == "divided_before":
        step = fast / root + slow
    else:
        step = fast + slow if reading == "v_missing" else (fast + slow) / root
    theta_next = theta + eta * step if reading == "ascent" else theta - eta * step
    return theta_next, M1_next, V_next, S_next


def _orthogonalised(M: F64, eps: float, reading: str) -> F64:
    if reading == "identity":
        return M
    other = ("cubic3", "tall_skipped", "steps_4")
    return newton_schulz(M, eps, reading=reading if reading in other else "quintic5")


def m3_slow_by(
    M2: F64, S: F64, beta3: float, eps: float = EPS, *, reading: str, orthogonalise: Orthogonalise
) -> tuple[F64, F64, F64]:
    """Move the slow momentum with another formula of Newton-Schulz."""
    M2_next = M2 + beta3 * S
    return M2_next, np.zeros_like(S), orthogonalise(M2_next, eps, reading=reading)


@equation(
    SLOW_ID,
    title="M3, every f-th step: the slow momentum",
    source="Nested Learning, preprint arXiv:2512.24695",
    numbers=("75",),
    grade="preprint, Algorithm 1, seen in two transcriptions that agree",
    formula="M2' = M2 + beta3 S;  S' = 0;  O2' = NS(M2')",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("M2", _MATRIX, _REAL, "slow momentum, a sum"),
        Symbol("S", _MATRIX, _REAL, "sum of the last f gradients"),
        Symbol("beta3", (), Domain("positive", 0.3, 0.9), "weight of S in M2"),
        _EPS,
    ),
    outputs=(
        Symbol("M2_next", _MATRIX, Domain("real"), "slow momentum after the step"),
        Symbol("S_next", _MATRIX, Domain("real"), "zeros"),
        Symbol("O2_next", _MATRIX, Domain("real"), "orthogonalised slow momentum"),
    ),
    readings=SLOW_READINGS,
    wrong=SLOW_WRONG_FORMULAS,
    forms={
        reading: tuple(
            partial(m3_slow_by, reading=reading, orthogonalise=form) for form in OTHER_FORMS
        )
        for reading in SLOW_READINGS
    },
    families=SLOW_FAMILIES,
    notes="The sum over the last f gradients is transcribed with both ends included, f + 1 terms; "
    "f are meant. O2 is used from the following step on.",
)
def m3_slow(
    M2: F64, S: F64, beta3: float, eps: float = EPS, *, reading: str = "quintic5"
) -> tuple[F64, F64, F64]:
    """Move the slow momentum of M3 by the gradients gathered since it last moved.

    Equation: Nested Learning (preprint arXiv:2512.24695), Algorithm 1, where t mod f = 0
        M2' = M2 + beta3 S,   S' = 0,   O2' = NS(M2')
    Shapes: M2, S (d_out, d_in); beta3, eps scalars. All state starts at 0.
    Returns M2', S', O2'. A NaN in S is forgotten in S'.
    Readings: ``quintic5`` and ``cubic5`` name the polynomial of NS.
    """
    if reading not in SLOW_READINGS + SLOW_WRONG:
        raise UnknownReading(SLOW_ID, reading, SLOW_READINGS + SLOW_WRONG)
    keep = 1 - beta3 if reading == "ema" else 1
    M2_next = keep * M2 + (S if reading == "rate_missing" else beta3 * S)
    S_next = S if reading == "buffer_kept" else np.zeros_like(S)
    if reading == "cubic5":
        return M2_next, S_next, newton_schulz(M2_next, eps, reading=reading)
    source = {"old_momentum": M2, "buffer_only": S}.get(reading, M2_next)
    return M2_next, S_next, _orthogonalised(source, eps, reading)
