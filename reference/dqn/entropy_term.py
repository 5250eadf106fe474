"""Entropy regularisation of one branch: loss and gradient."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.conservative import BRANCH_SYMBOL, Q_SYMBOL, W_SYMBOL
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.entropy_term"
READINGS = ("of_policy",)
WRONG_FORMULAS = {
    "sign": "+ lambda H: entropy is pushed down",
    "temperature_dropped": "softmax(Q)",
    "slope_without_temperature": "dQ without 1 / T",
    "log2": "entropy in bits",
    "entropy_missing_in_slope": "dQ = lambda / T p log p",
    "weights_dropped": "every sample weighs 1",
    "batch_dropped": "summed over the batch",
}
WRONG = tuple(WRONG_FORMULAS)


def _flat(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"Q": np.full_like(values["Q"], 1.5)}


def _cold(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"T": 0.05}


FAMILIES = (
    Family("flat", "equal values: the largest entropy, no gradient", _flat, True),
    Family("cold", "a low temperature: nearly one action", _cold),
)


def entropy_term_by_logsumexp(
    Q: F64, w: F64, strength: float, T: float, branch_weight: float = 0.25
) -> tuple[F64, F64]:
    """Write H as log total - sum p z, with z = (Q - max Q) / T."""
    z = (Q - np.max(Q, axis=1, keepdims=True)) * (1.0 / T)
    weight = np.exp(z)
    total = np.sum(weight, axis=1, keepdims=True)
    p = weight / total
    mean = np.sum(p * z, axis=1, keepdims=True)
    H = np.log(total) - mean
    per_row = (w * (strength * branch_weight / Q.shape[0]))[:, np.newaxis]
    return np.reshape(-np.sum(per_row * H), (1,)), (per_row / T) * (p * (z - mean))


@equation(
    ID,
    title="Entropy regularisation",
    source="DQN programme, conservative, expectile and entropy terms",
    grade="proposed",
    formula="L = -branch_weight / B sum_b w_b lambda H(softmax(Q / T))",
    axes=("B", "A"),
    inputs=(
        Q_SYMBOL,
        W_SYMBOL,
        Symbol("strength", (), Domain("nonnegative", 0.01, 1.0), "lambda"),
        Symbol("T", (), Domain("positive", 0.2, 2.0), "temperature"),
        BRANCH_SYMBOL,
    ),
    outputs=(
        Symbol("loss", ("1",), Domain("real"), "at most 0"),
        Symbol("dQ", ("B", "A"), Domain("real"), "its gradient; rows sum to 0"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"of_policy": (entropy_term_by_logsumexp,)},
    families=FAMILIES,
    notes="p log p is taken with log p = z - log sum exp, never as log(p + eps).",
)
def entropy_term(
    Q: F64,
    w: F64,
    strength: float,
    T: float,
    branch_weight: float = 0.25,
    *,
    reading: str = "of_policy",
) -> tuple[F64, F64]:
    """Reward the spread of a branch's policy.

    Equation: DQN programme, per branch, p = softmax(Q / T), H = -sum_a p log p
        L = -branch_weight (1 / B) sum_b w_b lambda H
        dL/dQ = branch_weight (w_b / B) (lambda / T) p (log p + H)
    Shapes: Q (B, A); w (B,); strength (lambda), T, branch_weight scalars.
    Returns (loss (1,), dQ (B, A)).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    z = Q if reading == "temperature_dropped" else Q / T
    shifted = z - np.max(z, axis=1, keepdims=True)
    weight = np.exp(shifted)
    total = np.sum(weight, axis=1, keepdims=True)
    p, log_p = weight / total, shifted - np.log(total)
    H = -np.sum(p * log_p, axis=1)
    factor = np.ones_like(w) if reading == "weights_dropped" else w
    scale = strength * branch_weight
    if reading != "batch_dropped":
        scale = scale / Q.shape[0]
    loss = -scale * np.sum(factor * H)
    centre = 0.0 if reading == "entropy_missing_in_slope" else H[:, np.newaxis]
    slope = p * (log_p + centre)
    if reading != "slope_without_temperature":
        slope = slope / T
    gradient = scale * factor[:, np.newaxis] * slope
    if reading == "log2":
        loss, gradient = loss / np.log(np.asarray(2.0)), gradient / np.log(np.asarray(2.0))
    return np.reshape(-loss if reading == "sign" else loss, (1,)), (
        -gradient if reading == "sign" else gradient
    )
