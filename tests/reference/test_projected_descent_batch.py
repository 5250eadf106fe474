"""The batch of Eq. 27-29 against rationals, torch autograd, least squares and single samples."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference.nl import projected_descent, projected_descent_batch

READINGS = projected_descent_batch.__equation__.readings  # type: ignore[attr-defined]
HALF, FULL = "printed_objective_half", "printed_objective_full"
SHAPES = [(1, 3, 2), (3, 2, 3), (4, 5, 5), (6, 4, 7), (5, 1, 4), (2, 4, 1)]  # B, d_out, d_in
ETA = 0.07


def sample(shape: tuple[int, int, int], seed: int = 1) -> tuple[Any, Any, Any]:
    size, d_out, d_in = shape
    rng = np.random.default_rng(seed)
    W, X, U = (rng.standard_normal(s) for s in ((d_out, d_in), (size, d_in), (size, d_out)))
    return W, X, U


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reading", ["derived", "derived_mean", HALF, FULL])
def test_one_step_on_the_summed_objective_by_autograd(
    shape: tuple[int, int, int], reading: str
) -> None:
    """Third source: torch differentiates sum or mean over samples of |W x_b + u_b|^2."""
    W, X, U = sample(shape)
    leaf = torch.tensor(W, requires_grad=True)
    sign = -1.0 if reading in (HALF, FULL) else 1.0
    loss = ((torch.tensor(X) @ leaf.T + sign * torch.tensor(U)) ** 2).sum()
    loss = loss * (1.0 if reading == FULL else 0.5)
    (loss / len(X) if reading == "derived_mean" else loss).backward()
    assert leaf.grad is not None
    got = projected_descent_batch(W, X, U, ETA, reading=reading)
    np.testing.assert_allclose(got, W - ETA * leaf.grad.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reading", ["prox", "prox_mean"])
def test_prox_solves_the_stacked_least_squares(shape: tuple[int, int, int], reading: str) -> None:
    """Third source: |W' x_b + u_b|^2 and |W' - W|^2 / eta stacked and given to lstsq."""
    W, X, U = sample(shape)
    rate = ETA / len(X) if reading == "prox_mean" else ETA
    system = np.vstack([X, np.eye(X.shape[1]) / np.sqrt(rate)])
    right = np.vstack([-U, W.T / np.sqrt(rate)])
    want = np.linalg.lstsq(system, right)[0].T
    got = projected_descent_batch(W, X, U, ETA, reading=reading)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("reading", ["derived", "literal", "derived_mean", HALF, FULL])
def test_element_by_element_in_exact_rationals(reading: str) -> None:
    """Third source: sums by index over rationals."""
    rng = np.random.default_rng(4)
    W, X, U = (
        np.vectorize(Fraction, otypes=[object])(rng.integers(-3, 4, shape))
        for shape in ((2, 3), (4, 3), (4, 2))
    )
    eta = Fraction(1, 7)
    got: Any = projected_descent_batch(W, X, U, eta, reading=reading)  # type: ignore[arg-type]
    for i in range(2):
        for j in range(3):
            decay = sum(X[b, j] * sum(W[i, k] * X[b, k] for k in range(3)) for b in range(4))
            gradient = sum(U[b, i] * X[b, j] for b in range(4))
            want = {
                "derived": W[i, j] - eta * decay - eta * gradient,
                "derived_mean": W[i, j] - (eta * decay + eta * gradient) / 4,
                "literal": W[i, j] - decay - eta * gradient,
                HALF: W[i, j] - eta * decay + eta * gradient,
                FULL: W[i, j] - 2 * eta * decay + 2 * eta * gradient,
            }[reading]
            assert got[i, j] == want


@pytest.mark.parametrize("reading", READINGS)
def test_one_sample_is_the_single_equation(reading: str) -> None:
    W, X, U = sample((1, 3, 4))
    single = projected_descent(W, X[0], U[0], ETA, reading=reading.removesuffix("_mean"))
    got = projected_descent_batch(W, X, U, ETA, reading=reading)
    np.testing.assert_allclose(got, single, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("reading", READINGS)
def test_the_order_of_samples_does_not_matter_except_one_after_the_other(reading: str) -> None:
    W, X, U = sample((5, 3, 4))
    swap = [3, 1, 4, 0, 2]
    one = projected_descent_batch(W, X, U, ETA, reading=reading)
    two = projected_descent_batch(W, X[swap], U[swap], ETA, reading=reading)
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-13)
    apart = [
        projected_descent_batch(W, x, u, ETA, reading="sequential")
        for x, u in ((X, U), (X[swap], U[swap]))
    ]
    assert np.max(np.abs(apart[0] - apart[1])) > 1e-3


@pytest.mark.parametrize("reverse", [False, True])
def test_sequential_is_the_loop_over_single_samples(reverse: bool) -> None:
    W, X, U = sample((5, 3, 4))
    want = W
    for b in reversed(range(5)) if reverse else range(5):
        want = want @ (np.eye(4) - ETA * np.outer(X[b], X[b])) - ETA * np.outer(U[b], X[b])
    name = "sequential_reversed" if reverse else "sequential"
    got = projected_descent_batch(W, X, U, ETA, reading=name)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_one_step_and_token_loop_differ_at_second_order_in_eta() -> None:
    W, X, U = sample((5, 3, 4))
    gaps = []
    for eta in (1e-2, 1e-3):
        loop = projected_descent_batch(W, X, U, eta, reading="sequential")
        gaps.append(np.max(np.abs(projected_descent_batch(W, X, U, eta) - loop)))
    assert 70.0 < gaps[0] / gaps[1] < 140.0


def test_sum_and_mean_differ_by_the_rate_b_times() -> None:
    W, X, U = sample((4, 3, 5))
    for one, two in (("derived", "derived_mean"), ("prox", "prox_mean")):
        summed = projected_descent_batch(W, X, U, ETA, reading=one)
        averaged = projected_descent_batch(W, X, U, 4 * ETA, reading=two)
        np.testing.assert_allclose(summed, averaged, rtol=1e-13)


def test_e19_mean_context_is_neither_product_nor_average() -> None:
    """x_1 = e_1, x_2 = e_2: three different decay factors."""
    identity, none = np.eye(2), np.zeros((2, 2))
    context = projected_descent(
        identity, np.array([0.5, 0.5]), np.zeros(2), 0.1, reading="normalized"
    )
    np.testing.assert_allclose(context, [[0.5, -0.5], [-0.5, 0.5]], atol=1e-15)
    average = projected_descent_batch(identity, identity, none, 1.0, reading="derived_mean")
    np.testing.assert_allclose(average, 0.5 * identity, atol=1e-15)
    product = projected_descent_batch(identity, identity, none, 1.0, reading="sequential")
    np.testing.assert_allclose(product, 0.0, atol=1e-15)


def test_no_sample_moves_nothing() -> None:
    W, X, U = np.ones((2, 3)), np.zeros((0, 3)), np.zeros((0, 2))
    for reading in ("derived", "prox", HALF):
        np.testing.assert_array_equal(projected_descent_batch(W, X, U, ETA, reading=reading), W)
