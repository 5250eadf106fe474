"""Eq. 28 with the surprise as a function of W: the witness of E20, autograd and its laws."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference.nl import projected_descent, projected_descent_order

READINGS = projected_descent_order.__equation__.readings  # type: ignore[attr-defined]
SHAPES = [(2, 3), (3, 2), (5, 5), (7, 4), (1, 4), (4, 1)]


def sample(shape: tuple[int, int], seed: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    W, x, v = (rng.standard_normal(s) for s in (shape, shape[1], shape[0]))
    return W, x, v


def exact(rows: Any) -> Any:
    return np.vectorize(Fraction, otypes=[object])(np.array(rows))


@pytest.mark.parametrize(
    ("reading", "row_major"),
    [
        pytest.param("simultaneous", "7/5 8/5 -1/5 1/30 29/30 16/15", id="simultaneous"),
        pytest.param("project_then_grad", "11/10 19/10 -4/5 2/15 13/15 19/15", id="project-first"),
        pytest.param("grad_then_project", "3/2 3/2 0 -1/6 7/6 2/3", id="project-last"),
        pytest.param("simultaneous_derived", "6/5 9/5 -3/5 1/10 9/10 6/5", id="derived"),
        pytest.param("plain_gd", "9/10 21/10 -6/5 1/5 4/5 7/5", id="plain_gd"),
        pytest.param("project_gradient", "1 2 -1 0 1 1", id="no-update"),
    ],
)
def test_e20_witness_in_exact_rationals(reading: str, row_major: str) -> None:
    W, x, v = exact([[1, 2, -1], [0, 1, 1]]), exact([1, -1, 2]), exact([-4, 3])
    got: Any = projected_descent_order(W, x, v, Fraction(1, 10), reading=reading)  # type: ignore[arg-type]
    assert list(got.flat) == [Fraction(entry) for entry in row_major.split()]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("decay", ["", "_derived"])
def test_each_order_by_autograd_and_an_explicit_projector(
    shape: tuple[int, int], decay: str
) -> None:
    """Third source: torch gives the gradient of the task loss at W or at the projected W."""
    W, x, v = sample(shape)
    eta = 0.13
    D = np.eye(shape[1]) - np.outer(x, x) * (eta if decay else 1.0 / (x @ x))

    def gradient(at: Any) -> Any:
        leaf = torch.tensor(at, requires_grad=True)
        (0.5 * ((leaf @ torch.tensor(x) - torch.tensor(v)) ** 2).sum()).backward()
        assert leaf.grad is not None
        return leaf.grad.numpy()

    want = {
        "simultaneous": W @ D - eta * gradient(W),
        "project_then_grad": W @ D - eta * gradient(W @ D),
        "grad_then_project": (W - eta * gradient(W)) @ D,
    }
    for order, expected in want.items():
        got = projected_descent_order(W, x, v, eta, reading=order + decay)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_simultaneous_is_the_single_equation_with_u_worked_out(shape: tuple[int, int]) -> None:
    W, x, v = sample(shape)
    for order, single in (("simultaneous", "normalized"), ("simultaneous_derived", "derived")):
        got = projected_descent_order(W, x, v, 0.2, reading=order)
        want = projected_descent(W, x, W @ x - v, 0.2, reading=single)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_e20_projecting_last_erases_the_target() -> None:
    W, x, v = sample((3, 4))
    one = projected_descent_order(W, x, v, 0.2, reading="grad_then_project")
    two = projected_descent_order(W, x, v + 5.0, 0.2, reading="grad_then_project")
    np.testing.assert_allclose(one, two, atol=1e-13)
    np.testing.assert_allclose(one @ x, 0.0, atol=1e-13)
    for reading in READINGS:
        if reading != "grad_then_project":
            one, two = (
                projected_descent_order(W, x, t, 0.2, reading=reading) for t in (v, v + 5.0)
            )
            assert np.max(np.abs(one - two)) > 0.1, reading


@pytest.mark.parametrize("reading", READINGS)
def test_q28_1_nothing_changes_orthogonal_to_x(reading: str) -> None:
    W, x, v = sample((3, 4))
    z = np.array([x[1], -x[0], x[3], -x[2]])
    got = projected_descent_order(W, x, v, 0.2, reading=reading)
    np.testing.assert_allclose(got @ z, W @ z, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reading", READINGS)
def test_a_zero_input_moves_nothing(reading: str) -> None:
    W, x, v = sample((3, 4))
    got = projected_descent_order(W, 0.0 * x, v, 0.2, reading=reading)
    np.testing.assert_array_equal(got, W)
