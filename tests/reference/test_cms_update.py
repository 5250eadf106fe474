"""Eq. 31 for one chunk: witnesses of its errata, exact properties, autograd, finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import NotApplicable
from trueup.reference.nl import cms_level, cms_level_update, cms_update

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
COUNTS = np.zeros(4)


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def after_each_token(reading: str, *, token_0: bool = False) -> list[float]:
    """f = 1, eta = 1, C = 2, theta_0 = 0: theta after tokens 0 .. 5."""
    theta, rate, one = np.zeros(1), np.ones(2), np.ones((2, 1))
    seen = []
    for i in range(6):
        if i == 0 and token_0:  # 0 mod C = 0: the window -2 .. 0 holds token 0 alone
            theta = cms_update(theta, np.ones((1, 1)), np.ones(1), np.ones(1))
        elif i > 0 and i % 2 == 0:
            before = np.array([1.0 if i > 2 or token_0 else 0.0])
            theta = cms_update(theta, one, rate, np.ones(2), before, 1.0, reading=reading)
        seen.append(float(theta[0]))
    return seen


def test_e23_values_after_every_token() -> None:
    assert after_each_token("C_terms") == [0, 0, -2, -2, -4, -4]
    assert after_each_token("literal") == [0, 0, -2, -2, -5, -5]
    assert after_each_token("literal", token_0=True) == [-1, -1, -4, -4, -7, -7]


@pytest.mark.parametrize(
    ("reading", "counts"),
    [("C_terms", [1, 1, 1, 1, 1, 1, 1, 1]), ("literal", [1, 1, 1, 2, 1, 1, 1, 1])],
)
def test_q31_1_each_token_contributes_once(reading: str, counts: list[int]) -> None:
    """Token t's error term is the t-th unit vector: theta counts contributions (E23)."""
    theta, terms = np.zeros(8), np.eye(8)
    for last in (4, 8):
        before = terms[last - 5] if last > 4 else np.zeros(8)
        chunk = terms[last - 4 : last]
        theta = cms_update(theta, chunk, np.ones(4), np.ones(4), before, 1.0, reading=reading)
    np.testing.assert_array_equal(-theta, counts)


def test_e24_order_of_sum_and_f() -> None:
    """f clips to +-1, which is sign on (1, 1, -3): 1 when f comes first, -1 when the sum does."""
    g, rate, all_active = np.array([[1.0], [1.0], [-3.0]]), np.ones(3), np.ones(3)
    step = {
        reading: -cms_update(np.zeros(1), g, rate, all_active, limit=1.0, reading=reading)[0]
        for reading in ("sum_of_f", "f_of_sum")
    }
    assert step == {"sum_of_f": 1.0, "f_of_sum": -1.0}
    assert np.sum(np.sign(g)) == step["sum_of_f"]
    assert np.sign(np.sum(g)) == step["f_of_sum"]


def test_e24_a_step_that_is_negative_already_climbs() -> None:
    """L = theta^2 / 2 at theta = 1, eta = 0.1, C = 1."""
    theta, g = np.ones(1), np.ones((1, 1))
    rate, active = np.full(1, 0.1), np.ones(1)
    assert cms_update(theta, g, rate, active)[0] == pytest.approx(0.9)
    assert cms_update(theta, g, rate, active, reading="ascent")[0] == pytest.approx(1.1)


@pytest.mark.parametrize("constant", [True, False])
def test_q31_2_one_descent_step_on_the_chunks_weighted_loss(constant: bool) -> None:
    """Third source: torch differentiates sum_t eta_t l_t at frozen parameters."""
    C, n = 5, 3
    theta, x = draw(n), draw(C, n, seed=1)
    eta = np.full(C, 0.1) if constant else np.random.default_rng(3).uniform(0.01, 0.3, C)
    leaf = torch.tensor(theta, requires_grad=True)
    rows = torch.tensor(x)
    (torch.tensor(eta) * torch.tanh(rows @ leaf) ** 2).sum().backward()
    value = np.tanh(x @ theta)
    g = (2 * value * (1 - value**2))[:, None] * x
    assert leaf.grad is not None
    want = theta - leaf.grad.numpy()
    np.testing.assert_allclose(cms_update(theta, g, eta, np.ones(C)), want, rtol=1e-12)


@PROFILE
@given(C=st.integers(1, 6), n=st.integers(1, 4), seed=st.integers(0, 99))
def test_q31_3_mean_is_the_sum_with_a_rate_of_eta_over_c(C: int, n: int, seed: int) -> None:
    theta, g = draw(n, seed=seed), draw(C, n, seed=seed + 1)
    rate, active = np.full(C, 0.3), np.ones(C)
    mean = cms_update(theta, g, rate, active, reading="C_terms_mean")
    np.testing.assert_allclose(mean, cms_update(theta, g, rate / C, active), rtol=1e-13)


def test_mean_divides_by_the_active_tokens() -> None:
    g, rate = np.array([[3.0], [5.0], [7.0]]), np.ones(3)
    mask = np.array([1.0, 0.0, 1.0])
    got = cms_update(np.zeros(1), g, rate, mask, reading="C_terms_mean")
    assert got[0] == -5.0


@pytest.mark.parametrize("reading", ["C_terms", "C_terms_mean", "sum_of_f", "f_of_sum"])
def test_a_fully_masked_chunk_changes_no_bit(reading: str) -> None:
    theta = np.array([1.5, -0.0, 1e-310, np.inf])
    g = np.full((3, 4), np.nan)  # what a masked token holds goes nowhere
    got = cms_update(theta, g, np.ones(3), np.zeros(3), limit=1.0, reading=reading)
    assert got.tobytes() == theta.tobytes()


@pytest.mark.parametrize("reading", ["C_terms_mean", "sum_of_f", "f_of_sum"])
def test_readings_coincide_at_one_token(reading: str) -> None:
    theta, g = draw(4), 0.1 * draw(1, 4, seed=1)
    one, rate = np.ones(1), np.full(1, 0.2)
    got = cms_update(theta, g, rate, one, limit=5.0, reading=reading)
    np.testing.assert_allclose(got, cms_update(theta, g, rate, one), rtol=1e-15)


def test_readings_that_need_an_input_say_so() -> None:
    theta, g, rate, active = draw(2), draw(3, 2), np.ones(3), np.ones(3)
    for reading, needs in (("literal", "g_before"), ("sum_of_f", "limit"), ("f_of_sum", "limit")):
        with pytest.raises(NotApplicable, match=needs):
            cms_update(theta, g, rate, active, reading=reading)


def level(C: int = 5, d: int = 4, h: int = 6) -> tuple[Any, ...]:
    return draw(h, d), draw(d, h, seed=1), draw(C, d, seed=2), draw(C, d, seed=3)


@pytest.mark.parametrize("reading", ["sum", "mean"])
@pytest.mark.parametrize("mask", [[1, 1, 1, 1, 1], [1, 0, 1, 0, 0], [0, 0, 0, 0, 1]])
def test_the_levels_gradients_against_autograd(reading: str, mask: list[int]) -> None:
    """delta = dL/dy, so L = sum over active tokens of <delta_t, y_t> has the same gradients."""
    W1, W2, x, delta = level()
    leaves = [torch.tensor(W, requires_grad=True) for W in (W1, W2)]
    rows, active = torch.tensor(x), torch.tensor(mask, dtype=torch.float64)
    y = rows + torch.nn.functional.silu(rows @ leaves[0].T) @ leaves[1].T
    loss = (active[:, None] * torch.tensor(delta) * y).sum()
    (loss / sum(mask) if reading == "mean" else loss).backward()
    got = cms_level_update(W1, W2, x, delta, np.array(mask), 0.1, COUNTS, reading=reading)
    for new, old, leaf in zip(got, (W1, W2), leaves, strict=False):
        assert leaf.grad is not None
        np.testing.assert_allclose(new, old - 0.1 * leaf.grad.numpy(), rtol=1e-12)


def test_the_levels_gradients_against_finite_differences() -> None:
    W1, W2, x, delta = level(C=3, d=3, h=2)
    new1, new2, _ = cms_level_update(W1, W2, x, delta, np.ones(3), 1.0, COUNTS)
    for which, old, new in ((0, W1, new1), (1, W2, new2)):
        for at in np.ndindex(old.shape):
            step = np.zeros_like(old)
            step[at] = 1e-6
            sides = []
            for sign in (1.0, -1.0):
                moved = [W1, W2]
                moved[which] = old + sign * step
                sides.append(float(np.sum(delta * cms_level(x, *moved))))
            assert (old - new)[at] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-8)


def test_the_level_update_is_eq_31_on_its_gradients() -> None:
    """The general equation with per-token gradients, parameters flattened."""
    W1, W2, x, delta = level()
    mask, rate = np.array([1, 0, 1, 1, 0]), 0.1
    terms = []
    for token in range(5):
        old = cms_level_update(W1, W2, x[[token]], delta[[token]], np.ones(1), 1.0, COUNTS)
        terms.append(np.concatenate([(W1 - old[0]).ravel(), (W2 - old[1]).ravel()]))
    theta = np.concatenate([W1.ravel(), W2.ravel()])
    want = cms_update(theta, np.array(terms), np.full(5, rate), mask)
    got = cms_level_update(W1, W2, x, delta, mask, rate, COUNTS)
    np.testing.assert_allclose(np.concatenate([got[0].ravel(), got[1].ravel()]), want, rtol=1e-12)


def test_a_fully_masked_chunk_of_a_level_changes_no_bit_and_is_counted_apart() -> None:
    W1, W2, x, delta = level()
    W1[0, 0], W2[0, 0], x[1], delta[2] = -0.0, 1e-310, np.nan, np.inf
    counts = np.array([3, 15, 9, 5])
    new1, new2, counted = cms_level_update(W1, W2, x, delta, np.zeros(5), 0.1, counts)
    assert new1.tobytes() == W1.tobytes()
    assert new2.tobytes() == W2.tobytes()
    np.testing.assert_array_equal(counted, [3, 15, 9, 10])


def test_counters_of_an_update() -> None:
    W1, W2, x, delta = level()
    counts = np.array([3, 15, 9, 5])
    counted = cms_level_update(W1, W2, x, delta, np.array([1, 0, 0, 1, 0]), 0.1, counts)[2]
    assert counted.dtype.kind == "i"
    np.testing.assert_array_equal(counted, [4, 20, 11, 5])


def test_a_zero_error_is_an_update_of_size_zero_not_a_mask() -> None:
    W1, W2, x, delta = level()
    new1, new2, counted = cms_level_update(W1, W2, x, 0 * delta, np.ones(5), 0.1, COUNTS)
    np.testing.assert_array_equal(new1, W1)
    np.testing.assert_array_equal(new2, W2)
    np.testing.assert_array_equal(counted, [1, 5, 5, 0])


def test_u16_the_surrogates_factor_doubles_the_update() -> None:
    W1, W2, x, delta = level()
    right = cms_level_update(W1, W2, x, delta, np.ones(5), 0.1, COUNTS)
    wrong = cms_level_update(W1, W2, x, delta, np.ones(5), 0.1, COUNTS, reading="doubled")
    np.testing.assert_allclose(wrong[0] - W1, 2 * (right[0] - W1), rtol=1e-12)
    at_double_rate = cms_level_update(W1, W2, x, delta, np.ones(5), 0.2, COUNTS)
    np.testing.assert_allclose(wrong[1], at_double_rate[1], rtol=1e-12)


def test_u27_the_width_in_the_mean_changes_the_rate_by_the_width() -> None:
    W1, W2, x, delta = level()
    right = cms_level_update(W1, W2, x, delta, np.ones(5), 0.1, COUNTS, reading="mean")
    wrong = cms_level_update(W1, W2, x, delta, np.ones(5), 0.1, COUNTS, reading="width_mean")
    np.testing.assert_allclose(4 * (wrong[0] - W1), right[0] - W1, rtol=1e-10)
