"""Eq. 17 against its exact properties, torch autograd, library SGD and golden numbers."""

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
from trueup.reference.nl import momentum

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
SHAPE = (3, 2)
matrices = arrays(np.float64, SHAPE, elements=st.floats(-4.0, 4.0))
histories = arrays(np.float64, (5, *SHAPE), elements=st.floats(-4.0, 4.0))
units = st.floats(0.0, 1.0)
rates = st.floats(1e-3, 0.9)


def exact(rows: Any) -> np.ndarray:
    """Read decimal strings and integers as exact rationals."""
    read = np.vectorize(lambda entry: Fraction(str(entry)), otypes=[object])
    return np.asarray(read(np.array(rows)))


def run(gradients: Any, alphas: Any, etas: Any, reading: str = "i") -> list[float]:
    """Follow one scalar weight from rest, constant data: the weights after each step."""
    m, W, weights = np.zeros((1, 1)), np.zeros((1, 1)), []
    for step, g in enumerate(gradients):
        upcoming = etas[step + 1] if step + 1 < len(etas) else None
        m, W = momentum(
            m, W, np.full((1, 1), float(g)), alphas[step], etas[step], upcoming, reading=reading
        )
        weights.append(float(W[0, 0]))
    return weights


def test_golden_two_steps_in_exact_rationals() -> None:
    W, m = exact([[1, 2, -1], [0, 1, 1]]), exact(np.zeros((2, 3), dtype=int))
    g0, g1 = exact([[1, -1, 2], [-2, 2, -4]]), exact([[0, 1, 0], [1, 0, -1]])
    m, W = momentum(m, W, g0, Fraction("0.9"), Fraction("0.1"))  # type: ignore[arg-type]
    assert (m == exact([["-.1", ".1", "-.2"], [".2", "-.2", ".4"]])).all()
    m, W = momentum(m, W, g1, Fraction("0.8"), Fraction("0.05"))  # type: ignore[arg-type]
    assert (m == exact([["-.08", ".03", "-.16"], [".11", "-.16", ".37"]])).all()
    assert np.array_equal(W, exact([[".82", "2.13", "-1.36"], [".31", ".64", "1.77"]]))


@PROFILE
@given(gs=histories, alphas=st.lists(units, min_size=5, max_size=5), eta=rates)
def test_q17_1_unrolled_sum(gs: Any, alphas: list[float], eta: float) -> None:
    etas = [eta * (1.0 + 0.3 * step) for step in range(5)]
    m = W = np.zeros(SHAPE)
    for g, alpha, rate in zip(gs, alphas, etas, strict=True):
        m, W = momentum(m, W, g, alpha, rate)
    unrolled = sum(-np.prod(alphas[i + 1 :]) * etas[i] * gs[i] for i in range(5))
    np.testing.assert_allclose(m, unrolled, rtol=1e-12, atol=1e-12)


@PROFILE
@given(gs=histories, alpha=units, eta=rates)
def test_q17_2_heavy_ball_at_constant_rates(gs: Any, alpha: float, eta: float) -> None:
    m, W, path = np.zeros(SHAPE), np.zeros(SHAPE), [np.zeros(SHAPE)]
    for g in gs:
        m, W = momentum(m, W, g, alpha, eta)
        path.append(W)
    for i in range(1, len(gs)):
        ball = path[i] - eta * gs[i] + alpha * (path[i] - path[i - 1])
        np.testing.assert_allclose(path[i + 1], ball, rtol=1e-12, atol=1e-11)


@PROFILE
@given(m=matrices, g=matrices, alpha=units, eta=rates)
def test_q17_3_and_q18_2_one_gradient_step_on_the_objective(
    m: Any, g: Any, alpha: float, eta: float
) -> None:
    """Third source: torch differentiates <m, g> + (1 - alpha) / (2 eta) |m|^2."""
    leaf = torch.tensor(m, dtype=torch.float64, requires_grad=True)
    loss = (leaf * torch.tensor(g)).sum() + (1.0 - alpha) / (2.0 * eta) * (leaf * leaf).sum()
    loss.backward()
    assert leaf.grad is not None
    got, _ = momentum(m, np.zeros(SHAPE), g, alpha, eta)
    np.testing.assert_allclose(got, m - eta * leaf.grad.numpy(), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize(("factor", "stable"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
def test_q17_4_stable_up_to_twice_one_plus_alpha(alpha: float, factor: float, stable: bool) -> None:
    curvature, m, W = 2.0, np.zeros((1, 1)), np.ones((1, 1))
    eta = factor * 2.0 * (1.0 + alpha) / curvature
    for _ in range(2000):
        m, W = momentum(m, W, curvature * W, alpha, eta)
        if abs(W[0, 0]) > 1e6:
            break
    assert bool(abs(W[0, 0]) < 1e-2) is stable


@PROFILE
@given(gs=histories, alpha=units, eta=rates, c=st.floats(-8.0, 8.0))
def test_q17_5_linear_in_the_gradient_history(gs: Any, alpha: float, eta: float, c: float) -> None:
    m = scaled = W = np.zeros(SHAPE)
    for g in gs:
        m, _ = momentum(m, W, g, alpha, eta)
        scaled, _ = momentum(scaled, W, c * g, alpha, eta)
    np.testing.assert_allclose(scaled, c * m, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("reading", "weights"),
    [pytest.param("i", [-1.0, -2.0], id="i"), pytest.param("i+1", [-0.1, -0.2], id="i+1")],
)
def test_e12a_index_of_the_rate(reading: str, weights: list[float]) -> None:
    got = run([1, 1], [0.9, 0.9], [1.0, 0.1, 0.01], reading)
    np.testing.assert_allclose(got, weights, rtol=1e-13)


def test_e12a_index_of_alpha() -> None:
    """alpha_{i+1} as printed gives -2.1; reading alpha_i instead gives -2.9."""
    alphas = [0.5, 0.9, 0.1]
    np.testing.assert_allclose(run([1, 1], alphas[1:], [1.0, 1.0])[-1], -2.1, rtol=1e-13)
    assert run([1, 1], alphas[:2], [1.0, 1.0])[-1] == pytest.approx(-2.9, rel=1e-13)


def test_the_reading_of_the_next_rate_needs_it() -> None:
    with pytest.raises(NotApplicable, match="eta_next"):
        run([1], [0.9], [1.0], "i+1")


def library(alphas: Any, etas: Any) -> list[float]:
    """Run torch's own SGD with momentum, gradient 1."""
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=1.0, momentum=0.5)
    path = []
    for alpha, eta in zip(alphas, etas, strict=True):
        optimiser.param_groups[0].update(lr=eta, momentum=alpha)
        weight.grad = torch.ones(1, dtype=torch.float64)
        optimiser.step()
        path.append(float(weight.detach()[0]))
    return path


def test_e12c_library_sgd_is_eq_17_at_a_constant_rate_only() -> None:
    alphas, constant, schedule = [0.9] * 4, [0.1] * 4, [1.0, 0.1]
    np.testing.assert_allclose(run([1] * 4, alphas, constant), library(alphas, constant))
    np.testing.assert_allclose(library(alphas[:2], schedule), [-1.0, -1.19])
    np.testing.assert_allclose(run([1, 1], alphas, schedule), [-1.0, -2.0])
    np.testing.assert_allclose(run([1, 1], alphas, schedule, "library_sgd"), [-1.0, -1.19])


def test_u22_ema_equals_eq_17_under_the_declared_map_at_constant_rates() -> None:
    """buffer <- b buffer + (1 - b) g, W - lr buffer is Eq. 17 with eta = lr (1 - b)."""
    got = run([1, 2, 3], [0.9] * 3, [0.5] * 3, "ema")
    np.testing.assert_allclose(got, run([1, 2, 3], [0.9] * 3, [0.05] * 3), rtol=1e-13)
    schedule = [0.5, 0.1, 0.3]
    changed = run([1, 2, 3], [0.9] * 3, schedule, "ema")
    mapped = run([1, 2, 3], [0.9] * 3, [0.1 * eta for eta in schedule])
    assert abs(changed[-1] - mapped[-1]) > 0.01


def test_edges_no_gradient_and_no_momentum() -> None:
    m, W, g = np.array([[2.0, -1.0]]), np.array([[1.0, 1.0]]), np.array([[3.0, 4.0]])
    decayed, moved = momentum(m, W, np.zeros((1, 2)), 0.5, 0.1)
    np.testing.assert_array_equal(decayed, 0.5 * m)
    np.testing.assert_array_equal(moved, W + 0.5 * m)
    np.testing.assert_array_equal(momentum(m, W, g, 0.0, 0.25)[1], W - 0.25 * g)
