"""Derivatives of a later chunk's loss through an online write of a linear fast memory."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.online_writes"
READING_FORMULAS = {
    "straight_through": "dW0 = Gamma, the others 0",
    "through": "dW0 = Gamma (I - eta X1 X1^T), and dV1, dX1, deta",
    "detached": "all derivatives 0",
}
READINGS = tuple(READING_FORMULAS)
WRONG_FORMULAS = {
    "gap_sign": "Gamma (I + eta X1 X1^T)",
    "error_path_only": "dX1 without -eta W0^T Gamma X1",
    "input_path_only": "dX1 without -eta Gamma^T E1",
    "rate_missing": "dV1 = Gamma X1",
    "rate_doubled": "the write of a target-shift surrogate: 2 eta, in value and derivatives",
    "old_memory": "the later chunk is read from W0: the write changes nothing",
}
WRONG = tuple(WRONG_FORMULAS)
Result = tuple[F64, F64, F64, F64, Scalar]


def _no_overlap(rng: np.random.Generator, sizes: object, values: Values) -> Values:
    """Put Gamma X1 = 0: the second chunk reads where the first wrote nothing."""
    first, second = np.array(values["X1"]), np.array(values["X2"])
    half = first.shape[0] // 2
    first[half:], second[:half] = 0.0, 0.0
    return values | {"X1": first, "X2": second}


def _recalled(rng: np.random.Generator, sizes: object, values: Values) -> Values:
    return values | {"V1": np.asarray(values["W0"]) @ np.asarray(values["X1"])}


FAMILIES = (
    Family("recalled", "V1 = W0 X1: the write is zero, its derivatives are not", _recalled),
    Family(
        "no_overlap",
        "Gamma X1 = 0: through and straight_through have the same W0 gradient",
        _no_overlap,
        right_kernel_only=True,
    ),
)


def online_writes_regrouped(
    W0: F64, X1: F64, V1: F64, X2: F64, V2: F64, eta: float, *, reading: str
) -> Result:
    """Write with the decay matrix: W1 = W0 A1 + eta V1 X1^T, A1 = I - eta X1 X1^T."""
    decay: F64 = np.eye(X1.shape[0]) - eta * (X1 @ X1.T)
    W1: F64 = W0 @ decay + eta * (V1 @ X1.T)
    gamma: F64 = (W1 @ X2 - V2) @ X2.T
    if reading != "through":
        kept = gamma if reading == "straight_through" else 0 * gamma
        return W1, kept, 0 * V1, 0 * X1, 0 * np.sum(V1)
    along: F64 = gamma @ X1
    error: F64 = W0 @ X1 - V1
    back: F64 = W0.T @ along + gamma.T @ error
    return W1, gamma @ decay, eta * along, -eta * back, -np.sum(along * error)


_MATRIX = Domain("real", -2.0, 2.0)


@equation(
    ID,
    title="Derivatives through an online write",
    source="Nested Learning, NeurIPS 2025",
    grade="derived here",
    formula="W1 = W0 - eta E1 X1^T;  dl2/dW0 = Gamma - eta Gamma X1 X1^T (through), "
    "Gamma (straight_through), 0 (detached)",
    axes=("d_out", "d_in", "n1", "n2"),
    inputs=(
        Symbol("W0", ("d_out", "d_in"), _MATRIX, "memory before the first chunk"),
        Symbol("X1", ("d_in", "n1"), _MATRIX, "keys of the first chunk, one per column"),
        Symbol("V1", ("d_out", "n1"), _MATRIX, "values of the first chunk"),
        Symbol("X2", ("d_in", "n2"), _MATRIX, "keys of the second chunk"),
        Symbol("V2", ("d_out", "n2"), _MATRIX, "values of the second chunk"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "rate of the write"),
    ),
    outputs=(
        Symbol("W1", ("d_out", "d_in"), Domain("real"), "memory after the write"),
        Symbol("dW0", ("d_out", "d_in"), Domain("real"), "dl2 / dW0"),
        Symbol("dV1", ("d_out", "n1"), Domain("real"), "dl2 / dV1"),
        Symbol("dX1", ("d_in", "n1"), Domain("real"), "dl2 / dX1, through the write"),
        Symbol("deta", (), Domain("real"), "dl2 / deta"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={reading: (partial(online_writes_regrouped, reading=reading),) for reading in READINGS},
    families=FAMILIES,
    notes="The value W1 is the same in every mode; only derivatives differ. The gap between "
    "through and straight_through in W0 is -eta Gamma X1 X1^T. Derivatives of l2 only: add "
    "dl1/dW0 = E1 X1^T, and for keys that a projection makes, X1 = K Z1, dK = dX1 Z1^T.",
)
def online_writes(
    W0: F64, X1: F64, V1: F64, X2: F64, V2: F64, eta: float, *, reading: str = "straight_through"
) -> Result:
    """Write one chunk, and differentiate the next chunk's loss through the write.

    Equation: derived from Nested Learning (NeurIPS 2025), Eq. 3-4 on l_c = |W X_c - V_c|^2 / 2
        W1 = W0 - eta E1 X1^T,  E1 = W0 X1 - V1,  Gamma = (W1 X2 - V2) X2^T
    Shapes: W0 (d_out, d_in); X1 (d_in, n1), V1 (d_out, n1); X2 (d_in, n2), V2 (d_out, n2).
    Returns W1, dW0, dV1, dX1, deta, the derivatives of l2. Readings:
        through           dW0 = Gamma (I - eta X1 X1^T), dV1 = eta Gamma X1,
                          dX1 = -eta (W0^T Gamma X1 + Gamma^T E1), deta = -<Gamma, E1 X1^T>
        straight_through  dW0 = Gamma, the others 0
        detached          all 0
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "rate_doubled":
        eta = 2 * eta
    error: F64 = W0 @ X1 - V1  # (d_out, n1)
    W1 = W0 - eta * (error @ X1.T)
    read = W0 if reading == "old_memory" else W1
    gamma: F64 = (read @ X2 - V2) @ X2.T  # (d_out, d_in)
    if reading in ("straight_through", "detached", "old_memory"):
        kept = 0 * gamma if reading == "detached" else gamma
        return W1, kept, 0 * V1, 0 * X1, 0 * np.sum(V1)
    along: F64 = gamma @ X1  # (d_out, n1)
    gap: F64 = -eta * (along @ X1.T)
    return (
        W1,
        gamma - gap if reading == "gap_sign" else gamma + gap,
        along if reading == "rate_missing" else eta * along,
        -eta * _back(W0, gamma, along, error, reading),
        -np.sum(gamma * (error @ X1.T)),
    )


def _back(W0: F64, gamma: F64, along: F64, error: F64, reading: str) -> F64:
    """Give minus dX1 over eta: the keys act on what was read, and on where it was written."""
    inputs: F64 = W0.T @ along
    errors: F64 = gamma.T @ error
    if reading == "error_path_only":
        return errors
    return inputs if reading == "input_path_only" else inputs + errors
