"""Conservative Q-learning term of one branch: loss and gradient."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.conservative"
READINGS = ("logsumexp",)
WRONG_FORMULAS = {
    "no_shift": "logsumexp without taking off the largest Q: infinite above 88 in float32",
    "mean_for_logsumexp": "the mean of Q in place of logsumexp",
    "max_for_logsumexp": "the largest Q in place of logsumexp",
    "alpha_dropped": "alpha = 1",
    "sign": "Q[a] - logsumexp",
    "greedy_action": "the largest Q in place of the action in the data",
    "weights_dropped": "every sample weighs 1",
    "batch_dropped": "summed over the batch",
    "branch_weight_dropped": "branch weight 1",
}
WRONG = tuple(WRONG_FORMULAS)


def _greedy_data(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    Q = np.asarray(values["Q"])
    return values | {"a_data": np.argmax(Q, axis=1)}


def _far_apart(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"Q": 20.0 * np.asarray(values["Q"])}


def _beyond_exp(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"Q": 800.0 + np.asarray(values["Q"])}


FAMILIES = (
    Family("greedy_data", "the data took the best action: the loss is at most ln b", _greedy_data),
    Family("far_apart", "one action leads by far", _far_apart),
    Family("beyond_exp", "Q of 800: exp overflows without the shift", _beyond_exp),
)
Q_SYMBOL = Symbol("Q", ("B", "A"), Domain("real", -3.0, 3.0), "values of a branch's actions")
A_SYMBOL = Symbol("a_data", ("B",), Domain("index", axis="A"), "actions in the data")
W_SYMBOL = Symbol("w", ("B",), Domain("positive", 0.2, 2.0), "importance weights")
BRANCH_SYMBOL = Symbol(
    "branch_weight", (), Domain("positive", 0.1, 1.0), "weight of the branch: 1 / branches"
)


def chosen(a: F64, size: int) -> F64:
    """Tell which action each row took, as (B, A); a row whose action is none has no true entry."""
    result: F64 = a[:, np.newaxis] == np.arange(size)
    return result


def logsumexp(Q: F64) -> tuple[F64, F64]:
    """Give log sum exp of each row, and its softmax."""
    top = np.max(Q, axis=1, keepdims=True)
    weight = np.exp(Q - top)
    total = np.sum(weight, axis=1, keepdims=True)
    return np.log(total[:, 0]) + top[:, 0], weight / total


def conservative_shifted(
    Q: F64, a_data: F64, w: F64, alpha: float, branch_weight: float = 0.25
) -> tuple[F64, F64]:
    """Take the largest Q off both terms before they meet: log sum - (Q[a] - max)."""
    top = np.max(Q, axis=1, keepdims=True)
    shifted = Q - top
    weight = np.exp(shifted)
    total = np.sum(weight, axis=1, keepdims=True)
    took = chosen(a_data, Q.shape[1])
    gap = np.log(total[:, 0]) - np.sum(np.where(took, shifted, 0.0), axis=1)
    scale = alpha * branch_weight / Q.shape[0]
    gradient = (weight / total - np.where(took, 1.0, 0.0)) * (scale * w)[:, np.newaxis]
    return np.reshape(np.sum(w * gap) * scale, (1,)), gradient


@equation(
    ID,
    title="Conservative Q-learning term",
    source="DQN programme; conservative Q-learning, arXiv:2006.04779",
    grade="published",
    formula="L = branch_weight / B sum_b w_b alpha (logsumexp_a Q - Q[a_data])",
    axes=("B", "A"),
    inputs=(
        Q_SYMBOL,
        A_SYMBOL,
        W_SYMBOL,
        Symbol("alpha", (), Domain("nonnegative", 0.05, 2.0), "strength, read from the bus"),
        BRANCH_SYMBOL,
    ),
    outputs=(
        Symbol("loss", ("1",), Domain("real"), "the term, at least 0"),
        Symbol("dQ", ("B", "A"), Domain("real"), "its gradient; rows sum to 0"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"logsumexp": (conservative_shifted,)},
    families=FAMILIES,
    notes="A constant added to all values of a branch changes neither loss nor gradient.",
)
def conservative(
    Q: F64,
    a_data: F64,
    w: F64,
    alpha: float,
    branch_weight: float = 0.25,
    *,
    reading: str = "logsumexp",
) -> tuple[F64, F64]:
    """Push down the values of actions that the data did not take.

    Equation: arXiv:2006.04779, per branch
        L = branch_weight (1 / B) sum_b w_b alpha (logsumexp_a Q_b - Q_b[a_data])
        dL/dQ = branch_weight (w_b / B) alpha (softmax(Q_b) - onehot)
    Shapes: Q (B, A); a_data (B,) integers; w (B,); alpha, branch_weight scalars.
    Returns (loss (1,), dQ (B, A)).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    pushed, p = _pushed(Q, reading)
    took = chosen(a_data, Q.shape[1])
    if reading == "greedy_action":
        took = np.max(Q, axis=1, keepdims=True) == Q
    gap = pushed - np.sum(np.where(took, Q, 0.0), axis=1)
    error = p - np.where(took, 1.0, 0.0)
    if reading == "sign":
        gap, error = -gap, -error
    scale = 1.0 if reading == "batch_dropped" else 1.0 / Q.shape[0]
    if reading != "alpha_dropped":
        scale = alpha * scale
    if reading != "branch_weight_dropped":
        scale = branch_weight * scale
    weight = np.ones_like(w) if reading == "weights_dropped" else w
    loss = scale * np.sum(weight * gap)
    return np.reshape(loss, (1,)), scale * weight[:, np.newaxis] * error


def _pushed(Q: F64, reading: str) -> tuple[F64, F64]:
    """Give what is pushed down, and its gradient."""
    value, p = logsumexp(Q)
    if reading == "mean_for_logsumexp":
        return np.mean(Q, axis=1), np.ones_like(Q) / Q.shape[1]
    if reading == "max_for_logsumexp":
        return np.max(Q, axis=1), np.where(np.max(Q, axis=1, keepdims=True) == Q, 1.0, 0.0)
    if reading == "no_shift":
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(Q)
            total = np.sum(weight, axis=1, keepdims=True)
            return np.log(total[:, 0]), weight / total
    return value, p
