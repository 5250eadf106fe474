"""The gradient-norm averages against float32 bit patterns, the closed form and invariants."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.isv import grad_norm_emas

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
FAST, SLOW = np.float32(0.1), np.float32(0.001)
positive = st.floats(1e-6, 1e6)
unset = st.sampled_from([0.0, -0.0, -1.0, -1e-30, -np.inf])


def step(obs: float, fast: float, slow: float, **rest: Any) -> tuple[float, float]:
    a, b = grad_norm_emas(np.full(1, obs), np.full(1, fast), np.full(1, slow), **rest)
    assert a.shape == b.shape == (1,)
    return float(a[0]), float(b[0])


def bits(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


def float32_step(prev: float, obs: float, alpha: np.float32) -> np.float32:
    """Emulate the unfused kernel: 1 - alpha, two products, one sum, each rounded to float32."""
    kept = np.float32(np.float32(1.0) - alpha) * np.float32(prev)
    return np.float32(kept + alpha * np.float32(obs))


@pytest.mark.parametrize(
    ("alpha", "decimal", "pattern"),
    [
        pytest.param(FAST, 2.2, 0x400CCCCD, id="fast"),
        pytest.param(SLOW, 2.002, 0x400020C5, id="slow"),
    ],
)
def test_golden_bit_patterns(alpha: np.float32, decimal: float, pattern: int) -> None:
    """prev = 2, obs = 4: the emulated kernel, the decimal and the reference meet in float32."""
    assert int(float32_step(2.0, 4.0, alpha).view(np.uint32)) == pattern
    assert int(np.float32(decimal).view(np.uint32)) == pattern
    got = step(4.0, 2.0, 2.0)[0 if alpha == FAST else 1]
    assert int(np.float32(got).view(np.uint32)) == pattern


def test_golden_decimals_with_decimal_rates() -> None:
    got = step(4.0, 2.0, 2.0, fast_alpha=0.1, slow_alpha=0.001)
    np.testing.assert_allclose(got, [2.2, 2.002], rtol=1e-15)


def test_default_rates_are_the_float32_neighbours() -> None:
    for got, alpha in zip(step(4.0, 2.0, 2.0), (FAST, SLOW), strict=True):
        want = (1 - Fraction(float(alpha))) * 2 + Fraction(float(alpha)) * 4
        assert got == pytest.approx(float(want), rel=1e-15)


@PROFILE
@given(obs=positive, fast=positive, slow=positive)
def test_one_step_in_exact_rationals(obs: float, fast: float, slow: float) -> None:
    for got, prev, alpha in zip(step(obs, fast, slow), (fast, slow), (FAST, SLOW), strict=True):
        rate = Fraction(float(alpha))
        want = (1 - rate) * Fraction(prev) + rate * Fraction(obs)
        assert got == pytest.approx(float(want), rel=1e-15)


@PROFILE
@given(obs=positive, fast=positive, slow=positive)
def test_between_previous_and_observed(obs: float, fast: float, slow: float) -> None:
    for got, prev in zip(step(obs, fast, slow), (fast, slow), strict=True):
        slack = 3.0 * 2.0**-53 * max(prev, obs)
        assert min(prev, obs) - slack <= got <= max(prev, obs) + slack


@PROFILE
@given(obs=positive, more=positive, fast=positive, slow=positive)
def test_monotone_in_observation_and_previous(
    obs: float, more: float, fast: float, slow: float
) -> None:
    base = step(obs, fast, slow)
    assert all(np.array(step(obs + more, fast, slow)) >= base)
    assert all(np.array(step(obs, fast + more, slow + more)) >= base)


@PROFILE
@given(obs=positive, fast=positive, slow=positive, power=st.integers(-20, 20))
def test_scale_equivariant_bit_for_bit_in_powers_of_two(
    obs: float, fast: float, slow: float, power: int
) -> None:
    scale = 2.0**power
    scaled = step(scale * obs, scale * fast, scale * slow)
    assert scaled == tuple(scale * value for value in step(obs, fast, slow))


@PROFILE
@given(obs=positive, start=unset, other=positive)
def test_unset_takes_the_observation_bit_for_bit_and_alone(
    obs: float, start: float, other: float
) -> None:
    blended = step(obs, other, other)
    assert step(obs, start, other) == (obs, blended[1])
    assert step(obs, other, start) == (blended[0], obs)


@pytest.mark.parametrize("obs", [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0])
@pytest.mark.parametrize("fast", [2.0, 0.0, -0.0, -1.0, np.inf])
def test_unusable_observation_leaves_both_bit_unchanged(obs: float, fast: float) -> None:
    for got, prev in zip(step(obs, fast, 3.0), (fast, 3.0), strict=True):
        assert bits(got) == bits(prev)


def test_subnormal_observation_is_valid() -> None:
    tiny = 5e-324
    assert step(tiny, 0.0, -1.0) == (tiny, tiny)


def test_nan_sticks_for_ever_since_it_never_counts_as_unset() -> None:
    fast, slow = step(1.0, np.nan, 2.0)
    assert np.isnan(fast)
    assert np.isfinite(slow)


@pytest.mark.parametrize(
    ("reading", "inputs", "want"),
    [
        pytest.param("alphas_swapped", (4.0, 2.0, 2.0), (2.002, 2.2), id="swapped"),
        pytest.param("alpha_on_prev", (4.0, 2.0, 2.0), (3.8, 3.998), id="on-prev"),
        pytest.param("sentinel_strict", (4.0, 0.0, 0.0), (0.4, 0.004), id="strict"),
        pytest.param("sentinel_zero_only", (4.0, -1.0, 0.0), (-0.5, 4.0), id="zero-only"),
        pytest.param("bias_corrected", (4.0, 2.0, 2.0), (22.0, 2002.0), id="corrected"),
        pytest.param("nonfinite_accepted", (np.nan, 2.0, 2.0), (np.nan, np.nan), id="nan"),
        pytest.param("nonfinite_accepted", (np.inf, 2.0, 2.0), (np.inf, np.inf), id="inf"),
        pytest.param("nonpositive_accepted", (-8.0, 2.0, 2.0), (1.0, 1.99), id="negative"),
    ],
)
def test_known_wrong_variants_compute_what_they_are_named_for(
    reading: str, inputs: tuple[float, float, float], want: tuple[float, float]
) -> None:
    got = step(*inputs, fast_alpha=0.1, slow_alpha=0.001, reading=reading)
    np.testing.assert_allclose(got, want, rtol=1e-13)
    right = step(*inputs, fast_alpha=0.1, slow_alpha=0.001)
    assert not np.allclose(got, right, rtol=1e-6)
