"""Eq. 19-20: momentum over gradients that a preconditioner has changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "nl.preconditioned_momentum"
READING_FORMULAS = {
    "left": "m' = alpha m - eta P g, P (d_out, d_out)",
    "vectorised": "m' = alpha m - eta P vec(g), P on all d_out d_in elements, row-major",
    "hadamard": "m' = alpha m - eta p * g, element by element",
}
WRONG_FORMULAS = {
    "p_transposed": "m' = alpha m - eta P^T g",
    "g_right_p": "m' = alpha m - eta g P, square only",
    "p_diagonal": "m' = alpha m - eta diag(P) g: only the diagonal of P",
    "p_dropped": "m' = alpha m - eta g: Eq. 17",
    "p_on_momentum": "m' = P (alpha m - eta g), or p * (alpha m - eta g)",
    "p_divides": "m' = alpha m - eta g / p",
    "adam": "m' = alpha m + (1 - alpha) g / (sqrt(0.001 g^2) + 1e-8), W' = W - eta m': an "
    "exponential average from rest without bias correction",
    "alpha_complement": "m' = (1 - alpha) m - eta P g",
    "ascent": "W' = W - m'",
    "weights_from_old_m": "W' = W + m",
}
READINGS, WRONG = tuple(READING_FORMULAS), tuple(WRONG_FORMULAS)


def _from_rest(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"m": np.zeros_like(values["m"])}


def _no_gradient(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"g": np.zeros_like(values["g"])}


def _symmetric(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    if "P" not in values:
        return dict(values)
    P = np.asarray(values["P"])
    return values | {"P": 0.5 * (P + P.T)}


def _one_scale(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Make every preconditioner the same multiple of the identity."""
    scale, changed = 1.5, dict(values)
    shape = np.shape(values["g"])
    if "P" in values:
        changed["P"] = scale * np.eye(shape[0])
    if "P_vec" in values:
        changed["P_vec"] = scale * np.eye(shape[0] * shape[1]).reshape(shape + shape)
    if "p" in values:
        changed["p"] = np.full(shape, scale)
    return changed


FAMILIES = (
    Family("from_rest", "m = 0: the whole step is the preconditioned gradient", _from_rest),
    Family(
        "no_gradient",
        "g = 0: m must decay by alpha exactly",
        _no_gradient,
        right_kernel_only=True,
    ),
    Family(
        "symmetric_p",
        "a symmetric P hides a transpose",
        _symmetric,
        right_kernel_only=True,
    ),
    Family(
        "one_scale",
        "every preconditioner is 1.5 times the identity: the readings coincide",
        _one_scale,
        right_kernel_only=True,
    ),
)


def preconditioned_momentum_by_rows(
    m: F64,
    W: F64,
    g: F64,
    alpha: float,
    eta: float,
    P: F64 | None = None,
    P_vec: F64 | None = None,
    p: F64 | None = None,
) -> tuple[F64, F64]:
    """Eq. 20 with the rate taken into P, and the weights regrouped: W' = (W - eta P g) + alpha m.

    Shapes: m, W, g (d_out, d_in); P (d_out, d_out), the identity if None.
    """
    step = eta * g if P is None else (eta * P) @ g
    return alpha * m - step, (W - step) + alpha * m


_MATRIX = ("d_out", "d_in")
_REAL = Domain("real", -2.0, 2.0)


@equation(
    ID,
    title="Preconditioned momentum",
    source="Nested Learning, NeurIPS 2025",
    numbers=("19", "20"),
    grade="as printed",
    formula="m' = alpha m - eta P g;  W' = W + m'",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, _REAL, "momentum, 0 at the start"),
        Symbol("W", _MATRIX, _REAL, "weights"),
        Symbol("g", _MATRIX, _REAL, "gradient at W"),
        Symbol("alpha", (), Domain("unit", 0.5, 0.99), "momentum factor"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
        Symbol("P", ("d_out", "d_out"), _REAL, "preconditioner of 'left'; else the identity", True),
        Symbol("P_vec", _MATRIX + _MATRIX, _REAL, "preconditioner of 'vectorised'", True),
        Symbol("p", _MATRIX, _REAL, "preconditioner of 'hadamard'", True),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "momentum after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={"left": (preconditioned_momentum_by_rows,)},
    families=FAMILIES,
    notes="The gradient of Eq. 19 is P g: not P^T g, not g P. A scaling of single elements, as "
    "Adam's, is an instance only of `vectorised`, and is declared as `hadamard`. A preconditioner "
    "on the right comes from <m^T g, P> instead and gives g P^T.",
    errata=errata("E1", "E13"),
    coincide=(
        Coincidence(READINGS, "P = c I and p = c everywhere", "one_scale"),
        Coincidence(("left", "p_transposed"), "P is symmetric", "symmetric_p"),
        Coincidence(READINGS, "g = 0", "no_gradient"),
        Coincidence(("left", "hadamard"), "P is diagonal and p_ij = P_ii"),
        Coincidence(("left", "vectorised"), "P_vec is the Kronecker product of P and I"),
    ),
)
def preconditioned_momentum(
    m: F64,
    W: F64,
    g: F64,
    alpha: float,
    eta: float,
    P: F64 | None = None,
    P_vec: F64 | None = None,
    p: F64 | None = None,
    *,
    reading: str = "left",
) -> tuple[F64, F64]:
    """Take one step of momentum over preconditioned gradients.

    Equation: Nested Learning (NeurIPS 2025), Eq. 19-20
        m_{i+1} = alpha_{i+1} m_i - eta_i P_i g_i,   W_{i+1} = W_i + m_{i+1}
    Shapes: m, W, g, p (d_out, d_in); P (d_out, d_out), the identity if None;
    P_vec (d_out, d_in, d_out, d_in), a matrix on row-major flattened gradients; alpha, eta scalars.
    m_0 = 0. Returns (m_{i+1}, W_{i+1}).
    Readings, each with a preconditioner of its own:
        left        P g
        vectorised  P_vec vec(g)
        hadamard    p * g, element by element
    Raises NotApplicable where that of the reading is not given.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading in READINGS:
        m_next = alpha * m - eta * _preconditioned(g, P, P_vec, p, reading)
        return m_next, W + m_next
    if reading == "adam":
        m_next = alpha * m + (1 - alpha) * g / (np.sqrt(0.001 * g * g) + 1e-8)
        return m_next, W - eta * m_next
    m_next = _wrong(m, g, alpha, eta, P, p, reading)
    if reading == "ascent":
        return m_next, W - m_next
    return m_next, W + (m if reading == "weights_from_old_m" else m_next)


def _preconditioned(g: F64, P: F64 | None, P_vec: F64 | None, p: F64 | None, reading: str) -> F64:
    """Give the preconditioned gradient of a reading."""
    if reading == "left":
        return g if P is None else P @ g
    if reading == "vectorised":
        if P_vec is None:
            raise NotApplicable(ID, reading, "P_vec, its preconditioner")
        n = g.shape[0] * g.shape[1]
        return np.reshape(np.reshape(P_vec, (n, n)) @ np.reshape(g, (n,)), g.shape)
    if p is None:
        raise NotApplicable(ID, reading, "p, its preconditioner")
    return p * g


def _wrong(
    m: F64, g: F64, alpha: float, eta: float, P: F64 | None, p: F64 | None, reading: str
) -> F64:
    """Give the momentum of a wrong variant, of 'left' where P is given, else of 'hadamard'."""
    if reading == "p_dropped":
        return alpha * m - eta * g
    if reading == "p_divides":
        if p is None:
            raise NotApplicable(ID, reading, "p, the preconditioner of 'hadamard'")
        return alpha * m - eta * g / p
    if reading in ("p_transposed", "g_right_p", "p_diagonal"):
        return alpha * m - eta * _misplaced_p(g, P, reading)
    if P is None and p is None:
        raise NotApplicable(ID, reading, "P or p, a preconditioner")
    claimed = "left" if P is not None else "hadamard"
    if reading == "p_on_momentum":
        return _preconditioned(alpha * m - eta * g, P, None, p, claimed)
    kept = 1 - alpha if reading == "alpha_complement" else alpha
    return kept * m - eta * _preconditioned(g, P, None, p, claimed)


def _misplaced_p(g: F64, P: F64 | None, reading: str) -> F64:
    if P is None:
        raise NotApplicable(ID, reading, "P, the preconditioner of 'left'")
    if reading == "p_transposed":
        return P.T @ g
    if reading == "p_diagonal":
        return np.diagonal(P)[:, None] * g
    if g.shape[0] != g.shape[1]:
        raise NotApplicable(ID, reading, f"d_out = d_in, got {g.shape[0]} and {g.shape[1]}")
    return g @ P
