"""Eq. 23: deep momentum (DMGD), whose memory is a small network applied to the gradient's rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.deep_momentum_families import FAMILIES
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.deep_momentum"
READING_FORMULAS = {
    "dot_self": "inner loss <F(g), g>",
    "l2_neg": "inner loss 1/2 |F(g) + g|^2",
    "dot_ones": "inner loss <F(g), 1>, the print's example",
}
READINGS = tuple(READING_FORMULAS)
WRONG_FORMULAS = {
    "read_before_step": "W' = W + F(g) with the parameters before the step",
    "a1_read_before_step": "reads with the old A1 and the new A2",
    "a2_read_before_step": "reads with the new A1 and the old A2",
    "a2_from_new_a1": "the gradient of A2 is taken after A1 has moved",
    "residual": "m(u) = u + A1 sigma(A2 u): drifts to m(u) = u, which is ascent",
    "ascent": "W' = W - F(g)",
    "inner_ascent": "theta' = alpha theta + eta grad",
    "l2_pos": "1/2 |F - g|^2: learns to point uphill",
    "decay_missing": "theta' = theta - eta grad",
    "alpha_complement": "theta' = (1 - alpha) theta - eta grad",
    "step_missing": "theta' = alpha theta",
    "slope_missing": "the gradient of A2 without sigma'",
    "slope_of_output": "1 - sigma where 1 - sigma^2 belongs",
    "mean_over_rows": "gradients divided by d_out",
    "tanh_of_gradient": "an EMA of tanh(g), without a network, from rest",
    "scale_and_bias": "a network of five summaries that scales and shifts g, from rest",
}
WRONG = tuple(WRONG_FORMULAS)

Parameters = tuple[F64, F64]
Result = tuple[F64, F64, F64]


def deep_momentum_factored(
    A1: F64, A2: F64, W: F64, g: F64, alpha: float, eta: float, *, reading: str = "dot_self"
) -> Result:
    """Eq. 23 with the slope as (1 - S)(1 + S) and the parts of the cotangent apart."""
    S = np.tanh(g @ A2.T)  # (d_out, h)
    slope = (1 - S) * (1 + S)
    if reading == "dot_ones":
        grad1 = np.sum(S, axis=0)[None, :] + np.zeros_like(A1)
        pulled = np.sum(A1, axis=0)[None, :] + np.zeros_like(S)
    else:
        grad1, pulled = g.T @ S, g @ A1
        if reading == "l2_neg":
            grad1 = grad1 + A1 @ (S.T @ S)
            pulled = pulled + S @ (A1.T @ A1)
    A1_next = alpha * A1 - eta * grad1
    A2_next = alpha * A2 - eta * ((slope * pulled).T @ g)
    return A1_next, A2_next, W + np.tanh(g @ A2_next.T) @ A1_next.T


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Deep momentum, a row-wise network as memory of gradients",
    source="Nested Learning, NeurIPS 2025",
    numbers=("23",),
    grade="as printed for the form; the network and its inner losses are choices made here, "
    "the print names none but dot_ones",
    formula="theta' = alpha theta - eta grad L2(F_theta(g));  W' = W + F_theta'(g);  "
    "F_theta(g) = tanh(g A2^T) A1^T",
    axes=("d_out", "d_in", "h"),
    inputs=(
        Symbol("A1", ("d_in", "h"), Domain("real", -1.0, 1.0), "output layer of the memory"),
        Symbol("A2", ("h", "d_in"), Domain("real", -1.0, 1.0), "input layer of the memory"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("g", _MATRIX, Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol("alpha", (), Domain("unit", 0.8, 0.99), "decay of the memory's parameters"),
        Symbol("eta", (), Domain("positive", 0.01, 0.1), "rate of the inner step"),
    ),
    outputs=(
        Symbol("A1_next", ("d_in", "h"), Domain("real"), "output layer after the step"),
        Symbol("A2_next", ("h", "d_in"), Domain("real"), "input layer after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={reading: (partial(deep_momentum_factored, reading=reading),) for reading in READINGS},
    families=FAMILIES,
    notes="The memory is read at the gradient's rows (eq23.read_key grad_rows) with the parameters "
    "after the step; a linear memory is read at the identity and is nl.deep_momentum_linear. "
    "dot_ones is the print's own example and ignores the gradient's sign: its loss need not fall. "
    "A residual branch would drift to m(u) = u, which is ascent. Where F = 0, dot_self and l2_neg "
    "take the same first step.",
    errata=errata("E2", "E15", "E16"),
    coincide=(
        Coincidence(("dot_self", "l2_neg"), "F(g) = 0 before the step", "dead_output"),
        Coincidence(READINGS, "g = 0", "no_gradient"),
    ),
)
def deep_momentum(
    A1: F64, A2: F64, W: F64, g: F64, alpha: float, eta: float, *, reading: str = "dot_self"
) -> Result:
    """Teach a network the gradient, then move the weights by what it says of the gradient.

    Equation: Nested Learning (NeurIPS 2025), Eq. 23, with a row-wise network without residual
        F_theta(g) = tanh(g A2^T) A1^T,   theta = (A1, A2)
        theta_{i+1} = alpha theta_i - eta grad_theta L2(theta_i; g_i)
        W_{i+1} = W_i + F_{theta_{i+1}}(g_i)          first the step, then the read
    Shapes: W, g (d_out, d_in); A1 (d_in, h); A2 (h, d_in); alpha, eta scalars.
    Returns A1_{i+1}, A2_{i+1}, W_{i+1}. A1 = A2 = 0 is a dead point.
    Readings (of the inner loss L2, eq23.inner):
        dot_self    <F(g), g>
        l2_neg      1/2 |F(g) + g|^2
        dot_ones    <F(g), 1>
    """
    if reading in ("tanh_of_gradient", "scale_and_bias"):
        return _without_memory(A1, A2, W, g, alpha, reading)
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    A1_next, A2_next = _stepped(A1, A2, g, alpha, eta, reading)
    if reading == "read_before_step":
        read = network(A1, A2, g)
    elif reading == "a1_read_before_step":
        read = network(A1, A2_next, g)
    elif reading == "a2_read_before_step":
        read = network(A1_next, A2, g)
    else:
        read = network(A1_next, A2_next, g)
    if reading == "residual":
        read = g + read
    return A1_next, A2_next, W - read if reading == "ascent" else W + read


def network(A1: F64, A2: F64, g: F64) -> F64:
    """Apply the memory to every row of g (d_out, d_in): tanh(g A2^T) A1^T."""
    read: F64 = np.tanh(g @ A2.T) @ A1.T
    return read


def inner_gradients(A1: F64, A2: F64, g: F64, reading: str = "dot_self") -> Parameters:
    """Differentiate the inner loss in A1 (d_in, h) and A2 (h, d_in)."""
    S = np.tanh(g @ A2.T)  # (d_out, h)
    slope = 1 - (S if reading == "slope_of_output" else S * S)
    c = _cotangent(S @ A1.T, g, reading)
    pulled = c @ A1
    return c.T @ S, (pulled if reading == "slope_missing" else slope * pulled).T @ g


def _cotangent(F: F64, g: F64, reading: str) -> F64:
    if reading == "l2_neg":
        return F + g
    if reading == "l2_pos":
        return F - g
    return np.ones_like(g) if reading == "dot_ones" else g


def _stepped(A1: F64, A2: F64, g: F64, alpha: float, eta: float, reading: str) -> Parameters:
    grad1, grad2 = inner_gradients(A1, A2, g, reading)
    keep = alpha
    if reading == "decay_missing":
        return A1 - eta * grad1, A2 - eta * grad2
    if reading == "alpha_complement":
        keep = 1 - alpha
    elif reading == "inner_ascent":
        eta = -eta
    elif reading == "step_missing":
        return keep * A1, keep * A2
    elif reading == "mean_over_rows":
        grad1, grad2 = grad1 / g.shape[0], grad2 / g.shape[0]
    A1_next = keep * A1 - eta * grad1
    if reading == "a2_from_new_a1":
        _, grad2 = inner_gradients(A1_next, A2, g)
    return A1_next, keep * A2 - eta * grad2


def _without_memory(A1: F64, A2: F64, W: F64, g: F64, alpha: float, reading: str) -> Result:
    """Give the first step from rest of two rules that claim Eq. 23 and learn nothing from g."""
    if reading == "tanh_of_gradient":
        return A1, A2, W - (1 - alpha) * np.tanh(g)
    mean = np.mean(g)
    spread: Scalar = np.sqrt(np.mean((g - mean) ** 2))
    size: Scalar = np.sqrt(np.sum(g * g)) / (g.shape[0] * g.shape[1])
    # The summaries go through the first hidden unit; those of a momentum at rest are zero.
    hidden = np.tanh(mean * A2[0, 0] + spread + size)
    scale, bias = 1 + hidden * A1[0, 0], hidden
    return alpha * A1, alpha * A2, W - (1 - alpha) * (scale * g + bias)
