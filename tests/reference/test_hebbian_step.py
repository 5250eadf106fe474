"""Eq. 15-16: the write of linear attention as the minimum of an objective, and its errata."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import UnknownReading
from trueup.reference.nl import associative_memory, hebbian_step
from trueup.reference.nl.hebbian_step import READINGS, attention_objective

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
memories = arrays(np.float64, (2, 3), elements=st.floats(-4.0, 4.0))
keys = arrays(np.float64, 3, elements=st.floats(-4.0, 4.0))
values = arrays(np.float64, 2, elements=st.floats(-4.0, 4.0))


@PROFILE
@given(M=memories, k=keys, v=values, change=memories)
@pytest.mark.parametrize("reading", READINGS)
def test_each_reading_is_the_minimum_of_its_objective(
    reading: str, M: Any, k: Any, v: Any, change: Any
) -> None:
    best = hebbian_step(M, k, v, reading=reading)
    least = attention_objective(best, M, k, v, reading=reading)
    rise = attention_objective(best + change, M, k, v, reading=reading) - least
    weight = 0.5 if reading == "derived" else 1.0
    scale = 1 + abs(least) + np.sum((best + change - M) ** 2)
    np.testing.assert_allclose(rise, weight * np.sum(change**2), atol=1e-12 * scale)


def test_q15_1_writes_in_turn_are_the_sum_of_outer_products() -> None:
    """Eq. 13 from M = 0: V^T K with one token per row, here by torch."""
    rng = np.random.default_rng(0)
    K, V = rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
    M = np.zeros((2, 3))
    for k, v in zip(K, V, strict=True):
        M = hebbian_step(M, k, v)
    want = torch.einsum("tv,tk->vk", torch.tensor(V), torch.tensor(K))
    np.testing.assert_allclose(M, want.numpy(), rtol=1e-12)


@pytest.mark.parametrize("eta", [0.1, 0.5, 2.0])
def test_q15_2_the_weight_of_the_penalty_is_the_rate(eta: float) -> None:
    """-<M k, v> + |M - M_t|^2 / (2 eta) rests, by autograd, at M_t + eta v k^T."""
    rng = np.random.default_rng(1)
    M_t, k, v = rng.standard_normal((2, 3)), rng.standard_normal(3), rng.standard_normal(2)
    M = torch.tensor(hebbian_step(M_t, eta * k, v), requires_grad=True)
    inner = (M @ torch.tensor(k)) @ torch.tensor(v)
    objective = -inner + ((M - torch.tensor(M_t)) ** 2).sum() / (2 * eta)
    objective.backward()
    assert M.grad is not None
    np.testing.assert_allclose(M.grad.numpy(), 0.0, atol=1e-13)


def test_e9_the_print_writes_half_and_away() -> None:
    M = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    k, v = np.array([1.0, 2.0, 0.0]), np.array([3.0, -1.0])
    expected = {
        "derived": [[4, 6, 1], [-1, -1, 0]],
        "literal": [[-0.5, -3, 1], [0.5, 2, 0]],
        "sign_only": [[2.5, 3, 1], [-0.5, 0, 0]],
        "half_only": [[-2, -6, 1], [1, 3, 0]],
    }
    for reading, rows in expected.items():
        np.testing.assert_array_equal(hebbian_step(M, k, v, reading=reading), rows)


def test_e10_the_gradient_of_the_dot_objective_is_negative() -> None:
    rng = np.random.default_rng(2)
    M, k, v = rng.standard_normal((2, 3)), rng.standard_normal(3), rng.standard_normal(2)
    h, gradient = 1e-4, np.zeros((2, 3))
    for at in np.ndindex(M.shape):
        up, down = M.copy(), M.copy()
        up[at] += h
        down[at] -= h
        gradient[at] = (-(up @ k) @ v + (down @ k) @ v) / (2 * h)
    np.testing.assert_allclose(gradient, -np.outer(v, k), rtol=1e-8, atol=1e-10)
    _, told = associative_memory(M, k[:, None], v[:, None], reading="dot")
    np.testing.assert_allclose(told, gradient, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(M - gradient, hebbian_step(M, k, v), rtol=1e-8)
    np.testing.assert_array_equal(M - np.outer(v, k), hebbian_step(M, k, v, reading="half_only"))


@pytest.mark.parametrize("reading", READINGS)
def test_a_zero_key_or_value_writes_nothing(reading: str) -> None:
    M = np.random.default_rng(3).standard_normal((2, 3))
    assert (hebbian_step(M, np.zeros(3), np.ones(2), reading=reading) == M).all()
    assert (hebbian_step(M, np.ones(3), np.zeros(2), reading=reading) == M).all()


def test_the_objective_knows_the_readings_only() -> None:
    zero = np.zeros((1, 1))
    with pytest.raises(UnknownReading, match="derived, literal"):
        attention_objective(zero, zero, np.ones(1), np.ones(1), reading="sign_only")
