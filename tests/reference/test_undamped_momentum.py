"""Eq. 7-8: the sum of all gradients, its invariant, and the erratum of its sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference.nl import momentum, undamped_momentum

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
histories = arrays(np.float64, (5, 3, 2), elements=st.floats(-4.0, 4.0))
rates = st.lists(st.floats(1e-3, 0.9), min_size=5, max_size=5)


def scalar_run(steps: int, eta: float, reading: str = "derived") -> list[tuple[float, float]]:
    """Follow L = w^2 / 2 from w = 1, m = 0: (m, w) after each step."""
    m, w, path = np.zeros((1, 1)), np.ones((1, 1)), []
    for _ in range(steps):
        m, w = undamped_momentum(m, w, w, eta, reading=reading)
        path.append((float(m[0, 0]), float(w[0, 0])))
    return path


@PROFILE
@given(gs=histories, etas=rates)
def test_q7_1_the_memory_is_the_sum_of_all_gradients(gs: Any, etas: list[float]) -> None:
    m = W = np.zeros((3, 2))
    for g, eta in zip(gs, etas, strict=True):
        m, W = undamped_momentum(m, W, g, eta)
    np.testing.assert_allclose(m, np.tensordot(etas, gs, axes=1), rtol=1e-12, atol=1e-12)


@PROFILE
@given(gs=histories, etas=rates)
def test_q7_2_the_weights_are_those_of_eq_17_at_alpha_one(gs: Any, etas: list[float]) -> None:
    m = W = m_17 = W_17 = np.zeros((3, 2))
    for g, eta in zip(gs, etas, strict=True):
        m, W = undamped_momentum(m, W, g, eta)
        m_17, W_17 = momentum(m_17, W_17, g, 1.0, eta)
        np.testing.assert_array_equal(W, W_17)
        np.testing.assert_array_equal(m, -m_17)


@pytest.mark.parametrize("a", [0.1, 1.0, 3.9])
def test_q7_3_a_quadratic_is_conserved_and_the_rule_never_comes_to_rest(a: float) -> None:
    """On w^2/2 with a = eta: m^2 + a m w + a w^2 stays, and both eigenvalues have modulus 1."""
    path = scalar_run(200, a)
    kept = [m * m + a * m * w + a * w * w for m, w in path]
    np.testing.assert_allclose(kept, a, rtol=1e-9)
    assert max(abs(w) for _, w in path[100:]) > 0.5
    step = np.array([[1.0, a], [-1.0, 1.0 - a]])  # of (m, w)
    np.testing.assert_allclose(np.abs(np.linalg.eigvals(step)), 1.0, rtol=1e-7)


def test_beyond_four_the_rule_diverges() -> None:
    assert abs(scalar_run(60, 4.2)[-1][1]) > 1e6


def test_e5_the_printed_signs_climb() -> None:
    literal = [w for _, w in scalar_run(3, 0.1, "literal")]
    derived = [w for _, w in scalar_run(3, 0.1)]
    np.testing.assert_allclose(literal, [1.1, 1.31, 1.651], rtol=1e-14)
    np.testing.assert_allclose(derived, [0.9, 0.71, 0.449], rtol=1e-14)


def test_the_other_corrected_form_moves_the_weights_alike_for_ever() -> None:
    one, two = scalar_run(50, 0.3), scalar_run(50, 0.3, "derived_neg")
    assert [w for _, w in one] == [w for _, w in two]
    assert [m for m, _ in one] == [-m for m, _ in two]


def test_without_a_gradient_the_weights_keep_drifting() -> None:
    m, W, zero = np.full((2, 2), 0.5), np.ones((2, 2)), np.zeros((2, 2))
    for step in range(1, 4):
        m, W = undamped_momentum(m, W, zero, 0.1)
        np.testing.assert_array_equal(m, np.full((2, 2), 0.5))
        np.testing.assert_array_equal(W, np.full((2, 2), 1 - 0.5 * step))
