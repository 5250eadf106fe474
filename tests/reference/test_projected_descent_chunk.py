"""Eq. 27-29 token by token: rationals, autograd, the compact form of the whole chunk, its laws."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference import UnknownReading
from trueup.reference.nl import (
    projected_descent,
    projected_descent_batch,
    projected_descent_chunk,
)

EQUATION = projected_descent_chunk.__equation__  # type: ignore[attr-defined]
READINGS = EQUATION.readings
HALF, FULL = "printed_objective_half", "printed_objective_full"
SINGLE = [reading for reading in READINGS if reading != "running_surprise"]
SHAPES = [(1, 2, 3), (4, 3, 2), (3, 5, 5), (6, 7, 4), (5, 1, 4), (3, 4, 1)]  # C, d_out, d_in


def sample(shape: tuple[int, int, int], seed: int = 1) -> dict[str, Any]:
    size, d_out, d_in = shape
    rng = np.random.default_rng(seed)
    return {
        "W": rng.standard_normal((d_out, d_in)),
        "X": rng.standard_normal((size, d_in)),
        "U": rng.standard_normal((size, d_out)),
        "eta": rng.uniform(0.02, 0.3, size),
        "alpha": rng.uniform(0.7, 1.0, size),
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reading", SINGLE)
def test_it_is_the_single_equation_in_a_loop(shape: tuple[int, int, int], reading: str) -> None:
    case = sample(shape)
    want = case["W"]
    for x, u, eta in zip(case["X"], case["U"], case["eta"], strict=True):
        want = projected_descent(want, x, u, float(eta), reading=reading)
    got = projected_descent_chunk(**(case | {"alpha": None}), reading=reading)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reading", READINGS)
def test_section_12_triangular_solve_of_the_whole_chunk(
    shape: tuple[int, int, int], reading: str
) -> None:
    """Third source: E (D^-1 + striu(X^T X)) = W_0 X + U diag(b / c), solved by torch.

    With retention, c_t / alpha_t and b_t / gamma_t, and the result times gamma_C.
    """
    case = sample(shape)
    X, U, eta = (torch.tensor(case[name]) for name in ("X", "U", "eta"))
    gamma = torch.cumprod(torch.tensor(case["alpha"]), 0)
    n = (X * X).sum(1)
    c, b = {
        "derived": (eta, eta),
        "literal": (torch.ones_like(eta), eta),
        "normalized": (1 / n, eta),
        "prox": (eta / (1 + eta * n), eta / (1 + eta * n)),
        "prox_unit": (eta / (1 + eta), eta / (1 + eta)),
        HALF: (eta, -eta),
        FULL: (2 * eta, -2 * eta),
        "running_surprise": (2 * eta, eta),
    }[reading]
    c, b = c / torch.tensor(case["alpha"]), b / gamma
    system = torch.diag(1 / c) + torch.triu(X @ X.T, diagonal=1)
    right = torch.tensor(case["W"]) @ X.T + U.T * (b / c)
    E = torch.linalg.solve_triangular(system, right, upper=True, left=False)
    want = gamma[-1] * (torch.tensor(case["W"]) - E @ X)
    got = projected_descent_chunk(**case, reading=reading)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("reading", ["derived", "literal", "prox", HALF, FULL, "running_surprise"])
def test_compact_form_is_exact_in_rationals(reading: str) -> None:
    """Third source: over rationals the token loop and the substitution have no rounding at all."""
    rng = np.random.default_rng(4)
    draw = np.vectorize(Fraction, otypes=[object])
    W, X, U = (draw(rng.integers(-3, 4, s)) for s in ((2, 3), (4, 3), (4, 2)))
    eta = np.array([Fraction(1, d) for d in (7, 5, 9, 4)])
    alpha = np.array([Fraction(n, 8) for n in (7, 5, 8, 6)])
    token = W
    for t in range(4):
        n = sum(X[t] * X[t])
        c, b = {
            "derived": (eta[t], eta[t]),
            "literal": (1, eta[t]),
            "prox": (eta[t] / (1 + eta[t] * n), eta[t] / (1 + eta[t] * n)),
            HALF: (eta[t], -eta[t]),
            FULL: (2 * eta[t], -2 * eta[t]),
            "running_surprise": (2 * eta[t], eta[t]),
        }[reading]
        token = np.array(
            [
                [
                    alpha[t] * token[i, j]
                    - (c * sum(token[i, m] * X[t, m] for m in range(3)) + b * U[t, i]) * X[t, j]
                    for j in range(3)
                ]
                for i in range(2)
            ]
        )
    for function in EQUATION.form(reading):
        assert (function(W, X, U, eta, alpha) == token).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_running_surprise_is_descent_on_the_squared_loss_by_autograd(
    shape: tuple[int, int, int],
) -> None:
    """Third source: one DGD step a token, u_t = grad_y 1/2 |y - v_t|^2 at the running weights."""
    case = sample(shape)
    W = torch.tensor(case["W"])
    for x, v, eta in zip(case["X"], case["U"], case["eta"], strict=True):
        x, v = torch.tensor(x), torch.tensor(v)
        y = (W @ x).requires_grad_(True)
        (0.5 * ((y - v) ** 2).sum()).backward()
        assert y.grad is not None
        inner = W.clone().requires_grad_(True)
        (0.5 * ((inner @ x + y.grad) ** 2).sum()).backward()
        assert inner.grad is not None
        W = W - float(eta) * inner.grad
    got = projected_descent_chunk(
        case["W"], case["X"], -case["U"], case["eta"], reading="running_surprise"
    )
    np.testing.assert_allclose(got, W.detach().numpy(), rtol=1e-12, atol=1e-13)


def test_decay_product_alone_in_token_order() -> None:
    """prod_t (I - c_t x_t x_t^T) from left to right, with U = 0 and W = I."""
    case = sample((5, 4, 4))
    product = np.eye(4)
    for x, eta in zip(case["X"], case["eta"], strict=True):
        product = product @ (np.eye(4) - eta * np.outer(x, x))
    got = projected_descent_chunk(np.eye(4), case["X"], 0 * case["U"], case["eta"])
    np.testing.assert_allclose(got, product, rtol=1e-12, atol=1e-13)


def test_order_witness_of_two_tokens() -> None:
    """x_a = (1, 0), x_b = (1, 1) / sqrt 2 at eta = 1: the two orders and the summed form."""
    a, b, none = np.array([1.0, 0.0]), np.array([1.0, 1.0]) / np.sqrt(2.0), np.zeros((2, 2))
    eta, identity = np.ones(2), np.eye(2)
    one = projected_descent_chunk(identity, np.stack([a, b]), none, eta)
    np.testing.assert_allclose(one, [[0.0, 0.0], [-0.5, 0.5]], atol=1e-15)
    two = projected_descent_chunk(identity, np.stack([b, a]), none, eta)
    np.testing.assert_allclose(two, [[0.0, -0.5], [0.0, 0.5]], atol=1e-15)
    summed = projected_descent_batch(identity, np.stack([a, b]), none, 1.0)
    np.testing.assert_allclose(summed, [[-0.5, -0.5], [-0.5, 0.5]], atol=1e-15)


def test_frozen_variant_is_the_batch_step_and_parts_at_second_order() -> None:
    case = sample((5, 3, 4))
    gaps = []
    for eta in (1e-2, 1e-3):
        rates = np.full(5, eta)
        loop = projected_descent_chunk(case["W"], case["X"], case["U"], rates)
        batch = projected_descent_batch(case["W"], case["X"], case["U"], eta)
        frozen = projected_descent_chunk(case["W"], case["X"], case["U"], rates, reading="frozen")
        np.testing.assert_allclose(frozen, batch, rtol=1e-12, atol=1e-13)
        gaps.append(np.max(np.abs(batch - loop)))
    assert 70.0 < gaps[0] / gaps[1] < 140.0


def test_a_chunk_may_be_cut_anywhere() -> None:
    case = sample((7, 3, 4))
    W = case["W"]
    for start in range(0, 7, 3):
        part = {n: case[n][start : start + 3] for n in ("X", "U", "eta", "alpha")}
        W = projected_descent_chunk(W, **part)
    np.testing.assert_allclose(W, projected_descent_chunk(**case), rtol=1e-12)


def test_gated_delta_rule_scales_first_and_agrees_at_alpha_one() -> None:
    """S-g: M (alpha I - alpha eta k k^T) + eta v k^T is the public rule; u = -v."""
    case = sample((3, 2, 4))
    M = case["W"]
    for k, u, eta, alpha in zip(case["X"], case["U"], case["eta"], case["alpha"], strict=True):
        M = alpha * M @ (np.eye(4) - eta * np.outer(k, k)) - eta * np.outer(u, k)
    first = projected_descent_chunk(**case, reading="retention_first")
    np.testing.assert_allclose(first, M, rtol=1e-12)
    assert np.max(np.abs(first - projected_descent_chunk(**case))) > 1e-3
    ungated = case | {"alpha": np.ones(3)}
    np.testing.assert_allclose(
        projected_descent_chunk(**ungated, reading="retention_first"),
        projected_descent_chunk(**ungated),
        rtol=1e-13,
    )


@pytest.mark.parametrize("reading", READINGS)
def test_zero_inputs_move_nothing_and_no_token_too(reading: str) -> None:
    case = sample((3, 2, 4))
    still = case | {"X": 0.0 * case["X"], "alpha": None}
    np.testing.assert_array_equal(projected_descent_chunk(**still, reading=reading), case["W"])
    none = {n: a if n == "W" else a[:0] for n, a in case.items()}
    for function in EQUATION.form(reading):
        np.testing.assert_array_equal(function(**none), case["W"])


def test_unknown_reading_is_refused() -> None:
    with pytest.raises(UnknownReading, match="backwards"):
        projected_descent_chunk(**sample((1, 1, 1)), reading="backwards")
