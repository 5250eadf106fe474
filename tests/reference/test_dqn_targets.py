"""Returns, double-DQN targets, priorities, trunk factors, horizons and the magnitude's input."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import get
from trueup.reference.dqn import (
    bdq_target,
    horizon_value,
    mag_concat,
    mag_concat_backward,
    nstep_return,
    td_priority,
    trunk_gradient,
)

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)
GAMMA = np.array([0.9, 0.85, 0.99, 0.8])


def returns_by_hand(
    rewards: list[Any], done: list[int], gamma: Fraction, aversion: Fraction
) -> tuple[Fraction, Fraction]:
    total, power = Fraction(0), Fraction(1)
    for reward, over in zip(rewards, done, strict=True):
        felt = Fraction(reward) if reward >= 0 else aversion * Fraction(reward)
        total, power = total + power * felt, power * gamma
        if over:
            return total, Fraction(0)
    return total, power


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_return_in_exact_rationals(steps: int) -> None:
    rng = np.random.default_rng(steps)
    rewards = rng.integers(-4, 5, (9, steps)) / 4.0
    done = (rng.random((9, steps)) < 0.25).astype(float)
    gamma = np.array([0.5, 0.75, 0.875, 1.0])
    total, discount = nstep_return(rewards, done, gamma, 1.5)
    for b in range(9):
        for k in range(4):
            want = returns_by_hand(
                list(rewards[b]), list(done[b]), Fraction(gamma[k]), Fraction(3, 2)
            )
            assert (total[b, k], discount[b, k]) == (float(want[0]), float(want[1]))


def test_losses_weigh_half_more_and_once() -> None:
    total, _ = nstep_return(np.array([[-1.0], [1.0]]), np.zeros((2, 1)), GAMMA)
    assert total[:, 0].tolist() == [-1.5, 1.0]
    twice, _ = nstep_return(np.array([[-1.0]]), np.zeros((1, 1)), GAMMA, reading="aversion_twice")
    assert twice[0, 0] == -2.25


def test_a_cut_trajectory_bootstraps_and_a_terminal_one_does_not() -> None:
    _, cut = nstep_return(np.ones((1, 3)), np.zeros((1, 3)), GAMMA)
    np.testing.assert_allclose(cut[0], GAMMA**3)
    _, over = nstep_return(np.ones((1, 3)), np.array([[0.0, 0.0, 1.0]]), GAMMA)
    assert (over == 0.0).all()


def values(seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    online, target = rng.standard_normal((2, 5, 13))
    return online, target, rng.standard_normal((5, 4)), rng.uniform(0.0, 1.0, (5, 4))


@PROFILE
@given(seed=SEEDS)
def test_target_is_chosen_online_and_valued_by_the_target_network(seed: int) -> None:
    """Third source: torch's argmax and gather, branch by branch."""
    online, target, returns, discount = values(seed)
    want = []
    for own_online, own_target in zip(
        torch.split(torch.tensor(online), [4, 3, 3, 3], 1),
        torch.split(torch.tensor(target), [4, 3, 3, 3], 1),
        strict=True,
    ):
        want.append(own_target.gather(1, own_online.argmax(1, keepdim=True))[:, 0])
    value = torch.stack(want, 1).numpy()
    np.testing.assert_allclose(
        bdq_target(online, target, returns, discount), returns + discount * value
    )
    np.testing.assert_allclose(
        bdq_target(online, target, returns, discount, reading="mean_target"),
        returns + discount * value.mean(1, keepdims=True),
    )


def test_the_two_targets_coincide_where_the_branches_agree() -> None:
    online = np.tile(np.arange(13.0), (2, 1))
    alike = np.full((2, 13), 0.75)
    returns, discount = np.ones((2, 4)), np.full((2, 4), 0.5)
    one = bdq_target(online, alike, returns, discount)
    np.testing.assert_array_equal(
        one, bdq_target(online, alike, returns, discount, reading="mean_target")
    )


def test_priority_by_hand() -> None:
    mass, p = np.zeros((1, 4, 3)), np.zeros((1, 4, 3))
    mass[..., 2], p[..., 0] = 1.0, 1.0
    z = np.tile([-1.0, 0.0, 1.0], (1, 4, 1)) * np.array([1.0, -1.0, 2.0, 0.5])[:, None]
    td, priority = td_priority(mass, z, p, np.ones((1, 4)))
    assert td.tolist() == [[2.0, -2.0, 4.0, 1.0]]
    assert priority.tolist() == [9.0]
    assert td_priority(mass, z, p, np.ones((1, 4)), reading="ce")[1].tolist() == [4.0]
    assert td_priority(mass, z, p, np.ones((1, 4)), reading="signed")[1].tolist() == [5.0]


def test_trunk_gets_a_twentieth_of_each_c51_branch_and_a_quarter_of_each_iqn_branch() -> None:
    ones = np.ones((4, 3))
    heads, trunk = trunk_gradient(ones)
    assert (heads == 0.25).all()
    np.testing.assert_allclose(trunk, 4 / 20)
    heads, trunk = trunk_gradient(ones, reading="iqn")
    assert (heads == 1.0).all()
    assert (trunk == 1.0).all()  # equal branches: one branch's own gradient
    assert (trunk_gradient(ones, reading="unscaled")[1] == 4.0).all()


@PROFILE
@given(seed=SEEDS, short=st.floats(0.1, 0.9), long=st.floats(0.9, 0.999))
def test_horizons_add_up(seed: int, short: float, long: float) -> None:
    """Along a chain of rewards, V_short + W is the long-horizon value itself."""
    rewards = np.random.default_rng(seed).standard_normal(12)
    v_short, v_long, w = 0.0, 0.0, 0.0
    for r in rewards[::-1]:
        v_next, w_next = np.full(1, v_short), np.full(1, w)
        v_short, v_long = r + short * v_short, r + long * v_long
        got = horizon_value(np.full(1, v_short), v_next, w_next, short, long)
        w = float(got[0][0])
        assert got[1][0] == pytest.approx(v_long, abs=1e-10)


def test_magnitude_input_by_hand() -> None:
    """rms of 3 and -4 twice is sqrt(12.5); features keep their sign."""
    h, q = np.array([[-1.0, 2.0]]), np.array([[3.0, -4.0, 3.0, -4.0]])
    got, c = mag_concat(h, q, np.array([2.0]))
    assert c[0] == pytest.approx(2.0 / np.sqrt(12.5))
    np.testing.assert_allclose(got[0], [-1.0, 2.0, *(c * q)[0]])
    assert mag_concat(h, 1e-9 * q, np.array([2.0]))[1][0] == 100.0
    d_h, d_q = mag_concat_backward(np.ones((1, 6)), q, np.array([2.0]))
    assert d_h.tolist() == [[1.0, 1.0]]
    np.testing.assert_allclose(d_q, np.full((1, 4), c[0]))


def test_magnitude_input_backward_by_torch_with_a_constant_scale() -> None:
    rng = np.random.default_rng(3)
    h, q, d = rng.standard_normal((3, 5)), rng.standard_normal((3, 4)), rng.standard_normal((3, 9))
    leaves = [torch.tensor(x, requires_grad=True) for x in (h, q)]
    rms = (leaves[1].detach() ** 2).mean().sqrt()
    out = torch.cat([leaves[0], (1.5 / rms).clamp(max=100.0) * leaves[1]], 1)
    np.testing.assert_allclose(mag_concat(h, q, np.array([1.5]))[0], out.detach().numpy())
    out.backward(torch.tensor(d))
    for leaf, mine in zip(leaves, mag_concat_backward(d, q, np.array([1.5])), strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(mine, leaf.grad.numpy(), atol=1e-13)


@pytest.mark.parametrize(
    ("id", "given"),
    [
        (
            "dqn.nstep_return",
            {
                "rewards": np.array([[-1.0, 0.5, -0.25], [0.5, 1.0, -2.0]]),
                "done": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
                "gamma": GAMMA,
            },
        ),
        (
            "dqn.bdq_target",
            dict(zip(("q_online", "q_target", "returns", "discount"), values(1), strict=True))
            | {"discount": np.array([[0.0] * 4] + [[0.9, 0.8, 0.7, 0.6]] * 4)},
        ),
        ("dqn.trunk_gradient", {"gradients": np.arange(12.0).reshape(4, 3)}),
        (
            "dqn.horizon_value",
            {
                "v_short": np.array([1.0]),
                "v_short_next": np.array([2.0]),
                "w_next": np.array([-1.0]),
                "gamma_short": 0.8,
                "gamma_long": 0.99,
            },
        ),
    ],
)
def test_every_mutant_is_far_off(id: str, given: dict[str, Any]) -> None:
    entry = get(id)
    right = entry.call(entry.default_reading, **given)
    for name in entry.wrong:
        wrong = entry.call(name, **given)
        pairs = zip(*((x if isinstance(x, tuple) else (x,)) for x in (wrong, right)), strict=True)
        assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3, name
