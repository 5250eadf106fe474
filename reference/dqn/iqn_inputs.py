"""What the quantile heads take in: targets of the quantiles, and the cosine embedding of tau."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

TARGET_ID, COSINE_ID = "dqn.iqn_target", "dqn.cosine_embedding"
# Widths of the cells around the fixed levels: edges 0, .15, .375, .625, .85, 1.
CELLS = (0.15, 0.225, 0.25, 0.225, 0.15)
WRONG_TARGET = {
    "plain_mean": "a* by the plain mean of the quantiles",
    "target_network": "a* by the target network's own values",
    "discount_missing": "bootstraps undiscounted",
    "best_quantile": "a* for every quantile by itself",
}
WRONG_COSINE = {
    "pi_missing": "cos(i tau)",
    "relu_missing": "no ReLU",
    "bias_missing": "no bias",
    "sine": "sin(pi i tau)",
}


def iqn_target_by_mask(online: F64, target: F64, returns: F64, discount: F64) -> F64:
    """Add the cells in order, and pick by the first largest."""
    value = CELLS[0] * online[..., 0]
    for i in range(1, 5):
        value = value + CELLS[i] * online[..., i]
    best = np.argmax(value, axis=1)
    hit = np.arange(online.shape[1]) == best[:, np.newaxis]
    picked = np.max(np.where(hit[..., np.newaxis], target, -np.inf), axis=1)
    result: F64 = returns[:, np.newaxis] + discount[:, np.newaxis] * picked
    return result


def _disagree(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"target": -np.asarray(values["online"])}


def _skewed(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Large outer quantiles: the plain mean weighs them more than their cells do."""
    scale = np.array([6.0, 1.0, 1.0, 1.0, 6.0])
    return values | {"online": np.asarray(values["online"]) * scale}


@equation(
    TARGET_ID,
    title="Targets of the quantiles",
    source="DQN programme, 10",
    grade="proposed by the programme",
    formula="T_j = R + D theta'_j(s', a*),  a* = argmax_a CVaR_1 of the online quantiles",
    axes=("B", "n_actions"),
    inputs=(
        Symbol("online", ("B", "n_actions", "5"), Domain("real", -2.0, 2.0), "online quantiles"),
        Symbol("target", ("B", "n_actions", "5"), Domain("real", -2.0, 2.0), "target quantiles"),
        Symbol("returns", ("B",), Domain("real", -1.0, 1.0), "return of n steps"),
        Symbol("discount", ("B",), Domain("unit", 0.7, 0.9), "gamma^n, 0 after a terminal step"),
    ),
    outputs=(Symbol("T", ("B", "5"), Domain("real"), "targets"),),
    wrong=WRONG_TARGET,
    forms={"default": (iqn_target_by_mask,)},
    families=(
        Family("disagree", "the target network prefers other actions", _disagree),
        Family("skewed", "large outer quantiles", _skewed),
    ),
)
def iqn_target(
    online: F64, target: F64, returns: F64, discount: F64, *, reading: str = "default"
) -> F64:
    """Give the targets of one branch's quantiles.

    Equation: T_j = R + D theta'_j(s', a*), a* the best online action by the cell-weighted mean of
    its quantiles, the lowest index among equals.
    Shapes: online, target (B, n_actions, 5); returns, discount (B,). Returns (B, 5).
    """
    if reading not in ("default", *WRONG_TARGET):
        raise UnknownReading(TARGET_ID, reading, ("default", *WRONG_TARGET))
    chooser = target if reading == "target_network" else online
    value = np.sum(np.stack([CELLS[i] * chooser[..., i] for i in range(5)]), axis=0)
    if reading == "plain_mean":
        value = np.mean(chooser, axis=-1)
    best = np.argmax(value, axis=1)
    picked = np.take_along_axis(target, best[:, np.newaxis, np.newaxis], axis=1)[:, 0]
    if reading == "best_quantile":
        picked = np.max(target, axis=1)
    scale = 1.0 + 0.0 * discount if reading == "discount_missing" else discount
    return returns[:, np.newaxis] + scale[:, np.newaxis] * picked


def cosine_embedding_by_sums(tau: F64, weight: F64, bias: F64) -> F64:
    """Add the terms by multiplication and sum."""
    order = np.arange(1, weight.shape[0] + 1)
    wave = np.cos(np.pi * (tau[:, np.newaxis] * order))
    result: F64 = np.maximum(np.sum(wave[..., np.newaxis] * weight, axis=1) + bias, 0.0)
    return result


def cosine_embedding_from_0(tau: F64, weight: F64, bias: F64) -> F64:
    """Write the printed reading with its constant first term taken out."""
    order = np.arange(1, weight.shape[0])
    wave = np.cos(np.pi * tau[:, np.newaxis] * order)
    result: F64 = np.maximum(wave @ weight[1:] + (weight[0] + bias), 0.0)
    return result


@equation(
    COSINE_ID,
    title="Cosine embedding of the quantile level",
    source="IQN, arXiv:1806.06923, Eq. 4",
    numbers=("4",),
    grade="print corrected: the sum from 1, as public implementations have it; from_0 as printed",
    formula="phi_j(tau) = ReLU(sum_{i=1}^{n} cos(pi i tau) w_ij + b_j)",
    axes=("n", "n_cos", "D"),
    inputs=(
        Symbol("tau", ("n",), Domain("unit"), "quantile levels"),
        Symbol("weight", ("n_cos", "D"), Domain("real", -1.0, 1.0), "weights of the cosines"),
        Symbol("bias", ("D",), Domain("real", -1.0, 1.0), "bias"),
    ),
    outputs=(Symbol("phi", ("n", "D"), Domain("nonnegative"), "embedding"),),
    readings={
        "from_1": "i from 1 to n",
        "from_0": "i from 0 to n - 1, as printed: the first term is a second bias",
    },
    wrong=WRONG_COSINE,
    forms={"from_1": (cosine_embedding_by_sums,), "from_0": (cosine_embedding_from_0,)},
    families=(Family("running", "as drawn", lambda rng, sizes, values: values),),
    notes="The print's first term is a constant that duplicates the bias. The mutant is the value "
    "that was not declared.",
)
def cosine_embedding(tau: F64, weight: F64, bias: F64, *, reading: str = "from_1") -> F64:
    """Embed quantile levels.

    Equation: IQN (arXiv:1806.06923), Eq. 4
        phi_j(tau) = ReLU(sum_{i=i0}^{i0+n-1} cos(pi i tau) w_ij + b_j)
    Shapes: tau (n,); weight (n_cos, D); bias (D,). Returns (n, D).
    Readings: ``from_1`` i0 = 1; ``from_0`` i0 = 0, as printed.
    """
    known = ("from_1", "from_0", *WRONG_COSINE)
    if reading not in known:
        raise UnknownReading(COSINE_ID, reading, known)
    start = 0 if reading == "from_0" else 1
    order = np.arange(start, start + weight.shape[0])
    angle = tau[:, np.newaxis] * order
    if reading != "pi_missing":
        angle = np.pi * angle
    wave = np.sin(angle) if reading == "sine" else np.cos(angle)
    mixed = wave @ weight if reading == "bias_missing" else wave @ weight + bias
    return mixed if reading == "relu_missing" else np.maximum(mixed, 0.0)
