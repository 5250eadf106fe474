"""Greedy choice of actions, exploration by epsilon, and noise on the scores of a branch."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.dueling import BRANCHES, offsets
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

GREEDY_ID, EPSILON_ID, NOISE_ID = "dqn.greedy_action", "dqn.epsilon_greedy", "dqn.advantage_noise"
WRONG_GREEDY = {
    "last_tie": "the last of the best actions of a branch",
    "joint_argmax": "one argmax over all 13, taken modulo the branch",
    "argmin": "the smallest",
    "neighbour_branch": "each branch reads the scores of the one before",
}
WRONG_EPSILON = {
    "shared_draw": "one draw decides for all branches",
    "inverted": "explores where u >= epsilon",
    "shared_action": "every branch takes the random action of the first",
}
WRONG_NOISE = {
    "index_over_4": "branch a / 4, wrong for branches of 4, 3, 3 and 3",
    "variance": "sigma squared in place of sigma",
    "shared_rows": "the noise of the first sample for all",
    "scalar": "the sigma of the first branch for all",
    "multiplied": "adv (1 + sigma xi)",
    "centred": "the mean noise of a branch taken off",
}


def _ties(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"scores": np.rint(np.asarray(values["scores"]))}


def greedy_action_by_comparison(scores: F64, branches: tuple[int, ...] = BRANCHES) -> Any:
    """Count the actions of a branch that every one of its best comes after."""
    at, parts = offsets(branches), []
    for k, size in enumerate(branches):
        own = scores[:, at[k] : at[k + 1]]
        best = np.max(own, axis=1, keepdims=True)
        parts.append(np.min(np.where(own == best, np.arange(size), size), axis=1))
    return np.stack(parts, axis=1)


@equation(
    GREEDY_ID,
    title="Greedy action of every branch",
    source="branching, arXiv:1711.08946; DQN programme, 8",
    grade="as published; the rule for ties proposed by the programme",
    formula="a_k = argmax_a score_k[a], the lowest index among equals",
    axes=("B",),
    inputs=(Symbol("scores", ("B", "13"), Domain("real", -2.0, 2.0), "score of every action"),),
    outputs=(Symbol("action", ("B", "4"), Domain("nonnegative"), "index within the branch"),),
    wrong=WRONG_GREEDY,
    forms={"default": (greedy_action_by_comparison,)},
    families=(Family("ties", "exact ties", _ties),),
    notes="Scores that are NaN must have raised a flag before; the choice is then unspecified.",
)
def greedy_action(
    scores: F64, branches: tuple[int, ...] = BRANCHES, *, reading: str = "default"
) -> Any:
    """Choose the best action of each branch.

    Equation: a_k[b] = argmax_a score_k[b,a]; the lowest index among equals.
    Shapes: scores (B, 13); returns (B, 4), numbers within the branch.
    """
    if reading not in ("default", *WRONG_GREEDY):
        raise UnknownReading(GREEDY_ID, reading, ("default", *WRONG_GREEDY))
    at, parts = offsets(branches), []
    for k, size in enumerate(branches):
        own = scores[:, at[k] : at[k + 1]]
        if reading == "neighbour_branch" and k:
            own = scores[:, at[k - 1] : at[k - 1] + size]
        chosen = np.argmax(own, axis=1)
        if reading == "last_tie":
            chosen = size - 1 - np.argmax(own[:, ::-1], axis=1)
        elif reading == "joint_argmax":
            chosen = np.argmax(scores, axis=1) % size
        elif reading == "argmin":
            chosen = np.argmin(own, axis=1)
        parts.append(chosen)
    return np.stack(parts, axis=1)


def _boundary(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Half of the draws equal to epsilon: not below it, so greedy."""
    u = np.array(values["u"])
    epsilon = np.asarray(values["epsilon"])
    return values | {"u": np.where(rng.random(u.shape) < 0.5, epsilon[0] + 0.0 * u, u)}


def _whole_actions(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {
        name: np.floor(np.asarray(values[name])) for name in ("greedy", "random_action")
    }


def epsilon_greedy_by_blend(greedy: F64, random_action: F64, u: F64, epsilon: F64) -> F64:
    """Blend with a mask of 0 and 1."""
    explore = np.where(u < epsilon, 1.0, 0.0)
    return explore * random_action + (1.0 - explore) * greedy


@equation(
    EPSILON_ID,
    title="Epsilon-greedy choice of every branch",
    source="DQN programme, 8",
    grade="proposed by the programme: independent draws per branch",
    formula="a_k = u_k < epsilon ? random_k : greedy_k",
    axes=("B",),
    inputs=(
        Symbol("greedy", ("B", "4"), Domain("nonnegative", 0.0, 2.9), "greedy actions"),
        Symbol("random_action", ("B", "4"), Domain("nonnegative", 0.0, 2.9), "drawn actions"),
        Symbol("u", ("B", "4"), Domain("unit"), "a uniform draw for every branch"),
        Symbol("epsilon", ("1",), Domain("unit", 0.3, 0.7), "rate of exploration"),
    ),
    outputs=(Symbol("action", ("B", "4"), Domain("nonnegative"), "chosen actions"),),
    wrong=WRONG_EPSILON,
    forms={"default": (epsilon_greedy_by_blend,)},
    families=(Family("boundary", "u equal to epsilon is greedy", _boundary),),
    prepare=_whole_actions,
)
def epsilon_greedy(
    greedy: F64, random_action: F64, u: F64, epsilon: F64, *, reading: str = "default"
) -> F64:
    """Explore each branch on its own.

    Equation: a_k[b] = random_k[b] where u_k[b] < epsilon, else greedy_k[b].
    Shapes: greedy, random_action, u and the result (B, 4); epsilon (1,).
    """
    if reading not in ("default", *WRONG_EPSILON):
        raise UnknownReading(EPSILON_ID, reading, ("default", *WRONG_EPSILON))
    if reading == "shared_draw":
        u = u[:, :1] + np.zeros_like(u)
    elif reading == "shared_action":
        random_action = random_action[:, :1] + np.zeros_like(random_action)
    explore = u >= epsilon if reading == "inverted" else u < epsilon
    return np.where(explore, random_action, greedy)


def branch_of(branches: tuple[int, ...] = BRANCHES) -> tuple[int, ...]:
    """Give the branch of every action in the list of all."""
    return tuple(k for k, size in enumerate(branches) for _ in range(size))


def advantage_noise_by_branch(
    score: F64, sigma: F64, noise: F64, branches: tuple[int, ...] = BRANCHES
) -> F64:
    """Go branch by branch, each with its own sigma."""
    at, parts = offsets(branches), []
    for k in range(len(branches)):
        own = slice(at[k], at[k + 1])
        moved = score[:, own] + sigma[k] * noise[:, own]
        parts.append(np.where(sigma[k] == 0.0, score[:, own], moved))
    return np.concatenate(parts, axis=1)


def _some_silent(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    sigma = np.array(values["sigma"])
    sigma[rng.integers(4)] = 0.0
    return values | {"sigma": sigma}


@equation(
    NOISE_ID,
    title="Noise on the scores of every branch",
    source="DQN programme, 21",
    grade="one sigma per branch fixed by the programme; the place proposed",
    formula="score'[b,a] = score[b,a] + sigma[branch(a)] xi[b,a]",
    axes=("B",),
    inputs=(
        Symbol("score", ("B", "13"), Domain("real", -2.0, 2.0), "score of every action"),
        Symbol("sigma", ("4",), Domain("nonnegative", 0.1, 2.0), "noise of every branch"),
        Symbol("noise", ("B", "13"), Domain("real", -2.0, 2.0), "a draw for every action"),
    ),
    outputs=(Symbol("noisy", ("B", "13"), Domain("real"), "scores to choose by"),),
    wrong=WRONG_NOISE,
    forms={"default": (advantage_noise_by_branch,)},
    families=(Family("silent_branch", "sigma 0 leaves a branch as it is", _some_silent),),
    notes="At rollout only, last before the argmax. On the logits of the atoms one draw per action "
    "would cancel in the softmax and explore nothing.",
)
def advantage_noise(
    score: F64,
    sigma: F64,
    noise: F64,
    branches: tuple[int, ...] = BRANCHES,
    *,
    reading: str = "default",
) -> F64:
    """Add each branch's noise to its scores.

    Equation: score'[b,a] = score[b,a] + sigma[branch(a)] noise[b,a]; where sigma is 0, score as it
    is, bit for bit. Actions 0 to 3 are branch 0, then three each.
    Shapes: score, noise and the result (B, 13); sigma (4,).
    """
    if reading not in ("default", *WRONG_NOISE):
        raise UnknownReading(NOISE_ID, reading, ("default", *WRONG_NOISE))
    which = branch_of(branches)
    if reading == "index_over_4":
        which = tuple(min(a // 4, len(branches) - 1) for a in range(len(which)))
    if reading == "scalar":
        which = (0,) * len(which)
    scale = np.stack([sigma[k] for k in which])
    if reading == "variance":
        scale = scale * scale
    elif reading == "shared_rows":
        noise = noise[:1] + np.zeros_like(noise)
    elif reading == "centred":
        at = offsets(branches)
        parts = [noise[:, at[k] : at[k + 1]] for k in range(len(branches))]
        noise = np.concatenate([p - np.mean(p, axis=1, keepdims=True) for p in parts], axis=1)
    change = scale * noise
    if reading == "multiplied":
        change = score * change
    return np.where(scale == 0.0, score, score + change)
