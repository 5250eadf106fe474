"""Thompson sampling, greedy and epsilon-greedy choice, noise: goldens and exact probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import get
from trueup.reference.dqn import advantage_noise, epsilon_greedy, greedy_action, thompson
from trueup.reference.dqn.greedy import branch_of

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)
P = np.array([[[0.25, 0.5, 0.25], [0.1, 0.1, 0.8]]])
# Atoms -1, 0, 1 and -2, .5, .7 as positions of supports that differ: two calls, one a row.
EVEN, ODD = np.array([0.0, 0.5, 1.0]), np.array([0.0, 2.5 / 2.7, 1.0])


def sampled(u: tuple[float, float], **more: Any) -> tuple[list[float], int]:
    support = np.array([[[-1.0, 1.0, 1.0], [-2.0, 0.7, 1.35]]])
    draws = np.array([u])
    one = thompson(np.log(P), support, draws, EVEN, **more)[1][0, 0]
    two = thompson(np.log(P), support, draws, ODD, **more)[1][0, 1]
    return [float(one), float(two)], int(two > one)


@pytest.mark.parametrize(
    ("u", "atoms", "action"),
    [
        ((0.0, 0.0), [-1.0, -2.0], 0),
        ((0.2499, 0.15), [-1.0, 0.5], 1),
        ((0.7501, 0.19), [1.0, 0.5], 0),
        ((0.26, 0.09), [0.0, -2.0], 0),
        ((0.999, 0.999), [1.0, 0.7], 0),
    ],
)
def test_golden(u: tuple[float, float], atoms: list[float], action: int) -> None:
    got, chosen = sampled(u)
    np.testing.assert_allclose(got, atoms, atol=1e-15)
    assert chosen == action


def test_probability_of_the_second_action_over_a_grid() -> None:
    """Exactly 0.675, by counting all pairs of a grid off the steps."""
    grid = (np.arange(200) + 0.5) / 200
    z = [np.array([-1.0, 0.0, 1.0]), np.array([-2.0, 0.5, 0.7])]
    first = z[0][np.searchsorted(np.cumsum(P[0, 0]), grid, side="right")]
    second = z[1][np.searchsorted(np.cumsum(P[0, 1]), grid, side="right")]
    assert (second[None] > first[:, None]).mean() == pytest.approx(0.675, abs=1e-12)
    for u in grid[::13]:
        for w in grid[::17]:
            i, j = (int(np.searchsorted(grid, x)) for x in (u, w))
            got, chosen = sampled((u, w))
            np.testing.assert_allclose(got, [first[i], second[j]], atol=1e-15)
            assert chosen == int(second[j] > first[i])


def head(seed: int, batch: int = 4, actions: int = 3, n: int = 7) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    low, span = rng.uniform(-2.0, 0.0, (batch, actions)), rng.uniform(1.0, 3.0, (batch, actions))
    return {
        "logits": 2.0 * rng.standard_normal((batch, actions, n)),
        "support": np.stack([low, low + span, span / (n - 1)], -1),
        "u": rng.random((batch, actions)),
        "shift": 0.3 * rng.standard_normal((batch, actions)),
    }


@PROFILE
@given(seed=SEEDS)
def test_more_u_is_never_less_value(seed: int) -> None:
    values = head(seed)
    more = values | {"u": values["u"] + (1.0 - values["u"]) * 0.3}
    assert (thompson(**more)[1] >= thompson(**values)[1]).all()


@PROFILE
@given(seed=SEEDS)
def test_no_u_takes_the_first_atom_and_one_hot_rows_their_own(seed: int) -> None:
    values = head(seed)
    low = values["support"][..., 0] + values["shift"]
    np.testing.assert_allclose(thompson(**(values | {"u": np.zeros((4, 3))}))[1], low)
    hot = np.random.default_rng(seed).integers(0, 7, (4, 3, 1))
    logits = np.full((4, 3, 7), -800.0)
    np.put_along_axis(logits, hot, 0.0, -1)
    action, got, _ = thompson(**(values | {"logits": logits}))
    want = low + hot[..., 0] * values["support"][..., 2]
    np.testing.assert_allclose(got, want)
    np.testing.assert_array_equal(action, np.argmax(want, axis=1))


def test_u_on_a_step_belongs_to_the_next_atom() -> None:
    logits, support = np.zeros((1, 1, 4)), np.array([[[0.0, 3.0, 1.0]]])
    assert thompson(logits, support, np.array([[0.25]]))[1].tolist() == [[1.0]]
    wrong = thompson(logits, support, np.array([[0.25]]), reading="inclusive_step")
    assert wrong[1].tolist() == [[0.0]]


def test_where_no_atom_is_above_u_the_last_with_mass_is_taken() -> None:
    logits = np.array([[[0.0, 0.0, -900.0]]])
    support, u = np.array([[[0.0, 2.0, 1.0]]]), np.array([[1.0]])
    assert thompson(logits, support, u)[1].tolist() == [[1.0]]


def test_ties_take_the_lowest_index() -> None:
    logits, support = np.zeros((1, 3, 2)), np.tile([0.0, 1.0, 1.0], (1, 3, 1))
    assert thompson(logits, support, np.full((1, 3), 0.9))[0].tolist() == [0]
    scores = np.zeros((1, 13))
    assert greedy_action(scores).tolist() == [[0, 0, 0, 0]]
    assert greedy_action(scores, reading="last_tie").tolist() == [[3, 2, 2, 2]]


def test_greedy_within_each_branch() -> None:
    scores = np.array([[0, 9, 1, 2, 3, 1, 2, 0, 5, 5, 1, 1, 7]], dtype=float)
    assert greedy_action(scores).tolist() == [[1, 0, 1, 2]]


def test_epsilon_explores_each_branch_alone() -> None:
    greedy, other = np.zeros((1, 4)), np.ones((1, 4))
    u = np.array([[0.1, 0.3, 0.29, 0.9]])
    assert epsilon_greedy(greedy, other, u, np.array([0.3])).tolist() == [[1.0, 0.0, 1.0, 0.0]]


def noise(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((5, 13)), rng.uniform(0.1, 2.0, 4), rng.standard_normal((5, 13))


def test_branch_of_every_action() -> None:
    assert branch_of() == (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)


@PROFILE
@given(seed=SEEDS, branch=st.integers(0, 3))
def test_a_silent_branch_keeps_its_bits_and_no_branch_moves_another(seed: int, branch: int) -> None:
    score, sigma, xi = noise(seed)
    score[:, ::3] = -0.0
    own = np.array([k == branch for k in branch_of()])
    quiet = sigma.copy()
    quiet[branch] = 0.0
    loud, still = advantage_noise(score, sigma, xi), advantage_noise(score, quiet, xi)
    assert still[:, own].tobytes() == score[:, own].tobytes()
    assert still[:, ~own].tobytes() == loud[:, ~own].tobytes()


@PROFILE
@given(seed=SEEDS)
def test_equal_sigmas_are_the_scalar_version(seed: int) -> None:
    score, _, xi = noise(seed)
    np.testing.assert_allclose(advantage_noise(score, np.full(4, 0.7), xi), score + 0.7 * xi)


def test_noise_on_the_logits_of_the_atoms_explores_nothing() -> None:
    values = head(3)
    moved = values | {"logits": values["logits"] + 5.0 * np.array([1.0, -1.0, 0.5])[:, None]}
    np.testing.assert_array_equal(thompson(**moved)[0], thompson(**values)[0])


@pytest.mark.parametrize("id", ["dqn.thompson", "dqn.advantage_noise"])
def test_every_mutant_is_far_off(id: str) -> None:
    entry = get(id)
    if id == "dqn.thompson":
        given = head(7, batch=40)
        given["u"][0] = 0.25
        given["logits"][0], given["support"][0] = 0.0, [0.0, 1.5, 0.25]
        given |= {"logits": np.concatenate([given["logits"], given["logits"][..., :1]], -1)}
        given["support"][..., 2] = np.ptp(given["support"][..., :2], axis=-1) / 7
    else:
        given = dict(zip(("score", "sigma", "noise"), noise(7), strict=True))
    right = entry.call("default", **given)
    for name in entry.wrong:
        wrong = entry.call(name, **given)
        if name == "last_tie":
            continue  # asserted on ties above
        pairs = zip(*((x if isinstance(x, tuple) else (x,)) for x in (wrong, right)), strict=True)
        assert max(np.abs(a - b).max() for a, b in pairs) > 1e-2, name
