"""Eq. 23 against golden numbers, finite differences, torch autograd and its exact properties."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import NotApplicable
from trueup.reference.nl import deep_momentum, deep_momentum_linear, momentum
from trueup.reference.nl.deep_momentum import inner_gradients, network
from trueup.reference.nl.deep_momentum_linear import inner_gradient, row_memory

PROFILE = settings(derandomize=True, deadline=None, max_examples=30)
READINGS = deep_momentum.__equation__.readings  # type: ignore[attr-defined]
SHAPES = [(2, 3, 4), (3, 2, 3), (5, 5, 2), (7, 4, 6), (1, 4, 3), (4, 1, 2)]
ALPHA, ETA = 0.9, 0.1
A1 = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]])
A2 = np.array([[0.2, 0.0, 0.0], [0.0, 0.3, 0.1]])
G0 = np.array([[1.0, -1.0, 2.0], [-2.0, 2.0, -4.0]])


def drawn(shape: tuple[int, int, int], seed: int = 1) -> tuple[np.ndarray, ...]:
    """Draw A1, A2, W and g of sizes (d_out, d_in, h)."""
    rng, (rows, columns, hidden) = np.random.default_rng(seed), shape
    sizes = ((columns, hidden), (hidden, columns), (rows, columns), (rows, columns))
    return tuple(0.7 * rng.standard_normal(size) for size in sizes)


def inner_loss(a1: Any, a2: Any, g: Any, reading: str) -> Any:
    """Give the scalar of section 1, card Eq. 23, on NumPy arrays or torch tensors."""
    tanh = torch.tanh if isinstance(g, torch.Tensor) else np.tanh
    F = tanh(g @ a2.T) @ a1.T
    return {
        "dot_self": (F * g).sum(),
        "l2_neg": 0.5 * ((F + g) ** 2).sum(),
        "dot_ones": F.sum(),
    }[reading]


@pytest.mark.parametrize(
    ("reading", "want"),
    [
        pytest.param(
            "dot_self",
            [
                [-0.7547697065, 0.7548195869, -0.6096339433],
                [0.7548308096, -0.7548308121, 0.6096616232],
            ],
            id="dot_self",
        ),
        pytest.param(
            "l2_neg",
            [
                [-0.7270178724, 0.7404704618, -0.5885772234],
                [0.7270325337, -0.7404752843, 0.5885847211],
            ],
            id="l2_neg",
        ),
        pytest.param(
            "dot_ones",
            [
                [0.6352398111, 0.179465304, 0.2387231831],
                [-0.8565938306, -0.3393849256, -0.2721688857],
            ],
            id="dot_ones",
        ),
    ],
)
def test_golden(reading: str, want: Any) -> None:
    """Section 9: what the memory says of g after the step."""
    W = np.arange(6.0).reshape(2, 3)
    _, _, got = deep_momentum(A1, A2, W, G0, ALPHA, ETA, reading=reading)
    np.testing.assert_allclose(got - W, want, atol=6e-11)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reading", READINGS)
def test_q23_1_inner_gradients_by_finite_differences(
    shape: tuple[int, int, int], reading: str
) -> None:
    a1, a2, _, g = drawn(shape)
    grads = inner_gradients(a1, a2, g, reading)
    for which, grad in enumerate(grads):
        for index in np.ndindex(grad.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [a1.copy(), a2.copy()]
                moved[which][index] += step
                sides.append(inner_loss(moved[0], moved[1], g, reading))
            assert grad[index] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reading", READINGS)
def test_whole_step_by_autograd(shape: tuple[int, int, int], reading: str) -> None:
    """Third source: torch differentiates the inner loss in float64."""
    a1, a2, W, g = drawn(shape, 2)
    t1, t2 = (torch.tensor(a, requires_grad=True) for a in (a1, a2))
    inner_loss(t1, t2, torch.tensor(g), reading).backward()
    assert t1.grad is not None
    assert t2.grad is not None
    next1 = ALPHA * a1 - ETA * t1.grad.numpy()
    next2 = ALPHA * a2 - ETA * t2.grad.numpy()
    want = (next1, next2, W + np.tanh(g @ next2.T) @ next1.T)
    for got, right in zip(
        deep_momentum(a1, a2, W, g, ALPHA, ETA, reading=reading), want, strict=True
    ):
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("reading", READINGS)
def test_q23_2_inner_loss_falls_by_eta_times_the_squared_gradient(reading: str) -> None:
    a1, a2, W, g = drawn((3, 4, 5))
    squares = sum(float(np.sum(grad**2)) for grad in inner_gradients(a1, a2, g, reading))
    before = inner_loss(a1, a2, g, reading)
    off = []
    for eta in (1e-4, 1e-5):
        n1, n2, _ = deep_momentum(a1, a2, W, g, 1.0, eta, reading=reading)
        off.append(abs(inner_loss(n1, n2, g, reading) - before + eta * squares))
    assert off[0] < 1e-2 * 1e-4 * squares
    assert off[1] < 0.02 * off[0]  # second order in eta


@pytest.mark.parametrize("shape", SHAPES)
def test_q23_3_output_has_the_shape_of_the_weights(shape: tuple[int, int, int]) -> None:
    a1, a2, W, g = drawn(shape)
    results = deep_momentum(a1, a2, W, g, ALPHA, ETA)
    assert [r.shape for r in results] == [a1.shape, a2.shape, W.shape]


def rank_of(F: np.ndarray, g: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(np.stack([F.ravel(), g.ravel(), np.ones(g.size)]), tol=1e-8))


def test_q23_4_the_read_is_no_combination_of_gradient_and_ones() -> None:
    """A network has rank 3; U7, which scales and shifts the gradient, has rank 2."""
    a1, a2, W, g = drawn((3, 4, 5))
    n1, n2, moved = deep_momentum(a1, a2, W, g, ALPHA, ETA)
    assert rank_of(network(n1, n2, g), g) == 3
    assert rank_of(moved - W, g) == 3
    _, _, mutant = deep_momentum(a1, a2, W, g, ALPHA, ETA, reading="scale_and_bias")
    assert rank_of(mutant - W, g) == 2


@PROFILE
@given(seed=st.integers(0, 1000))
def test_q23_5_without_rate_and_decay_the_parameters_keep_their_bits(seed: int) -> None:
    a1, a2, W, g = drawn((3, 4, 5), seed)
    for reading in READINGS:
        n1, n2, _ = deep_momentum(a1, a2, W, g, 1.0, 0.0, reading=reading)
        np.testing.assert_array_equal(n1, a1)
        np.testing.assert_array_equal(n2, a2)


def test_order_first_the_step_then_the_read() -> None:
    a1, a2, W, g = drawn((3, 4, 5))
    n1, n2, moved = deep_momentum(a1, a2, W, g, ALPHA, ETA)
    np.testing.assert_allclose(moved - W, network(n1, n2, g), rtol=1e-12, atol=1e-13)
    early = deep_momentum(a1, a2, W, g, ALPHA, ETA, reading="read_before_step")[2]
    np.testing.assert_allclose(early - W, network(a1, a2, g), rtol=1e-12, atol=1e-13)


def test_readings_coincide_on_a_dead_output_layer_and_nothing_moves_a_dead_point() -> None:
    a1, a2, W, g = drawn((3, 4, 5))
    rest = np.zeros_like(a1)
    one = deep_momentum(rest, a2, W, g, ALPHA, ETA, reading="dot_self")
    two = deep_momentum(rest, a2, W, g, ALPHA, ETA, reading="l2_neg")
    for x, y in zip(one, two, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)
    for reading in READINGS:
        grads = inner_gradients(rest, np.zeros_like(a2), g, reading)
        assert all(not grad.any() for grad in grads)


def test_e15_linear_memory_read_at_the_identity_is_eq_17() -> None:
    rng = np.random.default_rng(3)
    m, W, g = (rng.standard_normal((3, 5)) for _ in range(3))
    got = deep_momentum_linear(m, W, g, ALPHA, ETA)
    for x, y in zip(got, momentum(m, W, g, ALPHA, ETA), strict=True):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(NotApplicable, match="d_out = d_in, got 3 and 5"):
        deep_momentum_linear(m, W, g, ALPHA, ETA, reading="read_at_gradient")


def test_e15_witness_the_value_ones_is_not_the_identity() -> None:
    u: Any = np.vectorize(Fraction, otypes=[object])([[1, 2], [3, 4]])
    ones: Any = np.vectorize(Fraction, otypes=[object])([[1, 1], [1, 1]])
    assert (inner_gradient(u) == u).all()
    assert inner_gradient(u, ones).tolist() == [[4, 6], [4, 6]]


def test_e15_row_wise_linear_memory_is_of_third_order_and_descends() -> None:
    """From B = 0 one step gives -eta g g^T g, by autograd; <step, g> = -eta |g^T g|^2."""
    g = np.random.default_rng(5).standard_normal((3, 4))
    B = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    G = torch.tensor(g)
    (G @ B.T * G).sum().backward()
    assert B.grad is not None
    np.testing.assert_allclose(row_memory(g, ETA), -ETA * B.grad.numpy(), rtol=1e-13)
    step = g @ row_memory(g, ETA).T
    np.testing.assert_allclose(step, -ETA * g @ g.T @ g, rtol=1e-12)
    assert np.sum(step * g) == pytest.approx(-ETA * np.sum((g.T @ g) ** 2))
    assert np.max(np.abs(g @ row_memory(2.0 * g, ETA).T - 2.0 * step)) > 0.1
    zero = np.zeros_like(g)
    wild = deep_momentum_linear(zero, zero, g, ALPHA, ETA, reading="rows_of_the_gradient")
    np.testing.assert_allclose(wild[1], step, rtol=1e-12)


def test_e16_residual_memory_without_parameters_climbs() -> None:
    """L = w^2 / 2 at w = 1: the residual adds the gradient, and w becomes 2."""
    dead, one = np.zeros((1, 1)), np.ones((1, 1))
    *_, w = deep_momentum(dead, dead, one, one, ALPHA, ETA, reading="residual")
    assert w == 2.0
    *_, w = deep_momentum(dead, dead, one, one, ALPHA, ETA)
    assert w == 1.0


def test_e16_ones_do_not_see_the_gradients_sign_and_the_others_do() -> None:
    """The inner loss of dot_ones has a step that points uphill for L on one of g and -g."""
    a1, a2, W, g = drawn((3, 4, 5))
    for reading, turned in (("dot_ones", False), ("dot_self", True), ("l2_neg", True)):
        slopes = []
        for sign in (1.0, -1.0):
            *_, moved = deep_momentum(a1, a2, W, sign * g, 1.0, 1.0, reading=reading)
            slopes.append(float(np.sum((moved - W) * (sign * g))))
        assert all(slope < 0 for slope in slopes) is turned, reading


def test_u2_elementwise_tanh_has_no_memory_and_is_bounded() -> None:
    a1, a2, W, g = drawn((3, 4, 5))
    n1, n2, moved = deep_momentum(a1, a2, W, 100.0 * g, ALPHA, ETA, reading="tanh_of_gradient")
    np.testing.assert_array_equal(n1, a1)
    np.testing.assert_array_equal(n2, a2)
    np.testing.assert_allclose(moved - W, -(1 - ALPHA) * np.tanh(100.0 * g), rtol=1e-12, atol=1e-15)
    assert np.max(np.abs(moved - W)) <= 1 - ALPHA + 1e-12


class Summaries:
    """U7 with a state of its own: five summaries, a fixed network, weights decayed every step."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.first, self.second = rng.standard_normal((8, 5)), rng.standard_normal((2, 8))

    def step(self, m: np.ndarray, g: np.ndarray, beta: float) -> np.ndarray:
        size = float(np.linalg.norm(g)) / g.size
        told = np.array([g.mean(), g.std(), size, m.mean(), m.std()])
        scale, bias = self.second @ np.tanh(self.first @ told)
        self.first, self.second = beta * self.first, beta * self.second
        return np.asarray(beta * m + (1 - beta) * (scale * g + bias))


def test_u7_commutes_with_every_permutation_of_entries_and_deep_momentum_does_not() -> None:
    a1, a2, W, g = drawn((3, 4, 5))
    order = np.random.default_rng(9).permutation(g.size)

    def shuffled(x: np.ndarray) -> np.ndarray:
        return x.ravel()[order].reshape(x.shape)

    m = np.random.default_rng(8).standard_normal(g.shape)
    mutant = Summaries(1).step(m, g, ALPHA)
    again = Summaries(1).step(shuffled(m), shuffled(g), ALPHA)
    np.testing.assert_allclose(again, shuffled(mutant), rtol=1e-12, atol=1e-14)
    ours = deep_momentum(a1, a2, W, g, ALPHA, ETA)[2] - W
    theirs = deep_momentum(a1, a2, shuffled(W), shuffled(g), ALPHA, ETA)[2] - shuffled(W)
    assert np.max(np.abs(theirs - shuffled(ours))) > 1e-2


def test_u7_its_network_dies_geometrically_and_its_read_has_rank_two() -> None:
    state, g, m = Summaries(1), drawn((3, 4, 5))[3], np.zeros((3, 4))
    sizes = []
    for _ in range(60):
        before = m
        m = state.step(m, g, ALPHA)
        sizes.append(float(np.linalg.norm(m - ALPHA * before)))
        assert rank_of(m - ALPHA * before, g) <= 2
    assert sizes[-1] < 1e-4 * sizes[0]
