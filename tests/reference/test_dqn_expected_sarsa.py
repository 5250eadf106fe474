"""The expected-SARSA mixture: limits of the temperature, and the mixture as a weighted sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import get
from trueup.reference.dqn import c51_projection, sarsa_mixture, sarsa_policy
from trueup.reference.dqn.atoms import softmax

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)


def targets(seed: int, batch: int = 3, actions: int = 4, n: int = 7) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def support(*shape: int) -> Any:
        low, span = rng.uniform(-2.0, -1.0, shape), rng.uniform(2.0, 4.0, shape)
        return np.stack([low, low + span, span / (n - 1)], -1)

    return {
        "policy": softmax(rng.standard_normal((batch, actions))),
        "p_next": softmax(rng.standard_normal((batch, actions, n))),
        "support": support(batch),
        "next_support": support(batch, actions),
        "returns": rng.uniform(-0.5, 0.5, batch),
        "discount": rng.uniform(0.6, 0.99, batch),
    }


@PROFILE
@given(seed=SEEDS)
def test_mixture_is_the_weighted_sum_of_the_projections(seed: int) -> None:
    values = targets(seed)
    want = np.zeros((3, 7))
    for a in range(4):

        def four(x: Any) -> Any:
            return np.repeat(x[:, None], 4, 1)

        mass, _ = c51_projection(
            four(values["p_next"][:, a]),
            four(values["support"]),
            four(values["next_support"][:, a]),
            four(values["returns"]),
            four(values["discount"]),
        )
        want += values["policy"][:, a : a + 1] * mass[:, 0]
    mass, invalid = sarsa_mixture(**values)
    np.testing.assert_allclose(mass, want, atol=1e-13)
    np.testing.assert_allclose(mass.sum(-1), 1.0, atol=1e-13)
    assert not invalid.any()


def test_temperature_by_hand() -> None:
    q = np.array([[0.0, 1.0, 0.75], [0.0, 3.0, 1.0]])
    policy, T = sarsa_policy(q, np.full(1, 0.25), t_min=0.0625, t_max=1.0625)
    np.testing.assert_allclose(T, [0.0625 + 0.75 * 0.75, 0.0625])
    np.testing.assert_allclose(policy, softmax(q / T[:, None]))


def test_limits_are_the_best_action_and_the_uniform_mixture() -> None:
    q = np.array([[0.1, 0.4, 0.3]])
    cold, _ = sarsa_policy(q, np.ones(1), t_min=1e-3)
    np.testing.assert_allclose(cold, [[0.0, 1.0, 0.0]], atol=1e-12)
    hot, _ = sarsa_policy(q, np.zeros(1), t_max=1e9)
    np.testing.assert_allclose(hot, 1.0 / 3.0, atol=1e-8)


@PROFILE
@given(seed=SEEDS, health=st.floats(-0.5, 1.5))
def test_temperature_stays_in_its_range_and_falls_with_health(seed: int, health: float) -> None:
    q = np.random.default_rng(seed).standard_normal((5, 4))
    _, T = sarsa_policy(q, np.full(1, health))
    _, better = sarsa_policy(q, np.full(1, health + 0.1))
    assert (T >= 1e-3 - 1e-9).all()
    assert (T <= 1.0 + 1e-12).all()
    assert (better <= T + 1e-15).all()


@pytest.mark.parametrize("id", ["dqn.sarsa_policy", "dqn.sarsa_mixture"])
def test_every_mutant_is_far_off(id: str) -> None:
    entry = get(id)
    given: dict[str, Any] = targets(3)
    if id == "dqn.sarsa_policy":
        q = 0.4 * np.random.default_rng(1).standard_normal((6, 4))
        given = {"q": q, "health": np.full(1, 0.3)}
    right = entry.call("default", **given)
    for name in entry.wrong:
        wrong = entry.call(name, **given)
        assert max(np.abs(a - b).max() for a, b in zip(wrong, right, strict=True)) > 1e-2, name
