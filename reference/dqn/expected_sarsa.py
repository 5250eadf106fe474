"""The expected-SARSA mixture of targets, with the temperature of its policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.atoms import SUPPORT, atoms, is_valid, prepared_support, softmax
from trueup.reference.dqn.c51_cells import (
    all_known,
    cells,
    gathered,
    guarded_mass,
    target_atoms,
)
from trueup.reference.dqn.c51_families import simplex
from trueup.reference.dqn.c51_projection import c51_projection_by_distance
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

POLICY_ID, ID = "dqn.sarsa_policy", "dqn.sarsa_mixture"
T_MIN = float(np.float32(1e-3))
WRONG_POLICY = {
    "multiplied": "softmax(Q T)",
    "health_inverted": "explores when healthy",
    "gap_inverted": "explores when one action is clearly best",
    "gap_to_worst": "the gap between the largest and the smallest",
    "argmax": "all mass on the best action",
    "uniform": "all actions alike",
    "temperature_of_batch": "the mean temperature of the batch for all",
}
WRONG = {
    "best_only": "the target of the most likely action alone",
    "unweighted": "the mean over the actions",
    "mixed_atoms": "the mean of the atoms with the mean of the probabilities",
    "weights_swapped": "the shares of the two atoms exchanged",
}


def temperature(
    q: F64, health: F64, t_min: float = T_MIN, t_max: float = 1.0, gap_ref: float = 1.0
) -> F64:
    """Give the temperature of every sample; shapes q (B, n_actions), health (1,)."""
    ordered = np.sort(q, axis=-1)
    gap = ordered[:, -1] - ordered[:, -2]
    ill = 1.0 - np.clip(health, 0.0, 1.0)
    return t_min + (t_max - t_min) * ill * np.clip(1.0 - gap / gap_ref, 0.0, 1.0)


def sarsa_policy_shifted(
    q: F64, health: F64, t_min: float = T_MIN, t_max: float = 1.0, gap_ref: float = 1.0
) -> tuple[F64, F64]:
    """Subtract the largest value before dividing by the temperature."""
    T = temperature(q, health, t_min, t_max, gap_ref)
    weight = np.exp((q - np.max(q, axis=-1, keepdims=True)) / T[:, np.newaxis])
    return weight / np.sum(weight, axis=-1, keepdims=True), T


def _near_ties(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"q": 0.05 * np.asarray(values["q"])}


def _healthy(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"health": np.full(1, 1.25)}


@equation(
    POLICY_ID,
    title="Policy of the expected-SARSA target",
    source="DQN programme, 7.3 (a)",
    grade="inputs fixed by the programme, the rule proposed",
    formula="pi = softmax(Q / T),  T = T_min + (T_max - T_min)(1 - clip(h))(clip(1 - gap/gap_ref))",
    axes=("B", "n_actions"),
    inputs=(
        Symbol("q", ("B", "n_actions"), Domain("real", -1.0, 1.0), "online values at s'"),
        Symbol("health", ("1",), Domain("unit", 0.1, 0.6), "learning health"),
        Symbol("t_min", (), Domain("positive", 0.2, 0.4), "1e-3", optional=True),
        Symbol("t_max", (), Domain("positive", 0.8, 2.0), "1", optional=True),
        Symbol("gap_ref", (), Domain("positive", 1.0, 4.0), "1", optional=True),
    ),
    outputs=(
        Symbol("policy", ("B", "n_actions"), Domain("simplex"), "weight of every action"),
        Symbol("temperature", ("B",), Domain("positive"), "temperature of every sample"),
    ),
    wrong=WRONG_POLICY,
    forms={"default": (sarsa_policy_shifted,)},
    families=(
        Family("near_ties", "values close together: a high temperature", _near_ties),
        Family("healthy", "health beyond 1 counts as 1: T = T_min", _healthy),
    ),
    notes="T to 0 is the argmax target, T to infinity the uniform mixture.",
    prepare=lambda rng, sizes, values: values | _two_actions(values),
)
def sarsa_policy(
    q: F64,
    health: F64,
    t_min: float = T_MIN,
    t_max: float = 1.0,
    gap_ref: float = 1.0,
    *,
    reading: str = "default",
) -> tuple[F64, F64]:
    """Weigh the actions at s'.

    Equation: pi = softmax(Q / T), T = T_min + (T_max - T_min)(1 - clip(h, 0, 1))
    clip(1 - gap / gap_ref, 0, 1), the gap between the largest and the second value of the sample.
    Shapes: q (B, n_actions), two actions or more; health (1,). Returns (policy, temperature (B,)).
    """
    if reading not in ("default", *WRONG_POLICY):
        raise UnknownReading(POLICY_ID, reading, ("default", *WRONG_POLICY))
    T = temperature(q, health, t_min, t_max, gap_ref)
    if reading == "health_inverted":
        T = temperature(q, 1.0 - health, t_min, t_max, gap_ref)
    elif reading == "gap_inverted":
        ill = 1.0 - np.clip(health, 0.0, 1.0)
        gap = np.sort(q, axis=-1)[:, -1] - np.sort(q, axis=-1)[:, -2]
        T = t_min + (t_max - t_min) * ill * np.clip(gap / gap_ref, 0.0, 1.0)
    elif reading == "gap_to_worst":
        ill = 1.0 - np.clip(health, 0.0, 1.0)
        gap = np.max(q, axis=-1) - np.min(q, axis=-1)
        T = t_min + (t_max - t_min) * ill * np.clip(1.0 - gap / gap_ref, 0.0, 1.0)
    elif reading == "temperature_of_batch":
        T = np.mean(T) + 0.0 * T
    scaled = q * T[:, np.newaxis] if reading == "multiplied" else q / T[:, np.newaxis]
    policy = softmax(scaled)
    if reading == "argmax":
        policy = np.where(q == np.max(q, axis=-1, keepdims=True), 1.0, 0.0)
    elif reading == "uniform":
        policy = np.ones_like(q) / q.shape[1]
    return policy, T


def _two_actions(values: Values) -> Values:
    q = np.asarray(values["q"])
    return {"q": np.concatenate([q, q - 1.0], axis=1)} if q.shape[1] < 2 else {}


def sarsa_mixture_in_turn(
    policy: F64, p_next: F64, support: F64, next_support: F64, returns: F64, discount: F64
) -> tuple[F64, Any]:
    """Project every action's target by distances, and add them in order."""
    total: Any = 0
    flag: Any = 0
    for a in range(policy.shape[1]):
        mass, bad = c51_projection_by_distance(
            p_next[:, a], support, next_support[:, a], returns, discount
        )
        total = total + policy[:, a][:, np.newaxis] * mass
        flag = np.maximum(flag, bad)
    n = p_next.shape[-1]
    first = np.where(np.arange(n) == 0, 1.0, 0.0)
    return np.where(is_valid(support, n)[:, np.newaxis], total, first), flag


def _prepare(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    n = np.shape(values["p_next"])[-1]
    return values | {
        "policy": simplex(np.asarray(values["policy"])),
        "p_next": simplex(np.asarray(values["p_next"])),
        "support": prepared_support(np.asarray(values["support"]), n),
        "next_support": prepared_support(np.asarray(values["next_support"]), n),
    }


def _peaked(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"policy": np.asarray(values["policy"]) ** 6}


@equation(
    ID,
    title="Projected mixture of the actions' targets",
    source="DQN programme, 7.3 (a); projection: C51, arXiv:1707.06887",
    grade="fixed by the programme",
    formula="m = sum_a pi_a proj(R + D z'_a, p'_a)",
    axes=("B", "n_actions", "n_atoms"),
    inputs=(
        Symbol("policy", ("B", "n_actions"), Domain("simplex"), "weight of every action at s'"),
        Symbol("p_next", ("B", "n_actions", "n_atoms"), Domain("simplex"), "target distributions"),
        Symbol("support", ("B", "3"), SUPPORT, "support of the taken action"),
        Symbol("next_support", ("B", "n_actions", "3"), SUPPORT, "supports at s'"),
        Symbol("returns", ("B",), Domain("real", -1.0, 1.0), "return of n steps"),
        Symbol("discount", ("B",), Domain("unit", 0.8, 0.99), "gamma^n, 0 after a terminal step"),
    ),
    outputs=(
        Symbol("mass", ("B", "n_atoms"), Domain("simplex"), "projected mixture"),
        Symbol("invalid", ("B",), Domain("mask"), "1 where a support or a target is none"),
    ),
    wrong=WRONG,
    forms={"default": (sarsa_mixture_in_turn,)},
    families=(Family("peaked", "one action has nearly all weight", _peaked),),
    prepare=_prepare,
)
def sarsa_mixture(
    policy: F64,
    p_next: F64,
    support: F64,
    next_support: F64,
    returns: F64,
    discount: F64,
    *,
    reading: str = "default",
) -> tuple[F64, Any]:
    """Project the mixture of all actions' target distributions.

    Equation: m = sum_a pi_a proj_a, with proj_a the C51 projection of (p'_a, R + D z'_a) onto the
    support of the taken action.
    Shapes: policy (B, n_actions); p_next (B, n_actions, n_atoms); support (B, 3); next_support
    (B, n_actions, 3); returns, discount (B,). Returns (mass (B, n_atoms), invalid (B,)).
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    n = p_next.shape[-1]
    valid = is_valid(support, n)
    usable = np.where(valid[:, np.newaxis], support, np.array([0.0, n - 1.0, 1.0]))
    z = atoms(usable, n)[:, np.newaxis, :]
    t = target_atoms(returns[:, np.newaxis], discount[:, np.newaxis], next_support, n)
    if reading == "best_only":
        best = np.max(policy, axis=1, keepdims=True)
        policy = np.where(policy == best, 1.0, 0.0)
        policy = policy / np.sum(policy, axis=1, keepdims=True)
    elif reading == "unweighted":
        policy = np.ones_like(policy) / policy.shape[1]
    elif reading == "mixed_atoms":
        t = np.sum(policy[..., np.newaxis] * t, axis=1, keepdims=True) + np.zeros_like(t)
    at = cells(t, z, usable[:, np.newaxis, 2:3])
    share = 1.0 - at.share if reading == "weights_swapped" else at.share
    mass, flag = guarded_mass(
        gathered(p_next, at.lower, share),
        all_known(t, p_next, z),
        valid[:, np.newaxis],
        is_valid(next_support, n),
    )
    mixed = np.sum(policy[..., np.newaxis] * mass, axis=1)
    first = np.where(np.arange(n) == 0, 1.0, 0.0)
    return np.where(valid[:, np.newaxis], mixed, first), np.max(flag, axis=1)
