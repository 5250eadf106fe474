"""Prioritised replay: the sum tree against exact rationals and a list of cumulative sums."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trueup.reference import BadInputs
from trueup.reference.dqn import (
    importance_weights,
    priorities,
    sum_tree_rebuild,
    sum_tree_sample,
    sum_tree_update,
)
from trueup.reference.dqn.priorities import beta_at, new_leaf
from trueup.reference.dqn.sum_tree import rebuilt

PROFILE = settings(derandomize=True, deadline=None, max_examples=200)
whole = st.integers(0, 9).map(float)
ZERO = np.zeros(1)


def tree_of(*leaves: float) -> np.ndarray:
    return rebuilt(np.array(leaves), ZERO)


def leaf_at(tree: np.ndarray, v: float) -> int:
    """The leaf of one value: a batch of one, whose stratum is the whole range."""
    index, _ = sum_tree_sample(tree, np.full(1, v / tree[1]))
    return int(index[0])


def by_cumulation(leaves: list[float], v: float) -> int:
    """The first leaf whose cumulative sum is above v: the right value, from a plain list."""
    totals = accumulate(map(Fraction, leaves))
    return next(i for i, total in enumerate(totals) if Fraction(v) < total)


def test_golden_tree_and_descent() -> None:
    tree = tree_of(1.0, 2.0, 3.0, 4.0)
    np.testing.assert_array_equal(tree[1:], [10.0, 3.0, 7.0, 1.0, 2.0, 3.0, 4.0])
    wanted = {0.0: 0, 0.999: 0, 1.0: 1, 2.999: 1, 3.0: 2, 5.999: 2, 6.0: 3, 9.999: 3}
    assert {v: leaf_at(tree, v) for v in wanted} == wanted


def test_golden_boundary_beside_an_empty_leaf() -> None:
    tree = tree_of(1.0, 0.0, 3.0, 0.0)
    assert leaf_at(tree, 1.0) == 2
    left, _ = sum_tree_sample(tree, np.full(1, 0.25), reading="left_on_equality")
    assert left[0] == 0.0


def test_the_guard_keeps_the_padding_leaf_from_being_drawn() -> None:
    """Leaves 1, 0, 3 and v = 4, the total: without the guard leaf 3, which is padding."""
    tree = tree_of(1.0, 0.0, 3.0, 0.0)
    assert leaf_at(tree, 4.0) == 2
    unguarded, share = sum_tree_sample(tree, np.ones(1), reading="unguarded")
    assert (unguarded[0], share[0]) == (3.0, 0.0)


@pytest.mark.parametrize("root", [0.0, np.nan, np.inf, -1.0])
def test_a_root_that_is_not_positive_and_finite_gives_no_sample(root: float) -> None:
    tree = tree_of(1.0, 2.0, 3.0, 4.0)
    tree[1] = root
    index, share = sum_tree_sample(tree, np.array([0.1, 0.9]))
    np.testing.assert_array_equal(index, [-1.0, -1.0])
    np.testing.assert_array_equal(share, [0.0, 0.0])


@PROFILE
@given(
    leaves=st.lists(whole, min_size=8, max_size=8).filter(any),
    u=st.lists(st.integers(0, 1023), min_size=4, max_size=4),
)
def test_descent_is_the_inverse_of_the_cumulative_sum(leaves: list[float], u: list[int]) -> None:
    """Whole leaves and dyadic u: everything is exact, ties included."""
    tree = tree_of(*leaves)
    index, share = sum_tree_sample(tree, np.array(u) / 1024)
    v = [(b + x / 1024) * sum(leaves) / 4 for b, x in enumerate(u)]
    assert [int(i) for i in index] == [by_cumulation(leaves, one) for one in v]
    np.testing.assert_array_equal(share, [leaves[int(i)] / sum(leaves) for i in index])
    assert (np.diff(index) >= 0).all()  # strata in order: leaves in order
    assert all(leaves[int(i)] > 0 for i in index)


@PROFILE
@given(
    capacity=st.integers(1, 21),
    entries=st.lists(st.tuples(st.integers(0, 20), st.floats(0.0, 9.0, width=32)), min_size=1),
)
def test_updates_leave_the_tree_that_a_rebuild_gives(
    capacity: int, entries: list[tuple[int, float]]
) -> None:
    """Bit for bit, for every number of leaves, with the last of equal indices in its leaf."""
    leaves = np.arange(1.0, capacity + 1) / 3.0
    tree = rebuilt(leaves, ZERO)
    index = np.array([i % capacity for i, _ in entries])
    got = sum_tree_update(tree, index, np.array([p for _, p in entries]))
    for i, p in entries:
        leaves[i % capacity] = p
    np.testing.assert_array_equal(got, rebuilt(leaves, ZERO))
    np.testing.assert_array_equal(got, sum_tree_rebuild(got))
    for parent in range(1, capacity):
        assert got[parent] == got[2 * parent] + got[2 * parent + 1]


def test_differences_added_to_parents_drift_and_sums_do_not() -> None:
    """A thousand float32 updates: the propagated root is off, the recomputed one is its sum."""
    rng = np.random.default_rng(0)
    leaves = rng.uniform(0.0, 1.0, 64).astype(np.float32)
    tree = rebuilt(leaves, np.zeros(1, np.float32))
    drifting = tree.copy()
    for _ in range(1000):
        i, p = int(rng.integers(64)), np.float32(10.0 ** rng.uniform(-3, 3))
        change = np.float32(p - drifting[64 + i])
        node = 64 + i
        while node:
            drifting[node] = np.float32(drifting[node] + change)
            node //= 2
        tree = sum_tree_update(tree, np.array([i]), np.array([p]))
    assert tree.dtype == np.float32
    np.testing.assert_array_equal(tree, sum_tree_rebuild(tree))
    assert not np.array_equal(drifting, sum_tree_rebuild(drifting))


def test_strata_give_each_leaf_its_share() -> None:
    """A leaf of a quarter of the total is drawn by a quarter of the strata, whatever u."""
    tree = tree_of(1.0, 2.0, 4.0, 1.0)
    for seed in range(20):
        index, _ = sum_tree_sample(tree, np.random.default_rng(seed).random(64))
        counts = np.bincount(index.astype(int), minlength=4)
        np.testing.assert_array_equal(counts, [8, 16, 32, 8])


# ---- priorities and weights


def test_priorities_by_hand() -> None:
    td = np.array([[1.0, -2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(priorities(td, 0.5, 1e-6), [2.00000025, 1e-3], rtol=1e-9)
    np.testing.assert_array_equal(priorities(td, 0.0, 1e-6), [1.0, 1.0])  # alpha = 0: uniform


@PROFILE
@given(td=hnp.arrays(np.float64, (3, 4), elements=st.floats(-9.0, 9.0)), alpha=st.floats(0.1, 1.0))
def test_priorities_are_positive_even_and_monotone(td: np.ndarray, alpha: float) -> None:
    leaf = priorities(td, alpha)
    assert (leaf > 0.0).all()
    np.testing.assert_array_equal(priorities(-td, alpha), leaf)
    assert (priorities(1.5 * td, alpha) >= leaf).all()


@PROFILE
@given(
    leaves=hnp.arrays(np.float64, 8, elements=st.floats(0.01, 9.0)),
    beta=st.floats(0.0, 1.0),
    stored=st.integers(8, 5000),
)
def test_weights_are_those_of_the_print_whatever_the_number_stored(
    leaves: np.ndarray, beta: float, stored: int
) -> None:
    share = leaves / leaves.sum()
    got = importance_weights(share, beta)
    raw = (stored * share) ** -beta
    np.testing.assert_allclose(got, raw / raw.max(), rtol=1e-12)
    assert got.max() == 1.0
    assert (got > 0.0).all()


def test_weights_are_one_at_beta_zero_and_below_one_over_the_buffer() -> None:
    share = np.array([0.1, 0.2, 0.7])
    np.testing.assert_array_equal(importance_weights(share, 0.0), np.ones(3))
    least = np.full(1, 0.05)
    got = importance_weights(share, 1.0, least, reading="buffer")
    np.testing.assert_allclose(got, [0.5, 0.25, 0.05 / 0.7], rtol=1e-15)


def test_beta_rises_in_a_straight_line_to_one_and_stays() -> None:
    assert [beta_at(step, 10) for step in (0, 5, 10, 25)] == pytest.approx([0.4, 0.7, 1.0, 1.0])
    with pytest.raises(BadInputs, match="step -1 of 10"):
        beta_at(-1, 10)


def test_a_new_transition_has_the_largest_priority_so_far() -> None:
    assert new_leaf(np.array([0.5, 3.0, 0.0])) == 3.0
    assert new_leaf(np.zeros(4)) == 1.0
    assert new_leaf(np.zeros(0)) == 1.0
