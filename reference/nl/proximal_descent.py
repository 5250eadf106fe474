"""Eq. 5-6: gradient descent as the minimum of a linear model and a penalty on the distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.proximal_descent"
READING_FORMULAS = {
    "frobenius": "W - eta G, G = U X^T",
    "spectral": "W - eta |G|_* U_G V_G^T, the norm taken literally; |.|_* is the nuclear norm",
}
WRONG_FORMULAS = {
    "ascent": "W + eta G",
    "penalty_eta": "W - G / (2 eta): the penalty weighted by eta",
    "penalty_undivided": "W - eta G / 2: the penalty weighted by 1 / eta",
    "batch_mean": "W - eta G / B, though U carries the loss's own factor",
    "spectral_unscaled": "W - eta U_G V_G^T, without the nuclear norm",
    "frobenius_normalized": "W - eta G / |G|_F",
}
# Each sweep at least squares what is left of the angles; after ten nothing is.
_SWEEPS = 10
READINGS, WRONG = tuple(READING_FORMULAS), tuple(WRONG_FORMULAS)


def _one_sample(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    changed = dict(values)
    for name in ("X", "U"):
        kept = np.zeros_like(values[name])
        kept[:, :1] = np.asarray(values[name])[:, :1]
        changed[name] = kept
    return changed


def _no_surprise(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"U": np.zeros_like(values["U"])}


FAMILIES = (
    Family(
        "one_sample",
        "a gradient of rank 1: both norms give the same step",
        _one_sample,
        right_kernel_only=True,
    ),
    Family(
        "no_surprise",
        "U = 0: the minimum is where the weights are",
        _no_surprise,
        right_kernel_only=True,
    ),
)


def proximal_descent_by_samples(W: F64, X: F64, U: F64, eta: float) -> F64:
    """Eq. 4 for every sample of the batch in turn, U held constant; W (d_out, d_in)."""
    for b in range(X.shape[1]):
        W = W - np.outer(eta * U[:, b], X[:, b])
    return W


def proximal_objective(
    W: F64, W_t: F64, X: F64, U: F64, eta: float, *, reading: str = "frobenius"
) -> Scalar:
    """Give what Eq. 5 minimises in W: <W X, U> + |W - W_t|^2 / (2 eta), by the norm of a reading.

    Shapes as in `proximal_descent`. Undefined at eta = 0. Raises UnknownReading.
    """
    if reading not in READINGS:
        raise UnknownReading(ID, reading, READINGS)
    distance = np.linalg.norm(W - W_t, ord="fro" if reading == "frobenius" else 2)
    return np.sum((W @ X) * U) + distance**2 / (2 * eta)


@equation(
    ID,
    title="Gradient descent as a proximal step",
    source="Nested Learning, NeurIPS 2025",
    numbers=("5", "6"),
    grade="as printed, the norm declared",
    formula="W' = arg min_W <W x, u> + |W - W_t|^2 / (2 eta) = W_t - eta u x^T",
    axes=("d_out", "d_in", "B"),
    inputs=(
        Symbol("W", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "weights W_t"),
        Symbol("X", ("d_in", "B"), Domain("real", -2.0, 2.0), "layer inputs, one per column"),
        Symbol("U", ("d_out", "B"), Domain("real", -2.0, 2.0), "local surprises, one per column"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate, above 0"),
    ),
    outputs=(Symbol("W_next", ("d_out", "d_in"), Domain("real"), "the minimum"),),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={"frobenius": (proximal_descent_by_samples,)},
    families=FAMILIES,
    notes="Strictly convex for eta > 0, so unique by `frobenius`; eta = 0 leaves the objective "
    "undefined. By `spectral` the minimum is not unique where the gradient lacks rank: given is "
    "the one of least Frobenius norm. U carries the reduction of the loss.",
    errata=errata("E3", "E4"),
    coincide=(Coincidence(READINGS, "the gradient has rank 1, as for one sample", "one_sample"),),
)
def proximal_descent(W: F64, X: F64, U: F64, eta: float, *, reading: str = "frobenius") -> F64:
    """Minimise the linear model of the loss plus a penalty on the distance from the weights.

    Equation: Nested Learning (NeurIPS 2025), Eq. 5-6, for a batch G = U X^T
        W_{t+1} = arg min_W <W x_{t+1}, u_{t+1}> + |W - W_t|^2 / (2 eta_{t+1})
    Shapes: W (d_out, d_in); X (d_in, B); U (d_out, B); eta a scalar above 0.
    Readings (the print writes |.|_2 of a matrix):
        frobenius  W - eta G, which is Eq. 4
        spectral   W - eta |G|_* U_G V_G^T with G = U_G S V_G^T, a step of equal singular values
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    gradient = U @ X.T  # (d_out, d_in)
    if reading in ("spectral", "spectral_unscaled"):
        nuclear, direction = _polar(gradient)
        return W - eta * (nuclear * direction if reading == "spectral" else direction)
    if reading == "ascent":
        return W + eta * gradient
    if reading == "penalty_eta":
        return W - gradient / (2 * eta)
    if reading == "penalty_undivided":
        return W - (0.5 * eta) * gradient
    if reading == "batch_mean":
        count: int = X.shape[1]
        return W - eta * gradient / count
    if reading == "frobenius_normalized":
        norm: Scalar = np.sqrt(np.sum(gradient * gradient))
        step: F64 = gradient / np.where(norm == 0, 1.0, norm)
        return W - eta * step
    return W - eta * gradient


def _polar(gradient: F64) -> tuple[Scalar, F64]:
    """Give nuclear norm and U V^T over the directions that the gradient has; 0 of a zero one.

    One-sided Jacobi: the columns are turned against one another until they are orthogonal, and
    are then the left singular vectors times the singular values.
    """
    n = gradient.shape[1]
    identity = np.eye(n)
    turned = [gradient[:, j] for j in range(n)]
    right = [identity[:, j] for j in range(n)]
    for _ in range(_SWEEPS):
        for i in range(n):
            for j in range(i + 1, n):
                cosine, sine = _rotation(turned[i], turned[j])
                for columns in (turned, right):
                    one, two = columns[i], columns[j]
                    columns[i], columns[j] = cosine * one - sine * two, sine * one + cosine * two
    values = [np.sqrt(np.sum(column * column)) for column in turned]
    nuclear, direction = 0.0 * np.sum(gradient), 0.0 * gradient
    threshold = max(gradient.shape) * np.finfo(np.float64).eps * np.max(np.stack(values))
    for value, left, column in zip(values, turned, right, strict=True):
        present = value > threshold
        unit = np.where(present, left / np.where(present, value, 1.0), 0.0)
        nuclear, direction = nuclear + value, direction + np.outer(unit, column)
    return nuclear, direction


def _rotation(one: F64, two: F64) -> tuple[Scalar, Scalar]:
    """Give cosine and sine of the turn that makes two columns orthogonal."""
    product = np.sum(one * two)
    apart = np.where(product == 0, 1.0, product)
    slope = (np.sum(two * two) - np.sum(one * one)) / (2 * apart)
    side = np.where(slope >= 0, 1.0, -1.0)
    tangent = np.where(product == 0, 0.0, side / (np.abs(slope) + np.sqrt(1 + slope * slope)))
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    return cosine, tangent * cosine
