"""Expectile regression of a state value (implicit Q-learning), and the backup it serves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.conservative import (
    A_SYMBOL,
    BRANCH_SYMBOL,
    Q_SYMBOL,
    W_SYMBOL,
    chosen,
)
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.expectile"
READINGS = ("detached",)
WRONG_FORMULAS = {
    "indicator_reversed": "the indicator looks at V - Q",
    "no_expectile": "half the squared error",
    "absolute": "|tau - 1{u < 0}| |u|: the quantile, not the expectile",
    "gradient_sign": "dV = +2 |.| u",
    "factor_two_dropped": "dV = -|.| u",
    "largest_action": "u = max Q - V",
    "weights_dropped": "every sample weighs 1",
    "batch_dropped": "summed over the batch",
}
WRONG = tuple(WRONG_FORMULAS)
BACKUP_WRONG = {
    "done_ignored": "a terminal state bootstraps",
    "done_reversed": "only a terminal state bootstraps",
    "one_gamma": "the first branch's gamma for every branch",
    "gamma_on_reward": "gamma (r + v)",
}


def _above(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"V": np.asarray(values["V"]) - 10.0}


def _below(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"V": np.asarray(values["V"]) + 10.0}


def _median(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"tau": 0.5}


def _all_done(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"done": np.ones_like(values["done"])}


FAMILIES = (
    Family("above", "every Q above its V: weight tau", _above),
    Family("below", "every Q below its V: weight 1 - tau", _below),
    Family("median", "tau = 0.5: half the squared error", _median, True),
)


def expectile_by_rows(
    Q: F64, a_data: F64, V: F64, w: F64, tau: float, branch_weight: float = 0.25
) -> tuple[F64, F64]:
    """Weigh and divide each row by itself; |tau - 1{u < 0}| as written."""
    u = np.sum(np.where(chosen(a_data, Q.shape[1]), Q, 0.0), axis=1) - V
    lean = np.abs(tau - np.where(u < 0.0, 1.0, 0.0))
    slope = (w * branch_weight / Q.shape[0]) * (lean * u)
    return np.reshape(np.sum(slope * u), (1,)), -2.0 * slope


def expectile_backup_discount_first(r: F64, done: F64, v_next: F64, gamma: F64) -> F64:
    """Multiply the discount with 1 - done before the value."""
    return r[:, np.newaxis] + (gamma * (1.0 - done)[:, np.newaxis]) * v_next[:, np.newaxis]


@equation(
    ID,
    title="Expectile regression of the state value",
    source="DQN programme; implicit Q-learning, arXiv:2110.06169",
    grade="published",
    formula="L = branch_weight / B sum_b w_b |tau - 1{u < 0}| u^2,  u = Q[a_data] - V",
    axes=("B", "A"),
    inputs=(
        Q_SYMBOL,
        A_SYMBOL,
        Symbol("V", ("B",), Domain("real", -2.0, 2.0), "state value"),
        W_SYMBOL,
        Symbol("tau", (), Domain("unit", 0.6, 0.95), "expectile"),
        BRANCH_SYMBOL,
    ),
    outputs=(
        Symbol("loss", ("1",), Domain("real"), "the loss, at least 0"),
        Symbol("dV", ("B",), Domain("real"), "its gradient; Q is detached"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"detached": (expectile_by_rows,)},
    families=FAMILIES,
    notes="Q comes from the target network and has no gradient here.",
)
def expectile(
    Q: F64,
    a_data: F64,
    V: F64,
    w: F64,
    tau: float,
    branch_weight: float = 0.25,
    *,
    reading: str = "detached",
) -> tuple[F64, F64]:
    """Pull the state value to an expectile of the values of actions in the data.

    Equation: arXiv:2110.06169, per branch, u = Q[a_data] - V
        L = branch_weight (1 / B) sum_b w_b |tau - 1{u < 0}| u^2
        dL/dV = -branch_weight (w_b / B) 2 |tau - 1{u < 0}| u
    Shapes: Q (B, A); a_data (B,) integers; V, w (B,); tau, branch_weight scalars.
    Returns (loss (1,), dV (B,)).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    took = np.sum(np.where(chosen(a_data, Q.shape[1]), Q, 0.0), axis=1)
    if reading == "largest_action":
        took = np.max(Q, axis=1)
    u = took - V
    below = -u < 0.0 if reading == "indicator_reversed" else u < 0.0
    lean = np.where(below, 1.0 - tau, tau)
    if reading == "no_expectile":
        lean = 0.5 * np.ones_like(u)
    weight = np.ones_like(w) if reading == "weights_dropped" else w
    scale = branch_weight if reading == "batch_dropped" else branch_weight / Q.shape[0]
    loss = scale * np.sum(weight * lean * (np.abs(u) if reading == "absolute" else u * u))
    factor = -1.0 if reading == "factor_two_dropped" else -2.0
    if reading == "gradient_sign":
        factor = 2.0
    return np.reshape(loss, (1,)), factor * scale * weight * lean * u


@equation(
    "dqn.expectile_backup",
    title="Backup from the state value, per branch",
    source="DQN programme; implicit Q-learning, arXiv:2110.06169",
    grade="per-branch gamma fixed by the programme",
    formula="target_{b,k} = r_b + gamma_k (1 - done_b) V_next_b",
    axes=("B", "K"),
    inputs=(
        Symbol("r", ("B",), Domain("real", -2.0, 2.0), "rewards"),
        Symbol("done", ("B",), Domain("mask"), "1 at a true terminal state"),
        Symbol("v_next", ("B",), Domain("real", -2.0, 2.0), "value of the next state"),
        Symbol("gamma", ("K",), Domain("unit", 0.5, 0.99), "each branch's discount"),
    ),
    outputs=(Symbol("target", ("B", "K"), Domain("real"), "targets of the branches"),),
    readings=("per_branch",),
    wrong=BACKUP_WRONG,
    forms={"per_branch": (expectile_backup_discount_first,)},
    families=(Family("all_done", "every state is terminal: the reward alone", _all_done),),
    notes="A trajectory that is merely cut has done = 0 and bootstraps.",
)
def expectile_backup(
    r: F64, done: F64, v_next: F64, gamma: F64, *, reading: str = "per_branch"
) -> F64:
    """Give each branch's target from the value of the next state.

    Equation: DQN programme: Q <- r + gamma_k (1 - done) V(s')
    Shapes: r, done, v_next (B,); gamma (K,). Returns target (B, K).
    """
    if reading not in ("per_branch", *BACKUP_WRONG):
        raise UnknownReading("dqn.expectile_backup", reading, ("per_branch", *BACKUP_WRONG))
    alive = 1.0 - done
    if reading == "done_ignored":
        alive = np.ones_like(v_next)
    elif reading == "done_reversed":
        alive = 1.0 * done
    discount = np.ones_like(gamma) * gamma[:1] if reading == "one_gamma" else gamma
    future = (alive * v_next)[:, np.newaxis]
    if reading == "gamma_on_reward":
        return discount * (r[:, np.newaxis] + future)
    return r[:, np.newaxis] + discount * future
