"""Inputs on which the readings of the self-modifying memory part, and where they coincide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.symbols import Family, Values


def _unit_keys(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    k = np.asarray(values["k"])
    norm = np.linalg.norm(k, axis=-1, keepdims=True)
    return values | {"k": np.where(norm > 0.0, k / np.where(norm > 0.0, norm, 1.0), 0.0)}


def _no_retention_loss(
    rng: np.random.Generator, sizes: Mapping[str, int], values: Values
) -> Values:
    return values | {"alpha": np.ones_like(values["alpha"])}


def _strong_gates(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"alpha": 0.3 * np.asarray(values["alpha"])}


def _no_write(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"k": np.zeros_like(values["k"])}


UNIT_KEYS = Family("unit_keys", "|k_t| = 1, as after normalising q and k", _unit_keys)
NO_LOSS = Family(
    "no_retention_loss",
    "alpha = 1: Eq. 88 and the public gated delta rule agree",
    _no_retention_loss,
    right_kernel_only=True,
)
STRONG_GATES = Family("strong_gates", "alpha below 0.3: where it belongs shows", _strong_gates)
NO_WRITE = Family(
    "no_write",
    "k = 0: nothing is written, the memory only fades",
    _no_write,
    right_kernel_only=True,
)

FAMILIES = (UNIT_KEYS, STRONG_GATES, NO_LOSS, NO_WRITE)
DOT = FAMILIES
