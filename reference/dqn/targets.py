"""Targets of the branches: returns of n steps, double-DQN values."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.dueling import BRANCHES, offsets
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

RETURN_ID, TARGET_ID = "dqn.nstep_return", "dqn.bdq_target"
AVERSION = 1.5
WRONG_RETURN = {
    "not_stopped": "the sum goes on after the terminal step",
    "gamma_at_done": "the discount is not 0 after a terminal step",
    "first_power": "discount gamma in place of gamma^n",
    "one_gamma": "the discount of the first branch for all",
    "aversion_twice": "applied again, as when the environment had applied it",
    "aversion_on_sum": "applied to the sum in place of each reward",
    "aversion_missing": "losses count as gains do",
    "undiscounted": "the plain sum of the rewards",
    "terminal_reward_lost": "the reward of the terminal step is left out",
}
WRONG_TARGET = {
    "single_dqn": "the action by the target network's own argmax",
    "online_value": "the online network's value of the action",
    "one_gamma": "the discount of the first branch for all",
    "gamma_at_done": "bootstraps after a terminal step",
    "maximum_of_means": "one argmax for all branches, over the first branch's scores",
    "sum_over_branches": "the sum in place of the branches' own values",
}


def _losses(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"rewards": -np.abs(np.asarray(values["rewards"])) - 0.1}


def _running(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"done": np.zeros_like(values["done"])}


def _terminal(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"done": np.ones_like(values["done"])}


def nstep_return_backwards(
    rewards: F64, done: F64, gamma: F64, aversion: float = AVERSION
) -> tuple[F64, F64]:
    """Fold from the last step: R = r_t + gamma (1 - done_t) R_{t+1}."""
    felt = np.where(rewards >= 0.0, rewards, aversion * rewards)
    total = np.zeros((rewards.shape[0], gamma.shape[0]))
    discount = 1.0 + total
    for i in range(rewards.shape[1] - 1, -1, -1):
        going = 1.0 - done[:, i : i + 1]
        total = felt[:, i : i + 1] + gamma * (going * total)
        discount = gamma * (going * discount)
    return total, discount


@equation(
    RETURN_ID,
    title="Return of n steps for every branch",
    source="DQN programme, 7.3",
    grade="proposed by the programme; one discount per branch fixed",
    formula="R_k = sum_i gamma_k^i f(r_{t+i}) up to the first terminal step;  D_k = gamma_k^n or 0",
    axes=("B", "n_steps"),
    inputs=(
        Symbol("rewards", ("B", "n_steps"), Domain("real", -1.0, 1.0), "reward of each step"),
        Symbol("done", ("B", "n_steps"), Domain("mask"), "1 where the step was terminal"),
        Symbol("gamma", ("4",), Domain("unit", 0.8, 0.995), "discount of every branch"),
        Symbol("aversion", (), Domain("positive", 1.1, 2.0), "weight of losses, 1.5", True),
    ),
    outputs=(
        Symbol("returns", ("B", "4"), Domain("real"), "return of every branch"),
        Symbol("discount", ("B", "4"), Domain("nonnegative"), "what the bootstrap is times"),
    ),
    wrong=WRONG_RETURN,
    forms={"default": (nstep_return_backwards,)},
    families=(
        Family("losses", "all rewards negative: aversion shows", _losses),
        Family("running", "no terminal step", _running),
        Family("terminal", "every step terminal: only the first reward is left", _terminal),
    ),
    notes="A trajectory that is merely cut is not terminal and bootstraps. Aversion belongs in the "
    "target and nowhere else: f(r) = r where r >= 0, else aversion r.",
)
def nstep_return(
    rewards: F64,
    done: F64,
    gamma: F64,
    aversion: float = AVERSION,
    *,
    reading: str = "default",
) -> tuple[F64, F64]:
    """Add up n rewards and give the discount of what follows.

    Equation: with f(r) = r where r >= 0 else aversion r, each step until the first terminal one
        R_k = sum_{i<n} gamma_k^i f(r_{t+i}),   D_k = gamma_k^n, 0 after a terminal step
    so that a target is R_k + D_k Q'.
    Shapes: rewards, done (B, n_steps); gamma (4,). Returns (returns, discount), both (B, 4).
    """
    if reading not in ("default", *WRONG_RETURN):
        raise UnknownReading(RETURN_ID, reading, ("default", *WRONG_RETURN))
    if reading == "one_gamma":
        gamma = gamma[:1] + np.zeros_like(gamma)
    felt = np.where(rewards >= 0.0, rewards, aversion * rewards)
    if reading == "aversion_twice":
        felt = np.where(rewards >= 0.0, rewards, aversion * (aversion * rewards))
    elif reading in ("aversion_missing", "aversion_on_sum"):
        felt = rewards
    total = np.zeros((rewards.shape[0], gamma.shape[0]))
    alive, power = 1.0 + total, 1.0 + total
    for i in range(rewards.shape[1]):
        over = 1.0 - done[:, i : i + 1]
        counted = alive * over if reading == "terminal_reward_lost" else alive
        if reading == "not_stopped":
            counted = 1.0 + 0.0 * alive
        step = 1.0 if reading == "undiscounted" else power
        total = total + counted * (step * felt[:, i : i + 1])
        alive, power = alive * over, power * gamma
    if reading == "aversion_on_sum":
        total = np.where(total >= 0.0, total, aversion * total)
    if reading == "first_power":
        power = gamma + 0.0 * power
    return total, power if reading == "gamma_at_done" else power * alive


def bdq_target_by_mask(
    q_online: F64,
    q_target: F64,
    returns: F64,
    discount: F64,
    branches: tuple[int, ...] = BRANCHES,
    *,
    mean: bool = False,
) -> F64:
    """Pick the target value as the largest among the actions that are best online."""
    at, parts = offsets(branches), []
    for k in range(len(branches)):
        own = slice(at[k], at[k + 1])
        first = np.argmax(q_online[:, own], axis=1)
        hit = np.arange(branches[k]) == first[:, np.newaxis]
        parts.append(np.max(np.where(hit, q_target[:, own], -np.inf), axis=1))
    if mean:
        value = (((parts[0] + parts[1]) + parts[2]) + parts[3]) * 0.25
        shared: F64 = returns + discount * value[:, np.newaxis]
        return shared
    result: F64 = returns + discount * np.stack(parts, axis=1)
    return result


def _mean_by_mask(
    q_online: F64,
    q_target: F64,
    returns: F64,
    discount: F64,
    branches: tuple[int, ...] = BRANCHES,
) -> F64:
    """Give the mean target by the mask of the best online action."""
    return bdq_target_by_mask(q_online, q_target, returns, discount, branches, mean=True)


def _best_differ(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"q_target": -np.asarray(values["q_online"])}


def _terminal_rows(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    discount = np.array(values["discount"])
    discount[rng.random(discount.shape[0]) < 0.5] = 0.0
    return values | {"discount": discount}


@equation(
    TARGET_ID,
    title="Double-DQN target of every branch",
    source="branching, arXiv:1711.08946, and DQN programme, 6",
    grade="per_branch fixed by the programme; mean_target as published",
    formula="y_k = R_k + D_k Q'_k(s', argmax_a Q_k(s', a)), or with the mean over the branches",
    axes=("B",),
    inputs=(
        Symbol("q_online", ("B", "13"), Domain("real", -2.0, 2.0), "online values at s'"),
        Symbol("q_target", ("B", "13"), Domain("real", -2.0, 2.0), "target values at s'"),
        Symbol("returns", ("B", "4"), Domain("real", -1.0, 1.0), "return of every branch"),
        Symbol("discount", ("B", "4"), Domain("unit", 0.5, 0.99), "gamma^n, 0 if terminal"),
    ),
    outputs=(Symbol("target", ("B", "4"), Domain("real"), "target of every branch"),),
    readings={
        "per_branch": "each branch bootstraps from its own value",
        "mean_target": "all branches bootstrap from the mean over the branches",
    },
    wrong=WRONG_TARGET,
    forms={"per_branch": (bdq_target_by_mask,), "mean_target": (_mean_by_mask,)},
    families=(
        Family(
            "best_differ",
            "the target network prefers what the online one likes least",
            _best_differ,
        ),
        Family("terminal_rows", "half of the samples are terminal", _terminal_rows),
    ),
)
def bdq_target(
    q_online: F64,
    q_target: F64,
    returns: F64,
    discount: F64,
    branches: tuple[int, ...] = BRANCHES,
    *,
    reading: str = "per_branch",
) -> F64:
    """Give the target of each branch, chosen online and valued by the target network.

    Equation: y_k = R_k + D_k V_k with V_k = Q'_k(s', argmax_a Q_k(s', a))
    Shapes: q_online, q_target (B, 13); returns, discount and the result (B, 4).
    Readings: ``per_branch`` takes V_k; ``mean_target`` the mean of V over the branches.
    """
    known = ("per_branch", "mean_target", *WRONG_TARGET)
    if reading not in known:
        raise UnknownReading(TARGET_ID, reading, known)
    at, parts = offsets(branches), []
    for k in range(len(branches)):
        own = slice(at[k], at[k + 1])
        chooser = q_target if reading == "single_dqn" else q_online
        best = np.argmax(chooser[:, own], axis=1)
        if reading == "maximum_of_means":
            best = np.argmax(q_online[:, : branches[0]], axis=1) % branches[k]
        valued = q_online if reading == "online_value" else q_target
        picked = np.take_along_axis(valued[:, own], best[:, np.newaxis], axis=1)
        parts.append(picked)
    value = np.concatenate(parts, axis=1)
    if reading == "mean_target":
        value = np.mean(value, axis=1, keepdims=True)
    elif reading == "sum_over_branches":
        value = np.sum(value, axis=1, keepdims=True)
    elif reading == "one_gamma":
        discount = discount[:, :1] + np.zeros_like(discount)
    elif reading == "gamma_at_done":
        discount = np.where(discount == 0.0, 0.9, discount)
    return returns + discount * value
