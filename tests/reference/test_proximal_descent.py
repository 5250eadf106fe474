"""Eq. 5-6: the closed form against the objective it minimises, by both norms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import UnknownReading
from trueup.reference.nl import gradient_descent, proximal_descent
from trueup.reference.nl.proximal_descent import READINGS, proximal_objective

PROFILE = settings(derandomize=True, deadline=None, max_examples=30)
matrices = arrays(np.float64, (3, 4), elements=st.floats(-4.0, 4.0))
rates = st.floats(1e-2, 0.9)


def drawn(shape: tuple[int, int, int], seed: int = 0) -> Any:
    rng, (rows, columns, batch) = np.random.default_rng([seed, *shape]), shape
    return (
        rng.standard_normal((rows, columns)),
        rng.standard_normal((columns, batch)),
        rng.standard_normal((rows, batch)),
    )


@pytest.mark.parametrize("shape", [(2, 3, 1), (3, 2, 1), (5, 5, 1), (7, 4, 1)])
def test_q5_1_the_minimum_is_the_step_of_eq_4(shape: Any) -> None:
    W, X, U = drawn(shape)
    step = gradient_descent(W, X[:, 0], U[:, 0], 0.3)
    np.testing.assert_allclose(proximal_descent(W, X, U, 0.3), step, rtol=1e-14)
    np.testing.assert_allclose(
        proximal_descent(W, X, U, 0.3, reading="spectral"), step, rtol=1e-12, atol=1e-13
    )


@PROFILE
@given(W=matrices, eta=rates, seed=st.integers(0, 99))
def test_q5_2_the_objective_at_the_minimum(W: Any, eta: float, seed: int) -> None:
    """<W_t x, u> - eta/2 |u|^2 |x|^2; for a batch |U X^T|_F^2 stands for the product."""
    rng = np.random.default_rng(seed)
    X, U = rng.standard_normal((4, 1)), rng.standard_normal((3, 1))
    best = proximal_descent(W, X, U, eta)
    expected = np.sum((W @ X) * U) - eta / 2 * np.sum(U * U) * np.sum(X * X)
    np.testing.assert_allclose(
        proximal_objective(best, W, X, U, eta), expected, rtol=1e-11, atol=1e-11
    )


@PROFILE
@given(W=matrices, D=matrices, eta=rates)
def test_q5_3_any_change_raises_the_objective_by_its_square(W: Any, D: Any, eta: float) -> None:
    _, X, U = drawn((3, 4, 2))
    best = proximal_descent(W, X, U, eta)
    rise = proximal_objective(best + D, W, X, U, eta) - proximal_objective(best, W, X, U, eta)
    np.testing.assert_allclose(rise, np.sum(D * D) / (2 * eta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(2, 3, 3), (3, 2, 4), (5, 5, 5), (7, 4, 2)])
def test_the_spectral_step_is_that_of_the_singular_value_decomposition(shape: Any) -> None:
    W, X, U = drawn(shape)
    left, values, right = np.linalg.svd(U @ X.T, full_matrices=False)
    kept = values > 1e-12 * values[0]
    polar = left[:, kept] @ right[kept]
    got = proximal_descent(W, X, U, 0.3, reading="spectral")
    np.testing.assert_allclose(got, W - 0.3 * values.sum() * polar, rtol=1e-11, atol=1e-12)
    bare = proximal_descent(W, X, U, 0.3, reading="spectral_unscaled")
    np.testing.assert_allclose(bare, W - 0.3 * polar, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3, 3), (3, 2, 4), (5, 5, 5)])
def test_the_spectral_step_minimises_the_objective_of_its_norm(shape: Any) -> None:
    W, X, U = drawn(shape)
    best = proximal_descent(W, X, U, 0.3, reading="spectral")
    least = proximal_objective(best, W, X, U, 0.3, reading="spectral")
    other = proximal_descent(W, X, U, 0.3)
    assert proximal_objective(other, W, X, U, 0.3, reading="spectral") > least
    rng = np.random.default_rng(2)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(20):
            moved = best + scale * rng.standard_normal(best.shape)
            assert proximal_objective(moved, W, X, U, 0.3, reading="spectral") > least - 1e-12


def test_e3_the_two_norms_part_at_rank_two() -> None:
    W, X, U = np.zeros((2, 2)), np.eye(2), np.diag([1.0, 2.0])
    np.testing.assert_array_equal(proximal_descent(W, X, U, 1.0), -np.diag([1.0, 2.0]))
    np.testing.assert_allclose(
        proximal_descent(W, X, U, 1.0, reading="spectral"), -3 * np.eye(2), atol=1e-15
    )


@pytest.mark.parametrize("reading", READINGS)
def test_no_surprise_and_a_vanishing_rate_leave_the_weights(reading: str) -> None:
    W, X, U = drawn((3, 4, 2))
    assert (proximal_descent(W, X, 0 * U, 0.3, reading=reading) == W).all()
    np.testing.assert_allclose(
        proximal_descent(W, X, U, 1e-12, reading=reading), W, rtol=1e-9, atol=1e-9
    )


def test_a_batch_is_its_samples_one_after_another_at_frozen_surprises() -> None:
    W, X, U = drawn((3, 4, 5))
    steps = W
    for b in range(5):
        steps = gradient_descent(steps, X[:, b], U[:, b], 0.2)
    np.testing.assert_allclose(proximal_descent(W, X, U, 0.2), steps, rtol=1e-12)
    values = np.linalg.svd(proximal_descent(W, X[:, :2], U[:, :2], 0.2) - W, compute_uv=False)
    assert np.count_nonzero(values > 8 * 2.0**-53 * np.linalg.norm(W)) == 2  # Q3.2 for a batch


def test_the_objective_knows_the_readings_only() -> None:
    W, X, U = drawn((2, 3, 1))
    with pytest.raises(UnknownReading, match="frobenius, spectral"):
        proximal_objective(W, W, X, U, 0.1, reading="nuclear")
