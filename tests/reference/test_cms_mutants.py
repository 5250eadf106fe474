"""Each unfaithful continuum memory system found in the wild is killed by a named check."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from trueup.reference.nl import cms_level_update, momentum, projected_descent
from trueup.reference.nl.cms_stream import CmsStream, StreamLevel
from trueup.reference.nl.online_writes_chunks import online_writes_chunks
from trueup.reference.nl.parity import chunk_weights, supervised_pairs, token_weighted


def _load() -> ModuleType:
    path = Path(__file__).resolve().parent / "mutants" / "cms.py"
    spec = importlib.util.spec_from_file_location("cms_mutants", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mutants = _load()


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def own_stream(theta: float, x: Any, v: Any, eta: float, beta: float = 0.0) -> float:
    """One sequence with a fast state of its own, updated after every token: y = theta x."""
    level = StreamLevel(np.array(theta), lambda w, a, delta: delta * a, 1, eta, beta)
    stream = CmsStream([level])

    def evaluate(start: int, stop: int) -> Any:
        inputs = x[start:stop]
        return [inputs], [level.theta * inputs - v[start:stop]], np.ones(stop - start, bool)

    stream.process(len(x), evaluate)
    return float(level.theta)


def test_u8_a_clock_that_starts_with_an_update_is_another_phase() -> None:
    level = StreamLevel(np.zeros(1), lambda w, a, delta: a, 4, 1.0)
    stream, one, seen = CmsStream([level]), np.ones((1, 1)), []
    for token in range(9):
        stream.append(([one], [one], np.ones(1, bool)))
        if level.counters.updates > len(seen):
            seen.append(token + 1)
    assert seen == [4, 8]  # after tokens 4 and 8
    assert mutants.u8_clock_updates(9, 4) == [0, 4, 8]  # at steps 0, 4, 8: three updates


def test_u12_the_modes_of_a_write_must_agree_in_value() -> None:
    """With an EMA of factor 0.9 the first plain write is ten times the ordinary one."""
    W, G, rest = draw(2, 3), draw(2, 3, seed=1), np.zeros((2, 3))
    ordinary = momentum(rest, W, G, 0.9, 0.5, reading="ema")[1]
    differentiable = mutants.u12_differentiable_write(W, rest, G, 0.5, 0.9)
    np.testing.assert_allclose(differentiable - W, 10.0 * (ordinary - W), rtol=1e-12)
    X, V = [draw(3, 2), draw(3, 2, seed=1)], [draw(2, 2), draw(2, 2, seed=1)]
    memories = [
        online_writes_chunks(W, X, V, [0.1, 0.2], mode=mode).memory  # type: ignore[arg-type]
        for mode in ("through", "straight_through", "detached")
    ]
    np.testing.assert_array_equal(memories[0], memories[1])
    np.testing.assert_array_equal(memories[0], memories[2])


def test_u13_a_sum_of_chunk_means_is_not_the_gradient_of_the_token_mean() -> None:
    g, lengths = draw(9, 3), (4, 4, 1)
    chunks = np.split(g, (4, 8))
    means = [chunk.mean(axis=0) for chunk in chunks]
    shares = chunk_weights(lengths)
    right = sum(share * mean for share, mean in zip(shares, means, strict=True))
    np.testing.assert_allclose(right, g.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(token_weighted(means, lengths), right, rtol=1e-12)
    wrong = mutants.u13_outer_gradient(means, lengths)
    assert np.max(np.abs(wrong / 3 - right)) > 1e-2  # no constant factor, chunks are unequal
    equal = [chunk.mean(axis=0) for chunk in np.split(g, 3)]
    exactly = mutants.u13_outer_gradient(equal, (3, 3, 3))
    np.testing.assert_allclose(exactly, 3 * g.mean(axis=0), rtol=1e-12)  # hidden by a norm clip


@pytest.mark.parametrize(
    ("tokens", "chunk", "supervised"), [(9, 4, 6), (8, 4, 6), (5, 2, 2), (5, 9, 4)]
)
def test_u14_chunks_without_boundary_targets_lose_pairs(
    tokens: int, chunk: int, supervised: int
) -> None:
    pairs = mutants.u14_pairs(tokens, chunk)
    assert len(pairs) == supervised == supervised_pairs(tokens, chunk, boundary_targets=False)
    all_pairs = {(t, t + 1) for t in range(tokens - 1)}
    assert set(pairs) <= all_pairs
    assert len(all_pairs) == supervised_pairs(tokens, chunk)
    assert (set(pairs) == all_pairs) == (chunk >= tokens)


def test_u14_overlap_and_boundary_targets_supervise_the_same_pairs() -> None:
    """Five tokens, chunks of two: [t0 t1] [t1 t2 t3] [t3 t4] against [t0 t1]+t2 [t2 t3]+t4 [t4]."""
    overlap = [range(0, 2), range(1, 4), range(3, 5)]
    boundary = [(range(0, 2), 2), (range(2, 4), 4), (range(4, 5), None)]
    first = [(t, t + 1) for part in overlap for t in part[:-1]]
    second = []
    for part, target in boundary:
        row = [*part] if target is None else [*part, target]
        second += list(itertools.pairwise(row))
    assert first == second == [(t, t + 1) for t in range(4)]


def test_u15_a_sequence_does_not_depend_on_who_is_in_its_batch() -> None:
    X, V = draw(3, 5), draw(3, 5, seed=1)
    order = [2, 0, 1]
    own = [own_stream(0.5, x, v, 0.1) for x, v in zip(X, V, strict=True)]
    permuted = [own_stream(0.5, X[b], V[b], 0.1) for b in order]
    assert permuted == [own[b] for b in order]
    shared = mutants.u15_shared_fast_state(0.5, X, V, 0.1)
    assert shared[0] != mutants.u15_shared_fast_state(0.5, X[:1], V[:1], 0.1)[0]  # rows dropped
    assert shared != mutants.u15_shared_fast_state(0.5, X[order], V[order], 0.1)  # rows permuted


def test_u16_without_surprise_the_weights_must_still_decay() -> None:
    W, x = draw(2, 3), draw(3, seed=1)
    still = mutants.u16_shaped_step(W, x, np.zeros(2), 0.1)
    np.testing.assert_array_equal(still, W)
    assert np.max(np.abs(projected_descent(W, x, np.zeros(2), 0.1) - W)) > 1e-2


def test_u16_the_factor_two_shows_at_once() -> None:
    W, x, u = draw(2, 3), draw(3, seed=1), draw(2, seed=2)
    step = mutants.u16_shaped_step(W, x, u, 0.1) - W
    np.testing.assert_allclose(step, -0.2 * np.outer(u, x), rtol=1e-12)
    plain = projected_descent(W, x, u, 0.1, reading="plain_gd") - W
    np.testing.assert_allclose(step, 2.0 * plain, rtol=1e-12)


@pytest.mark.parametrize("faithful", [True, False])
def test_u23_a_masked_chunk_leaves_every_bit(faithful: bool) -> None:
    """With non-zero momentum; the counters say no update in both."""
    level = StreamLevel(np.array([0.7]), lambda w, a, delta: a, 2, 0.1, beta=0.9)
    stream = (CmsStream if faithful else mutants.U23Stream)([level])
    rows = np.ones((2, 1))
    stream.append(([rows], [rows], np.ones(2, bool)))
    before = level.theta.tobytes(), level.momentum.tobytes()
    stream.append(([rows], [rows], np.zeros(2, bool)))
    assert (level.counters.updates, level.counters.masked) == (1, 2)
    assert ((level.theta.tobytes(), level.momentum.tobytes()) == before) is faithful


def test_u24_momentum_belongs_to_a_sequence() -> None:
    gradients = [[1.0, -2.0], [0.5, 3.0]]
    alone = []
    for sample in range(2):
        m, w = 0.0, 1.0
        for update in gradients:
            m = 0.9 * m + update[sample]
            w -= 0.1 * m
        alone.append(w)
    level = StreamLevel(np.array(1.0), lambda w, a, delta: delta, 1, 0.1, beta=0.9)
    stream = CmsStream([level])
    for g in (1.0, 0.5):
        stream.append(([np.ones(1)], [np.array([g])], np.ones(1, bool)))
    assert float(level.theta) == pytest.approx(alone[0], rel=1e-15)
    shared = mutants.u24_shared_momentum([1.0, 1.0], gradients, 0.1, 0.9)
    assert np.max(np.abs(np.array(shared) - alone)) > 0.1
    swapped = [update[::-1] for update in gradients]  # permute the batch
    assert shared[::-1] != mutants.u24_shared_momentum([1.0, 1.0], swapped, 0.1, 0.9)


def errors_seen(periods: tuple[int, ...], calls: list[list[int]]) -> list[list[int]]:
    """The error signals of every level's updates, a faithful stream, error = token number."""
    used: list[list[int]] = [[] for _ in periods]

    def term(place: int) -> Any:
        def record(theta: Any, x: Any, delta: Any) -> Any:
            used[place].append(int(delta))
            return 0.0 * theta

        return record

    stream = CmsStream(
        [StreamLevel(np.zeros(1), term(place), period, 1.0) for place, period in enumerate(periods)]
    )
    for call in calls:
        rows = np.array(call, float)

        def take(start: int, stop: int, rows: Any = rows) -> Any:
            part = [rows[start:stop]] * len(periods)
            return part, part, np.ones(stop - start, bool)

        stream.process(len(call), take)
    return used


@pytest.mark.parametrize(
    ("periods", "pieces", "place", "wrong"),
    [
        pytest.param(
            (2, 4, 8), [[1, 2], [3, 4], [5, 6], [7, 8]], 2, [1, 2, 1, 2, 5, 6, 5, 6], id="three"
        ),
        pytest.param(
            (4, 2), [[1, 2], [3, 4], [5, 6], [7, 8]], 1, [1, 2, 1, 2, 5, 6, 5, 6], id="unsorted"
        ),
        pytest.param(
            (2, 4), [[1, 2], [3], [4, 5], [6, 7], [8]], 1, [1, 2, 3, 3, 4, 5, 6, 7], id="odd-calls"
        ),
        pytest.param((2, 4), [[1, 2], [3, 4], [5, 6], [7, 8]], 1, None, id="hidden"),
    ],
)
def test_u26_each_level_sees_its_own_tokens_errors(
    periods: tuple[int, ...], pieces: list[list[int]], place: int, wrong: list[int] | None
) -> None:
    tokens = list(range(1, 9))
    assert errors_seen(periods, pieces) == [tokens] * len(periods)
    got = mutants.u26_errors_seen(periods, pieces)
    assert got[place] == (wrong or tokens)
    assert [len(used) for used in got] == [8] * len(periods)  # the counts do not show it


def test_u27_the_mean_depends_neither_on_the_batch_nor_on_the_width() -> None:
    """Per-sample state: each sample's mean is over its own active tokens."""
    terms, active = draw(2, 3, 4), np.ones((2, 3), bool)
    own = terms.mean(axis=1)  # over the sample's active tokens
    dense = mutants.u27_steps(terms, active)
    np.testing.assert_allclose(dense, own / (2 * 4), rtol=1e-12)
    masked = np.array([[True] * 3, [False] * 3])
    jumped = mutants.u27_steps(terms, masked)  # sample 0 is as it was, its rate is not
    np.testing.assert_allclose(jumped[0], 8 * dense[0], rtol=1e-12)
    twice = mutants.u27_steps(np.concatenate([terms, terms]), np.concatenate([active, active]))
    np.testing.assert_allclose(twice[:2], dense / 2, rtol=1e-12)
    W1, W2, x, delta = draw(5, 4), draw(4, 5, seed=1), draw(3, 4, seed=2), draw(3, 4, seed=3)
    counts = np.zeros(4)
    mean = cms_level_update(W1, W2, x, delta, np.ones(3), 0.3, counts, reading="mean")
    summed = cms_level_update(W1, W2, x, delta, np.ones(3), 0.1, counts)
    wide = cms_level_update(W1, W2, x, delta, np.ones(3), 0.3, counts, reading="width_mean")
    np.testing.assert_allclose(mean[0], summed[0], rtol=1e-12)
    np.testing.assert_allclose(4 * (wide[0] - W1), mean[0] - W1, rtol=1e-9)


def test_u28_a_mask_does_not_fork_the_momentum() -> None:
    gradients = [[1.0, -2.0], [0.5, None], [0.25, 1.0]]
    loop = []
    for sample in range(2):
        m, w = 0.0, 1.0
        for update in gradients:
            g = update[sample]
            if g is not None:  # a masked sample keeps its state
                m = 0.9 * m + g
                w -= 0.1 * m
        loop.append(w)
    forked = mutants.u28_forked_momentum([1.0, 1.0], gradients, 0.1, 0.9)
    assert abs(forked[0] - loop[0]) > 0.05
    dense = [[g or 0.0 for g in update] for update in gradients]
    same = mutants.u28_forked_momentum([1.0, 1.0], dense, 0.1, 0.9)
    assert same[0] == pytest.approx(loop[0], rel=1e-15)  # one pattern throughout hides it
