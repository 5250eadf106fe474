"""Actions as indices: bijections, goldens, what is masked; and minimal checks on a policy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from trueup.reference import BadInputs
from trueup.reference.dqn import (
    action_encoding,
    action_factoring,
    counterfactual_reward,
    legacy_action,
)
from trueup.reference.dqn.action_factoring import FLAT, FULL, HALF, HOLD, LONG, SHORT
from trueup.reference.dqn.collapse import (
    BRANCHES,
    collapsed,
    histogram,
    is_xavier,
    mix_adds_up,
    producers_told,
    seed_fraction,
    windows_in_order,
)

ALL = np.array(list(product(range(4), range(3), range(3), range(3))), dtype=np.float64)


def test_the_joint_action_is_a_bijection_of_108() -> None:
    joint = action_encoding(*ALL.T)
    np.testing.assert_array_equal(joint, np.arange(108.0))
    *branches, weight = action_factoring(joint)
    np.testing.assert_array_equal(np.stack(branches, axis=1), ALL)
    np.testing.assert_array_equal(weight, (ALL[:, 0] != HOLD) & (ALL[:, 0] != FLAT))


def test_hold_and_flat_are_two_directions_without_a_magnitude() -> None:
    direction, _, _, _, weight = action_factoring(action_encoding(*ALL.T))
    assert {int(d) for d in direction[weight == 0.0]} == {HOLD, FLAT}
    assert {int(d) for d in direction[weight == 1.0]} == {SHORT, LONG}


@pytest.mark.parametrize(
    ("parts", "index"), [((0, 0, 0), 0), ((4, 2, 2), 44), ((2, 1, 0), 21)], ids=str
)
def test_golden_indices_of_the_45(parts: tuple[int, int, int], index: int) -> None:
    exposure, order, urgency = parts
    assert exposure * 9 + order * 3 + urgency == index
    _, _, o, u = legacy_action(np.full(1, float(index)))
    assert (o[0], u[0]) == (order, urgency)


def test_the_45_map_to_distinct_actions_of_the_108() -> None:
    direction, magnitude, order, urgency = legacy_action(np.arange(45.0))
    sides = list(zip(direction[::9].astype(int), magnitude[::9].astype(int), strict=True))
    assert sides == [(SHORT, FULL), (SHORT, HALF), (FLAT, FULL), (LONG, HALF), (LONG, FULL)]
    joint = action_encoding(direction, magnitude, order, urgency)
    assert len(set(joint.tolist())) == 45
    assert HOLD not in direction  # the fourth direction came later


def test_whichever_way_one_trades_the_cost_is_paid() -> None:
    pnl, cost = np.array([2.0, -1.0, 0.0]), np.array([0.5, 0.5, 0.25])
    other = counterfactual_reward(pnl, cost)
    np.testing.assert_array_equal(other, [-2.5, 0.5, -0.25])
    np.testing.assert_array_equal((pnl - cost) + other, -2.0 * cost)


def test_histograms_sum_to_the_batch_and_refuse_strangers() -> None:
    rng = np.random.default_rng(2)
    for size in BRANCHES.values():
        actions = rng.integers(0, size, 99)
        counts = histogram(actions, size)
        assert counts.size == size
        assert int(counts.sum()) == 99
    with pytest.raises(BadInputs, match=r"0\.\.4"):
        histogram(np.array([0, 4]), 4)


def test_a_printed_mix_must_sum_to_a_hundred() -> None:
    """The history's own row, 38/12/42/14, sums to 106."""
    assert not mix_adds_up([38, 12, 42, 14])
    assert mix_adds_up([38, 12, 42, 8])
    assert mix_adds_up([33, 33, 33])
    assert mix_adds_up([34, 34, 33])
    assert not mix_adds_up([34, 34, 34])


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([25, 25, 25, 25], []),
        ([960, 20, 20], ["entropy", "action 0 has a share of 0.960"]),
        ([85, 5, 5, 5], ["entropy"]),
        ([0, 0, 0], ["no action"]),
    ],
)
def test_collapse_is_told(counts: list[int], words: list[str]) -> None:
    found = collapsed(np.array(counts))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_training_must_end_before_validation_begins() -> None:
    assert windows_in_order(np.arange(0, 50), np.arange(50, 60))
    assert not windows_in_order(np.arange(0, 51), np.arange(50, 60))
    assert not windows_in_order(np.array([0, 2, 3]), np.arange(50, 60))
    assert not windows_in_order(np.arange(0), np.arange(50, 60))


def test_xavier_variance_is_two_over_both_fans() -> None:
    rng = np.random.default_rng(4)
    good = rng.normal(0.0, np.sqrt(2.0 / 300.0), (200, 100))
    assert is_xavier(good)
    assert not is_xavier(good * np.sqrt(1.5))  # 2 / fan_in
    with pytest.raises(BadInputs, match="too few"):
        is_xavier(good[:10])


def test_each_metric_has_one_producer_and_a_unit() -> None:
    metrics = [("tau", "monitor", "1"), ("tau", "monitor", "1"), ("gamma", "monitor", "1")]
    assert producers_told(metrics) == []
    found = producers_told([*metrics, ("tau", "trainer", "1"), ("norm", "readback", " ")])
    assert found == ["tau: produced by monitor, trainer", "norm: no unit"]


def test_a_replay_begins_seeded_wholly() -> None:
    assert [seed_fraction(64, stored) for stored in (64, 128, 256)] == [1.0, 0.5, 0.25]
    for seeded, stored in ((0, 0), (3, 2), (-1, 4)):
        with pytest.raises(BadInputs, match=f"{seeded} of {stored}"):
            seed_fraction(seeded, stored)
