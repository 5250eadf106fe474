"""Eq. 19-20 in its three readings, against Eq. 17, Kronecker products, and U4."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import NotApplicable
from trueup.reference.nl import momentum, preconditioned_momentum

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
histories = arrays(np.float64, (4, 3, 2), elements=st.floats(-4.0, 4.0))
squares = arrays(np.float64, (3, 3), elements=st.floats(-2.0, 2.0))
units, rates = st.floats(0.0, 1.0), st.floats(1e-3, 0.9)


def drawn(shape: tuple[int, int]) -> Any:
    rng = np.random.default_rng(shape)
    return (*rng.standard_normal((3, *shape)), 0.9, 0.1)


@PROFILE
@given(gs=histories, alpha=units, eta=rates)
def test_q20_1_without_a_preconditioner_it_is_eq_17(gs: Any, alpha: float, eta: float) -> None:
    m, W, g, _ = gs
    want = momentum(m, W, g, alpha, eta)
    np.testing.assert_array_equal(preconditioned_momentum(m, W, g, alpha, eta), want)
    got = preconditioned_momentum(m, W, g, alpha, eta, np.eye(3))
    np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4)])
def test_q20_2_the_step_is_p_g_and_neither_its_transpose_nor_g_p(shape: tuple[int, int]) -> None:
    m, W, g, alpha, eta = drawn(shape)
    P = np.random.default_rng(1).standard_normal((shape[0], shape[0]))
    got, moved = preconditioned_momentum(m, W, g, alpha, eta, P)
    rows = [sum(P[i, k] * g[k] for k in range(shape[0])) for i in range(shape[0])]
    np.testing.assert_allclose(got, alpha * m - eta * np.array(rows), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(moved, W + got, rtol=1e-15)
    for variant in ("p_transposed", "g_right_p", "p_diagonal", "p_on_momentum"):
        try:
            other, _ = preconditioned_momentum(m, W, g, alpha, eta, P, reading=variant)
        except NotApplicable:
            assert (variant, shape[0] != shape[1]) == ("g_right_p", True)
            continue
        assert not np.allclose(other, got)


@PROFILE
@given(gs=histories, P=squares, alphas=st.lists(units, min_size=4, max_size=4), eta=rates)
def test_q20_3_a_constant_p_multiplies_the_momentum_of_eq_17(
    gs: Any, P: Any, alphas: list[float], eta: float
) -> None:
    m = W = plain = weights = np.zeros((3, 2))
    for step, (g, alpha) in enumerate(zip(gs, alphas, strict=True)):
        rate = eta * (1 + 0.5 * step)
        m, W = preconditioned_momentum(m, W, g, alpha, rate, P)
        plain, weights = momentum(plain, weights, g, alpha, rate)
    np.testing.assert_allclose(m, P @ plain, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(W, P @ weights, rtol=1e-10, atol=1e-10)


def test_e13_left_and_its_transpose_in_exact_rationals() -> None:
    read = np.vectorize(Fraction, otypes=[object])
    zero, P = read(np.zeros((2, 3), dtype=int)), read([[1, 1], [0, 1]])
    g = read([[1, -1, 2], [-2, 2, -4]])  # u x^T of the shared witness
    rates: Any = (Fraction(9, 10), Fraction(1, 10))
    left, _ = preconditioned_momentum(zero, zero, g, *rates, P)
    assert (left * 10 == read([[1, -1, 2], [2, -2, 4]])).all()
    swapped, _ = preconditioned_momentum(zero, zero, g, *rates, P, reading="p_transposed")
    assert (swapped * 10 == read([[-1, 1, -2], [1, -1, 2]])).all()


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 4)])
def test_vectorised_flattens_by_rows(shape: tuple[int, int]) -> None:
    """P_vec = P x I is the reading `left`, I x Q a product from the right by Q^T."""
    m, W, g, alpha, eta = drawn(shape)
    rng = np.random.default_rng(2)
    P, Q = rng.standard_normal((shape[0], shape[0])), rng.standard_normal((shape[1], shape[1]))
    left = np.kron(P, np.eye(shape[1])).reshape(shape + shape)
    got = preconditioned_momentum(m, W, g, alpha, eta, P_vec=left, reading="vectorised")
    want = preconditioned_momentum(m, W, g, alpha, eta, P)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    right = np.kron(np.eye(shape[0]), Q).reshape(shape + shape)
    got = preconditioned_momentum(m, W, g, alpha, eta, P_vec=right, reading="vectorised")
    np.testing.assert_allclose(got[0], alpha * m - eta * g @ Q.T, rtol=1e-12, atol=1e-13)


def test_hadamard_is_left_for_a_diagonal_and_vectorised_for_any() -> None:
    m, W, g, alpha, eta = drawn((3, 2))
    p = np.random.default_rng(3).standard_normal((3, 2))
    got = preconditioned_momentum(m, W, g, alpha, eta, p=p, reading="hadamard")
    np.testing.assert_allclose(got[0], alpha * m - eta * (p * g), rtol=1e-15)
    full = np.diag(p.ravel()).reshape(3, 2, 3, 2)
    want = preconditioned_momentum(m, W, g, alpha, eta, P_vec=full, reading="vectorised")
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)
    rows = np.array([2.0, -1.0, 0.5])
    got = preconditioned_momentum(
        m, W, g, alpha, eta, p=np.repeat(rows[:, None], 2, axis=1), reading="hadamard"
    )
    want = preconditioned_momentum(m, W, g, alpha, eta, np.diag(rows))
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)


def test_u4_the_adam_scaling_steps_by_the_sign_whatever_the_size() -> None:
    """(1 - 0.9) / sqrt(1 - 0.999) = 3.162...: ten times the size of g changes nothing."""
    g = np.array([[1.0, -2.0], [300.0, -0.01]])
    zero = np.zeros((2, 2))
    for scale in (1.0, 10.0):
        m, _ = preconditioned_momentum(zero, zero, scale * g, 0.9, 0.1, reading="adam")
        np.testing.assert_allclose(m, 0.1 * 1000**0.5 * np.sign(g), rtol=1e-4)
    scaled, _ = preconditioned_momentum(zero, zero, 10 * g, 0.9, 0.1)
    plain, _ = preconditioned_momentum(zero, zero, g, 0.9, 0.1)
    np.testing.assert_allclose(scaled, 10 * plain)  # Q20.3 is linear in g; U4 is not


def test_u4_is_no_fixed_preconditioner() -> None:
    """Q20.3 for U4: no constant P gives its momentum over two steps."""
    g0, g1 = np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]])
    steps = []
    for g in (g0, g1):
        m, _ = preconditioned_momentum(np.zeros((2, 1)), np.zeros((2, 1)), g, 0.9, 0.1,
                                       reading="adam")  # fmt: skip
        steps.append(m)
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-6)  # P (2 g) would be twice P g


@pytest.mark.parametrize(
    ("reading", "needs"),
    [
        ("vectorised", "P_vec"),
        ("hadamard", "p, its preconditioner"),
        ("p_divides", "hadamard"),
        ("p_transposed", "left"),
        ("p_on_momentum", "P or p"),
    ],
)
def test_a_reading_without_its_preconditioner_does_not_apply(reading: str, needs: str) -> None:
    with pytest.raises(NotApplicable, match=needs):
        preconditioned_momentum(*drawn((2, 3)), reading=reading)


def test_without_a_gradient_the_momentum_decays() -> None:
    m, W, g, alpha, eta = drawn((3, 2))
    P = np.random.default_rng(5).standard_normal((3, 3))
    got, moved = preconditioned_momentum(m, W, 0 * g, alpha, eta, P)
    assert (got == alpha * m).all()
    assert (moved == W + alpha * m).all()
