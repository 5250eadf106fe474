"""Definition 2: levels refine the paper's order; chunk lengths are whole tokens."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import BadInputs
from trueup.reference.nl.levels import Component, chunk_sizes, levels, precedes

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)


def test_lower_frequency_is_a_higher_level_and_frozen_weights_are_last() -> None:
    parts = [
        Component("frozen", 0),
        Component("slow", Fraction(1, 16)),
        Component("fast", 1),
        Component("middle", Fraction(1, 4)),
    ]
    assert levels(parts) == {"fast": 1, "middle": 2, "slow": 3, "frozen": 4}


def test_equal_frequency_orders_by_what_a_state_needs() -> None:
    """Momentum is computed before the weights that it moves, at the same frequency."""
    parts = [Component("W", 1, ("m",)), Component("m", 1), Component("projection", 0)]
    assert levels(parts) == {"m": 1, "W": 2, "projection": 3}
    assert precedes("m", "W", parts)
    assert not precedes("W", "m", parts)


def test_equal_is_not_transitive_and_levels_still_are() -> None:
    """A = B and B = C, yet A precedes C: the depth decides, and B shares A's level."""
    parts = [Component("A", 1), Component("B", 1), Component("C", 1, ("A",))]

    def equal(a: str, b: str) -> bool:
        return not precedes(a, b, parts) and not precedes(b, a, parts)

    assert equal("A", "B")
    assert equal("B", "C")
    assert precedes("A", "C", parts)
    assert levels(parts) == {"A": 1, "B": 1, "C": 2}


def test_needs_count_through_components_of_another_frequency() -> None:
    parts = [
        Component("A", 1),
        Component("between", 2, ("A",)),
        Component("C", 1, ("between",)),
    ]
    assert precedes("A", "C", parts)
    assert levels(parts) == {"between": 1, "A": 2, "C": 3}


@st.composite
def acyclic(draw: st.DrawFn) -> list[Component]:
    count = draw(st.integers(1, 7))
    rates = draw(st.lists(st.sampled_from([0, 1, 2, 4]), min_size=count, max_size=count))
    parts = []
    for number in range(count):
        below = [str(other) for other in range(number)]
        needs = draw(st.lists(st.sampled_from(below), unique=True)) if below else []
        parts.append(Component(str(number), rates[number], tuple(needs)))
    return draw(st.permutations(parts))


@PROFILE
@given(acyclic())
def test_qd2_1_the_key_is_a_total_pre_order_that_refines_precedence(
    parts: list[Component],
) -> None:
    level = levels(parts)
    assert sorted(set(level.values())) == list(range(1, len(set(level.values())) + 1))
    for a, b in itertools.permutations(level, 2):
        if precedes(a, b, parts):
            assert level[a] < level[b], (a, b)
            assert not precedes(b, a, parts)
    rate = {part.name: part.frequency for part in parts}
    for a, b in itertools.permutations(level, 2):
        if level[a] == level[b]:
            assert rate[a] == rate[b]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        pytest.param(
            [Component("a", 1, ("b",)), Component("b", 1, ("a",))], "a needs b needs a", id="two"
        ),
        pytest.param([Component("a", 1, ("a",))], "a needs a", id="itself"),
        pytest.param(
            [Component("a", 1, ("b",)), Component("b", 2, ("a",))],
            "a needs b needs a",
            id="through-another-frequency",
        ),
        pytest.param([Component("a", 1, ("x",))], "no such component", id="unknown"),
        pytest.param([Component("a", 1), Component("a", 2)], "named twice", id="twice"),
        pytest.param([Component("a", -1)], "got -1", id="negative"),
        pytest.param([Component("a", float("nan"))], "got nan", id="nan"),
    ],
)
def test_what_has_no_level_is_refused(parts: list[Component], says: str) -> None:
    with pytest.raises(BadInputs, match=says):
        levels(parts)


def test_e22_chunk_lengths_of_the_witness() -> None:
    assert chunk_sizes(16, (16, 4, 1)) == (1, 4, 16)


@PROFILE
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 5))
def test_e22_updates_times_length_is_the_same_for_all_levels(
    updates: list[int], times: int
) -> None:
    longest = times * 60  # divided by 1 .. 6
    sizes = chunk_sizes(longest, updates)
    assert {f * size for f, size in zip(updates, sizes, strict=True)} == {longest}
    # Also transcribed as C_l = (max_j f_j / f_l) C, C the fastest level's chunk.
    fastest = min(sizes)
    for f, size in zip(updates, sizes, strict=True):
        assert Fraction(max(updates), f) * fastest == size


@pytest.mark.parametrize(("longest", "updates"), [(16, (3,)), (4, (0,)), (0, (1,)), (4, (8,))])
def test_a_chunk_is_a_whole_number_of_tokens(longest: int, updates: tuple[int, ...]) -> None:
    with pytest.raises(BadInputs, match="divides C_max"):
        chunk_sizes(longest, updates)
