"""Preprint Eq. 43: the distance from orthogonality, its gradient, and the cubic it descends by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trueup.reference.nl import newton_schulz_objective

SHAPES = [(2, 3), (3, 2), (5, 5), (7, 4), (1, 4), (4, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_is_that_of_autograd(shape: tuple[int, int]) -> None:
    value = np.random.default_rng(shape).standard_normal(shape)
    O = torch.tensor(value, requires_grad=True)  # noqa: E741
    objective = ((O.T @ O - torch.eye(shape[1], dtype=torch.float64)) ** 2).sum()
    objective.backward()
    assert O.grad is not None
    got, gradient, _ = newton_schulz_objective(value)
    np.testing.assert_allclose(got, objective.item(), rtol=1e-12)
    np.testing.assert_allclose(gradient, O.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_eighth_gives_exactly_the_cubic_iteration(shape: tuple[int, int]) -> None:
    value = np.random.default_rng(shape).standard_normal(shape) / 4
    _, _, got = newton_schulz_objective(value, 0.125)
    np.testing.assert_array_equal(got, newton_schulz_objective(value)[2])
    cubic = 0.5 * value @ (3 * np.eye(shape[1]) - value.T @ value)
    np.testing.assert_allclose(got, cubic, rtol=1e-13, atol=1e-14)


def test_many_steps_reach_the_polar_factor() -> None:
    """Of [[1, 2], [3, 4]] after 15 steps, by the table of golden numbers; after 5 not yet."""
    O = np.array([[1.0, 2.0], [3.0, 4.0]])  # noqa: E741
    O = O / np.linalg.norm(O)  # noqa: E741
    for _ in range(5):
        O = newton_schulz_objective(O)[2]  # noqa: E741
    five = [[-0.1221450209, 0.5809958314], [0.6839287760, 0.6368097435]]
    np.testing.assert_allclose(O, five, atol=1e-10)
    for _ in range(10):
        O = newton_schulz_objective(O)[2]  # noqa: E741
    polar = [[-0.5144957554, 0.8574929257], [0.8574929257, 0.5144957554]]
    np.testing.assert_allclose(O, polar, atol=1e-10)
    assert newton_schulz_objective(O)[0] < 1e-20


def test_an_orthogonal_matrix_rests_and_a_wide_one_keeps_a_distance() -> None:
    angle = 0.3
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    objective, gradient, after = newton_schulz_objective(turn)
    np.testing.assert_allclose([objective, *gradient.ravel()], 0.0, atol=1e-15)
    np.testing.assert_allclose(after, turn, atol=1e-15)
    wide = np.array([[1.0, 0.0, 0.0]])  # O^T O has rank 1 of 3: the distance is 2
    assert newton_schulz_objective(wide)[0] == 2


def test_by_hand() -> None:
    objective, gradient, after = newton_schulz_objective(np.array([[2.0]]), 0.5)
    assert (objective, gradient[0, 0], after[0, 0]) == (9, 24, -10)
