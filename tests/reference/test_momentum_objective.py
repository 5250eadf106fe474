"""Eq. 18-19: what momentum descends, against finite differences, and the example of all ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import NotApplicable
from trueup.reference.nl import momentum, momentum_objective, preconditioned_momentum

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
matrices = arrays(np.float64, (3, 2), elements=st.floats(-4.0, 4.0))
squares = arrays(np.float64, (3, 3), elements=st.floats(-4.0, 4.0))
units, rates = st.floats(0.0, 1.0), st.floats(1e-3, 0.9)


@PROFILE
@given(m=matrices, g=matrices)
def test_q18_1_the_gradient_is_g(m: Any, g: Any) -> None:
    objective, gradient = momentum_objective(m, g)
    np.testing.assert_array_equal(gradient, g)
    np.testing.assert_allclose(objective, np.trace(m @ g.T), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4)])
def test_q20_2_the_gradient_is_p_g_for_a_p_that_is_not_symmetric(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape)
    m, g = rng.standard_normal((2, *shape))
    P = rng.standard_normal((shape[0], shape[0]))
    _, gradient = momentum_objective(m, g, P)
    for at in np.ndindex(*shape):
        up, down = m.copy(), m.copy()
        up[at] += 0.5
        down[at] -= 0.5  # linear: the difference is exact at any distance
        slope = np.trace(up @ g.T @ P.T) - np.trace(down @ g.T @ P.T)
        np.testing.assert_allclose(gradient[at], slope, rtol=1e-11, atol=1e-12)
    assert not np.allclose(gradient, momentum_objective(m, g, P, reading="p_transposed")[1])


@PROFILE
@given(m=matrices, g=matrices, alpha=units, eta=rates)
def test_q18_2_with_the_decay_as_penalty_one_step_is_eq_17(
    m: Any, g: Any, alpha: float, eta: float
) -> None:
    """(1 - alpha) / (2 eta) |m|^2 has the gradient (1 - alpha) m / eta."""
    gradient = momentum_objective(m, g)[1] + (1 - alpha) / eta * m
    want, _ = momentum(m, np.zeros_like(m), g, alpha, eta)
    np.testing.assert_allclose(m - eta * gradient, want, rtol=1e-12, atol=1e-12)


@PROFILE
@given(m=matrices, g=matrices, P=squares, eta=rates)
def test_one_step_on_eq_19_is_eq_20_at_alpha_one(m: Any, g: Any, P: Any, eta: float) -> None:
    _, gradient = momentum_objective(m, g, P)
    want, _ = preconditioned_momentum(m, np.zeros_like(m), g, 1.0, eta, P)
    np.testing.assert_allclose(m - eta * gradient, want, rtol=1e-12, atol=1e-11)


def test_e15_all_ones_is_not_the_identity() -> None:
    u, m = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(momentum_objective(m, u)[1], u)
    objective, gradient = momentum_objective(m, u, reading="all_ones")
    np.testing.assert_array_equal(gradient, [[4, 6], [4, 6]])
    assert objective == 10  # sum of all entries of m u^T


def test_e1_the_objective_falls_without_end() -> None:
    g = np.array([[1.0, -2.0]])
    for c in (1.0, 1e3, 1e9):
        assert momentum_objective(-c * g, g)[0] == -5 * c


@pytest.mark.parametrize("variant", ["p_transposed", "g_right_p", "p_dropped"])
def test_variants_of_p_need_one(variant: str) -> None:
    with pytest.raises(NotApplicable, match="a preconditioner P"):
        momentum_objective(np.ones((2, 3)), np.ones((2, 3)), reading=variant)
