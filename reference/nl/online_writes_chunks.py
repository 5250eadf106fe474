"""Online writes over many chunks: losses and all derivatives of their weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trueup.reference.symbols import F64

Mode = Literal["through", "straight_through", "detached"]
Inner = Literal["l2", "dgd"]
_PULL = {"l2": 1.0, "dgd": 2.0}


@dataclass(frozen=True)
class Derivatives:
    """The losses of all chunks, the memory after the last, and the outer loss's derivatives."""

    losses: tuple[float, ...]
    memory: F64
    W0: F64
    X: tuple[F64, ...]
    V: tuple[F64, ...]
    eta: tuple[float, ...]


def online_writes_chunks(
    W0: F64,
    X: Sequence[F64],
    V: Sequence[F64],
    eta: Sequence[float],
    *,
    mode: Mode = "straight_through",
    inner: Inner = "l2",
    weights: Sequence[float] | None = None,
) -> Derivatives:
    """Read and write chunk after chunk, and differentiate sum_c w_c l_c(W_{c-1}).

    Paper: derived from Nested Learning (NeurIPS 2025), Eq. 3-4 (``l2``) and Eq. 27-29 (``dgd``)
        l_c(W) = |W X_c - V_c|^2 / 2,   W_c = W_{c-1} - eta_c (p W_{c-1} X_c - V_c) X_c^T
    with p = 1 (``l2``), or 2 (``dgd``, where decay and error term both subtract W X).
    Shapes: W0 (d_out, d_in); X_c (d_in, n_c) and V_c (d_out, n_c), a token per column.

    In ``through`` mode the surprise W X - V is a function of W: dl_c/dW0 = Gamma_c A_{c-1} ... A_1
    with A = I - p eta X X^T, in this order. The chunks' weights w_c (1 each if left out) are
    n_c / n for a mean over tokens; a sum of per-chunk means is another loss.
    """
    pull = _PULL[inner]
    shares = [1.0] * len(X) if weights is None else list(weights)
    memories, losses = [W0], []
    for x, v, rate in zip(X, V, eta, strict=True):
        memory = memories[-1]
        losses.append(float(0.5 * np.sum((memory @ x - v) ** 2)))
        memories.append(memory - rate * ((pull * (memory @ x) - v) @ x.T))
    gradient = np.zeros_like(W0)  # of the chunks still to come, in the memory they read
    dX: list[F64] = []
    dV: list[F64] = []
    deta: list[float] = []
    for c in reversed(range(len(X))):
        memory, x, v, rate = memories[c], X[c], V[c], eta[c]
        error: F64 = memory @ x - v
        dx, dv = shares[c] * (memory.T @ error), -shares[c] * error
        de = 0.0
        if mode == "through":
            written: F64 = pull * (memory @ x) - v
            along: F64 = gradient @ x
            dx = dx - rate * (pull * (memory.T @ along) + gradient.T @ written)
            dv = dv + rate * along
            de = float(-np.sum(along * written))
            gradient = gradient - pull * rate * (along @ x.T)
        elif mode == "detached":
            gradient = np.zeros_like(gradient)
        gradient = gradient + shares[c] * (error @ x.T)
        dX, dV, deta = [dx, *dX], [dv, *dV], [de, *deta]
    return Derivatives(tuple(losses), memories[-1], gradient, tuple(dX), tuple(dV), tuple(deta))


def projection_gradient(dX: F64, Z: F64) -> F64:
    """Carry a derivative to the projection that made the keys: X = K Z gives dK = dX Z^T."""
    out: F64 = dX @ Z.T
    return out


def write_gap(dW1: F64, X1: F64, eta: float) -> F64:
    """Give what ``through`` has and ``straight_through`` lacks in W0: -eta Gamma X1 X1^T.

    A run that claims to differentiate its writes has this term; it is zero only where the later
    chunks do not read where the first one wrote. dW1 is Gamma, the derivative in the written
    memory, (d_out, d_in); X1 (d_in, n1).
    """
    gap: F64 = -eta * ((dW1 @ X1) @ X1.T)
    return gap


def target_shift_gradient(prediction: F64, delta: F64, mask: F64) -> F64:
    """Give the derivative in p of sum mask (p - sg(p - delta))^2: 2 mask delta.

    The surrogate hands an error signal to an inner optimiser by way of a loss; the factor 2 makes
    the effective rate 2 eta. Prediction, delta (tokens, d); mask (tokens,).
    """
    target = prediction - delta  # held fixed
    return 2.0 * mask[:, None] * (prediction - target)
