"""Preprint Eq. 3: the regularised leader is gradient descent, as long as the rate is constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import get
from trueup.reference.nl import ftrl
from trueup.reference.nl.ftrl import leader_objective

PROFILE = settings(derandomize=True, deadline=None, max_examples=30)
histories = arrays(np.float64, (4, 3, 2), elements=st.floats(-4.0, 4.0))
matrices = arrays(np.float64, (3, 2), elements=st.floats(-4.0, 4.0))
rates = st.floats(1e-2, 0.9)


@PROFILE
@given(W_1=matrices, G=histories, change=matrices, eta=rates)
def test_the_leader_is_the_minimum(W_1: Any, G: Any, change: Any, eta: float) -> None:
    best = ftrl(W_1, G, eta)
    least = leader_objective(best, W_1, G, eta)
    rise = leader_objective(best + change, W_1, G, eta) - least
    scale = 1 + abs(least) + np.sum((best + change - W_1) ** 2) / eta
    np.testing.assert_allclose(rise, np.sum(change**2) / (2 * eta), atol=1e-12 * scale)


def _descent(etas: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run torch's SGD on a quadratic: weights at the start and the end, gradients seen."""
    rng = np.random.default_rng(0)
    A, start = torch.tensor(rng.standard_normal((3, 3))), rng.standard_normal((3, 2))
    weights, seen = torch.nn.Parameter(torch.tensor(start)), []
    optimiser = torch.optim.SGD([weights], lr=1.0)
    for eta in etas:
        optimiser.param_groups[0]["lr"] = eta
        optimiser.zero_grad()
        ((A @ weights) ** 2).sum().mul(0.1).backward()
        assert weights.grad is not None
        seen.append(weights.grad.numpy().copy())
        optimiser.step()
    return start, np.stack(seen), weights.detach().numpy()


def test_at_a_constant_rate_it_is_the_sgd_of_the_libraries() -> None:
    start, seen, end = _descent([0.1] * 6)
    np.testing.assert_allclose(ftrl(start, seen, 0.1), end, rtol=1e-13, atol=1e-14)


def test_under_a_schedule_it_is_not() -> None:
    start, seen, end = _descent([0.2, 0.1, 0.05])
    for eta in (0.2, 0.1, 0.05):
        assert not np.allclose(ftrl(start, seen, eta), end, rtol=1e-3)
    weighed = start - sum(eta * g for eta, g in zip((0.2, 0.1, 0.05), seen, strict=True))
    np.testing.assert_allclose(weighed, end, rtol=1e-13)


def test_no_gradients_leave_the_start() -> None:
    start = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(ftrl(start, np.zeros((0, 2, 3)), 0.3), start)


def test_it_is_not_called_the_prints() -> None:
    entry = get("nl.ftrl")
    assert "preprint" in entry.grade
    assert "preprint" in entry.source
