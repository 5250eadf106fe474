"""Eq. 27-29 for a batch of samples, taken in one step."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.projected_descent import projected_descent
from trueup.reference.nl.projected_descent_families import BATCH
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.projected_descent_batch"
READINGS = {
    "derived": "W - eta (X W^T + U)^T X, the sum over samples",
    "derived_mean": "W - eta / B (X W^T + U)^T X, their mean",
    "literal": "W - (X W^T + eta U)^T X",
    "prox": "(W - eta U^T X) (I + eta X^T X)^{-1}, the exact minimiser",
    "prox_mean": "prox with eta / B",
    "printed_objective_half": "W - eta (X W^T - U)^T X",
    "printed_objective_full": "W - 2 eta (X W^T - U)^T X",
}
WRONG = {
    "plain_gd": "W - eta U^T X: no decay",
    "decay_only": "W (I - eta X^T X): the gradient is missing",
    "sequential": "one token after the other",
    "sequential_reversed": "the same from the last to the first",
    "mean_gradient_only": "the gradient divided by B, the decay not",
    "mean_decay_only": "the decay divided by B, the gradient not",
    "mean_context": "the decay along the mean input only",
    "grad_then_decay": "(W - eta U^T X) (I - eta X^T X)",
    "scalar_decay": "(1 - eta) W - eta U^T X",
    "ascent": "W + eta (X W^T + U)^T X",
    "last_row_missing": "the loop over samples stops one early",
}


def batch_two_updates(W: F64, X: F64, U: F64, eta: float, *, reading: str = "derived") -> F64:
    """Write decay and gradient apart: W - c (X W^T)^T X - b U^T X."""
    c, b = _coefficients(eta, X.shape[0], reading)
    decay: F64 = (X @ W.T).T @ X
    return W - c * decay - b * (U.T @ X)


def prox_by_woodbury(W: F64, X: F64, U: F64, eta: float, *, reading: str = "prox") -> F64:
    """Solve in the samples: W - eta (X W^T + U)^T (I_B + eta X X^T)^{-1} X."""
    rate = _prox_rate(eta, X.shape[0], reading)
    residual: F64 = X @ W.T + U
    system: F64 = np.eye(X.shape[0]) + rate * (X @ X.T)
    step: F64 = np.linalg.solve(system, residual).T @ X
    return W - rate * step


def prox_by_solve(W: F64, X: F64, U: F64, eta: float, *, reading: str = "prox") -> F64:
    """Solve in the inputs: (W - eta U^T X) (I + eta X^T X)^{-1}."""
    rate = _prox_rate(eta, X.shape[0], reading)
    descended: F64 = W - rate * (U.T @ X)
    system: F64 = np.eye(X.shape[1]) + rate * (X.T @ X)
    # NumPy types the solution as any float, though float64 goes in.
    columns: Any = np.linalg.solve(system, descended.T)
    solved: F64 = columns.T
    return solved


def _forms() -> dict[str, tuple[partial[F64], ...]]:
    forms: dict[str, tuple[partial[F64], ...]] = {
        reading: (partial(batch_two_updates, reading=reading),)
        for reading in READINGS
        if not reading.startswith("prox")
    }
    for reading in ("prox", "prox_mean"):
        forms[reading] = tuple(
            partial(function, reading=reading) for function in (prox_by_woodbury, prox_by_solve)
        )
    return forms


@equation(
    ID,
    title="Gradient descent with an L2 inner objective, a batch",
    source="Nested Learning, NeurIPS 2025",
    numbers=("27", "28", "29"),
    grade="derived from the corrected print",
    formula="W' = W (I - eta X^T X) - eta U^T X   (samples are rows)",
    axes=("B", "d_out", "d_in"),
    inputs=(
        Symbol("W", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "weights"),
        Symbol("X", ("B", "d_in"), Domain("real", -2.0, 2.0), "layer inputs, a sample per row"),
        Symbol("U", ("B", "d_out"), Domain("real", -2.0, 2.0), "local surprises, a row each"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
    ),
    outputs=(Symbol("W_next", ("d_out", "d_in"), Domain("real"), "weights after the step"),),
    readings=READINGS,
    wrong=WRONG,
    forms=_forms(),
    families=BATCH,
    notes="U is used as given. If the loss is a mean, U carries the 1/B and the decay does not; "
    "under the readings ..._mean both are divided by B. Taking one token after the other is "
    "another map, which depends on their order.",
    errata=errata("E18", "E19", "E21"),
    coincide=(
        Coincidence(("derived", "derived_mean"), "B = 1"),
        Coincidence(("derived", "prox"), "U = -X W^T", "fixed_point"),
        Coincidence(("derived", "sequential"), "the samples are orthogonal", "orthogonal_rows"),
    ),
)
def projected_descent_batch(W: F64, X: F64, U: F64, eta: float, *, reading: str = "derived") -> F64:
    """Take one step of descent on sum_b 1/2 |W x_b + u_b|^2, all u_b held fixed.

    Equation: Nested Learning (NeurIPS 2025), Eq. 27-29, corrected, summed over samples
        W' = W (I - eta X^T X) - eta U^T X = W - eta (X W^T + U)^T X
    Shapes: W (d_out, d_in); X (B, d_in) and U (B, d_out), one sample per row; eta a scalar.
    Readings, c on the decay and b on the gradient:
        derived                 c = b = eta                       the sum over samples
        derived_mean            c = b = eta / B                   their mean
        literal                 c = 1,     b = eta
        prox, prox_mean         the exact minimiser with eta, eta / B:
                                (W - eta U^T X) (I + eta X^T X)^{-1}
        printed_objective_half  c = eta,   b = -eta
        printed_objective_full  c = 2 eta, b = -2 eta
    ``prox`` adds the samples one by one, by Sherman-Morrison on (I + eta X^T X)^{-1}: products
    and quotients only, so that every rounding can be followed.
    """
    if reading in WRONG:
        return _wrong(W, X, U, eta, reading)
    if reading in ("prox", "prox_mean"):
        return _prox(W, X, U, _prox_rate(eta, X.shape[0], reading))
    c, b = _coefficients(eta, X.shape[0], reading)
    residual: F64 = c * (X @ W.T) + b * U  # (B, d_out)
    step: F64 = residual.T @ X
    return W - step


def _prox(W: F64, X: F64, U: F64, rate: float) -> F64:
    """Minimise by recursive least squares: K is (I + rate X^T X)^{-1} over the samples so far."""
    K = np.eye(X.shape[1])
    for row in range(X.shape[0]):
        x = X[row]
        Kx = K @ x
        gain = (rate / (1 + rate * (x @ Kx))) * Kx
        W = W - np.outer(W @ x + U[row], gain)
        K = K - np.outer(Kx, gain)
    return W


def _prox_rate(eta: float, size: int, reading: str) -> float:
    return eta / size if reading == "prox_mean" else eta


def _coefficients(eta: float, size: int, reading: str) -> tuple[float, float]:
    """Give (c, b) of the decay and of the gradient."""
    if reading == "derived":
        return eta, eta
    if reading == "derived_mean":
        return eta / size, eta / size
    if reading == "literal":
        return 1, eta
    if reading == "printed_objective_half":
        return eta, -eta
    if reading == "printed_objective_full":
        return 2 * eta, -2 * eta
    raise UnknownReading(ID, reading, (*READINGS, *WRONG))


def _wrong(W: F64, X: F64, U: F64, eta: float, reading: str) -> F64:
    if reading in ("sequential", "sequential_reversed"):
        return _sequential(W, X, U, eta, reversed=reading == "sequential_reversed")
    if reading == "last_row_missing":
        X, U = X[:-1], U[:-1]
    size = X.shape[0]
    decay: F64 = eta * ((X @ W.T).T @ X)
    gradient: F64 = eta * (U.T @ X)
    if reading == "plain_gd":
        decay = 0 * decay
    elif reading == "decay_only":
        gradient = 0 * gradient
    elif reading == "mean_gradient_only":
        gradient = gradient / size
    elif reading == "mean_decay_only":
        decay = decay / size
    elif reading == "mean_context":
        mean = np.mean(X, axis=0)
        decay = eta * np.outer(W @ mean, mean)
    elif reading == "grad_then_decay":
        descended = W - gradient
        decay = eta * ((X @ descended.T).T @ X)
    elif reading == "scalar_decay":
        decay = eta * W
    elif reading == "ascent":
        decay, gradient = -decay, -gradient
    return W - decay - gradient


def _sequential(W: F64, X: F64, U: F64, eta: float, *, reversed: bool) -> F64:
    rows = range(X.shape[0])
    for row in rows[::-1] if reversed else rows:
        W = projected_descent(W, X[row], U[row], eta)
    return W
