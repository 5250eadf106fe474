"""Dueling aggregation over the branches against torch autograd and its exact properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import get
from trueup.reference.dqn import dueling_backward, dueling_forward
from trueup.reference.dqn.dueling import BRANCHES, offsets

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)


def draw(seed: int, batch: int = 3, n_atoms: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((batch, n_atoms)), rng.standard_normal((batch, 13, n_atoms))


def test_branches_are_direction_magnitude_order_urgency() -> None:
    assert BRANCHES == (4, 3, 3, 3)
    assert offsets() == (0, 4, 7, 10, 13)


def test_by_hand() -> None:
    """Advantages 1, 2, 3, 6 of mean 3 and value 10; the other branches 0."""
    advantage = np.zeros((1, 13, 1))
    advantage[0, :4, 0] = [1, 2, 3, 6]
    got = dueling_forward(np.full((1, 1), 10.0), advantage)
    assert got[0, :, 0].tolist() == [8, 9, 10, 13] + [10] * 9


@PROFILE
@given(seed=SEEDS)
def test_a_constant_over_the_actions_of_a_branch_changes_nothing(seed: int) -> None:
    value, advantage = draw(seed)
    moved = advantage.copy()
    moved[:, 4:7] += np.random.default_rng(seed + 1).standard_normal((3, 1, 5))
    np.testing.assert_allclose(
        dueling_forward(value, moved), dueling_forward(value, advantage), atol=1e-13
    )


@PROFILE
@given(seed=SEEDS)
def test_the_gradients_of_a_branch_sum_to_zero(seed: int) -> None:
    _, d = draw(seed)
    d_value, d_advantage = dueling_backward(d)
    for k, size in enumerate(BRANCHES):
        own = d_advantage[:, offsets()[k] : offsets()[k] + size]
        np.testing.assert_allclose(own.sum(axis=1), 0.0, atol=1e-13)
    np.testing.assert_allclose(d_value, d.sum(axis=1), atol=1e-13)


@pytest.mark.parametrize("shape", [(1, 2), (4, 7), (2, 51)])
def test_backward_by_torch_autograd(shape: tuple[int, int]) -> None:
    """Third source: the published forward in torch, differentiated in float64."""
    value, advantage = draw(1, *shape)
    leaves = [torch.tensor(x, requires_grad=True) for x in (value, advantage)]
    parts = [
        leaves[0][:, None] + own - own.mean(1, keepdim=True)
        for own in torch.split(leaves[1], list(BRANCHES), dim=1)
    ]
    out = torch.cat(parts, 1)
    np.testing.assert_allclose(dueling_forward(value, advantage), out.detach().numpy(), atol=1e-13)
    upstream = np.random.default_rng(2).standard_normal(out.shape)
    out.backward(torch.tensor(upstream))
    for leaf, mine in zip(leaves, dueling_backward(upstream), strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(mine, leaf.grad.numpy(), atol=1e-13)


@pytest.mark.parametrize("shape", [(1, 2), (3, 5)])
def test_backward_by_complex_step(shape: tuple[int, int]) -> None:
    value, advantage = draw(3, *shape)
    upstream = np.random.default_rng(4).standard_normal((shape[0], 13, shape[1]))
    d_value, d_advantage = dueling_backward(upstream)
    for array, gradient in ((value, d_value), (advantage, d_advantage)):
        for place in np.ndindex(*array.shape):
            moved = array.astype(complex)
            moved[place] += 1e-30j
            given = (moved, advantage) if array is value else (value, moved)
            want = (upstream * dueling_forward(*given)).sum().imag / 1e-30
            assert gradient[place] == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("id", ["dqn.dueling_forward", "dqn.dueling_backward"])
def test_every_mutant_is_far_off_on_ordinary_numbers(id: str) -> None:
    entry, (value, advantage) = get(id), draw(5, 7, 9)
    inputs = {"value": value, "advantage": advantage, "d_logits": advantage}
    given = {s.name: inputs[s.name] for s in entry.inputs}
    right = entry.call(entry.default_reading, **given)
    for name in entry.wrong:
        wrong = entry.call(name, **given)
        pairs = zip(*((x if isinstance(x, tuple) else (x,)) for x in (wrong, right)), strict=True)
        assert max(np.abs(a - b).max() for a, b in pairs) > 0.1, name
