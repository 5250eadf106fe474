"""The monitor's contract: it reads, it counts changes, and the bus is the same afterwards."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.errors import BadInputs
from trueup.reference.isv.monitor import Monitor, fires

PROFILE = settings(derandomize=True, deadline=None, max_examples=100)
series = st.lists(st.floats(width=32), min_size=0, max_size=12)


def observed(values: list[float], **rest: float) -> Monitor:
    monitor = Monitor("tau", 3, **rest)  # type: ignore[arg-type]
    for value in values:
        isv = np.zeros(6, dtype=np.float32)
        isv[3] = value
        monitor.observe(isv)
    return monitor


def by_hand(values: list[float]) -> float:
    """Changes of bits between neighbours, -0 and +0 being one and NaN another."""

    def key(value: float) -> object:
        return "nan" if np.isnan(value) else value + 0.0

    changes = sum(key(a) != key(b) for a, b in itertools.pairwise(values))
    return changes / max(1, len(values) - 1)


@pytest.mark.parametrize(
    ("last", "value", "fired"),
    [
        (1.0, 1.0, False), (1.0, np.nextafter(np.float32(1), np.float32(2)), True),
        (0.0, -0.0, False), (np.nan, np.nan, False), (np.nan, 1.0, True), (1.0, np.nan, True),
        (np.inf, np.inf, False), (np.inf, -np.inf, True), (np.inf, 1.0, True),
    ],
)  # fmt: skip
def test_what_counts_as_a_change(last: float, value: float, fired: bool) -> None:
    assert fires(last, value) is fired


def test_tolerances_are_strict() -> None:
    assert not fires(1.0, 1.5, atol=0.5)
    assert fires(1.0, 1.5, atol=0.49)
    assert not fires(2.0, 1.0, rtol=0.5)
    assert fires(2.0, 0.99, rtol=0.5)


@PROFILE
@given(series)
def test_fire_rate_is_the_share_of_changes(values: list[float]) -> None:
    rate = observed(values).fire_rate()
    assert rate == by_hand(values)
    assert 0.0 <= rate <= 1.0


def test_constant_never_fires_and_alternating_always_does() -> None:
    assert observed([2.5] * 20).fire_rate() == 0.0
    assert observed([0.0, 1.0] * 10).fire_rate() == 1.0
    assert observed([]).fire_rate() == observed([7.0]).fire_rate() == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda v: (len(set(v)) > 0) / max(1, len(v) - 1), id="first-counts"),
        pytest.param(
            lambda v: sum(a != b for a, b in itertools.pairwise(v)) / len(v), id="over-n-obs"
        ),
        pytest.param(lambda v: sum(b != v[0] for b in v[1:]) / (len(v) - 1), id="from-the-first"),
    ],
)
def test_wrong_rates_differ(wrong: Callable[[list[float]], float]) -> None:
    values = [1.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    assert observed(values).fire_rate() == 2 / 5
    assert wrong(values) != 2 / 5


@PROFILE
@given(st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=6))
def test_no_call_changes_a_bit_of_the_bus(words: list[int]) -> None:
    isv = np.array(words, dtype=np.uint32).view(np.float32)
    isv.flags.writeable = False
    before = hashlib.sha256(isv.tobytes()).digest()
    monitor = Monitor("gamma", 1, 4)
    for _ in range(3):
        monitor.observe(isv)
        assert monitor.read(isv).tobytes() == isv[1:5].tobytes()
        monitor.diagnose(isv)
    assert hashlib.sha256(isv.tobytes()).digest() == before
    assert monitor.fire_rate() == 0.0


def test_one_of_several_slots_is_enough_to_fire() -> None:
    monitor = Monitor("gamma", 0, 4)
    isv = np.zeros(4, dtype=np.float32)
    monitor.observe(isv)
    isv[3] = 1.0
    assert monitor.observe(isv)
    assert monitor.diagnose(isv) == {"value": [0.0, 0.0, 0.0, 1.0], "fire_rate": 1.0, "n_obs": 2}


def test_what_is_not_finite_is_told_as_null() -> None:
    monitor = Monitor("tau", 0)
    assert monitor.diagnose(np.full(1, np.nan, np.float32))["value"] is None


@pytest.mark.parametrize(
    "isv", [np.zeros(3, np.float32), np.zeros(9), np.zeros((9, 1), np.float32)]
)
def test_another_bus_is_refused(isv: np.ndarray) -> None:
    with pytest.raises(BadInputs, match="not the bus of this monitor"):
        Monitor("tau", 3).read(isv)  # type: ignore[arg-type]
