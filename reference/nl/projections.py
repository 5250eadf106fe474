"""Eq. 12: keys, values and queries are linear in the input."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "nl.projections"
READINGS = ("default",)
WRONG_FORMULAS = {
    "not_transposed": "k = W_k x, and so on: the transpose is forgotten; square only",
    "key_and_query_swapped": "k = W_q^T x, q = W_k^T x",
    "query_is_key": "q = k",
    "query_scaled": "q = W_q^T x / sqrt(d_k), as attention with a softmax scales it",
}
WRONG = tuple(WRONG_FORMULAS)


def _symmetric(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Make every square projection symmetric: there its transpose cannot be seen."""
    changed = dict(values)
    for name in ("W_k", "W_v", "W_q"):
        matrix = np.asarray(values[name])
        if matrix.shape[0] == matrix.shape[1]:
            changed[name] = 0.5 * (matrix + matrix.T)
    return changed


FAMILIES = (
    Family(
        "symmetric",
        "symmetric projections hide a transpose",
        _symmetric,
        right_kernel_only=True,
    ),
)


def projections_of_rows(x: F64, W_k: F64, W_v: F64, W_q: F64) -> tuple[F64, F64, F64]:
    """Eq. 12 as printed, for a row vector: k = x W_k; x (d,), W_k, W_q (d, d_k), W_v (d, d_v)."""
    return x @ W_k, x @ W_v, x @ W_q


@equation(
    ID,
    title="Projections to key, value and query",
    source="Nested Learning, NeurIPS 2025",
    numbers=("12",),
    grade="as printed, in columns",
    formula="k = W_k^T x;  v = W_v^T x;  q = W_q^T x",
    axes=("d", "d_k", "d_v"),
    inputs=(
        Symbol("x", ("d",), Domain("real", -2.0, 2.0), "token"),
        Symbol("W_k", ("d", "d_k"), Domain("real", -2.0, 2.0), "projection to keys"),
        Symbol("W_v", ("d", "d_v"), Domain("real", -2.0, 2.0), "projection to values"),
        Symbol("W_q", ("d", "d_k"), Domain("real", -2.0, 2.0), "projection to queries"),
    ),
    outputs=(
        Symbol("k", ("d_k",), Domain("real"), "key"),
        Symbol("v", ("d_v",), Domain("real"), "value"),
        Symbol("q", ("d_k",), Domain("real"), "query"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"default": (projections_of_rows,)},
    families=FAMILIES,
    notes="A transcription of the preprint has k = W_k x, with W_k of the shape (d_k, d): the same "
    "map with the matrix stored transposed. Inside the memory's own loop the projections are "
    "constants.",
    errata=errata("E8"),
)
def projections(
    x: F64, W_k: F64, W_v: F64, W_q: F64, *, reading: str = "default"
) -> tuple[F64, F64, F64]:
    """Project a token to its key, value and query.

    Equation: Nested Learning (NeurIPS 2025), Eq. 12, for column vectors
        k_t = W_k^T x_t,   v_t = W_v^T x_t,   q_t = W_q^T x_t
    (the print writes rows: k_t = x_t W_k).
    Shapes: x (d,); W_k, W_q (d, d_k); W_v (d, d_v). Returns (k, v, q).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "not_transposed":
        if W_k.shape[0] != W_k.shape[1] or W_v.shape[0] != W_v.shape[1]:
            raise NotApplicable(ID, reading, "d = d_k = d_v")
        return W_k @ x, W_v @ x, W_q @ x
    k, v, q = W_k.T @ x, W_v.T @ x, W_q.T @ x
    if reading == "key_and_query_swapped":
        return q, v, k
    if reading == "query_is_key":
        return k, v, k
    if reading == "query_scaled":
        return k, v, q / np.sqrt(W_q.shape[1])
    return k, v, q
