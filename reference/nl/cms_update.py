"""Eq. 31: one chunk update of a level of the continuum memory system."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.cms_families import UPDATE
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.cms_update"
READING_FORMULAS = {
    "C_terms": "theta - sum_{t=i-C+1..i} eta_t g_t",
    "literal": "theta - sum_{t=i-C..i} eta_t g_t, C + 1 terms",
    "C_terms_mean": "theta - (1 / active tokens) sum_{t=i-C+1..i} eta_t g_t",
    "sum_of_f": "theta - sum eta_t clip(g_t)",
    "f_of_sum": "theta - (mean eta) clip(sum g_t)",
}
READINGS = tuple(READING_FORMULAS)
WRONG_FORMULAS = {
    "ascent": "theta + sum: f returned a step that is negative already",
    "mask_ignored": "masked tokens contribute as well",
    "chunk_mean": "divided by C, masked tokens counted",
    "width_mean": "divided by the active tokens times the width of theta",
    "first_token_missing": "t = i-C+2 .. i",
    "last_token_missing": "t = i-C+1 .. i-1, the chunk read one token too early",
    "last_rate": "the rate of token i for every term",
    "last_term_only": "an online step on token i, the others forgotten",
    "doubled": "the factor 2 of a target-shift surrogate left in",
}
WRONG = tuple(WRONG_FORMULAS)


def cms_update_one_by_one(
    theta: F64,
    g: F64,
    eta: F64,
    mask: F64,
    g_before: F64 | None = None,
    eta_before: Scalar | None = None,
    limit: Scalar | None = None,
) -> F64:
    """Subtract the frozen terms of the chunk one after the other."""
    for token in range(g.shape[0]):
        theta = theta - np.where(mask[token] > 0.5, eta[token] * g[token], 0.0)
    return theta


@equation(
    ID,
    title="Continuum memory system, chunk update",
    source="Nested Learning, NeurIPS 2025",
    numbers=("31",),
    grade="as printed, range corrected",
    formula="theta' = theta - sum_{t=i-C+1..i} eta_t f(theta; x_t)  when C divides i",
    axes=("C", "n"),
    inputs=(
        Symbol("theta", ("n",), Domain("real", -2.0, 2.0), "parameters of the level"),
        Symbol("g", ("C", "n"), Domain("real", -2.0, 2.0), "error terms at theta, a token per row"),
        Symbol("eta", ("C",), Domain("positive", 0.01, 0.5), "rate of each token"),
        Symbol("mask", ("C",), Domain("mask"), "1 for active tokens"),
        Symbol(
            "g_before",
            ("n",),
            Domain("real", -2.0, 2.0),
            "error term of token i-C, one update older; read by 'literal' only",
            optional=True,
        ),
        Symbol(
            "eta_before",
            (),
            Domain("positive", 0.01, 0.5),
            "rate of token i-C; read by 'literal' only",
            optional=True,
        ),
        Symbol(
            "limit",
            (),
            Domain("positive", 0.5, 2.0),
            "f clips to +- limit; read by 'sum_of_f' and 'f_of_sum' only",
            optional=True,
        ),
    ),
    outputs=(Symbol("theta_next", ("n",), Domain("real"), "parameters after token i"),),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    errata=errata("E23", "E24"),
    coincide=(
        Coincidence(("C_terms", "C_terms_mean"), "C = 1, or one active token"),
        Coincidence(("sum_of_f", "f_of_sum"), "C = 1, or no term and no sum beyond the limit"),
        Coincidence(
            ("C_terms", "C_terms_mean", "sum_of_f", "f_of_sum"), "no active token", "all_masked"
        ),
        Coincidence(("C_terms", "literal"), "the first chunk: there is no token 0"),
    ),
    forms={"C_terms": (cms_update_one_by_one,)},
    families=UPDATE,
    notes="Printed from t = i-C: C + 1 terms, so that a chunk's last token counts again in the "
    "next chunk, at parameters one update older. The first chunk hides it (no token 0): two "
    "chunks are needed. Sum and mean, and the order of f and sum, coincide at C = 1.",
)
def cms_update(
    theta: F64,
    g: F64,
    eta: F64,
    mask: F64,
    g_before: F64 | None = None,
    eta_before: Scalar | None = None,
    limit: Scalar | None = None,
    *,
    reading: str = "C_terms",
) -> F64:
    """Update a level at the end of a chunk, all error terms taken at the chunk-start parameters.

    Equation: Nested Learning (NeurIPS 2025), Eq. 31, its range corrected; 1-based tokens
        theta_{i+1} = theta_i - 1[C | i] sum_{t=i-C+1..i} eta_t f(theta_t; x_t)
    Shapes: theta, g_before (n,); g (C, n), one active or masked token per row; eta, mask (C,).
    Readings: ``C_terms`` sums the chunk's active terms; ``C_terms_mean`` divides by the number of
    active tokens, at least 1; ``literal`` adds the printed term of token i-C; ``sum_of_f`` clips
    every term to +-limit, as f; ``f_of_sum`` clips their sum (at the active tokens' mean rate),
    as practical code does.
    A chunk without active tokens leaves theta as it was.
    """
    if reading in WRONG:
        return theta - _wrong(theta, g, eta, mask, reading)
    active = mask > 0.5
    count: F64 = np.maximum(np.sum(np.where(active, 1.0, 0.0)), 1.0)
    if reading == "f_of_sum":
        total = np.sum(_kept(g, active), axis=0)
        rate: Scalar = np.sum(np.where(active, eta, 0.0)) / count
        stepped: F64 = theta - rate * _clipped(total, limit, reading)
        return stepped
    terms = _clipped(g, limit, reading) if reading == "sum_of_f" else g
    step: F64 = np.where(active, eta, 0.0) @ _kept(terms, active)
    if reading == "C_terms_mean":
        step = step / count
    elif reading == "literal":
        if g_before is None or eta_before is None:
            raise NotApplicable(ID, reading, "g_before and eta_before, the term of token i-C")
        step = step + eta_before * g_before
    elif reading not in READINGS:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    return theta - step


def _kept(terms: F64, active: NDArray[np.bool_]) -> F64:
    """Select, not multiply: what a masked token holds, a NaN too, goes nowhere."""
    return np.where(active[:, None], terms, 0.0)


def _clipped(terms: F64, limit: Scalar | None, reading: str) -> F64:
    if limit is None:
        raise NotApplicable(ID, reading, "limit, the bound that f clips to")
    clipped: F64 = np.minimum(np.maximum(terms, -limit), limit)
    return clipped


def _wrong(theta: F64, g: F64, eta: F64, mask: F64, reading: str) -> F64:
    active = mask > 0.5
    if reading == "mask_ignored":
        active = mask > -1.0
    elif reading == "last_rate":
        eta = 0 * eta + eta[-1]
    elif reading == "first_token_missing":
        g, eta, active = g[1:], eta[1:], active[1:]
    elif reading == "last_token_missing":
        g, eta, active = g[:-1], eta[:-1], active[:-1]
    elif reading == "last_term_only":
        g, eta, active = g[-1:], eta[-1:], active[-1:]
    step: F64 = np.where(active, eta, 0.0) @ _kept(g, active)
    count: F64 = np.maximum(np.sum(np.where(active, 1.0, 0.0)), 1.0)
    if reading == "chunk_mean":
        step = step / g.shape[0]
    elif reading == "width_mean":
        step = step / (count * theta.shape[0])
    elif reading == "doubled":
        step = 2 * step
    return -step if reading == "ascent" else step
