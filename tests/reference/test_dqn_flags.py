"""The buffer of NaN flags: every class of bits, every place, every slot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import nan_flags
from trueup.reference.dqn.nan_flags import BACKWARD, FORWARD, RESERVED, SLOTS

PROFILE = settings(derandomize=True, deadline=None, max_examples=200)
BAD = {
    "quiet_nan": 0x7FC00000,
    "signalling_nan": 0x7F800001,
    "negative_nan": 0xFFC00001,
    "infinity": 0x7F800000,
    "minus_infinity": 0xFF800000,
}
GOOD = {"subnormal": 0x00000001, "largest": 0x7F7FFFFF, "minus_zero": 0x80000000, "one": 0x3F800000}


def value(pattern: int) -> float:
    """The number of a float32 bit pattern; widening keeps NaN a NaN."""
    with np.errstate(invalid="ignore"):
        return float(np.array([pattern], dtype=np.uint32).view(np.float32)[0])


def scan(
    x: np.ndarray, slot: int, flags: np.ndarray, seen: np.ndarray, step: int
) -> tuple[np.ndarray, np.ndarray]:
    return nan_flags(x, flags, seen, np.full(1, float(slot)), np.full(1, float(step)))


def clear() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(SLOTS), np.full(SLOTS, -1.0)


def test_the_buffer_is_twenty_four_twelve_and_twelve() -> None:
    sizes = [b - a for a, b in (FORWARD, BACKWARD, RESERVED)]
    assert sizes == [24, 12, 12]
    assert RESERVED[1] == SLOTS == 48
    assert FORWARD[1] == BACKWARD[0]
    assert BACKWARD[1] == RESERVED[0]


@pytest.mark.parametrize("place", [0, 3, 6], ids=["first", "middle", "last"])
@pytest.mark.parametrize("name", [*BAD, *GOOD])
def test_each_class_of_bits_at_each_place(name: str, place: int) -> None:
    x = np.ones(7)
    x[place] = value((BAD | GOOD)[name])
    flags, seen = scan(x, 30, *clear(), step=12)
    want = np.zeros(SLOTS)
    want[30] = name in BAD
    np.testing.assert_array_equal(flags, want)
    np.testing.assert_array_equal(seen, np.where(want > 0, 12.0, -1.0))


@PROFILE
@given(
    steps=st.lists(st.tuples(st.integers(0, 35), st.booleans()), max_size=12),
)
def test_sticky_until_reset_and_the_first_step_stays(steps: list[tuple[int, bool]]) -> None:
    """Against a dictionary that remembers the first step of each slot."""
    flags, seen = clear()
    first: dict[int, int] = {}
    for step, (slot, bad) in enumerate(steps):
        x = np.array([1.0, np.inf if bad else 2.0, 3.0])
        flags, seen = scan(x, slot, flags, seen, step)
        if bad:
            first.setdefault(slot, step)
    assert {int(s) for s in np.flatnonzero(flags)} == set(first)
    assert {int(s): int(seen[s]) for s in np.flatnonzero(seen >= 0)} == first
    assert (flags[slice(*RESERVED)] == 0.0).all()


def test_a_bad_pad_is_found_where_it_is_part_of_the_tensor() -> None:
    padded = np.concatenate([np.ones(5), np.full(3, np.nan)])
    assert scan(padded, 2, *clear(), step=0)[0][2] == 1.0
    assert scan(padded[:5], 2, *clear(), step=0)[0][2] == 0.0


def test_reference_clip_keeps_nan_and_fmin_fmax_does_not() -> None:
    from trueup.reference.isv.clip import clip

    x = np.array([np.nan, -1.0, 0.5, 2.0])
    np.testing.assert_array_equal(clip(x, 0.0, 1.0), [np.nan, 0.0, 0.5, 1.0])
    hidden = np.fmax(np.fmin(x, 1.0), 0.0)
    assert np.isfinite(hidden[0])
