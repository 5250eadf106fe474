"""Eq. 31 for the MLP level of Eq. 30: gradients from inputs and error signals, and the counters."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.cms_families import LEVEL_UPDATE
from trueup.reference.nl.cms_forward import silu, silu_slope
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.cms_level_update"
READING_FORMULAS = {
    "sum": "W - eta (the gradients' sum over the active tokens)",
    "mean": "W - eta (their mean over the active tokens)",
}
READINGS = tuple(READING_FORMULAS)
WRONG_FORMULAS = {
    "ascent": "W + eta G",
    "doubled": "the factor 2 of a target-shift surrogate left in",
    "mask_ignored": "masked tokens contribute as well",
    "chunk_mean": "divided by C, masked tokens counted",
    "width_mean": "divided by the active tokens times d",
    "last_token_missing": "the loop over the chunk stops one early",
    "W2_first": "the gradient of W1 is taken at the new W2",
    "slope_missing": "the activation's derivative is left out",
    "linear_hidden": "W2's gradient takes W1 x for silu(W1 x)",
    "W1_frozen": "only the second layer learns",
    "skip_not_counted": "a fully masked chunk counts as an update",
}
WRONG = tuple(WRONG_FORMULAS)


def level_update_by_exp(
    W1: F64,
    W2: F64,
    x: F64,
    delta: F64,
    mask: F64,
    eta: float,
    counts: F64,
    *,
    reading: str = "sum",
) -> tuple[F64, F64, F64]:
    """Take sigma as 1 / (1 + exp(-z)), and the mean's factor into the rate last."""
    active = mask > 0.5
    inputs, errors = np.where(active[:, None], x, 0.0), np.where(active[:, None], delta, 0.0)
    z: F64 = np.where(active[:, None], inputs @ W1.T, 0.0)
    with np.errstate(over="ignore"):  # exp(-z) beyond the largest number: sigma is 0
        s = 1 / (1 + np.exp(-z))
    error: F64 = np.where(active[:, None], errors @ W2, 0.0) * (s * (1 + z * (1 - s)))
    rate: Scalar = eta
    if reading == "mean":
        rate = eta / np.maximum(np.sum(np.where(active, 1.0, 0.0)), 1.0)
    G1: F64 = (inputs.T @ error).T
    G2: F64 = ((z * s).T @ errors).T
    return W1 - rate * G1, W2 - rate * G2, _counted(counts, mask)


_FIRST, _SECOND, _CHUNK = ("h", "d"), ("d", "h"), ("C", "d")
_WEIGHTS = Domain("real", -1.0, 1.0)


@equation(
    ID,
    title="Continuum memory system, chunk update of an MLP level",
    source="Nested Learning, NeurIPS 2025",
    numbers=("30", "31"),
    grade="derived from the corrected print",
    formula="W1' = W1 - eta Z^T x,  W2' = W2 - eta delta^T A   over the active tokens; "
    "A = silu(x W1^T), Z = (delta W2) silu'(x W1^T)",
    axes=("C", "d", "h"),
    inputs=(
        Symbol("W1", _FIRST, _WEIGHTS, "first layer"),
        Symbol("W2", _SECOND, _WEIGHTS, "second layer"),
        Symbol("x", _CHUNK, Domain("real", -2.0, 2.0), "the chunk's inputs, a token per row"),
        Symbol("delta", _CHUNK, Domain("real", -1.0, 1.0), "error signals dL/dy, a row each"),
        Symbol("mask", ("C",), Domain("mask"), "1 for active tokens"),
        Symbol("eta", (), Domain("positive", 0.01, 0.1), "learning rate"),
        Symbol(
            "counts",
            ("4",),
            Domain("nonnegative", 0.0, 1000.0),
            "updates, tokens of updates, active tokens, tokens of fully masked chunks",
        ),
    ),
    outputs=(
        Symbol("W1_next", _FIRST, Domain("real"), "first layer after the chunk"),
        Symbol("W2_next", _SECOND, Domain("real"), "second layer after the chunk"),
        Symbol("counts_next", ("4",), Domain("nonnegative"), "the counters after the chunk"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    errata=errata("E23", "E24"),
    coincide=(
        Coincidence(READINGS, "C = 1, or one active token"),
        Coincidence(READINGS, "no active token", "all_masked"),
    ),
    forms={reading: (partial(level_update_by_exp, reading=reading),) for reading in READINGS},
    families=LEVEL_UPDATE,
    notes="The residual branch adds nothing to the gradients of W1 and W2. Both are taken at the "
    "chunk-start parameters. A chunk without active tokens consumes its tokens and changes no "
    "parameter. mean divides by the active tokens, at least 1, never by tokens times width.",
)
def cms_level_update(
    W1: F64,
    W2: F64,
    x: F64,
    delta: F64,
    mask: F64,
    eta: float,
    counts: F64,
    *,
    reading: str = "sum",
) -> tuple[F64, F64, F64]:
    """Update one MLP level at the end of its chunk, and its counters.

    Equation: Nested Learning (NeurIPS 2025), Eq. 31 with f the gradient of Eq. 30's level
        A = silu(x W1^T),  Z = (delta W2) * silu'(x W1^T)
        W1' = W1 - eta sum_t z_t x_t^T,   W2' = W2 - eta sum_t delta_t a_t^T
    Shapes: W1 (h, d); W2 (d, h); x, delta (C, d); mask (C,); eta a scalar; counts (4,), integers:
    updates, tokens of updates, active tokens, tokens of fully masked chunks.
    Readings: ``sum`` over the active tokens; ``mean`` divides it by their number, at least 1.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "last_token_missing":
        x, delta, kept = x[:-1], delta[:-1], mask[:-1]
    else:
        kept = mask
    active = kept > (-1.0 if reading == "mask_ignored" else 0.5)
    inputs = np.where(active[:, None], x, 0.0)  # (C, d)
    errors = np.where(active[:, None], delta, 0.0)
    number: Scalar = np.maximum(np.sum(np.where(active, 1.0, 0.0)), 1.0)
    rate = eta * _factor(reading, x, number)
    z: F64 = np.where(active[:, None], inputs @ W1.T, 0.0)  # (C, h)
    hidden = z if reading == "linear_hidden" else silu(z)
    W2_next = W2 - rate * (errors.T @ hidden)
    second = W2_next if reading == "W2_first" else W2
    error: F64 = np.where(active[:, None], errors @ second, 0.0)
    if reading != "slope_missing":
        error = error * silu_slope(z)
    W1_next = W1 if reading == "W1_frozen" else W1 - rate * (error.T @ inputs)
    return W1_next, W2_next, _counted(counts, mask, reading != "skip_not_counted")


def _factor(reading: str, x: F64, number: Scalar) -> Scalar:
    factor: Scalar = {"ascent": -1.0, "doubled": 2.0}.get(reading, 1.0)
    if reading == "mean":
        factor = 1 / number
    elif reading == "width_mean":
        factor = 1 / (number * x.shape[1])
    elif reading == "chunk_mean":
        factor = 1 / max(x.shape[0], 1)
    return factor


def _counted(counts: F64, mask: F64, skipped: bool = True) -> F64:
    """Count an update and its tokens, or the tokens of a chunk without active ones."""
    number: Scalar = np.sum(np.where(mask > 0.5, 1, 0))
    hit = np.where(number > 0, 1, 0) if skipped else np.where(number > -1, 1, 0)
    size = mask.shape[0]
    counted: F64 = (
        counts
        + hit * np.array([1, size, 0, 0])
        + number * np.array([0, 0, 1, 0])
        + (1 - hit) * np.array([0, 0, 0, size])
    )
    return counted
