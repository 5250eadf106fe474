"""Eq. 30-31 over streams: cadence, splits, phases, flushes, masks, gates, causality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import BadInputs
from trueup.reference.nl import cms_update
from trueup.reference.nl.cms_stream import CmsStream, Segment, StreamLevel

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)


def product(theta: Any, x: Any, delta: Any) -> Any:
    """The error term of y = theta x: delta x."""
    return delta * x


def scalar_level(value: float, period: int, eta: float = 0.1, beta: float = 0.0) -> StreamLevel:
    return StreamLevel(np.array(value), product, period, eta, beta)


class Chain:
    """Scalar levels in a chain, y = ... b (a x), with squared loss, on given tokens."""

    def __init__(self, stream: CmsStream, x: Any, v: Any, active: Any = None) -> None:
        self.stream, self.x, self.v = stream, np.asarray(x, float), np.asarray(v, float)
        self.active = np.ones(len(self.x), bool) if active is None else np.asarray(active, bool)
        self.used: list[list[float]] = []

    def evaluate(self, offset: int) -> Callable[[int, int], Segment]:
        def run(start: int, stop: int) -> Segment:
            tokens = slice(offset + start, offset + stop)
            theta = [float(level.theta) for level in self.stream.levels]
            self.used += [theta] * (stop - start)
            inputs = [self.x[tokens]]
            for factor in theta:
                inputs.append(factor * inputs[-1])
            errors = [inputs.pop() - self.v[tokens]]
            for factor in theta[:0:-1]:
                errors.insert(0, factor * errors[0])
            return inputs, errors, self.active[tokens]

        return run

    def run(self, calls: list[int], *, finish: str = "last") -> Chain:
        offset = 0
        for tokens in calls:
            self.stream.process(tokens, self.evaluate(offset))
            offset += tokens
            if finish == "each":
                self.stream.finish()
        if finish == "last":
            self.stream.finish()
        return self

    def state(self) -> list[float]:
        return [float(level.theta) for level in self.stream.levels]


def tokens(count: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, count), rng.uniform(-1.0, 1.0, count)


def counting(period: int, count: int, active: Any = None, **how: Any) -> StreamLevel:
    """One level of the given period after so many tokens of f = 1."""
    level = StreamLevel(np.zeros(1), lambda theta, x, delta: np.ones(1), period, 1.0)
    stream = CmsStream([level], **how)
    flags = np.ones(count, bool) if active is None else np.asarray(active, bool)
    rows = np.zeros((count, 1))
    stream.process(count, lambda a, b: ([rows[a:b]], [rows[a:b]], flags[a:b]))
    stream.finish()
    return level


def test_golden_two_scalar_levels() -> None:
    """Section 9: level b's gradient at tokens 3 and 4 uses the updated a."""
    stream = CmsStream([scalar_level(1.0, 2), scalar_level(0.5, 4)])
    chain = Chain(stream, [1, 2, -1, 1], [0, 1, 1, 2])
    seen = []
    for token in range(4):
        stream.process(1, chain.evaluate(token))
        seen.append(chain.state())
    np.testing.assert_allclose([a for a, _ in seen], [1, 0.975, 0.975, 0.97625], rtol=1e-14)
    np.testing.assert_allclose([b for _, b in seen], [0.5, 0.5, 0.5, 0.4524375], rtol=1e-14)


@pytest.mark.parametrize("C", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("T", [1, 3, 8, 9, 17])
def test_q31_4_number_of_updates(C: int, T: int) -> None:
    dropped = counting(C, T, flush="drop").counters
    assert (dropped.updates, dropped.consumed, dropped.dropped) == (T // C, T // C * C, T % C)
    flushed = counting(C, T, flush="flush_partial").counters
    assert (flushed.updates, flushed.consumed, flushed.flushed) == (-(-T // C), T, T % C)
    carried = counting(C, T, flush="carry")
    assert (carried.counters.updates, carried.pending) == (T // C, T % C)


@pytest.mark.parametrize(
    ("C", "flush", "updates", "consumed"),
    [(2, "drop", 4, 8), (2, "flush_partial", 5, 9), (4, "drop", 2, 8), (4, "flush_partial", 3, 9)],
)
def test_nine_tokens(C: int, flush: str, updates: int, consumed: int) -> None:
    counters = counting(C, 9, flush=flush).counters
    assert (counters.updates, counters.consumed) == (updates, consumed)


def test_a_masked_remainder_is_not_flushed() -> None:
    """The ordinary next-token signal ends in a zero row: with T mod C = 1 nothing is flushed."""
    counters = counting(4, 9, active=[1] * 8 + [0], flush="flush_partial").counters
    assert (counters.updates, counters.consumed, counters.flushed, counters.masked) == (2, 8, 0, 1)


def updated_after(phase: str, T: int, C: int) -> list[int]:
    """0-based tokens after which theta has changed."""
    stream = CmsStream(
        [StreamLevel(np.zeros(1), lambda theta, x, delta: np.ones(1), C, 1.0)],
        phase=phase,  # type: ignore[arg-type]
    )
    seen, one = [], np.ones((1, 1))
    for token in range(T):
        before = stream.levels[0].counters.updates
        stream.append(([one], [one], np.ones(1, bool)))
        if stream.levels[0].counters.updates > before:
            seen.append(token)
    return seen


def test_phase_end_updates_after_full_chunks_and_phase_start_after_the_first_token() -> None:
    assert updated_after("end", 9, 4) == [3, 7]  # after tokens 4 and 8, counted from 1
    assert updated_after("start", 9, 4) == [0, 4, 8]


def test_phase_start_chunks_hold_the_tokens_since_the_update_before() -> None:
    """f = token number: chunks {0}, {1..4}, {5..8}."""
    level = StreamLevel(np.zeros(1), lambda theta, x, delta: delta, 4, 1.0)
    stream = CmsStream([level], phase="start")
    numbers = np.arange(9.0)[:, None]
    stream.process(9, lambda a, b: ([numbers[a:b]], [numbers[a:b]], np.ones(b - a, bool)))
    assert level.theta[0] == -(0 + (1 + 2 + 3 + 4) + (5 + 6 + 7 + 8))
    assert level.counters.updates == 3


def test_a_period_that_the_fastest_does_not_divide_updates_on_time() -> None:
    """Periods 2 and 3: the slow level's first update comes after token 3, not after token 4."""
    stream = CmsStream([scalar_level(1.0, 2), scalar_level(1.0, 3)])
    x, v = tokens(4)
    chain = Chain(stream, x, v)
    assert stream.until_update() == 2
    stream.process(3, chain.evaluate(0))
    assert [level.counters.updates for level in stream.levels] == [1, 1]


def test_a_period_longer_than_a_call_updates_under_carry() -> None:
    stream = CmsStream([scalar_level(1.0, 2), scalar_level(1.0, 4)], flush="carry")
    x, v = tokens(17)
    Chain(stream, x, v).run([3] * 5 + [2], finish="each")
    assert [level.counters.updates for level in stream.levels] == [8, 4]


@PROFILE
@given(
    calls=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    periods=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    phase=st.sampled_from(["end", "start"]),
    seed=st.integers(0, 20),
)
def test_q31_5_splitting_a_stream_into_calls_changes_nothing(
    calls: list[int], periods: list[int], phase: Any, seed: int
) -> None:
    count = sum(calls)
    x, v = tokens(count, seed)
    active = np.random.default_rng(seed).random(count) < 0.7
    states = []
    for lengths in (calls, [count], [1] * count):
        levels = [scalar_level(1.0 + place, period) for place, period in enumerate(periods)]
        stream = CmsStream(levels, flush="carry", phase=phase)
        chain = Chain(stream, x, v, active).run(lengths, finish="each")
        states.append((chain.state(), [level.counters for level in levels], chain.used))
    assert states[0] == states[1] == states[2]


def test_q31_5_fails_if_a_long_call_is_evaluated_once() -> None:
    """Popping several chunks of one forward pass reads later chunks at stale parameters."""
    x, v = tokens(4)
    right = Chain(CmsStream([scalar_level(1.0, 2)]), x, v).run([4]).state()
    stale = CmsStream([scalar_level(1.0, 2)])
    inputs, errors, active = Chain(stale, x, v).evaluate(0)(0, 4)
    for start in (0, 2):
        part = slice(start, start + 2)
        stale.append(([inputs[0][part]], [errors[0][part]], active[part]))
    assert abs(right[0] - float(stale.levels[0].theta)) > 1e-6
    with pytest.raises(BadInputs, match="beyond the next update"):
        CmsStream([scalar_level(1.0, 2)]).append((inputs, errors, active))


@pytest.mark.parametrize("perturbed", range(8))
def test_q31_6_parameters_depend_on_earlier_chunks_only(perturbed: int) -> None:
    x, v = tokens(8)
    runs = []
    for change in (0.0, 0.5):
        moved = x.copy()
        moved[perturbed] += change
        chain = Chain(CmsStream([scalar_level(1.0, 2), scalar_level(0.5, 4)]), moved, v)
        runs.append(chain.run([8]).used)
    for token in range(8):
        for place, period in enumerate((2, 4)):
            same = runs[0][token][place] == runs[1][token][place]
            if token // period <= perturbed // period:
                assert same, (token, place)
    if perturbed < 6:
        assert runs[0][7][0] != runs[1][7][0]


def test_q31_7_one_chunk_as_long_as_the_stream_is_one_full_batch_step() -> None:
    x, v = tokens(6)
    state = Chain(CmsStream([scalar_level(0.7, 6)]), x, v).run([6]).state()
    assert state[0] == pytest.approx(0.7 - 0.1 * np.sum((0.7 * x - v) * x), rel=1e-14)


def test_one_token_chunks_are_online_descent() -> None:
    x, v = tokens(6)
    state = Chain(CmsStream([scalar_level(0.7, 1)]), x, v).run([6]).state()
    w = 0.7
    for a, b in zip(x, v, strict=True):
        w -= 0.1 * (w * a - b) * a
    assert state[0] == pytest.approx(w, rel=1e-14)


@pytest.mark.parametrize(("reduce", "reading"), [("sum", "C_terms"), ("mean", "C_terms_mean")])
def test_a_chunk_of_the_stream_is_eq_31(reduce: Any, reading: str) -> None:
    x, v = tokens(5)
    active = np.array([1, 0, 1, 1, 0], bool)
    got = Chain(CmsStream([scalar_level(0.7, 5)], reduce=reduce), x, v, active).run([5]).state()
    g = ((0.7 * x - v) * x)[:, None]
    want = cms_update(np.array([0.7]), g, np.full(5, 0.1), active.astype(float), reading=reading)
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_a_fully_masked_chunk_changes_neither_parameters_nor_momentum() -> None:
    """With momentum from the chunk before, bit by bit (U23)."""
    x, v = tokens(4)
    stream = CmsStream([scalar_level(0.7, 2, beta=0.9)])
    chain = Chain(stream, x, v, [1, 1, 0, 0])
    stream.process(2, chain.evaluate(0))
    level = stream.levels[0]
    theta, momentum = level.theta.tobytes(), level.momentum.tobytes()
    assert level.momentum != 0.0
    stream.process(2, chain.evaluate(2))
    assert (level.theta.tobytes(), level.momentum.tobytes()) == (theta, momentum)
    assert (level.counters.updates, level.counters.consumed, level.counters.masked) == (1, 2, 2)


def test_a_closed_gate_loses_the_chunk_and_changes_nothing() -> None:
    x, v = tokens(6)
    open_at = iter([True, False, True])
    stream = CmsStream([scalar_level(0.7, 2)], gate=lambda place, errors: next(open_at))
    chain = Chain(stream, x, v)
    seen = []
    for start in (0, 2, 4):
        stream.process(2, chain.evaluate(start))
        seen.append(stream.levels[0].theta.tobytes())
    assert seen[0] == seen[1] != seen[2]
    counters = stream.levels[0].counters
    assert (counters.updates, counters.consumed, counters.gated) == (2, 4, 2)


@PROFILE
@given(
    calls=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    period=st.integers(1, 5),
    flush=st.sampled_from(["drop", "flush_partial", "carry"]),
    seed=st.integers(0, 20),
)
def test_every_token_is_accounted_for(calls: list[int], period: int, flush: Any, seed: int) -> None:
    count = sum(calls)
    rng = np.random.default_rng(seed)
    x, v = tokens(count, seed)
    level = scalar_level(0.5, period)
    stream = CmsStream([level], flush=flush, gate=lambda place, errors: bool(rng.random() < 0.7))
    Chain(stream, x, v, rng.random(count) < 0.5).run(calls, finish="each")
    c = level.counters
    assert c.consumed + c.masked + c.gated + c.dropped + level.pending == stream.tokens == count
    assert c.flushed <= c.consumed
    assert level.pending < period
    if flush != "flush_partial":
        assert c.consumed == period * c.updates


def test_drop_and_carry_part_in_the_second_call_only() -> None:
    x, v = tokens(6)
    states = {}
    for flush in ("drop", "carry"):
        for calls in ([3], [3, 3]):
            stream = CmsStream([scalar_level(0.7, 2)], flush=flush)  # type: ignore[arg-type]
            states[flush, len(calls)] = Chain(stream, x, v).run(calls, finish="each").state()
    assert states["drop", 1] == states["carry", 1]
    assert states["drop", 2] != states["carry", 2]


def test_what_is_no_segment_or_level_is_refused() -> None:
    one = np.ones((1, 1))
    stream = CmsStream([scalar_level(1.0, 2)])
    for segment in (([one, one], [one, one], np.ones(1, bool)), ([one], [one], np.ones(2, bool))):
        with pytest.raises(BadInputs, match=r"CmsStream\.append"):
            stream.append(segment)
    with pytest.raises(BadInputs, match="at least one token"):
        scalar_level(1.0, 0)
    with pytest.raises(BadInputs, match="no levels"):
        CmsStream([])
