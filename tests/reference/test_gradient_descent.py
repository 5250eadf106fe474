"""Eq. 2-4, 25-26 against autograd, exact rationals, and the rank of what a sample may change."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import NotApplicable
from trueup.reference.nl import gradient_descent

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
ROUNDING = 2.0**-53
matrices = arrays(np.float64, (3, 4), elements=st.floats(-4.0, 4.0))
inputs = arrays(np.float64, 4, elements=st.floats(-4.0, 4.0))
surprises = arrays(np.float64, 3, elements=st.floats(-4.0, 4.0))
rates = st.floats(1e-3, 0.9)


def exact(rows: Any) -> np.ndarray:
    read = np.vectorize(lambda entry: Fraction(str(entry)), otypes=[object])
    return np.asarray(read(np.array(rows)))


def test_golden_step_in_exact_rationals() -> None:
    W, x, v = exact([[1, 2, -1], [0, 1, 1]]), exact([1, -1, 2]), exact([-4, 3])
    u = W @ x - v  # squared loss: (1, -2)
    assert list(u) == [1, -2]
    W_next = gradient_descent(W, x, u, Fraction("0.1"))  # type: ignore[arg-type]
    assert (W_next == exact([[".9", "2.1", "-1.2"], [".2", ".8", "1.4"]])).all()


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4), (1, 4), (4, 1)])
def test_q3_1_the_outer_product_is_the_gradient_of_autograd(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape)
    W, x, v = rng.standard_normal(shape), rng.standard_normal(shape[1]), rng.random(shape[0])
    weights = torch.tensor(W, requires_grad=True)
    y = weights @ torch.tensor(x)
    y.retain_grad()
    torch.nn.functional.huber_loss(y.tanh(), torch.tensor(v), reduction="sum").backward()
    assert weights.grad is not None
    assert y.grad is not None
    got = gradient_descent(W, x, y.grad.numpy(), 0.3)
    np.testing.assert_allclose(got, W - 0.3 * weights.grad.numpy(), rtol=1e-13, atol=1e-14)


@PROFILE
@given(W=matrices, x=inputs, u=surprises, eta=rates)
def test_q3_2_one_sample_changes_rank_one(W: Any, x: Any, u: Any, eta: float) -> None:
    change = gradient_descent(W, x, u, eta) - W
    values = np.linalg.svd(change, compute_uv=False)
    limit = 8 * ROUNDING * (np.linalg.norm(W) + np.linalg.norm(change))
    assert np.count_nonzero(values > limit) <= 1


@PROFILE
@given(W=matrices, x=inputs, u=surprises, z=inputs, eta=rates)
def test_q3_3_nothing_changes_across_the_input(W: Any, x: Any, u: Any, z: Any, eta: float) -> None:
    length = float(x @ x)
    z = z - x * (x @ z) / length if length > 1e-6 else z
    W_next = gradient_descent(W, x, u, eta)
    scale = np.linalg.norm(W) + np.linalg.norm(W_next)
    off = abs(float(x @ z)) * eta * np.linalg.norm(u)  # what z itself keeps of x
    limit = 8 * ROUNDING * scale * np.linalg.norm(z) + 2 * off + 1e-300
    assert np.linalg.norm((W_next - W) @ z) <= limit


@PROFILE
@given(W=matrices, x=inputs, u=surprises, eta=rates)
def test_q3_4_the_output_moves_against_the_surprise(W: Any, x: Any, u: Any, eta: float) -> None:
    got = gradient_descent(W, x, u, eta) @ x
    np.testing.assert_allclose(got, W @ x - eta * (x @ x) * u, rtol=1e-12, atol=1e-11)


@PROFILE
@given(W=matrices, x=inputs, u=surprises)
def test_no_surprise_no_input_and_no_rate_leave_the_weights(W: Any, x: Any, u: Any) -> None:
    for args in ((x, 0 * u, 0.3), (0 * x, u, 0.3), (x, u, 0.0)):
        assert (gradient_descent(W, *args) == W).all()


def test_a_batch_changes_no_more_rank_than_it_has_samples() -> None:
    rng = np.random.default_rng(4)
    W = weights = rng.standard_normal((6, 5))
    for count in range(1, 4):
        weights = gradient_descent(weights, rng.standard_normal(5), rng.standard_normal(6), 0.2)
        values = np.linalg.svd(weights - W, compute_uv=False)
        assert np.count_nonzero(values > 8 * ROUNDING * np.linalg.norm(W)) == count


def test_q26_1_and_e25_the_sample_index_shifts_the_data_by_one() -> None:
    """Eq. 3 takes x_{t+1} at W_t, Eq. 25 x_t at W_t: the same weights on the shifted stream."""
    rng = np.random.default_rng(5)
    stream = [(rng.standard_normal(3), rng.standard_normal(2)) for _ in range(5)]
    by_3 = by_25 = rng.standard_normal((2, 3))
    for t in range(4):
        x, v = stream[t + 1]
        by_3 = gradient_descent(by_3, x, by_3 @ x - v, 0.1)
    shifted = stream[1:]
    for t in range(4):
        x, v = shifted[t]
        by_25 = gradient_descent(by_25, x, by_25 @ x - v, 0.1)
    np.testing.assert_array_equal(by_3, by_25)


def test_q26_1_one_gradient_step_on_the_product_with_u_frozen() -> None:
    rng = np.random.default_rng(6)
    W, x, u = rng.standard_normal((2, 3)), rng.standard_normal(3), rng.standard_normal(2)
    weights = torch.tensor(W, requires_grad=True)
    ((weights @ torch.tensor(x)) @ torch.tensor(u)).backward()
    assert weights.grad is not None
    np.testing.assert_allclose(
        gradient_descent(W, x, u, 0.1), W - 0.1 * weights.grad.numpy(), rtol=1e-14
    )


def test_e4_the_literal_input_is_that_of_the_sample_before() -> None:
    W, u, e1, e2 = np.zeros((1, 2)), np.ones(1), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    np.testing.assert_array_equal(
        gradient_descent(W, e2, u, 1.0, x_prev=e1, reading="stale_input"), [[-1, 0]]
    )
    np.testing.assert_array_equal(gradient_descent(W, e2, u, 1.0), [[0, -1]])
    with pytest.raises(NotApplicable, match="x_prev"):
        gradient_descent(W, e2, u, 1.0, reading="stale_input")


def test_e2_the_outer_product_has_the_shape_of_the_weights() -> None:
    W, x, u = np.zeros((2, 3)), np.arange(3.0), np.arange(2.0)
    assert gradient_descent(W, x, u, 1.0).shape == (2, 3)
    with pytest.raises(NotApplicable, match="d_out = d_in, got 2 and 3"):
        gradient_descent(W, x, u, 1.0, reading="outer_swapped")
