"""Scalar transforms, the order book, rewards: goldens, mpmath, complex steps and invariants."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trueup.reference.dqn import (
    adaptive_entropy,
    differential_sharpe,
    hold_quality,
    order_book,
    percentile_scaling,
    sharpe,
    symexp,
    symexp_backward,
    symlog,
    symlog_backward,
    tanh_scaling,
)
from trueup.reference.dqn.hold_quality import PositionMemos

PROFILE = settings(derandomize=True, deadline=None, max_examples=200)
real = st.floats(-1e6, 1e6)
U = 2.0**-53

# ---- symmetric logarithm


@PROFILE
@given(x=st.one_of(real, st.floats(-1e-6, 1e-6)))
def test_symlog_in_fifty_digits(x: float) -> None:
    with mpmath.workdps(50):
        want = mpmath.sign(x) * mpmath.log1p(abs(mpmath.mpf(x)))
    assert float(symlog(np.array([x]))[0]) == pytest.approx(float(want), rel=4e-16, abs=1e-320)


@PROFILE
@given(x=st.floats(-600.0, 600.0))
def test_symexp_in_fifty_digits(x: float) -> None:
    with mpmath.workdps(50):
        want = mpmath.sign(x) * mpmath.expm1(abs(mpmath.mpf(x)))
    assert float(symexp(np.array([x]))[0]) == pytest.approx(float(want), rel=4e-16, abs=1e-320)


@PROFILE
@given(x=real)
def test_symlog_is_odd_and_symexp_brings_it_back(x: float) -> None:
    y = symlog(np.array([x]))
    np.testing.assert_array_equal(symlog(np.array([-x])), -y)
    back = float(symexp(y)[0])
    assert abs(back - x) <= (abs(float(y[0])) + 3) * 2 * U * abs(x)


@PROFILE
@given(a=real, b=real)
def test_symlog_is_monotone(a: float, b: float) -> None:
    y = symlog(np.sort(np.array([a, b])))
    assert y[0] <= y[1]


def test_float32_needs_log1p() -> None:
    """ln(1 + 1e-8) formed with a float32 sum is 0."""
    one = np.float32(1.0) + np.float32(1e-8)
    assert np.log(one) == 0.0
    assert np.log1p(np.float32(1e-8)) == np.float32(1e-8)


@pytest.mark.parametrize(
    ("forward", "backward"), [(symlog, symlog_backward), (symexp, symexp_backward)]
)
def test_derivatives_against_autograd(forward: object, backward: object) -> None:
    x = torch.linspace(-4.0, 4.0, 33, dtype=torch.float64) + 0.01
    x.requires_grad_(True)
    log = forward is symlog
    size = x.abs()
    y = x.sign() * (size.log1p() if log else size.expm1())
    dy = torch.linspace(1.0, 2.0, 33, dtype=torch.float64)
    (want,) = torch.autograd.grad(y, x, dy)
    function = symlog_backward if log else symexp_backward
    got = function(x.detach().numpy(), dy.numpy())
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-14)
    np.testing.assert_array_equal(function(np.zeros(1), np.ones(1)), [1.0])  # slope 1 at 0


# ---- percentile scaling, tanh, entropy


def test_the_range_is_that_between_the_interpolated_percentiles() -> None:
    """The programme's golden: 0.05 of [3, -1, 2, 10, 0, 7] is -0.75, 0.95 is 9.25."""
    returns = np.array([3.0, -1.0, 2.0, 10.0, 0.0, 7.0])
    scaled, scale, count = percentile_scaling(returns, np.zeros(1), np.zeros(1))
    assert scale[0] == pytest.approx(10.0, rel=1e-15)
    assert count[0] == 1.0
    np.testing.assert_allclose(scaled, returns / 10.0, rtol=1e-14)


@PROFILE
@given(
    returns=hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-50, 50)),
    scale=st.floats(0.0, 20.0),
    rate=st.floats(0.0, 1.0),
)
def test_scaling_against_numpy_and_never_up(returns: np.ndarray, scale: float, rate: float) -> None:
    scaled, new, _ = percentile_scaling(returns, np.full(1, scale), np.ones(1), rate)
    low, high = np.quantile(returns, [0.05, 0.95])
    assert new[0] == pytest.approx((1 - rate) * scale + rate * (high - low), rel=1e-12, abs=1e-12)
    assert (np.abs(scaled) <= np.abs(returns)).all()


def test_tanh_against_mpmath() -> None:
    x = np.array([-3.0, -1e-9, 0.25, 40.0])
    want = [float(mpmath.tanh(mpmath.mpf(v) / 2)) for v in x]
    np.testing.assert_allclose(tanh_scaling(x, 2.0), want, rtol=1e-15)


@PROFILE
@given(
    entropy=hnp.arrays(np.float64, 4, elements=st.floats(0.0, 1.4)),
    target=hnp.arrays(np.float64, 4, elements=st.floats(0.0, 1.4)),
)
def test_entropy_below_the_target_raises_the_weight(
    entropy: np.ndarray, target: np.ndarray
) -> None:
    moved = adaptive_entropy(np.zeros(4), entropy, target, 0.1)
    np.testing.assert_array_equal(np.sign(moved), np.sign(0.1 * (target - entropy)))


# ---- order book

TICK = np.full(1, 0.25)
BID, ASK = 99.75 - 0.25 * np.arange(10)[None], 100.25 + 0.25 * np.arange(10)[None]
BID_SIZE = np.array([[10.0, 8, 6, 5, 4, 3, 2, 2, 1, 1]])
ASK_SIZE = np.array([[1.0, 1, 2, 2, 3, 4, 5, 6, 8, 10]])


def test_golden_order_book() -> None:
    signal, low, high, crossed = order_book(BID, BID_SIZE, ASK, ASK_SIZE, TICK)
    assert low[0] == pytest.approx(3.595238, abs=5e-7)
    assert high[0] == pytest.approx(7.404762, abs=5e-7)
    assert signal[0] == pytest.approx(0.34632035, abs=5e-9)
    assert crossed[0] == 0.0


sizes = hnp.arrays(np.float64, (1, 10), elements=st.integers(0, 50).map(float))


@PROFILE
@given(bid_size=sizes, ask_size=sizes, shift=st.integers(-200, 200), factor=st.integers(1, 9))
def test_invariants_of_the_signal(
    bid_size: np.ndarray, ask_size: np.ndarray, shift: int, factor: int
) -> None:
    signal, low, high, _ = order_book(BID, bid_size, ASK, ask_size, TICK)
    assert -1.0 <= signal[0] <= 1.0
    swapped, *_ = order_book(200.0 - ASK, ask_size, 200.0 - BID, bid_size, TICK)
    np.testing.assert_array_equal(swapped, -signal)
    moved = order_book(BID + 0.25 * shift, bid_size, ASK + 0.25 * shift, ask_size, TICK)
    np.testing.assert_array_equal(moved[:3], (signal, low, high))
    scaled = order_book(BID, factor * bid_size, ASK, factor * ask_size, TICK)
    np.testing.assert_allclose(scaled[:3], (signal, low, high), rtol=1e-13, atol=1e-15)


def test_empty_sides_and_crossed_books() -> None:
    none = np.zeros((1, 10))
    signal, low, high, _ = order_book(BID, none, ASK, none, TICK)
    assert (signal[0], low[0], high[0]) == (0.0, 10.0, 10.0)
    flat = np.full((1, 10), 100.0)
    signal, low, high, crossed = order_book(flat, BID_SIZE, flat, ASK_SIZE, TICK)
    assert (signal[0], low[0], high[0], crossed[0]) == (0.0, 0.0, 0.0, 1.0)


# ---- differential Sharpe


def test_golden_differential_sharpe() -> None:
    one = [np.full(1, x) for x in (0.02, 0.01, 0.0009, 50.0)]
    D, A, B = differential_sharpe(*one, 0.01, 10.0)
    assert D[0] == pytest.approx(0.508232998977831, rel=1e-14)
    assert A[0] == pytest.approx(0.0101, rel=1e-14)
    assert B[0] == pytest.approx(0.0009 + 0.01 * (0.0004 - 0.0009), rel=1e-14)


moments = st.tuples(
    st.floats(-0.5, 0.5), st.floats(-0.3, 0.3), st.floats(0.01, 0.5)
)  # return, mean, variance


@PROFILE
@given(case=moments)
def test_it_is_the_derivative_of_the_ratio_by_the_rate(case: tuple[float, float, float]) -> None:
    """A complex step in eta on A / sqrt(B - A^2)."""
    R, A, variance = case
    B = A * A + variance
    eta = 1e-30j
    a, b = A + eta * (R - A), B + eta * (R * R - B)
    want = (a / (b - a * a) ** 0.5).imag / 1e-30
    ones = [np.full(1, x) for x in (R, A, B, 50.0)]
    got = float(differential_sharpe(*ones, 0.01, 10.0)[0][0])
    terms = (B * abs(R - A) + abs(A) * (R * R + B) / 2) / variance**1.5
    bound = 3 * U * B / variance * abs(got) + 4 * U * terms
    assert abs(got - want) <= 4 * bound + 1e-300


@PROFILE
@given(case=moments)
def test_its_derivative_by_the_return(case: tuple[float, float, float]) -> None:
    """dD/dR = (B - A R) / (B - A^2)^(3/2), by autograd on the printed form."""
    R, A, variance = case
    B = A * A + variance
    r = torch.tensor(R, dtype=torch.float64, requires_grad=True)
    D = (B * (r - A) - A * (r * r - B) / 2) / variance**1.5
    (slope,) = torch.autograd.grad(D, r)
    assert float(slope) == pytest.approx((B - A * R) / variance**1.5, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("B", "step"), [pytest.param(0.25, 50.0, id="floor"), pytest.param(0.4, 3.0, id="warm-up")]
)
def test_no_reward_but_moving_moments(B: float, step: float) -> None:
    ones = [np.full(1, x) for x in (1.5, 0.5, B, step)]
    D, A_next, B_next = differential_sharpe(*ones, 0.1, 10.0)
    assert D[0] == 0.0
    assert A_next[0] == pytest.approx(0.6)
    assert B_next[0] == pytest.approx(B + 0.1 * (2.25 - B))


def test_sharpe_against_the_statistics_of_the_standard_library() -> None:
    import statistics

    r = [0.01, -0.02, 0.015, 0.003, -0.001]
    want = statistics.mean(r) / statistics.stdev(r) * math.sqrt(252.0)
    assert float(sharpe(np.array(r), 252.0)[0]) == pytest.approx(want, rel=1e-13)
    np.testing.assert_array_equal(sharpe(np.full(4, 0.25), 252.0), [0.0])
    np.testing.assert_array_equal(sharpe(np.full(1, 0.25), 252.0), [0.0])


# ---- holding


def test_quality_of_holding_by_hand() -> None:
    pnl = np.array([[0.0, 4.0, -1.0, 3.0], [0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, -3.0], [1.0] * 4])
    np.testing.assert_allclose(hold_quality(pnl, 0.5), [0.3, 0.5, -0.5, 0.0], rtol=1e-15)


@PROFILE
@given(
    pnl=hnp.arrays(np.float64, (2, 6), elements=st.integers(-40, 40).map(float)),
    shift=st.integers(-50, 50),
    power=st.integers(-3, 3),
)
def test_quality_is_bounded_and_knows_no_level_nor_scale(
    pnl: np.ndarray, shift: int, power: int
) -> None:
    reward = hold_quality(pnl, 0.25)
    assert (np.abs(reward) <= 0.25).all()
    np.testing.assert_array_equal(hold_quality(2.0**power * (pnl + shift), 0.25), reward)


def test_memos_are_reset_at_the_exit_and_at_an_entry() -> None:
    memos = PositionMemos()
    memos.enter(0.7)
    for bar, (pnl, shifted) in enumerate([(0.5, False), (-1.0, True), (2.0, False)], start=11):
        memos.bar(bar, pnl, shifted)
    assert (memos.min_pnl, memos.regime_shift_bar, memos.pre_entry_conviction) == (-1.0, 12, 0.7)
    memos.reset()
    assert math.isnan(memos.min_pnl)
    assert memos.regime_shift_bar == -1
    assert math.isnan(memos.pre_entry_conviction)
