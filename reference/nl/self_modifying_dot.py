"""Preprint Eq. 92: the self-modifying linear memory with a dot-product objective."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.self_modifying_families import DOT
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.self_modifying_dot"
READINGS = {
    "plus": "+ eta v k^T: descends on -<M k, v>",
    "minus": "- eta v k^T, as transcribed: ascends",
}
WRONG = {
    "no_decay": "alpha M + eta v^ k^T",
    "left_decay": "(alpha I - eta k k^T) M + eta v^ k^T (square only)",
    "write_without_eta": "+ v^ k^T",
    "alpha_complement": "(1 - alpha) M",
    "decay_doubled": "M (alpha I - 2 eta k k^T): the L2 objective's",
}


def self_modifying_dot_scan(
    M: F64, k: F64, v: F64, eta: F64, alpha: F64, *, reading: str = "plus"
) -> F64:
    """Scan the affine maps M -> M A_t + B_t: (A, B) then (A', B') is (A A', B A' + B')."""
    sign = _sign(reading)
    identity = np.eye(k.shape[1])
    A, B = identity, np.zeros((v.shape[1], k.shape[1]))
    for t in range(k.shape[0]):
        A_t = alpha[t] * identity - np.outer(eta[t] * k[t], k[t])
        A, B = A @ A_t, B @ A_t + np.outer(sign * eta[t] * v[t], k[t])
    return M @ A + B


@equation(
    ID,
    title="Self-modifying linear memory, dot-product objective",
    source="Nested Learning, preprint arXiv:2512.24695",
    numbers=("92",),
    grade="preprint, transcriptions disagree on the sign",
    formula="M_t = M_{t-1} (alpha_t I - eta_t k_t k_t^T) + eta_t v_t k_t^T",
    axes=("T", "d_v", "d_k"),
    inputs=(
        Symbol("M", ("d_v", "d_k"), Domain("real", -2.0, 2.0), "memory before the first token"),
        Symbol("k", ("T", "d_k"), Domain("real", -1.0, 1.0), "keys"),
        Symbol("v", ("T", "d_v"), Domain("real", -2.0, 2.0), "values"),
        Symbol("eta", ("T",), Domain("positive", 0.02, 0.3), "write rates"),
        Symbol("alpha", ("T",), Domain("unit", 0.6, 1.0), "retention"),
    ),
    outputs=(Symbol("M_T", ("d_v", "d_k"), Domain("real"), "memory after the last token"),),
    readings=READINGS,
    wrong=WRONG,
    forms={reading: (partial(self_modifying_dot_scan, reading=reading),) for reading in READINGS},
    families=DOT,
    notes="Transcribed with a minus, but the gradient of -<M k, v^> is -v^ k^T, so descending "
    "adds it (`plus`, the default). With values given, chunked and sequential are the same.",
    errata=errata("S-b", "S-f"),
    coincide=(Coincidence(tuple(READINGS), "k = 0: nothing is written", "no_write"),),
)
def self_modifying_dot(
    M: F64, k: F64, v: F64, eta: F64, alpha: F64, *, reading: str = "plus"
) -> F64:
    """Write a linear memory by descent on -<M k, v>, with the delta rule's decay.

    Equation: Nested Learning preprint (arXiv:2512.24695), Eq. 92, for t = 1..T
        M_t = M_{t-1} (alpha_t I - eta_t k_t k_t^T) + eta_t v_t k_t^T
    Shapes: M (d_v, d_k); k (T, d_k); v (T, d_v); eta, alpha (T,).
    Readings: ``plus`` descends; ``minus`` is the sign of the transcription, and ascends.
    """
    if reading in WRONG:
        return _wrong(M, k, v, eta, alpha, reading)
    sign = _sign(reading)
    for t in range(k.shape[0]):
        decayed = alpha[t] * M - np.outer(eta[t] * (M @ k[t]), k[t])
        M = decayed + np.outer(sign * eta[t] * v[t], k[t])
    return M


def _sign(reading: str) -> int:
    if reading not in READINGS:
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    return 1 if reading == "plus" else -1


def _wrong(M: F64, k: F64, v: F64, eta: F64, alpha: F64, reading: str) -> F64:
    if reading == "left_decay" and M.shape[0] != M.shape[1]:
        raise NotApplicable(ID, reading, f"d_v = d_k, got {M.shape[0]} and {M.shape[1]}")
    for t in range(k.shape[0]):
        retention = 1 - alpha[t] if reading == "alpha_complement" else alpha[t]
        decay = np.outer(eta[t] * (M @ k[t]), k[t])
        if reading == "no_decay":
            decay = 0 * decay
        elif reading == "left_decay":
            decay = np.outer(eta[t] * k[t], k[t] @ M)
        elif reading == "decay_doubled":
            decay = 2 * decay
        rate = 1.0 if reading == "write_without_eta" else eta[t]
        M = retention * M - decay + np.outer(rate * v[t], k[t])
    return M
