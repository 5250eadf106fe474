"""Quantile Huber loss, its gradient, value at risk, embeddings: goldens and third sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import get
from trueup.reference.dqn import cosine_embedding, cvar, iqn_loss, iqn_target, trunk_gradient
from trueup.reference.dqn.iqn import EDGES, TAUS, crossings
from trueup.reference.dqn.iqn_inputs import CELLS

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)
TAU = np.array(TAUS)


def draw(seed: int, batch: int = 3, n_tau: int = 5, n_target: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "theta": 2.0 * rng.standard_normal((batch, 4, n_tau)),
        "target": 2.0 * rng.standard_normal((batch, 4, n_target)),
        "tau": TAU if n_tau == 5 else np.sort(rng.random(n_tau)),
        "weight": rng.uniform(0.3, 1.0, batch),
    }


def test_golden() -> None:
    theta = np.tile([-2.0, -1.0, 0.0, 1.0, 2.0], (1, 4, 1))
    target = np.tile([0.5, -3.0], (1, 4, 1))
    loss, d_theta = iqn_loss(theta, target, TAU, np.ones(1))
    np.testing.assert_allclose(loss, 2.221875, atol=1e-15)
    np.testing.assert_allclose(d_theta[0, 1], [0.45, 0.25, 0.125, 0.1875, 0.05], atol=1e-15)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("n_tau", "n_target"), [(5, 5), (7, 3), (32, 32)])
def test_gradient_by_torch_autograd(n_tau: int, n_target: int, kappa: float) -> None:
    """Third source: torch's own Huber loss, differentiated in float64."""
    values = draw(1, n_tau=n_tau, n_target=n_target)
    theta = torch.tensor(values["theta"], requires_grad=True)
    target = torch.tensor(values["target"])
    u = target[..., None, :] - theta[..., :, None]
    huber = torch.nn.functional.huber_loss(
        *torch.broadcast_tensors(theta[..., :, None], target[..., None, :]),
        reduction="none",
        delta=kappa,
    )
    level = (torch.tensor(values["tau"])[:, None] - (u < 0).double()).abs()
    loss = (level * huber / kappa).mean(-1).sum(-1)
    (torch.tensor(values["weight"])[:, None] / 3 * loss).sum().backward()
    assert theta.grad is not None
    got = iqn_loss(**values, kappa=kappa)
    np.testing.assert_allclose(got[0], loss.detach().numpy(), rtol=1e-13)
    np.testing.assert_allclose(got[1], theta.grad.numpy(), atol=1e-14)
    plain = iqn_loss(**values, kappa=kappa, reading="undivided")
    np.testing.assert_allclose(plain[0], kappa * got[0], rtol=1e-13)


@PROFILE
@given(seed=SEEDS, move=st.floats(-3.0, 3.0))
def test_never_negative_blind_to_translation_and_of_bounded_gradient(
    seed: int, move: float
) -> None:
    values = draw(seed)
    loss, d_theta = iqn_loss(**values)
    assert (loss >= 0.0).all()
    moved = values | {name: values[name] + move for name in ("theta", "target")}
    np.testing.assert_allclose(iqn_loss(**moved)[0], loss, atol=1e-12)
    limit = np.maximum(TAU, 1.0 - TAU) * values["weight"][:, None, None] / 3
    assert (np.abs(d_theta) <= limit + 1e-15).all()


def test_no_difference_has_no_loss_and_no_gradient() -> None:
    theta = np.full((2, 4, 5), 0.3)
    loss, d_theta = iqn_loss(theta, theta.copy(), TAU, np.ones(2))
    assert not loss.any()
    assert not d_theta.any()
    assert np.isfinite(d_theta).all()


def test_the_minimiser_is_the_quantile_of_the_sample() -> None:
    sample = np.sort(np.random.default_rng(0).standard_normal(401))
    grid = np.arange(-3.0, 3.0, 0.01)
    target = np.broadcast_to(sample, (len(grid), 4, 401))
    for i, tau in enumerate(TAUS):
        theta = np.repeat(np.repeat(grid[:, None, None], 4, 1), 5, 2)[..., i : i + 1]
        loss = iqn_loss(theta, target, np.array([tau]), np.ones(len(grid)), 1e-3)[0][:, 0]
        assert grid[int(np.argmin(loss))] == pytest.approx(np.quantile(sample, tau), abs=0.021)


def test_the_trunk_receives_a_quarter_of_the_sum_of_the_branches() -> None:
    values = draw(3)
    _, d_theta = iqn_loss(**values)
    heads, trunk = trunk_gradient(np.moveaxis(d_theta, 1, 0).reshape(4, -1), reading="iqn")
    np.testing.assert_array_equal(heads.reshape(4, 3, 5), np.moveaxis(d_theta, 1, 0))
    np.testing.assert_allclose(trunk, d_theta.sum(1).ravel() / 4, atol=1e-15)


@pytest.mark.parametrize(
    ("level", "want"), [(0.25, -2.2), (0.5, -1.35), (1.0, -0.15), (0.05, -3.0)]
)
def test_value_at_risk_golden(level: float, want: float) -> None:
    theta = np.array([[-3.0, -1.0, 0.0, 1.0, 2.0]])
    assert cvar(theta, np.full(1, level))[0] == pytest.approx(want, abs=1e-14)
    assert cvar(theta, np.ones(1), reading="plain_mean")[0] == pytest.approx(-0.2)


@PROFILE
@given(seed=SEEDS, level=st.floats(0.01, 1.0))
def test_value_at_risk_grows_with_the_level_on_sorted_quantiles(seed: int, level: float) -> None:
    theta = np.sort(np.random.default_rng(seed).standard_normal((4, 5)))
    low, high = cvar(theta, np.full(1, 0.9 * level)), cvar(theta, np.full(1, level))
    assert (low <= high + 1e-12).all()
    assert (high <= cvar(theta, np.ones(1)) + 1e-12).all()
    assert not crossings(theta).any()


def test_crossing_quantiles_are_counted_and_left_as_they_are() -> None:
    theta = np.array([[2.0, 1.0, 0.0, 1.0, 0.5]])
    assert crossings(theta).tolist() == [3]
    np.testing.assert_allclose(cvar(theta, np.full(1, 0.15)), 2.0)


def test_cells_are_the_gaps_between_the_edges() -> None:
    np.testing.assert_allclose(np.diff(EDGES), CELLS)
    middle = (TAU[1:] + TAU[:-1]) / 2
    np.testing.assert_allclose(EDGES[1:-1], middle)


def test_targets_by_hand() -> None:
    """The outer quantiles make the plain mean prefer action 0; the cells prefer action 1."""
    online = np.array([[[-3.0, 0.0, 0.0, 0.0, 4.1], [0.0, 0.1, 0.2, 0.3, 0.4]]])
    target = np.array([[[9.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]])
    got = iqn_target(online, target, np.array([0.5]), np.array([0.5]))
    assert got.tolist() == [[1.0, 1.5, 2.0, 2.5, 3.0]]
    wrong = iqn_target(online, target, np.array([0.5]), np.array([0.5]), reading="plain_mean")
    assert wrong.tolist() == [[5.0] * 5]


@pytest.mark.parametrize(("reading", "start"), [("from_1", 1), ("from_0", 0)])
def test_embedding_by_element(reading: str, start: int) -> None:
    rng = np.random.default_rng(1)
    tau, weight, bias = rng.random(3), rng.standard_normal((6, 4)), rng.standard_normal(4)
    got = cosine_embedding(tau, weight, bias, reading=reading)
    for k in range(3):
        for j in range(4):
            want = bias[j] + sum(
                np.cos(np.pi * (i + start) * tau[k]) * weight[i, j] for i in range(6)
            )
            assert got[k, j] == pytest.approx(max(want, 0.0), abs=1e-13)


@pytest.mark.parametrize("id", ["dqn.iqn_loss", "dqn.cvar", "dqn.iqn_target"])
def test_every_mutant_is_far_off(id: str) -> None:
    entry, rng = get(id), np.random.default_rng(5)
    given: dict[str, Any] = draw(5)
    if id == "dqn.cvar":
        given = {"theta": 2.0 * rng.standard_normal((9, 5)), "level": np.full(1, 0.4)}
    elif id == "dqn.iqn_target":
        online, target = 2.0 * rng.standard_normal((2, 40, 4, 5))
        given = {"online": online, "target": target}
        given |= {"returns": rng.standard_normal(40), "discount": np.full(40, 0.8)}
    right = entry.call(entry.default_reading, **given)
    for name in entry.wrong:
        wrong = entry.call(name, **given)
        pairs = zip(*((x if isinstance(x, tuple) else (x,)) for x in (wrong, right)), strict=True)
        assert max(np.abs(a - b).max() for a, b in pairs) > 1e-2, name
