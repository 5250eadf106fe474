"""Choosing actions: Thompson sampling over C51, argmax of values, advantage noise, epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.atoms import (
    DEGENERATE,
    FAR,
    PEAKED,
    POSITIONS,
    SUPPORT,
    atoms,
    is_valid,
    softmax,
)
from trueup.reference.dqn.expected_q import NO_SHIFT, prepare
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.thompson"
WRONG = {
    "inclusive_step": "i* is the first with c_i >= u",
    "exclusive_cdf": "c_i is the mass before atom i",
    "shared_u": "one u for all actions",
    "unshifted": "atoms without their shift",
    "global_support": "the support of the first row for all",
    "expected_value": "the expected value in place of the sampled atom",
    "sorted": "the atoms in the order of their probability",
    "greedy_distribution": "every action sampled from the distribution of the best one",
    "last_tie": "the last of the best actions",
}


def _no_draw(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"u": np.zeros_like(values["u"])}


def _on_a_step(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Equal logits over a power of two of atoms, the others at exactly 0: CDF steps are exact."""
    shape: tuple[int, ...] = np.asarray(values["logits"]).shape
    width = 2 ** int(np.log2(shape[-1]))
    logits = np.full(shape, -2000.0)
    logits[..., :width] = 0.5
    steps = rng.integers(0, width, np.shape(values["u"])) / width
    return values | {"logits": logits, "u": steps}


def _one_hot(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    logits = np.full_like(np.asarray(values["logits"]), -200.0)
    hot = rng.integers(0, logits.shape[-1], logits.shape)[..., :1]
    np.put_along_axis(logits, hot, 1.0, axis=-1)
    return values | {"logits": logits}


def _equal_actions(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    changed = {}
    for name in ("logits", "support", "u", "shift"):
        if name in values:
            array = np.asarray(values[name])
            changed[name] = np.broadcast_to(array[:, :1], array.shape).copy()
    return values | changed


FAMILIES = (
    FAR,
    PEAKED,
    DEGENERATE,
    NO_SHIFT,
    Family("no_draw", "u = 0 takes the first atom that has mass", _no_draw),
    Family("on_a_step", "u equal to a step of the CDF belongs to the next atom", _on_a_step),
    Family("one_hot", "one atom has all mass", _one_hot),
    Family("equal_actions", "exact ties: the lowest index wins", _equal_actions),
)


def thompson_by_weights(
    logits: F64,
    support: F64,
    u: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
) -> tuple[Any, F64, Any]:
    """Compare running sums of exp(l - max) with u times their total: nothing is divided."""
    n = logits.shape[-1]
    weight = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    total = np.sum(weight, axis=-1, keepdims=True)
    running = np.cumsum(weight, axis=-1)
    place = _first_above(weight, running, u[..., np.newaxis] * total)
    return _chosen(place, support, n, positions, shift)


def _first_above(p: F64, running: F64, u: F64) -> Any:
    """Number the first atom with a running sum above u, or the last that has mass."""
    above = running > u
    i = np.arange(p.shape[-1])
    n = p.shape[-1]
    first = np.min(np.where(above, i, n), axis=-1)
    last = np.max(np.where(p > 0.0, i, 0), axis=-1)
    return np.where(first < n, first, last)


def _chosen(
    place: Any, support: F64, n: int, positions: F64 | None, shift: F64 | None
) -> tuple[Any, F64, Any]:
    z = atoms(support, n, positions, shift)
    hit = np.arange(n) == place[..., np.newaxis]
    valid = is_valid(support, n)
    sampled = np.max(np.where(hit, z, -np.inf), axis=-1)
    sampled = np.where(valid, sampled, z[..., 0])
    return np.argmax(sampled, axis=-1), sampled, np.where(valid, 0, 1)


_ROWS = ("B", "n_actions")


@equation(
    ID,
    title="Thompson sampling over a distributional head",
    source="DQN programme, 8: one distribution per action, single-sample selection",
    grade="fixed by the programme; the rule where rounding leaves no atom is proposed",
    formula="i* = min{i : c_i > u},  q_a = z_{a,i*},  action = argmax_a q_a",
    axes=("B", "n_actions", "n_atoms"),
    inputs=(
        Symbol("logits", (*_ROWS, "n_atoms"), Domain("real", -2.0, 2.0), "logits of the atoms"),
        Symbol("support", (*_ROWS, "3"), SUPPORT, "v_min, v_max, delta_z of every row"),
        Symbol("u", _ROWS, Domain("unit", 0.0, 0.999), "one uniform draw for each action"),
        POSITIONS,
        Symbol(
            "shift", _ROWS, Domain("real", -1.0, 1.0), "moves all atoms of a row", optional=True
        ),
    ),
    outputs=(
        Symbol("action", ("B",), Domain("index", axis="n_actions"), "the chosen action"),
        Symbol("sampled", _ROWS, Domain("real"), "the sampled value of every action"),
        Symbol("invalid", _ROWS, Domain("mask"), "1 where the support is degenerate"),
    ),
    wrong=WRONG,
    forms={"default": (thompson_by_weights,)},
    families=FAMILIES,
    prepare=prepare,
    notes="Where u lies within rounding of a step of the CDF either neighbouring atom is right.",
)
def thompson(
    logits: F64,
    support: F64,
    u: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    *,
    reading: str = "default",
) -> tuple[Any, F64, Any]:
    """Sample one atom for each action and take the action of the largest.

    Equation: p = softmax(logits), c_i = sum_{j<=i} p_j, i* = min{i : c_i > u}, or the last i with
    p_i > 0 if rounding leaves none; q_a = z_{a,i*}, shifted; action = argmax_a q_a, the lowest
    index among equals. The caller supplies u; nothing is drawn here.
    Shapes: logits (B, n_actions, n_atoms); support (B, n_actions, 3); u, shift (B, n_actions);
    positions (n_atoms,). Returns (action (B,), sampled, invalid).
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    n = logits.shape[-1]
    if reading == "unshifted":
        if shift is None:
            raise NotApplicable(ID, reading, "a shift")
        shift = None
    if reading == "shared_u":
        u = u[:, :1] + np.zeros_like(u)
    elif reading == "global_support":
        support = support[:1, :1] + np.zeros_like(support)
    p = softmax(logits)
    if reading == "greedy_distribution":
        p = _of_the_best(p, atoms(support, n, positions, shift))
    elif reading == "sorted":
        p = np.sort(p, axis=-1)[..., ::-1]
    running = np.cumsum(p, axis=-1)
    if reading == "exclusive_cdf":
        running = running - p
    if reading == "inclusive_step":
        place = _first_above(
            p, np.where(running == u[..., np.newaxis], 2.0, running), u[..., np.newaxis]
        )
    else:
        place = _first_above(p, running, u[..., np.newaxis])
    action, sampled, invalid = _chosen(place, support, n, positions, shift)
    if reading == "expected_value":
        sampled = np.sum(p * atoms(support, n, positions, shift), axis=-1)
        action = np.argmax(sampled, axis=-1)
    elif reading == "last_tie":
        action = sampled.shape[1] - 1 - np.argmax(sampled[:, ::-1], axis=-1)
    return action, sampled, invalid


def _of_the_best(p: F64, z: F64) -> F64:
    q = np.sum(p * z, axis=-1)
    best = np.argmax(q, axis=-1)
    hit = np.arange(q.shape[1]) == best[:, np.newaxis]
    chosen = np.max(np.where(hit[..., np.newaxis], p, -np.inf), axis=1)
    result: F64 = chosen[:, np.newaxis] + np.zeros_like(p)
    return result
