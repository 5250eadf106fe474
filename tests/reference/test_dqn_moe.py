"""Mixture of experts: parameter counts, torch autograd, exact properties, mutants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import (
    moe_balance,
    moe_gate_backward,
    moe_gate_forward,
    moe_mixture_backward,
    moe_mixture_forward,
)
from trueup.reference.dqn.moe_gate import BACKWARD_WRONG, BALANCE_WRONG, FORWARD_WRONG, parameters
from trueup.reference.dqn.moe_mixture import BACKWARD_WRONG as MIXTURE_BACKWARD_WRONG
from trueup.reference.dqn.moe_mixture import FORWARD_WRONG as MIXTURE_WRONG

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)


def gate(B: int = 5, S: int = 9, H: int = 6, E: int = 4, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {"x": (B, S), "W1": (H, S), "b1": (H,), "W2": (E, H), "b2": (E,)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def experts(B: int = 5, E: int = 4, D: int = 7, seed: int = 1) -> Any:
    return np.random.default_rng(seed).standard_normal((B, E, D))


def test_parameter_counts() -> None:
    assert parameters(128, 64, 8) == 8776
    assert parameters(42, 64, 8) == 3272


def test_only_64_units_and_8_experts_give_both_counts() -> None:
    def fits(S: int, count: int) -> set[tuple[int, int]]:
        units = range(1, count // (S + 2) + 1)
        found = {(H, (count - S * H - H) // (H + 1)) for H in units}
        return {(H, E) for H, E in found if E >= 1 and parameters(S, H, E) == count}

    full, market = fits(128, 8776), fits(42, 3272)
    assert full & market == {(64, 8)}
    assert {(12, 556), (4, 1652)} <= full
    assert {(38, 42), (16, 152)} <= market


def test_a_gate_has_the_parameters_of_its_matrices() -> None:
    values = gate(S=128, H=64, E=8)
    assert sum(values[name].size for name in ("W1", "b1", "W2", "b2")) == 8776


def test_torch_autograd_of_gate_mixture_and_balance_together() -> None:
    values, given_ = gate(), experts()
    leaf = {name: torch.tensor(v, requires_grad=True) for name, v in values.items()}
    leaf_experts = torch.tensor(given_, requires_grad=True)
    F = torch.nn.functional
    h = torch.relu(F.linear(leaf["x"], leaf["W1"], leaf["b1"]))
    g = torch.softmax(F.linear(h, leaf["W2"], leaf["b2"]), dim=1)
    out = (g[:, :, None] * leaf_experts).sum(dim=1)
    balance = 4 * (g.mean(dim=0) ** 2).sum()
    d_out = np.random.default_rng(2).standard_normal(tuple(out.shape))
    ((out * torch.tensor(d_out)).sum() + 0.3 * balance).backward()

    weights, units = moe_gate_forward(**values)
    np.testing.assert_allclose(weights, g.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(moe_mixture_forward(weights, given_), out.detach(), rtol=1e-11)
    loss, of_balance = moe_balance(weights)
    assert loss[0] == pytest.approx(balance.item(), rel=1e-12)
    dexperts, dg = moe_mixture_backward(d_out, weights, given_)
    assert leaf_experts.grad is not None
    np.testing.assert_allclose(dexperts, leaf_experts.grad.numpy(), rtol=1e-12)
    needed = {k: values[k] for k in ("x", "W1", "W2")}
    got = moe_gate_backward(dg + 0.3 * of_balance, **needed, h=units, g=weights)
    for name, mine in zip(("x", "W1", "b1", "W2", "b2"), got, strict=True):
        grad = leaf[name].grad
        assert grad is not None
        np.testing.assert_allclose(mine, grad.numpy(), rtol=1e-10, atol=1e-12, err_msg=name)


@PROFILE
@given(seed=st.integers(0, 10_000))
def test_identical_experts_give_the_expert_and_no_gradient_of_the_gate(seed: int) -> None:
    values = gate(seed=seed)
    g, h = moe_gate_forward(**values)
    np.testing.assert_allclose(g.sum(axis=1), 1.0, atol=1e-14)
    same = np.repeat(experts(seed=seed)[:, :1], 4, axis=1)
    np.testing.assert_allclose(moe_mixture_forward(g, same), same[:, 0], rtol=1e-12, atol=1e-14)
    _, dg = moe_mixture_backward(np.ones((5, 7)), g, same)
    needed = {k: values[k] for k in ("x", "W1", "W2")}
    for part in moe_gate_backward(dg, **needed, h=h, g=g):
        np.testing.assert_allclose(part, 0.0, atol=1e-11)


def test_a_one_hot_gate_selects_its_expert() -> None:
    given_ = experts()
    chosen = np.array([2, 0, 3, 1, 1])
    np.testing.assert_array_equal(
        moe_mixture_forward(np.eye(4)[chosen], given_), given_[np.arange(5), chosen]
    )


def test_permuting_experts_with_their_rows_changes_nothing() -> None:
    values, given_ = gate(), experts()
    order = np.array([3, 1, 0, 2])
    moved = values | {"W2": values["W2"][order], "b2": values["b2"][order]}
    want = moe_mixture_forward(moe_gate_forward(**values)[0], given_)
    got = moe_mixture_forward(moe_gate_forward(**moved)[0], given_[:, order])
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_balance_lies_between_one_and_the_number_of_experts() -> None:
    assert moe_balance(np.full((6, 8), 0.125))[0][0] == pytest.approx(1.0, rel=1e-14)
    assert moe_balance(np.tile(np.eye(8)[2], (6, 1)))[0][0] == pytest.approx(8.0, rel=1e-14)
    g = moe_gate_forward(**gate(B=30, E=8))[0]
    loss, dg = moe_balance(g)
    assert 1.0 < loss[0] < 8.0
    np.testing.assert_array_equal(dg, np.tile(dg[:1], (30, 1)))  # the same through every gate


@pytest.mark.parametrize("reading", FORWARD_WRONG)
def test_forward_mutants_are_far_away(reading: str) -> None:
    values = gate(S=128, H=64, E=8)
    gap = np.abs(moe_gate_forward(**values, reading=reading)[0] - moe_gate_forward(**values)[0])
    assert gap.max() > 1e-3


@pytest.mark.parametrize("reading", BACKWARD_WRONG)
def test_backward_mutants_are_far_away(reading: str) -> None:
    values = gate()
    g, h = moe_gate_forward(**values)
    needed = {k: values[k] for k in ("x", "W1", "W2")} | {"h": h, "g": g}
    dg = np.random.default_rng(3).standard_normal(g.shape)
    right, wrong = moe_gate_backward(dg, **needed), moe_gate_backward(dg, **needed, reading=reading)
    assert max(np.abs(a - b).max() for a, b in zip(right, wrong, strict=True)) > 1e-3


@pytest.mark.parametrize("reading", BALANCE_WRONG)
def test_balance_mutants_are_far_away(reading: str) -> None:
    g = moe_gate_forward(**gate())[0]
    pairs = zip(moe_balance(g), moe_balance(g, reading=reading), strict=True)
    assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3


@pytest.mark.parametrize("reading", [*MIXTURE_WRONG, *MIXTURE_BACKWARD_WRONG])
def test_mixture_mutants_are_far_away(reading: str) -> None:
    g, given_ = moe_gate_forward(**gate())[0], experts()
    if reading in MIXTURE_WRONG:
        right: Any = (moe_mixture_forward(g, given_),)
        wrong: Any = (moe_mixture_forward(g, given_, reading=reading),)
        assert np.abs(right[0] - wrong[0]).max() > 1e-3
    if reading in MIXTURE_BACKWARD_WRONG:
        d_out = np.random.default_rng(5).standard_normal((5, 7))
        right = moe_mixture_backward(d_out, g, given_)
        wrong = moe_mixture_backward(d_out, g, given_, reading=reading)
        assert max(np.abs(a - b).max() for a, b in zip(right, wrong, strict=True)) > 1e-3
