"""Inputs that tell mistakes of the C51 target apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trueup.reference.dqn.atoms import mark_supports, prepared_positions, prepared_support
from trueup.reference.symbols import F64, Family, Values


def simplex(drawn: F64) -> F64:
    """Make the last axis sum to 1."""
    weight = np.abs(np.asarray(drawn, dtype=np.float64)) + 1e-30
    share: F64 = weight / weight.sum(axis=-1, keepdims=True)
    return share


def prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Make supports, positions and probabilities that can be used."""
    n = np.shape(values["p_next"])[-1]
    changed: Values = {"p_next": simplex(np.asarray(values["p_next"]))}
    for name in ("support", "next_support"):
        changed[name] = prepared_support(np.asarray(values[name]), n)
    if "positions" in values:
        changed["positions"] = prepared_positions(np.asarray(values["positions"]))
    return values | changed


def _same_support(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"next_support": np.array(values["support"])}


def _on_atoms(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Targets that fall on atoms exactly: equal supports of dyadic steps, R whole steps, D = 1.

    Uneven atoms lie whole steps apart, a power of two of them in all: no operation rounds where a
    target meets an atom, so which side of the atom it is on is never a matter of rounding.
    """
    shape = np.shape(values["support"])
    gaps = np.shape(values["p_next"])[-1] - 1
    steps, uneven = gaps, {}
    if "positions" in values:
        steps = 2 ** math.ceil(math.log2(1.5 * gaps))
        wide = 1 + rng.multinomial(steps - gaps, np.full(gaps, 1.0 / gaps))
        uneven = {"positions": np.concatenate([[0.0], np.cumsum(wide) / steps])}
    support = np.empty(shape)
    support[..., 0], support[..., 1] = -0.25 * steps, 0.25 * steps
    support[..., 2] = 0.5 * steps / gaps
    moved = np.asarray(0.5 * rng.integers(-1, 2, np.shape(values["returns"])), dtype=np.float64)
    same: Values = {"support": support, "next_support": support.copy(), "returns": moved}
    still: Values = {
        name: np.zeros(shape[:-1]) for name in ("shift", "next_shift") if name in values
    }
    return values | uneven | same | still | {"discount": np.ones(shape[:-1])}


def _terminal(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    discount = np.array(values["discount"])
    discount[rng.random(discount.shape) < 0.6] = 0.0
    return _same_support(rng, sizes, values) | {"discount": discount}


def _beyond(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"returns": 4.0 * np.asarray(values["returns"])}


def _far(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Supports far from 0, targets among them: R makes up for the discount."""
    support = 8.0 + np.asarray(values["support"])
    returns = np.asarray(values["returns"]) + 8.0 * (1.0 - np.asarray(values["discount"]))
    return values | {
        "support": support,
        "next_support": support + 0.1 * np.asarray(values["next_support"]),
        "returns": returns,
    }


def _peaked(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    changed: Values = {"p_next": np.asarray(values["p_next"]) ** 6}
    if "logits" in values:
        changed["logits"] = 25.0 * np.asarray(values["logits"])
    return values | changed


def _degenerate(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return mark_supports("support", rng, sizes, values)


def _degenerate_next(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return mark_supports("next_support", rng, sizes, values)


C51_FAMILIES = (
    Family("same_support", "as in training: most targets within the support", _same_support),
    Family("on_atoms", "targets exactly on atoms and ends: floor and ceiling meet", _on_atoms),
    Family("terminal", "all targets of a sample are one number", _terminal),
    Family("beyond", "targets beyond the ends: clamped", _beyond),
    Family("far_support", "v_min far above the range: positions cancel", _far),
    Family("peaked", "probabilities near 0", _peaked),
    Family("degenerate", "supports that are none: flagged", _degenerate),
    Family("degenerate_next", "supports of s' that are none", _degenerate_next),
)
