"""Preprint Eq. 100-105: the least-squares identity, and that it is not Adam."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import NotApplicable, get
from trueup.reference.nl import adam_memory

PROFILE = settings(derandomize=True, deadline=None, max_examples=30)
histories = arrays(np.float64, (6, 2, 3), elements=st.floats(-4.0, 4.0))
regularisers = st.floats(1e-2, 2.0)


def taken_in(gradients: Any, lam: float, **options: Any) -> tuple[np.ndarray, ...]:
    sum_g = sum_gg = np.zeros(gradients[0].shape)
    result: tuple[np.ndarray, ...] = ()
    for g in gradients:
        result = adam_memory(sum_g, sum_gg, g, lam, **options)
        sum_g, sum_gg, _ = result
    return result


@PROFILE
@given(gs=histories, lam=regularisers)
def test_the_memory_is_the_least_squares_solution_for_a_given_target(gs: Any, lam: float) -> None:
    """Each element by NumPy's solver: rows g_i against P, one more row sqrt(lam) against 0."""
    P = np.random.default_rng(0).standard_normal((2, 3))
    _, _, memory = taken_in(gs, lam, P=P, reading="given_target")
    for at in np.ndindex(2, 3):
        column = np.array([*(g[at] for g in gs), np.sqrt(lam)])
        wanted = np.array([*(P[at] for _ in gs), 0.0])
        best, *_ = np.linalg.lstsq(column[:, None], wanted, rcond=None)
        np.testing.assert_allclose(memory[at], best[0], rtol=1e-9, atol=1e-12)


@PROFILE
@given(gs=histories, lam=regularisers)
def test_the_default_target_is_the_root_of_the_squares(gs: Any, lam: float) -> None:
    sum_g, sum_gg, memory = taken_in(gs, lam)
    np.testing.assert_allclose(sum_g, gs.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(sum_gg, (gs**2).sum(axis=0), rtol=1e-12)
    given_root = taken_in(gs, lam, P=np.sqrt((gs**2).sum(axis=0)), reading="given_target")
    np.testing.assert_allclose(memory, given_root[2], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("beta_1", "beta_2"), [(0.9, 0.999), (0.5, 0.25), (1.0, 1.0)])
def test_the_constant_is_root_beta_2_over_beta_1(beta_1: float, beta_2: float) -> None:
    gs = np.random.default_rng(1).standard_normal((5, 2, 3))
    _, _, memory = taken_in(gs, 0.0)
    ratio = (beta_1 * gs.sum(axis=0)) / np.sqrt(beta_2 * (gs**2).sum(axis=0))
    np.testing.assert_allclose(memory, np.sqrt(beta_2) / beta_1 * ratio, rtol=1e-12)


def test_it_is_adagrad_with_summed_momentum_and_not_library_adam() -> None:
    rng = np.random.default_rng(2)
    gs = rng.standard_normal((4, 2, 3))
    for t in range(1, 5):
        _, _, memory = taken_in(gs[:t], 0.0)
        want = gs[:t].sum(axis=0) / np.sqrt((gs[:t] ** 2).sum(axis=0))
        np.testing.assert_allclose(memory, want, rtol=1e-12)
    weights = torch.nn.Parameter(torch.zeros(2, 3, dtype=torch.float64))
    adam = torch.optim.Adam([weights], lr=1.0, eps=0.0)
    accumulated = torch.nn.Parameter(torch.zeros(2, 3, dtype=torch.float64))
    adagrad = torch.optim.Adagrad([accumulated], lr=1.0, eps=0.0)
    for g in gs:
        before, summed = weights.detach().clone(), accumulated.detach().clone()
        weights.grad, accumulated.grad = torch.tensor(g), torch.tensor(g)
        adam.step()
        adagrad.step()
    step = (before - weights.detach()).numpy()
    assert not np.allclose(memory, step, rtol=0.05)
    # Adagrad's own step is g / sqrt(sum g^2): the same normaliser under another numerator.
    own = (summed - accumulated.detach()).numpy()
    np.testing.assert_allclose(memory * gs[-1] / gs.sum(axis=0), own, rtol=1e-10)


def test_the_sums_forget_nothing() -> None:
    sum_g, sum_gg, memory = taken_in([np.full((1, 1), 2.0)] * 50, 0.0)
    assert (sum_g[0, 0], sum_gg[0, 0]) == (100, 200)
    np.testing.assert_allclose(memory, 100 / 200**0.5)


def test_by_hand() -> None:
    """Sums 1 and 2 before, g = 2: 3 and 6 after; sqrt(6) * 3 / (3 + 6)."""
    one, two = np.ones((1, 1)), np.full((1, 1), 2.0)
    sum_g, sum_gg, memory = adam_memory(one, two, two, 3.0)
    assert (sum_g[0, 0], sum_gg[0, 0]) == (3, 6)
    np.testing.assert_allclose(memory, 6**0.5 / 3)


@pytest.mark.parametrize("reading", ["root_target", "given_target"])
def test_where_nothing_is_known_the_memory_is_zero(reading: str) -> None:
    zero = np.zeros((2, 2))
    P = np.ones((2, 2)) if reading == "given_target" else None
    sum_g, sum_gg, memory = adam_memory(zero, zero, zero, 0.0, P, reading=reading)
    for part in (sum_g, sum_gg, memory):
        assert (part == 0).all()


def test_a_given_target_must_be_given() -> None:
    one = np.ones((1, 1))
    with pytest.raises(NotApplicable, match="P, the target"):
        adam_memory(one, one, one, 1.0, reading="given_target")


def test_the_rule_is_graded_as_the_preprints() -> None:
    entry = get("nl.adam_memory")
    assert "preprint" in entry.grade
    assert "the print has no such rule" in entry.grade
    assert "not library Adam" in entry.notes
