"""The adaptive scalars against golden values, exact rationals, mpmath and their invariants."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import isv

PROFILE = settings(derandomize=True, deadline=None, max_examples=100)
unit = st.floats(0.0, 1.0)
health = st.floats(-2.0, 3.0)
positive = st.floats(1e-3, 1e3)
amount = st.just(0.0) | st.floats(1e-6, 10.0)
real = st.floats(-1e3, 1e3)


def one(value: float) -> np.ndarray:
    return np.full(1, value)


def scalar(result: Any) -> float:
    assert result.shape == (1,)
    return float(result[0])


def bits(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values, dtype=np.float64).tobytes()


# --- epsilon


def epsilon(e: float, total: float, h: float, **rest: Any) -> float:
    return scalar(isv.epsilon(one(e), one(total), one(h), e_min=0.02, **rest))


@pytest.mark.parametrize(
    ("e", "total", "h", "value"),
    [
        (0, 60, 0.0, 1.0),  # the first epoch of an agent without health
        (59, 60, 0.3, 0.02),  # the last one: e_min, whatever the health
        (0, 60, 1.0, 0.02 + 0.98 * 0.5),
        (0, 1, 0.0, 1.0),  # a run of one epoch starts at the top
        (1, 1, 0.0, 0.02),
        (3, 0, 0.0, 0.02),
        (5, 11, 0.0, 0.02 + 0.98 * 0.5),
    ],
)
def test_epsilon_by_hand(e: float, total: float, h: float, value: float) -> None:
    assert epsilon(e, total, h) == pytest.approx(value, rel=1e-15)


def test_epsilon_of_the_last_epoch_is_e_min_bit_for_bit() -> None:
    for total in range(2, 200):
        assert epsilon(total - 1, total, 0.37) == 0.02


@PROFILE
@given(e=st.integers(0, 300), total=st.integers(0, 200), h=health)
def test_epsilon_falls_with_epoch_and_health(e: int, total: int, h: float) -> None:
    value = epsilon(e, total, h)
    assert 0.02 <= value <= 1.0
    assert epsilon(e + 1, total, h) <= value
    assert epsilon(e, total, h + 0.1) <= value


# --- gamma


def gamma(ranges: Any, h: float) -> np.ndarray:
    return isv.gamma(np.array(ranges, dtype=float), one(h), 0.2, 0.8, 0.995)


@pytest.mark.parametrize(("v_range", "h", "value"), [(4, 1, 0.9), (4, 0.5, 0.85), (40, 1, 0.99)])
def test_gamma_has_its_golden_values(v_range: float, h: float, value: float) -> None:
    np.testing.assert_allclose(gamma([v_range] * 4, h), value, rtol=1e-15)


def test_gamma_of_unusable_ranges_is_the_lower_bound() -> None:
    assert gamma([0.0, -0.0, -3.0, 4.0], 1.0).tolist()[:3] == [0.8, 0.8, 0.8]
    assert gamma([5e-324, 2e-313, 1e-308, 1e-300], 1.0).tolist() == [0.8] * 4  # 1 - r / (range / 2)


@pytest.mark.parametrize(("fast", "slow", "value"), [(5e-324, 1e3, 1.0), (1e308, 5e-324, 0.1)])
def test_warmup_of_a_ratio_that_no_double_holds_is_clipped(
    fast: float, slow: float, value: float
) -> None:
    assert scalar(isv.fold_warmup(one(fast), one(slow), one(0.0), 0.1, 100.0)) == value


def test_kelly_payoff_that_no_double_holds_counts_as_1() -> None:
    assert kelly(0.55, 1e308, 5e-324, 10, 1.0) == kelly(0.55, 1.0, 1.0, 10, 1.0)


@PROFILE
@given(ranges=st.lists(st.floats(-1.0, 1e4), min_size=4, max_size=4), h=health)
def test_gamma_is_bounded_monotone_and_independent(ranges: list[float], h: float) -> None:
    values = gamma(ranges, h)
    assert ((values >= 0.8) & (values <= 0.995)).all()
    assert (gamma([r + 1.0 for r in ranges], h) >= values).all()
    assert (gamma(ranges, h + 0.1) >= values).all()
    other = gamma([ranges[0], 7.0, 8.0, 9.0], h)
    assert other[0] == values[0]


# --- Kelly


def kelly(p: float, win: float, loss: float, n: float, h: float, **rest: Any) -> float:
    return scalar(isv.kelly_cap(one(p), one(win), one(loss), one(n), one(h), **rest))


def test_kelly_has_its_golden_value() -> None:
    """p = 0.55, b = 1.2 and so many trades that the prior does not show: f = 0.175, half of it."""
    got = kelly(0.55, 1.2, 1.0, 1e15, 1.0, low=0.0)
    assert got == pytest.approx(0.5 * 0.175, rel=1e-12)


@PROFILE
@given(p=st.floats(0.3, 0.95), b=st.floats(0.5, 5.0))
def test_kelly_fraction_is_stationary(p: float, b: float) -> None:
    """The derivative of p ln(1 + b f) + (1 - p) ln(1 - f) is zero at f, by mpmath."""
    f = kelly(p, b, 1.0, 1e15, 1.0, fraction=1.0, low=-100.0, high=100.0)
    slope = mpmath.diff(
        lambda x: p * mpmath.log(1 + b * x) + (1 - p) * mpmath.log(1 - x), mpmath.mpf(f)
    )
    assert abs(slope) < 1e-5


@PROFILE
@given(p=unit, win=amount, loss=amount, n=st.integers(0, 10**6), h=health)
def test_kelly_in_exact_rationals(p: float, win: float, loss: float, n: int, h: float) -> None:
    b = Fraction(win) / Fraction(loss) if win > 0 and loss > 0 and n > 0 else Fraction(1)
    if b > Fraction(float(np.finfo(np.float32).max)):
        b = Fraction(1)
    q = (n * Fraction(p) + 10) / (n + 20)
    f = q - (1 - q) / b
    want = min(max(Fraction(1, 2) * f * min(max(Fraction(h), 0), 1), Fraction(isv_low())), 1)
    assert kelly(p, win, loss, n, h) == pytest.approx(float(want), rel=1e-9, abs=1e-12)


def isv_low() -> float:
    return float(np.float32(0.05))


@pytest.mark.parametrize(
    ("p", "win", "loss", "n"), [(0.9, 0.0, 0.0, 0), (1.0, 2.0, 0.0, 50), (0.0, 0.0, 1.0, 50)]
)
def test_kelly_stays_finite_at_the_edges(p: float, win: float, loss: float, n: float) -> None:
    assert isv_low() <= kelly(p, win, loss, n, 1.0) <= 1.0


def test_kelly_without_trades_is_the_least_cap() -> None:
    assert kelly(1.0, 9.0, 0.1, 0, 1.0) == isv_low()


# --- the weight of the conservative term, the rate of the target


def test_affine_rules_meet_their_end_points_bit_for_bit() -> None:
    assert scalar(isv.cql_alpha(one(0.0), 0.1, 1.0)) == 0.1
    assert scalar(isv.cql_alpha(one(1.0), 0.1, 1.0)) == 1.0
    assert scalar(isv.tau(one(0.0), 1e-3, 1e-2)) == 1e-3
    assert scalar(isv.tau(one(2.0), 1e-3, 1e-2)) == pytest.approx(1e-2, rel=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda: isv.tau(one(np.nan)),
        lambda: isv.cql_alpha(one(np.nan)),
        lambda: isv.epsilon(one(1.0), one(9.0), one(np.nan)),
        lambda: isv.kelly_cap(one(0.5), one(1.0), one(1.0), one(9.0), one(np.nan)),
        lambda: isv.plan_threshold(one(0.5), one(np.nan), one(3.0))[0],
    ],
)
def test_a_nan_is_passed_on_and_never_becomes_a_bound(call: Any) -> None:
    assert np.isnan(scalar(call()))


# --- balancer


def balance(norms: Any, **rest: Any) -> np.ndarray:
    return isv.grad_balancer(np.array(norms, dtype=float), **rest)


def test_balancer_by_hand() -> None:
    """norms 1, 4, 4, 7: mean 4, ratios 4, 1, 1, 4/7; roots 2, 1, 1, sqrt(4/7); scaled to sum 4."""
    roots = np.array([2.0, 1.0, 1.0, np.sqrt(4 / 7)])
    np.testing.assert_allclose(balance([1, 4, 4, 7]), roots * 4 / roots.sum(), rtol=1e-14)


@PROFILE
@given(st.lists(st.floats(0.0, 1e6), min_size=4, max_size=4))
def test_balancer_keeps_the_mean_and_the_order(norms: list[float]) -> None:
    w = balance(norms)
    assert w.sum() == pytest.approx(4.0, rel=1e-12)
    for i in range(4):
        for j in range(4):
            if norms[i] > norms[j]:
                assert w[i] <= w[j] * (1 + 1e-15)


def test_balancer_of_equal_norms_is_one() -> None:
    assert balance([3.7] * 4).tolist() == [1.0] * 4


# --- averages


def rewards(rc: Any, ema: Any, count: float, **rest: Any) -> tuple[np.ndarray, float]:
    out, seen = isv.reward_emas(np.array(rc, float), np.array(ema, float), one(count), **rest)
    return out, scalar(seen)


@PROFILE
@given(
    rc=st.lists(real, min_size=6, max_size=6),
    ema=st.lists(real, min_size=6, max_size=6),
    count=st.integers(0, 10),
)
def test_reward_averages_in_exact_rationals(rc: list[float], ema: list[float], count: int) -> None:
    got, seen = rewards(rc, ema, count)
    a = Fraction(float(np.float32(0.05)))
    for value, obs, prev in zip(got, rc, ema, strict=True):
        want = (1 - a) * Fraction(prev) + a * Fraction(obs) if count else Fraction(obs)
        assert value == pytest.approx(float(want), rel=1e-12, abs=1e-11)
    assert seen == count + 1


def test_reward_averages_are_linear() -> None:
    """The sum of the averages is the average of the sum."""
    rng = np.random.default_rng(5)
    ema, total, count = np.zeros(6), 0.0, 0.0
    for _ in range(200):
        rc = rng.normal(size=6)
        ema, count = rewards(rc, ema, count, alpha=0.05)
        first = total == 0.0
        total = float(rc.sum()) if first else 0.95 * total + 0.05 * float(rc.sum())
        assert float(ema.sum()) == pytest.approx(total, abs=1e-12)


def test_rms_has_its_golden_value() -> None:
    got = scalar(isv.rms_ema(np.array([[3.0, -4.0]]), one(0.0)))
    assert got == pytest.approx(3.5355339059327378, rel=1e-15)  # sqrt(12.5)


def test_rms_equals_torch() -> None:
    h = np.random.default_rng(3).normal(size=(7, 13))
    t = torch.from_numpy(h)
    want = 0.95 * 2.0 + 0.05 * float(torch.sqrt(torch.mean(t * t)))
    assert scalar(isv.rms_ema(h, one(2.0), 0.05)) == pytest.approx(want, rel=1e-14)


# --- warm-up


def warmup(fast: float, slow: float, steps: float) -> float:
    return scalar(isv.fold_warmup(one(fast), one(slow), one(steps), 0.1, 1000.0))


def test_warmup_by_hand() -> None:
    assert warmup(4.0, 1.0, 0) == 0.25
    assert warmup(4.0, 1.0, 500) == pytest.approx(0.5 + 0.5 * 0.25)
    assert warmup(400.0, 1.0, 0) == 0.1
    assert warmup(0.0, 1.0, 0) == warmup(1.0, -1.0, 0) == 1.0
    assert warmup(1.0, 4.0, 0) == 1.0


@PROFILE
@given(fast=positive, slow=positive, steps=st.integers(0, 3000))
def test_warmup_is_bounded_and_falls_with_a_spike(fast: float, slow: float, steps: int) -> None:
    factor = warmup(fast, slow, steps)
    assert 0.1 <= factor <= 1.0
    assert warmup(2 * fast, slow, steps) <= factor
    if steps >= 1000 or fast <= slow:
        assert factor == 1.0


def test_warmup_fires_on_a_spike_and_could_not_if_the_slow_average_were_reset() -> None:
    assert warmup(8.0, 2.0, 0) < 1.0
    wrong = isv.fold_warmup(one(8.0), one(2.0), one(0.0), 0.1, 1000.0, reading="slow_reset")
    assert scalar(wrong) == 1.0


# --- clip


def clipped(g: Any, norm: float, fast: float) -> np.ndarray:
    return isv.adaptive_clip(np.array(g, float), one(norm), one(fast), 2.0, 1e-3, 1.0)


def test_clip_by_hand() -> None:
    np.testing.assert_allclose(clipped([3.0, -4.0], 5.0, 1.0), [1.2, -1.6], rtol=1e-11)
    np.testing.assert_allclose(clipped([3.0, -4.0], 5.0, 0.0), [0.6, -0.8], rtol=1e-11)
    np.testing.assert_allclose(clipped([3.0, -4.0], 5.0, 1e-9), [6e-4, -8e-4], rtol=1e-11)


@PROFILE
@given(g=st.lists(real, min_size=1, max_size=9), fast=st.floats(-1.0, 100.0))
def test_clip_limits_the_norm_and_keeps_the_direction(g: list[float], fast: float) -> None:
    array = np.array(g)
    norm = float(np.linalg.norm(array))
    out = clipped(g, norm, fast)
    threshold = 1.0 if fast <= 0 else max(1e-3, 2 * fast)
    assert np.linalg.norm(out) <= threshold * (1 + 1e-12)
    if norm < threshold * (1 - 1e-9):
        assert bits(out) == bits(array)
    else:
        scale = np.linalg.norm(out) / norm if norm else 1.0
        np.testing.assert_allclose(out, scale * array, rtol=1e-9, atol=1e-300)


# --- target average


def test_polyak_end_points_are_bit_exact() -> None:
    target, online = np.array([-0.0, np.nan, 1.0]), np.array([-0.0, 2.0, -3.0])
    assert bits(isv.polyak(target, online, one(0.0))) == bits(target)
    assert bits(isv.polyak(target, online, one(1.0))) == bits(online)


@PROFILE
@given(target=real, online=real, tau=unit)
def test_polyak_in_exact_rationals(target: float, online: float, tau: float) -> None:
    want = (1 - Fraction(tau)) * Fraction(target) + Fraction(tau) * Fraction(online)
    got = scalar(isv.polyak(one(target), one(online), one(tau)))
    assert got == pytest.approx(float(want), rel=1e-12, abs=1e-11)


# --- plan


def plan(ready: float, ema: float, count: float = 3.0) -> tuple[float, ...]:
    return tuple(map(scalar, isv.plan_threshold(one(ready), one(ema), one(count))))


def test_plan_compares_first_and_updates_afterwards() -> None:
    threshold, fires, ema, count = plan(0.51, 0.5)
    assert (threshold, fires, count) == (0.5, 1.0, 4.0)
    assert ema == pytest.approx(0.5 + 0.05 * 0.01, rel=1e-6)
    assert plan(0.5, 0.5)[1] == 0.0  # strict
    assert plan(0.3, 7.0)[0] == float(np.float32(0.9))
    assert plan(0.3, -7.0)[0] == float(np.float32(0.1))
    assert plan(0.3, 0.7, 0.0)[2] == 0.3


# --- divergence


def kl(*arrays: Any, trail: float = 0.0, count: float = 0.0) -> tuple[float, float, float]:
    out = isv.state_kl(*(np.array(a, float) for a in arrays), one(trail), one(count), 0.05)
    return scalar(out[0]), scalar(out[1]), scalar(out[2])


def test_divergence_equals_torch() -> None:
    rng = np.random.default_rng(11)
    m, mr = rng.normal(size=(2, 12))
    v, vr = rng.uniform(0.3, 3.0, size=(2, 12))
    t = [torch.from_numpy(x) for x in (m, v, mr, vr)]
    normal = torch.distributions.Normal
    want = torch.distributions.kl_divergence(normal(t[0], t[1].sqrt()), normal(t[2], t[3].sqrt()))
    assert kl(m, v, mr, vr)[1] == pytest.approx(float(want.sum()), rel=1e-13)


def test_divergence_near_zero_keeps_its_digits() -> None:
    """v = vr (1 + 1e-6), by mpmath: x - ln(1 + x) is 5e-13, where the printed form has noise."""
    mpmath.mp.dps = 50
    v, vr = 1.000001, 1.0
    x = (mpmath.mpf(v) - vr) / vr
    want = float((x - mpmath.log(1 + x)) / 2)
    assert kl([0.0], [v], [0.0], [vr])[1] == pytest.approx(want, rel=1e-9)


def test_amplification_compares_before_it_updates() -> None:
    first = kl([1.0], [1.0], [0.0], [1.0])
    assert first == (1.0, 0.5, 1.0)  # (m - mr)^2 / 2
    amp, trail, _ = kl([1.0], [1.0], [0.0], [1.0], trail=0.4, count=1.0)
    assert amp == pytest.approx(1.0 + 0.25)
    assert trail == pytest.approx(0.95 * 0.4 + 0.05 * 0.5)
    assert kl([1.0], [1.0], [0.0], [1.0], trail=0.5, count=9.0)[0] == 1.0
    assert kl([9.0], [1.0], [0.0], [1.0], trail=0.5, count=9.0)[0] == 2.0


# --- reset


def test_reset_by_hand_and_its_end_points() -> None:
    state, init = np.array([4.0, -0.0, np.nan, 7.0]), np.array([2.0, 5.0, 5.0, -0.0])
    out = isv.soft_reset(state, init, np.array([0.5, 1.0, 1.0, 0.0]))
    assert bits(out) == bits(np.array([3.0, -0.0, np.nan, -0.0]))


@PROFILE
@given(x=real, init=real, kappa=unit)
def test_reset_applied_twice_is_kappa_squared(x: float, init: float, kappa: float) -> None:
    once = isv.soft_reset(one(x), one(init), one(kappa))
    twice = scalar(isv.soft_reset(once, one(init), one(kappa)))
    want = Fraction(init) + Fraction(kappa) ** 2 * (Fraction(x) - Fraction(init))
    assert twice == pytest.approx(float(want), rel=1e-12, abs=1e-11)
