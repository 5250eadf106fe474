"""Eq. 13-14: unnormalised linear attention, a memory that is written and read token by token."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.linear_attention_families import FAMILIES
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.linear_attention"
READINGS = {
    "post": "y_t = M_t q_t, read after the write, as printed",
    "pre": "y_t = M_{t-1} q_t, read before the write (preprint, Eq. 83)",
}
WRONG = {
    "scaled": "q d_k^{-1/2}, as public implementations have it by default",
    "state_transposed": "M^T is kept, as public implementations do (square only)",
    "roles_swapped": "writes k v^T (square only)",
    "write_negative": "M - v k^T: the sign of the sentence beside Eq. 15",
    "write_halved": "M + 1/2 v k^T: only the sign of Eq. 15 is repaired",
    "write_literal": "M - 1/2 v k^T: the minimiser of Eq. 15 as printed",
    "write_lost": "every token but the last is forgotten",
    "acausal": "y_t = M_T q_t",
    "initial_dropped": "M_0 = 0 whatever was handed over",
    "mask_ignored": "masked tokens write",
    "mask_silences": "masked tokens read 0",
    "normalised": "y_t / (q_t . sum k_s): the softmax's cousin",
}


def linear_attention_by_scores(
    q: F64, k: F64, v: F64, M_0: F64 | None = None, mask: F64 | None = None, *, reading: str
) -> tuple[F64, F64]:
    """Q13.1: read all tokens at once, Y = tril(Q K^T) V + Q M_0^T; the diagonal is `post`'s."""
    k, v = _active(k, mask), _active(v, mask)
    tokens = np.arange(q.shape[1])
    older = tokens[:, None] > tokens if reading == "pre" else tokens[:, None] >= tokens
    scores = np.where(older, q @ np.swapaxes(k, 1, 2), 0.0)  # (N, T, T)
    y, M = scores @ v, np.swapaxes(v, 1, 2) @ k
    return (y, M) if M_0 is None else (y + q @ np.swapaxes(M_0, 1, 2), M_0 + M)


_KEYS, _VALUES = ("N", "T", "d_k"), ("N", "T", "d_v")
_REAL = Domain("real", -2.0, 2.0)


@equation(
    ID,
    title="Unnormalised linear attention",
    source="Nested Learning, NeurIPS 2025",
    numbers=("13", "14"),
    grade="as printed",
    formula="M_t = M_{t-1} + v_t k_t^T;  y_t = M_t q_t",
    axes=("N", "T", "d_k", "d_v"),
    inputs=(
        Symbol("q", _KEYS, _REAL, "queries"),
        Symbol("k", _KEYS, _REAL, "keys"),
        Symbol("v", _VALUES, _REAL, "values"),
        Symbol(
            "M_0",
            ("N", "d_v", "d_k"),
            _REAL,
            "memory before the first token; zero if left out",
            optional=True,
        ),
        Symbol(
            "mask",
            ("N", "T"),
            Domain("mask"),
            "0 where a token does not write; all write if left out",
            optional=True,
        ),
    ),
    outputs=(
        Symbol("y", _VALUES, Domain("real"), "what each token reads"),
        Symbol("M_T", ("N", "d_v", "d_k"), Domain("real"), "memory after the last token"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={
        reading: (partial(linear_attention_by_scores, reading=reading),) for reading in READINGS
    },
    families=FAMILIES,
    notes="The print reads after the write (`post`); the self-modifying form of the preprint reads "
    "before it (`pre`). Public implementations keep M^T (d_k, d_v) and multiply q by d_k^{-1/2} "
    "unless told otherwise: set their scale to 1 before comparing.",
    errata=errata("E8", "E9", "E10", "E11"),
    coincide=(Coincidence(tuple(READINGS), "k_t . q_t = 0 or v_t = 0", "unread_writes"),),
)
def linear_attention(
    q: F64,
    k: F64,
    v: F64,
    M_0: F64 | None = None,
    mask: F64 | None = None,
    *,
    reading: str = "post",
) -> tuple[F64, F64]:
    """Write and read a linear memory, token by token, for N independent sequences.

    Equation: Nested Learning (NeurIPS 2025), Eq. 13-14
        M_t = M_{t-1} + v_t k_t^T
        y_t = M_t q_t
    Shapes: q, k (N, T, d_k); v, y (N, T, d_v); M_0, M_T (N, d_v, d_k), zero if M_0 is None;
    mask (N, T), 0 where a token is skipped: it reads, but does not write.
    Returns y and M_T.
    Readings: ``post`` y_t = M_t q_t, as printed; ``pre`` y_t = M_{t-1} q_t (preprint, Eq. 83).
    """
    if reading in WRONG:
        return _wrong(q, k, v, M_0, mask, reading)
    if reading not in READINGS:
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    M = _memories(k, v, M_0, mask)
    return _read(M[:, :-1] if reading == "pre" else M[:, 1:], q), M[:, -1]


def _active(rows: F64, mask: F64 | None) -> F64:
    return rows if mask is None else np.where(mask[:, :, None] != 0, rows, 0.0)


def _memories(k: F64, v: F64, M_0: F64 | None, mask: F64 | None) -> F64:
    """Give M_0 .. M_T as (N, T + 1, d_v, d_k): the running sum of what is written."""
    writes = v[:, :, :, None] * k[:, :, None, :]
    if mask is not None:  # a skipped token writes nothing, whatever it holds
        writes = np.where(mask[:, :, None, None] != 0, writes, 0.0)
    first = np.zeros((*v.shape[:1], v.shape[2], k.shape[2])) if M_0 is None else M_0
    return np.cumsum(np.concatenate([first[:, None], writes], axis=1), axis=1)


def _read(M: F64, q: F64) -> F64:
    """Give M_t q_t for each token."""
    read: F64 = M @ q[:, :, :, None]
    return read[:, :, :, 0]


def _wrong(
    q: F64, k: F64, v: F64, M_0: F64 | None, mask: F64 | None, reading: str
) -> tuple[F64, F64]:
    if reading in ("state_transposed", "roles_swapped") and k.shape[2] != v.shape[2]:
        raise NotApplicable(ID, reading, f"d_k = d_v, got {k.shape[2]} and {v.shape[2]}")
    if reading == "initial_dropped":
        M_0 = None
    elif reading == "mask_ignored":
        mask = None
    elif reading == "scaled":
        q = q * (1.0 / np.sqrt(float(q.shape[2])))
    factor = {"write_negative": -1.0, "write_halved": 0.5, "write_literal": -0.5}.get(reading, 1.0)
    first, second = (v, k) if reading == "roles_swapped" else (k, v)
    M = _memories(first, factor * second, M_0, mask)
    if reading == "acausal":
        y = _read(M[:, -1:], q)
    elif reading == "write_lost":
        y = _read(M[:, 1:] - M[:, :-1], q)
    else:
        y = _read(M[:, 1:], q)
    if reading == "mask_silences":
        y = _active(y, mask)
    elif reading == "normalised":
        with np.errstate(divide="ignore", invalid="ignore"):
            y = y / np.sum(q * np.cumsum(k, axis=1), axis=2)[:, :, None]
    last = M[:, -1] - M[:, -2] if reading == "write_lost" else M[:, -1]
    return y, np.swapaxes(last, 1, 2) if reading == "state_transposed" else last
