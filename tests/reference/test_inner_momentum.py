"""Eq. 9-11: the minimum of the inner objective, in each of its readings."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import UnknownReading
from trueup.reference.nl import inner_momentum, undamped_momentum
from trueup.reference.nl.inner_momentum import READINGS, inner_objective

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
matrices = arrays(np.float64, (3, 2), elements=st.floats(-4.0, 4.0))
surprises = arrays(np.float64, 3, elements=st.floats(-4.0, 4.0))
inputs = arrays(np.float64, 2, elements=st.floats(-4.0, 4.0))
rates = st.floats(1e-2, 0.6)


@PROFILE
@given(m=arrays(np.int64, (3, 2), elements=st.integers(-9, 9)),
       u=arrays(np.int64, 3, elements=st.integers(-9, 9)),
       x=arrays(np.int64, 2, elements=st.integers(-9, 9)))  # fmt: skip
def test_q10_1_both_inner_products_are_the_same(m: Any, u: Any, x: Any) -> None:
    assert np.sum(m * np.outer(u, x)) == np.sum((m @ x) * u)


@PROFILE
@given(m=matrices, W=matrices, u=surprises, x=inputs, eta=rates)
def test_q10_2_the_minimum_is_the_corrected_step_of_eq_8(
    m: Any, W: Any, u: Any, x: Any, eta: float
) -> None:
    got = inner_momentum(m, W, u, x, eta)
    np.testing.assert_array_equal(got, undamped_momentum(m, W, np.outer(u, x), eta))


@PROFILE
@given(m=matrices, u=surprises, x=inputs, eta=rates)
def test_q10_3_one_gradient_step_on_the_linear_part(m: Any, u: Any, x: Any, eta: float) -> None:
    h, gradient = 1e-3, np.zeros_like(m)  # exact differences: the objective is linear
    for at in np.ndindex(m.shape):
        up, down = m.copy(), m.copy()
        up[at] += h
        down[at] -= h
        gradient[at] = (-np.sum((up @ x) * u) + np.sum((down @ x) * u)) / (2 * h)
    got, _ = inner_momentum(m, np.zeros_like(m), u, x, eta)
    np.testing.assert_allclose(got, m - eta * gradient, rtol=1e-9, atol=1e-8)


@PROFILE
@given(m=matrices, u=surprises, x=inputs, eta=rates, change=matrices)
@pytest.mark.parametrize("reading", READINGS)
def test_every_reading_is_the_minimum_of_its_own_objective(
    reading: str, m: Any, u: Any, x: Any, eta: float, change: Any
) -> None:
    best, _ = inner_momentum(m, np.zeros_like(m), u, x, eta, reading=reading)
    least = inner_objective(best, m, u, x, eta, reading=reading)
    rise = inner_objective(best + change, m, u, x, eta, reading=reading) - least
    weight = eta if reading == "literal" else 1 / (2 * eta)
    scale = 1 + abs(least) + weight * np.sum((best + change - m) ** 2)
    np.testing.assert_allclose(rise, weight * np.sum(change**2), atol=1e-12 * scale)


def test_e7_a_smaller_rate_takes_a_larger_step() -> None:
    zero = np.full((1, 1), Fraction(0), dtype=object)
    one = np.full(1, Fraction(1), dtype=object)
    expected = {"literal": Fraction(5), "derived": Fraction(1, 10), "derived_neg": Fraction(-1, 10)}
    for reading, value in expected.items():
        rate: Any = Fraction(1, 10)
        m, _ = inner_momentum(zero, zero, one, one, rate, reading=reading)
        assert m[0, 0] == value


def test_e7_both_weights_meet_at_one_rate() -> None:
    rng = np.random.default_rng(0)
    m, W = rng.standard_normal((2, 3, 2))
    u, x = rng.standard_normal(3), rng.standard_normal(2)
    at = inner_momentum(m, W, u, x, 2**-0.5)
    np.testing.assert_allclose(inner_momentum(m, W, u, x, 2**-0.5, reading="literal"), at)
    beside = inner_momentum(m, W, u, x, 0.6)
    assert not np.allclose(inner_momentum(m, W, u, x, 0.6, reading="literal"), beside)


def test_e6_the_surprise_is_a_vector_and_the_gradient_its_outer_product() -> None:
    m, W = inner_momentum(np.zeros((2, 3)), np.zeros((2, 3)), np.ones(2), np.ones(3), 0.5)
    assert m.shape == W.shape == (2, 3)
    with pytest.raises(ValueError, match="broadcast"):
        inner_momentum(np.zeros((2, 3)), np.zeros((2, 3)), np.ones((2, 3)), np.ones(3), 0.5)


def test_the_objective_knows_the_readings_only() -> None:
    zero = np.zeros((1, 1))
    with pytest.raises(UnknownReading, match="derived, derived_neg, literal"):
        inner_objective(zero, zero, np.ones(1), np.ones(1), 0.1, reading="ascent")
