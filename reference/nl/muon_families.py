"""Inputs on which the variants of Muon-like steps part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.nl.newton_schulz_families import ill_conditioned, spread
from trueup.reference.symbols import Family, Values


def _aligned(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Put momentum and gradient into one well-conditioned direction: all singular values show."""
    shape = {"r": sizes["d_out"], "c": sizes["d_in"]}
    m = np.asarray(spread(rng, shape, {})["G"])
    return values | {"m": m, "g": -2.0 * m}


def _ill_conditioned(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    shape = {"r": sizes["d_out"], "c": sizes["d_in"]}
    m = np.asarray(ill_conditioned(rng, shape, {})["G"])
    return values | {"m": m, "g": -0.5 * m}


def _from_rest(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"m": np.zeros_like(values["m"])}


def _no_gradient(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"g": np.zeros_like(values["g"])}


def _small_weights(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Let the step be larger than the weights, so that an error of it shows in their sum."""
    return values | {"W": 1e-3 * np.asarray(values["W"])}


def _tiny(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Bring the norm of the momentum below eps: how the norm is guarded shows."""
    scale = 3e-8 / np.sqrt(sizes["d_out"] * sizes["d_in"])
    return values | {name: scale * np.asarray(values[name]) for name in ("m", "g", "W")}


FAMILIES = (
    Family("aligned", "singular values from 0.3 to 1 in momentum and gradient alike", _aligned),
    Family("small_weights", "weights below the step: an error of the step shows", _small_weights),
    Family("ill_conditioned", "singular values down to 1e-4: the steps show", _ill_conditioned),
    Family("tiny", "norm of the momentum below eps: its guard shows", _tiny),
    Family("no_gradient", "g = 0: the direction stays, the momentum decays", _no_gradient),
    Family(
        "from_rest",
        "first step, m = 0: every way to decay m is the same",
        _from_rest,
        right_kernel_only=True,
    ),
)
