"""Eq. 27-29 for a chunk of tokens taken one after the other, each with its own rate."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.projected_descent_families import CHUNK
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.projected_descent_chunk"
READINGS = {
    "derived": "c = b = eta_t",
    "literal": "c = 1, b = eta_t",
    "normalized": "c = 1 / |x_t|^2, b = eta_t",
    "prox": "c = b = eta_t / (1 + eta_t |x_t|^2)",
    "prox_unit": "c = b = eta_t / (1 + eta_t)",
    "printed_objective_half": "c = eta_t, b = -eta_t",
    "printed_objective_full": "c = 2 eta_t, b = -2 eta_t",
    "running_surprise": "c = 2 eta_t, b = eta_t, U = -V: u_t taken at the running weights",
}
WRONG = {
    "frozen": "every token reads the weights of the chunk's start: the batch step",
    "reversed": "the last token first",
    "plain_gd": "no decay",
    "decay_only": "the surprises are left out",
    "first_rate": "the first token's eta for all",
    "own_key_too": "e_t also takes away its own e_t (x_t . x_t): the diagonal of the Gram matrix",
    "last_missing": "the loop stops one token early",
    "retention_dropped": "alpha is left out",
    "retention_first": "W <- alpha W, then the step: the gated delta rule",
    "retention_complement": "(1 - alpha) W",
}


def projected_descent_chunk_compact(
    W: F64, X: F64, U: F64, eta: F64, alpha: F64 | None = None, *, reading: str = "derived"
) -> F64:
    """Substitute forward in the samples: W' = gamma W - E^T X, with one read of W.

    e_t = c_t W_{t-1} x_t + b_t u_t, where W_{t-1} x_t comes from W x_t by taking away each
    earlier e_s (x_s . x_t); retention scales what is already there.
    """
    read, gram = X @ W.T, X @ X.T  # (C, d_out), (C, C)
    n, E = np.sum(X * X, axis=1), np.zeros_like(U)
    for t in range(X.shape[0]):
        c, b = _coefficients(eta[t], n[t], reading)
        e = c * read[t] + b * U[t]
        read = _kept(alpha, t, read) - np.outer(gram[t], e)
        E = _kept(alpha, t, E)
        E[t] = e
        W = _kept(alpha, t, W)
    return W - E.T @ X


_MATRIX = ("d_out", "d_in")
_UNIT = Domain("unit", 0.6, 1.0)


@equation(
    ID,
    title="Gradient descent with an L2 inner objective, token by token",
    source="Nested Learning, NeurIPS 2025",
    numbers=("27", "28", "29"),
    grade="derived from the corrected print",
    formula="W_t = alpha_t W_{t-1} - eta_t (W_{t-1} x_t + u_t) x_t^T,  t = 1..C",
    axes=("C", "d_out", "d_in"),
    inputs=(
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("X", ("C", "d_in"), Domain("real", -2.0, 2.0), "layer inputs, a token per row"),
        Symbol("U", ("C", "d_out"), Domain("real", -2.0, 2.0), "local surprises, a row each"),
        Symbol("eta", ("C",), Domain("positive", 0.01, 0.5), "learning rate of each token"),
        Symbol(
            "alpha",
            ("C",),
            _UNIT,
            "retention of each token (preprint, Eq. 88); 1 if left out",
            optional=True,
        ),
    ),
    outputs=(Symbol("W_next", _MATRIX, Domain("real"), "weights after the chunk"),),
    readings=READINGS,
    wrong=WRONG,
    forms={
        reading: (partial(projected_descent_chunk_compact, reading=reading),)
        for reading in READINGS
    },
    families=CHUNK,
    notes="Not the batch step, from which it differs at second order in eta unless the inputs are "
    "orthogonal. An exact re-ordering needs one read of W: the compact form, a forward "
    "substitution over the tokens. The public gated delta rule scales W before the step, so its "
    "decay carries alpha as well; they agree at alpha = 1.",
    errata=errata("E18", "E19", "E21", "S-g"),
    coincide=(
        Coincidence(
            ("derived", "frozen"), "the tokens are orthogonal and alpha is 1", "orthogonal_rows"
        ),
        Coincidence(("derived", "retention_first"), "alpha is 1", "orthogonal_rows"),
    ),
)
def projected_descent_chunk(
    W: F64, X: F64, U: F64, eta: F64, alpha: F64 | None = None, *, reading: str = "derived"
) -> F64:
    """Take one step of Eq. 28 for each token of a chunk, in order, all u_t held fixed.

    Equation: Nested Learning (NeurIPS 2025), Eq. 27-29, corrected, for t = 1..C
        W_t = alpha_t W_{t-1} - (c_t W_{t-1} x_t + b_t u_t) x_t^T
    Shapes: W (d_out, d_in); X (C, d_in) and U (C, d_out), one token per row; eta, alpha (C,),
    alpha all 1 if None.
    Readings, with n = |x_t|^2:
        derived                 c = b = eta_t
        literal                 c = 1,                  b = eta_t
        normalized              c = 1 / n (0 at x = 0), b = eta_t
        prox                    c = b = eta_t / (1 + eta_t n)
        prox_unit               c = b = eta_t / (1 + eta_t)
        printed_objective_half  c = eta_t,              b = -eta_t
        printed_objective_full  c = 2 eta_t,            b = -2 eta_t
        running_surprise        c = 2 eta_t,            b = eta_t: the squared loss with its
                                surprise W_{t-1} x_t - v_t taken at the running weights, U = -V
    """
    if reading in WRONG:
        return _wrong(W, X, U, eta, alpha, reading)
    n = np.sum(X * X, axis=1)
    for t in range(X.shape[0]):
        c, b = _coefficients(eta[t], n[t], reading)
        W = _kept(alpha, t, W) - np.outer(c * (W @ X[t]) + b * U[t], X[t])
    return W


def _kept(alpha: F64 | None, t: int, state: F64) -> F64:
    return state.copy() if alpha is None else alpha[t] * state


def _coefficients(eta: Scalar, n: Scalar, reading: str) -> tuple[Scalar, Scalar]:
    """Give (c, b) of the decay and of the surprise; n = |x|^2."""
    if reading == "derived":
        return eta, eta
    if reading == "literal":
        return 1, eta
    if reading == "normalized":
        return np.where(n > 0, 1 / np.where(n > 0, n, 1), 0), eta
    if reading in ("prox", "prox_unit"):
        factor = eta / (1 + eta * n) if reading == "prox" else eta / (1 + eta)
        return factor, factor
    if reading == "printed_objective_half":
        return eta, -eta
    if reading == "printed_objective_full":
        return 2 * eta, -2 * eta
    if reading == "running_surprise":
        return 2 * eta, eta
    raise UnknownReading(ID, reading, (*READINGS, *WRONG))


def _wrong(W: F64, X: F64, U: F64, eta: F64, alpha: F64 | None, reading: str) -> F64:
    tokens = range(X.shape[0])
    if reading == "reversed":
        tokens = tokens[::-1]
    elif reading == "last_missing":
        tokens = tokens[:-1]
    start = W
    for t in tokens:
        x, u, rate = X[t], U[t], eta[0 if reading == "first_rate" else t]
        factor: Scalar = 1.0 if alpha is None else alpha[t]
        if reading == "retention_dropped":
            factor = 1.0
        elif reading == "retention_complement":
            factor = 1 - factor
        at = start if reading == "frozen" else W
        if reading == "retention_first":
            at = factor * at
        e = rate * (at @ x + u)
        if reading == "plain_gd":
            e = rate * u
        elif reading == "decay_only":
            e = rate * (at @ x)
        elif reading == "own_key_too":
            e = e / (1 + rate * np.sum(x * x))
        W = factor * W - np.outer(e, x)
    return W
