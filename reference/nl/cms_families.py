"""Inputs on which the readings of the continuum memory system part, and where they coincide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.symbols import F64, Family, Values


def _scaled(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Divide each layer by the root of its fan-in, as networks are initialised."""
    first, second = np.asarray(values["W1"]), np.asarray(values["W2"])
    return values | {
        "W1": first / np.sqrt(first.shape[-1]),
        "W2": second / np.sqrt(second.shape[-1]),
    }


def _identity(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"W2": np.zeros_like(values["W2"])}


def _saturated(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    scaled = _scaled(rng, sizes, values)
    return scaled | {"W1": 12.0 * np.asarray(scaled["W1"])}


def _mask(values: Values, active: F64) -> Values:
    return values | {"mask": active.reshape(np.shape(values["mask"]))}


def _no_mask(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _mask(values, np.ones(np.size(values["mask"])))


def _all_masked(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _mask(values, np.zeros(np.size(values["mask"])))


def _first_masked(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    active = np.ones(np.size(values["mask"]))
    active[:1] = 0.0
    return _mask(values, active)


def _constant_rate(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"eta": np.full(np.shape(values["eta"]), 0.1)}


def _opposed(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Terms that cancel beyond the limit: clipping each and clipping their sum differ in sign."""
    g = np.array(values["g"])
    g[:-1] = np.abs(g[:-1])
    g[-1] = -2.0 * np.sum(g[:-1], axis=0)
    return _no_mask(rng, sizes, values | {"g": g})


_SCALED = Family("scaled", "layers divided by the root of their fan-in", _scaled)
_SATURATED = Family("saturated", "the activation far from its linear part", _saturated)
_IDENTITY = Family(
    "identity",
    "W2 = 0: every residual level is the identity, and so is their chain",
    _identity,
    right_kernel_only=True,
)
_NO_MASK = Family("no_mask", "every token is active", _no_mask)
_ALL_MASKED = Family("all_masked", "no token is active: no update, every bit stays", _all_masked)
_FIRST_MASKED = Family("first_masked", "one token is masked: means divide by C - 1", _first_masked)

LEVEL = (_SCALED, _SATURATED, _IDENTITY)
CHAIN = (_SCALED, _SATURATED, _IDENTITY)
UPDATE = (
    _NO_MASK,
    _ALL_MASKED,
    _FIRST_MASKED,
    Family("constant_rate", "one rate for the whole chunk", _constant_rate),
    Family("opposed", "terms of a chunk that cancel", _opposed),
)
LEVEL_UPDATE = (_SCALED, _SATURATED, _NO_MASK, _ALL_MASKED, _FIRST_MASKED)
