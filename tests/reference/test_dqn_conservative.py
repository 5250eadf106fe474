"""Conservative, expectile and entropy terms: torch, exact properties, mutants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import conservative, entropy_term, expectile, expectile_backup
from trueup.reference.dqn.conservative import WRONG as CONSERVATIVE_WRONG
from trueup.reference.dqn.entropy_term import WRONG as ENTROPY_WRONG
from trueup.reference.dqn.expectile import BACKUP_WRONG
from trueup.reference.dqn.expectile import WRONG as EXPECTILE_WRONG

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)


def batch(seed: int = 0, B: int = 7, A: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "Q": 2 * rng.standard_normal((B, A)),
        "a_data": rng.integers(0, A, B),
        "w": rng.uniform(0.2, 2.0, B),
    }


def of_entropy(values: dict[str, Any]) -> dict[str, Any]:
    return {"Q": values["Q"], "w": values["w"], "strength": 0.3, "T": 0.7}


def test_conservative_is_a_cross_entropy() -> None:
    """logsumexp Q - Q[a] is the cross-entropy of softmax(Q) with the action in the data."""
    values = batch()
    Q = torch.tensor(values["Q"], requires_grad=True)
    rows = torch.nn.functional.cross_entropy(Q, torch.tensor(values["a_data"]), reduction="none")
    total = 0.25 * 0.8 * (torch.tensor(values["w"]) * rows).mean()
    total.backward()
    loss, dQ = conservative(**values, alpha=0.8)
    assert loss[0] == pytest.approx(total.item(), rel=1e-12)
    assert Q.grad is not None
    np.testing.assert_allclose(dQ, Q.grad.numpy(), rtol=1e-11, atol=1e-14)


@PROFILE
@given(seed=st.integers(0, 10_000), c=st.floats(-500.0, 500.0))
def test_conservative_ignores_a_common_constant_and_its_gradient_sums_to_zero(
    seed: int, c: float
) -> None:
    values = batch(seed)
    loss, dQ = conservative(**values, alpha=0.8)
    moved, slope = conservative(**(values | {"Q": values["Q"] + c}), alpha=0.8)
    assert moved[0] == pytest.approx(loss[0], abs=1e-11)
    np.testing.assert_allclose(slope, dQ, atol=1e-12)
    np.testing.assert_allclose(dQ.sum(axis=1), 0.0, atol=1e-15)
    assert loss[0] > 0


@PROFILE
@given(seed=st.integers(0, 10_000))
def test_greedy_data_costs_at_most_the_log_of_the_actions(seed: int) -> None:
    values = batch(seed, B=1) | {"w": np.ones(1)}
    values["a_data"] = np.argmax(values["Q"], axis=1)
    loss, _ = conservative(**values, alpha=1.0, branch_weight=1.0)
    assert 0 < loss[0] <= np.log(4)


def test_conservative_is_exactly_zero_where_the_data_leads_by_fifty() -> None:
    Q = np.array([[50.0, 0.0, 0.0]])
    loss, _ = conservative(Q, np.zeros(1, int), np.ones(1), 1.0, 1.0)
    assert loss[0] == 0.0
    equal, _ = conservative(np.zeros((1, 3)), np.zeros(1, int), np.ones(1), 1.0, 1.0)
    assert equal[0] == pytest.approx(np.log(3), rel=1e-14)


def test_without_the_shift_float32_overflows_above_88() -> None:
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(89.0)))
    values = batch() | {"Q": batch()["Q"] + 800.0}
    assert np.isfinite(conservative(**values, alpha=1.0)[0]).all()
    assert np.isinf(conservative(**values, alpha=1.0, reading="no_shift")[0]).all()


def test_expectile_against_torch() -> None:
    values, V = batch(), np.random.default_rng(4).standard_normal(7)
    leaf = torch.tensor(V, requires_grad=True)
    u = torch.tensor(values["Q"][np.arange(7), values["a_data"]]) - leaf
    total = 0.25 * (torch.tensor(values["w"]) * (0.9 - (u < 0).double()).abs() * u**2).mean()
    total.backward()
    loss, dV = expectile(**values, V=V, tau=0.9)
    assert loss[0] == pytest.approx(total.item(), rel=1e-13)
    assert leaf.grad is not None
    np.testing.assert_allclose(dV, leaf.grad.numpy(), rtol=1e-12)


def test_expectile_at_one_half_is_half_the_squared_error() -> None:
    values, V = batch(), np.zeros(7)
    u = values["Q"][np.arange(7), values["a_data"]]
    loss, _ = expectile(**values, V=V, tau=0.5, branch_weight=1.0)
    assert loss[0] == pytest.approx((values["w"] * 0.5 * u**2).mean(), rel=1e-13)


@PROFILE
@given(seed=st.integers(0, 10_000))
def test_the_expectile_rises_with_tau(seed: int) -> None:
    """Solved by Newton's rule on the gradient: a weighted mean, repeated until it stands."""
    Q = np.random.default_rng(seed).standard_normal((1, 9))

    def solved(tau: float) -> float:
        V = 0.0
        for _ in range(60):
            lean = np.where(Q < V, 1 - tau, tau)
            V = float((lean * Q).sum() / lean.sum())
        rows = np.tile(Q.T, (1, 1))
        slope = expectile(rows, np.zeros(9, int), np.full(9, V), np.ones(9), tau)[1]
        assert slope.sum() == pytest.approx(0.0, abs=1e-12)
        return V

    expectiles = [solved(tau) for tau in (0.1, 0.5, 0.7, 0.9)]
    assert expectiles == sorted(expectiles)
    assert expectiles[1] == pytest.approx(Q.mean(), abs=1e-12)


def test_backup_by_hand() -> None:
    got = expectile_backup(
        np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.array([10.0, 10.0]), np.array([0.9, 0.5])
    )
    np.testing.assert_allclose(got, [[10.0, 6.0], [2.0, 2.0]], rtol=1e-15)


def test_entropy_against_torch() -> None:
    values = batch()
    Q = torch.tensor(values["Q"], requires_grad=True)
    entropy = torch.distributions.Categorical(logits=Q / 0.7).entropy()
    total = -0.25 * 0.3 * (torch.tensor(values["w"]) * entropy).mean()
    total.backward()
    loss, dQ = entropy_term(**of_entropy(values))
    assert loss[0] == pytest.approx(total.item(), rel=1e-12)
    assert Q.grad is not None
    np.testing.assert_allclose(dQ, Q.grad.numpy(), rtol=1e-9, atol=1e-14)


@PROFILE
@given(seed=st.integers(0, 10_000), c=st.floats(-300.0, 300.0))
def test_entropy_ignores_a_common_constant(seed: int, c: float) -> None:
    values = of_entropy(batch(seed))
    loss, dQ = entropy_term(**values)
    moved, slope = entropy_term(**(values | {"Q": values["Q"] + c}))
    assert moved[0] == pytest.approx(loss[0], abs=1e-11)
    np.testing.assert_allclose(slope, dQ, atol=1e-11)
    np.testing.assert_allclose(dQ.sum(axis=1), 0.0, atol=1e-14)


def test_equal_values_have_the_largest_entropy_and_no_gradient() -> None:
    values = of_entropy(batch()) | {"Q": np.full((7, 4), 2.5), "w": np.ones(7)}
    loss, dQ = entropy_term(**values, branch_weight=1.0)
    assert loss[0] == pytest.approx(-0.3 * np.log(4), rel=1e-14)
    np.testing.assert_allclose(dQ, 0.0, atol=1e-16)


@pytest.mark.parametrize("reading", CONSERVATIVE_WRONG)
def test_conservative_mutants_are_far_away(reading: str) -> None:
    values = batch()
    if reading == "no_shift":
        values["Q"] = values["Q"] + 800.0
    right = conservative(**values, alpha=0.8)
    wrong = conservative(**values, alpha=0.8, reading=reading)
    with np.errstate(invalid="ignore"):
        gaps = [np.abs(a - b).max() for a, b in zip(right, wrong, strict=True)]
    assert not max(gaps) < 1e-3


@pytest.mark.parametrize("reading", EXPECTILE_WRONG)
def test_expectile_mutants_are_far_away(reading: str) -> None:
    values = batch() | {"V": np.random.default_rng(4).standard_normal(7), "tau": 0.9}
    pairs = zip(expectile(**values), expectile(**values, reading=reading), strict=True)
    assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3


@pytest.mark.parametrize("reading", BACKUP_WRONG)
def test_backup_mutants_are_far_away(reading: str) -> None:
    values = [
        np.array([1.0, 2.0]),
        np.array([0.0, 1.0]),
        np.array([3.0, 4.0]),
        np.array([0.9, 0.5]),
    ]
    gap = expectile_backup(*values) - expectile_backup(*values, reading=reading)
    assert np.abs(gap).max() > 1e-2


@pytest.mark.parametrize("reading", ENTROPY_WRONG)
def test_entropy_mutants_are_far_away(reading: str) -> None:
    values = of_entropy(batch())
    pairs = zip(entropy_term(**values), entropy_term(**values, reading=reading), strict=True)
    assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3
