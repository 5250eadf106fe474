"""Ordinary draws of an equation's inputs, for every test of the references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from trueup.contracts.expressions import evaluate
from trueup.reference import Equation

Draw = Callable[..., dict[str, Any]]

# Constants that a kernel holds: left at their defaults, as a contract without them does.
CONSTANTS = ("eps", "fast_alpha", "slow_alpha")


def _sizes_of(shape: tuple[str, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(entry, sizes) for entry in shape)


@pytest.fixture
def draw() -> Draw:
    def make(
        equation: Equation, sizes: Mapping[str, int], rng: np.random.Generator
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for symbol in equation.inputs:
            if symbol.name in CONSTANTS:
                continue
            shape, domain = _sizes_of(symbol.shape, sizes), symbol.domain
            if domain.kind == "real":
                value = rng.standard_normal(shape)
            elif domain.kind == "index":
                value = rng.integers(0, sizes[str(domain.axis)], shape)
            elif domain.kind == "mask":
                value = rng.integers(0, 2, shape).astype(np.float64)
            else:
                value = rng.uniform(domain.low or 0.0, domain.high or 1.0, shape)
            values[symbol.name] = value if shape else float(value)
        return values

    return make


@pytest.fixture
def sizes_of() -> Callable[[tuple[str, ...], Mapping[str, int]], tuple[int, ...]]:
    return _sizes_of
