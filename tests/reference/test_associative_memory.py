"""Eq. 1 against finite differences, the pseudo-inverse, exact arithmetic and erratum E1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.reference import NotApplicable
from trueup.reference.nl.associative_memory import (
    READINGS,
    associative_memory,
    least_norm_memory,
)

SHAPES = [(2, 3, 4), (3, 2, 1), (5, 5, 5), (7, 4, 2)]  # d_v, d_k, N


def drawn(shape: tuple[int, int, int], seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng, (d_v, d_k, n) = np.random.default_rng([seed, *shape]), shape
    return (
        rng.standard_normal((d_v, d_k)),
        rng.standard_normal((d_k, n)),
        rng.standard_normal((d_v, n)),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_q1_1_the_pseudo_inverse_is_the_minimum_of_least_norm(shape: Any) -> None:
    _, K, V = drawn(shape)
    best = least_norm_memory(K, V)
    objective, gradient = associative_memory(best, K, V)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    rng = np.random.default_rng(1)
    beyond = np.eye(K.shape[0]) - K @ np.linalg.pinv(K)  # what no key reaches
    for _ in range(5):
        change = rng.standard_normal(best.shape)
        assert associative_memory(best + change, K, V)[0] >= objective - 1e-12
        tied = best + change @ beyond
        np.testing.assert_allclose(associative_memory(tied, K, V)[0], objective, atol=1e-12)
        assert np.linalg.norm(tied) >= np.linalg.norm(best) - 1e-12


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_q1_2_gradients_are_those_of_finite_differences(shape: Any, reading: str) -> None:
    M, K, V = drawn(shape)
    _, gradient = associative_memory(M, K, V, reading=reading)
    h = 1e-6
    for at in np.ndindex(M.shape):
        up, down = M.copy(), M.copy()
        up[at] += h
        down[at] -= h
        one, two = (associative_memory(w, K, V, reading=reading)[0] for w in (up, down))
        np.testing.assert_allclose(gradient[at], (one - two) / (2 * h), rtol=1e-6, atol=1e-6)


def test_q1_3_l2_reaches_zero_only_where_the_keys_carry_the_values() -> None:
    K = np.array([[1.0, 2.0], [0.0, 0.0]])  # both keys on one line
    carried, torn = np.array([[3.0, 6.0]]), np.array([[3.0, 5.0]])
    for V, zero in ((carried, True), (torn, False)):
        assert bool(np.allclose(V @ np.linalg.pinv(K) @ K, V)) is zero
        objective, _ = associative_memory(least_norm_memory(K, V), K, V)
        assert bool(objective < 1e-20) is zero
    # Of M = [a, b] the minimum of ((a - 3)^2 + (2a - 5)^2) / 2 is a = 13/5 by hand: 1/10.
    objective, _ = associative_memory(least_norm_memory(K, torn), K, torn)
    np.testing.assert_allclose(objective, 0.1, rtol=1e-12)


def test_e1_the_dot_objective_falls_without_end() -> None:
    """At M = c v k^T it is -c |v|^2 |k|^2."""
    k, v = np.array([1.0, 2.0, 0.0]), np.array([3.0, -1.0])
    for c in (1.0, 10.0, 1e6):
        M = c * np.outer(v, k)
        objective, gradient = associative_memory(M, k[:, None], v[:, None], reading="dot")
        assert objective == -c * 10 * 5
        np.testing.assert_array_equal(gradient, -np.outer(v, k))


def test_no_keys_give_nothing() -> None:
    for reading in READINGS:
        objective, gradient = associative_memory(
            np.ones((2, 3)), np.zeros((3, 0)), np.zeros((2, 0)), reading=reading
        )
        assert objective == 0
        np.testing.assert_array_equal(gradient, np.zeros((2, 3)))


def test_by_hand() -> None:
    M, K, V = np.array([[1.0, 2.0]]), np.array([[1.0], [1.0]]), np.array([[5.0]])
    expected = {"l2": (2.0, [[-2.0, -2.0]]), "l2_full": (4.0, [[-4.0, -4.0]]),
                "dot": (-15.0, [[-5.0, -5.0]])}  # fmt: skip
    for reading, (objective, gradient) in expected.items():
        got = associative_memory(M, K, V, reading=reading)
        assert got[0] == objective
        np.testing.assert_array_equal(got[1], gradient)


def test_a_transposed_gradient_needs_a_square_memory() -> None:
    M, K, V = drawn((2, 3, 4))
    with pytest.raises(NotApplicable, match="d_v = d_k, got 2 and 3"):
        associative_memory(M, K, V, reading="keys_on_the_left")
