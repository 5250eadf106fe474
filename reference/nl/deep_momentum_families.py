"""Inputs on which the readings of deep momentum part, and on which they must coincide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.symbols import Family, Values


def _scaled_network(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Bring the pre-activations to order one, so that the slope of tanh is neither 0 nor 1."""
    return values | {
        "A1": np.asarray(values["A1"]) / np.sqrt(sizes["h"]),
        "A2": np.asarray(values["A2"]) / np.sqrt(sizes["d_in"]),
    }


def _strong_rate(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Make the inner step as large as the parameters: what it forgets and learns both show."""
    scaled = _scaled_network(rng, sizes, values)
    return scaled | {
        "g": np.asarray(values["g"]) / np.sqrt(sizes["d_in"]),
        "alpha": 0.5,
        "eta": 0.3,
    }


def _dead_output(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"A1": np.zeros_like(values["A1"])}


def _dead_point(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {name: np.zeros_like(values[name]) for name in ("A1", "A2")}


def _no_gradient(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"g": np.zeros_like(values["g"])}


FAMILIES = (
    Family(
        "scaled_network",
        "pre-activations of order one: the slope of tanh shows",
        _scaled_network,
    ),
    Family(
        "strong_rate",
        "decay and inner step as large as the parameters: the order of step and read shows",
        _strong_rate,
    ),
    Family(
        "dead_output",
        "F = 0 before the step, as with an output layer of zeros: dot_self and l2_neg coincide",
        _dead_output,
        right_kernel_only=True,
    ),
    Family(
        "dead_point",
        "A1 = A2 = 0: both gradients vanish, nothing may move",
        _dead_point,
        right_kernel_only=True,
    ),
    Family(
        "no_gradient",
        "g = 0: the parameters decay by alpha and the weights stay",
        _no_gradient,
        right_kernel_only=True,
    ),
)
