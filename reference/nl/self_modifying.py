"""Preprint Eq. 83-93: a linear memory that is trained on values it makes itself."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.self_modifying_families import FAMILIES
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.self_modifying"
SOURCE = "Nested Learning, preprint arXiv:2512.24695"
READINGS = {
    "sequential_self": "gradient at M_{t-1}, v^ = M_{t-1} v, factor 1",
    "sequential_given": "gradient at M_{t-1}, v^ = v, factor 1",
    "sequential_self_2": "sequential_self with factor 2",
    "sequential_given_2": "sequential_given with factor 2",
    "chunk_self": "gradient and v^ = M v at the end of the previous chunk, factor 1",
    "chunk_given": "gradient at the end of the previous chunk, v^ = v, factor 1",
    "chunk_self_2": "chunk_self with factor 2",
    "chunk_given_2": "chunk_given with factor 2",
}
WRONG = {
    "no_decay": "alpha M - eta (M k - v^) k^T: no k k^T in the decay",
    "left_decay": "(alpha I - eta k k^T) M",
    "alpha_complement": "(1 - alpha) M: the forgetting gate of another convention",
    "alpha_on_decay": "M (alpha I - alpha eta k k^T): the public gated delta rule",
    "ascent": "+ eta grad L",
    "value_missing": "v^ = 0",
    "read_after": "y_t = M_t q_t",
    "anchor_late": "chunked, anchored at the end of the chunk: not causal",
    "decay_anchored": "chunked, the decay's M taken at the anchor too",
}


class Step(NamedTuple):
    """What one token brings: key, value, rate, retention."""

    k: F64
    v: F64
    eta: Scalar
    alpha: Scalar


def self_modifying_factored(
    M: F64, q: F64, k: F64, v: F64, eta: F64, alpha: F64, *, reading: str = "sequential_self"
) -> tuple[F64, F64]:
    """Take the common key out: M' = alpha M - eta (M k + f (M_a k - v^)) k^T."""
    chunked, given, factor = _parts(reading)
    reads = []
    for chunk in range(k.shape[0]):
        anchor = M
        for t in range(k.shape[1]):
            at = anchor if chunked else M
            key, rate = k[chunk, t], eta[chunk, t]
            reads.append(at @ q[chunk, t])
            if given:
                target = factor * (at @ key) - factor * v[chunk, t]
            else:
                target = at @ (factor * (key - v[chunk, t]))
            M = alpha[chunk, t] * M - np.outer(rate * (M @ key + target), key)
    return np.reshape(np.stack(reads), q.shape), M


_TOKENS = ("P", "C", "d")
_GATES = ("P", "C")


@equation(
    ID,
    title="Self-modifying linear memory",
    source=SOURCE,
    numbers=("83", "84", "85", "88", "90", "93"),
    grade="preprint, seen in two transcriptions",
    formula="M_t = M_{t-1} (alpha_t I - eta_t k_t k_t^T) - eta_t (M k_t - v^_t) k_t^T;  "
    "y_t = M_{t-1} q_t",
    axes=("P", "C", "d"),
    inputs=(
        Symbol("M", ("d", "d"), Domain("real", -2.0, 2.0), "memory before the first token"),
        Symbol("q", _TOKENS, Domain("real", -2.0, 2.0), "queries, by chunk and token"),
        Symbol("k", _TOKENS, Domain("real", -1.0, 1.0), "keys"),
        Symbol("v", _TOKENS, Domain("real", -2.0, 2.0), "values"),
        Symbol("eta", _GATES, Domain("positive", 0.02, 0.3), "write rates"),
        Symbol("alpha", _GATES, Domain("unit", 0.6, 1.0), "retention"),
    ),
    outputs=(
        Symbol("y", _TOKENS, Domain("real"), "what each token reads"),
        Symbol("M_T", ("d", "d"), Domain("real"), "memory after the last token"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={reading: (partial(self_modifying_factored, reading=reading),) for reading in READINGS},
    families=FAMILIES,
    notes="No page of the preprint was read directly. The gradient of |M k - v^|^2 carries a 2 "
    "that Eq. 93 drops: the ending _2 keeps it. The anchor is printed as the end of the current "
    "chunk, which is not causal; the last state of the previous one is meant. Which matrix of an "
    "MLP memory receives the decay is not stated, so only the linear memory is here.",
    errata=errata("S-a", "S-c", "S-d", "S-e", "S-f", "S-g"),
    coincide=(
        Coincidence(("sequential_self", "alpha_on_decay"), "alpha is 1", "no_retention_loss"),
        Coincidence(("sequential_self", "chunk_self"), "C = 1"),
    ),
)
def self_modifying(
    M: F64, q: F64, k: F64, v: F64, eta: F64, alpha: F64, *, reading: str = "sequential_self"
) -> tuple[F64, F64]:
    """Read and write a linear memory whose target values are its own outputs.

    Equation: Nested Learning preprint (arXiv:2512.24695), Eq. 83-85, 88, 90, 93, linear memory
        y_t = M_{t-1} q_t,   v^_t = M_{t-1} v_t
        M_t = M_{t-1} (alpha_t I - eta_t k_t k_t^T) - f eta_t (M_a k_t - v^_t) k_t^T
    Shapes: M (d, d); q, k, v (P, C, d), P chunks of C tokens; eta, alpha (P, C).
    Returns y (P, C, d) and the memory after the last token.
    Readings: anchor, value and factor f of the gradient
        sequential_self  a = t - 1, v^ = M_{t-1} v_t     sequential_given  v^ = v_t
        chunk_self       a = the last token of the previous chunk; reads and v^ are taken there
                         too, the decay runs token by token        chunk_given   v^ = v_t
        sequential_self_, sequential_given_, chunk_self_, chunk_given_ with the ending 2
                         f = 2, the gradient of the un-halved loss; without it f = 1
    """
    if reading in WRONG:
        return _wrong(M, q, k, v, eta, alpha, reading)
    chunked, given, factor = _parts(reading)
    reads = []
    for chunk in range(k.shape[0]):
        anchor = M
        for t in range(k.shape[1]):
            at = anchor if chunked else M
            step = Step(k[chunk, t], v[chunk, t], eta[chunk, t], alpha[chunk, t])
            reads.append(at @ q[chunk, t])
            M = _decayed(M, step) - _gradient(at, step, given, factor)
    return np.reshape(np.stack(reads), q.shape), M


def _parts(reading: str) -> tuple[bool, bool, int]:
    """Split a reading into: anchored at the chunk, value given, factor of the gradient."""
    if reading not in READINGS:
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    return reading.startswith("chunk"), "given" in reading, 2 if reading.endswith("_2") else 1


def _decayed(M: F64, step: Step) -> F64:
    return step.alpha * M - np.outer(step.eta * (M @ step.k), step.k)


def _gradient(at: F64, step: Step, given: bool, factor: int) -> F64:
    target = step.v if given else at @ step.v
    return np.outer(factor * step.eta * (at @ step.k - target), step.k)


def _wrong(M: F64, q: F64, k: F64, v: F64, eta: F64, alpha: F64, reading: str) -> tuple[F64, F64]:
    reads = []
    for chunk in range(k.shape[0]):
        anchor = M
        if reading == "anchor_late":
            parts = (array[chunk : chunk + 1] for array in (q, k, v, eta, alpha))
            _, anchor = self_modifying(M, *parts, reading="chunk_self")
        for t in range(k.shape[1]):
            step = Step(k[chunk, t], v[chunk, t], eta[chunk, t], alpha[chunk, t])
            at = anchor if reading in ("anchor_late", "decay_anchored") else M
            written = _wrong_decay(M, at, step, reading) + _wrong_gradient(at, step, reading)
            reads.append((written if reading == "read_after" else at) @ q[chunk, t])
            M = written
    return np.reshape(np.stack(reads), q.shape), M


def _wrong_decay(M: F64, at: F64, step: Step, reading: str) -> F64:
    k, eta, alpha = step.k, step.eta, step.alpha
    if reading == "no_decay":
        return alpha * M
    if reading == "left_decay":
        return alpha * M - np.outer(eta * k, k @ M)
    if reading == "alpha_complement":
        return (1 - alpha) * M - np.outer(eta * (M @ k), k)
    if reading == "alpha_on_decay":
        return alpha * M - np.outer(alpha * eta * (M @ k), k)
    if reading == "decay_anchored":
        return alpha * M - np.outer(eta * (at @ k), k)
    return _decayed(M, step)


def _wrong_gradient(at: F64, step: Step, reading: str) -> F64:
    if reading == "value_missing":
        return -np.outer(step.eta * (at @ step.k), step.k)
    gradient = _gradient(at, step, False, 1)
    return gradient if reading == "ascent" else -gradient
