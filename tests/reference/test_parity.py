"""One process against N ranks: order, mask, clip, momentum and non-linear reductions, exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from trueup.reference import BadInputs
from trueup.reference.nl import (
    cms_level_update,
    delta_momentum,
    momentum,
    newton_schulz,
    projected_descent,
    projected_descent_batch,
)
from trueup.reference.nl.parity import clip_by_norm, perplexity, token_weighted

RTOL = 1e-12


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def test_order_witness() -> None:
    """Token-sequential Eq. 28 depends on the order, and is not the summed form."""
    a, b = np.array([1.0, 0.0]), np.array([1.0, 1.0]) / math.sqrt(2.0)
    eye = np.eye(2)
    first, second = (eye - np.outer(v, v) for v in (a, b))
    np.testing.assert_allclose(first @ second, [[0, 0], [-0.5, 0.5]], atol=1e-15)
    np.testing.assert_allclose(second @ first, [[0, -0.5], [0, 0.5]], atol=1e-15)
    summed = eye - np.outer(a, a) - np.outer(b, b)
    np.testing.assert_allclose(summed, [[-0.5, -0.5], [-0.5, 0.5]], atol=1e-15)
    none = np.zeros(2)
    one = projected_descent(projected_descent(eye, a, none, 1.0), b, none, 1.0)
    np.testing.assert_allclose(one, first @ second, atol=1e-15)
    batch = projected_descent_batch(eye, np.stack([a, b]), np.zeros((2, 2)), 1.0)
    np.testing.assert_allclose(batch, summed, atol=1e-15)


def test_mask_witness() -> None:
    """Losses {1, 1, 1} on one rank and {5} on the other."""
    means, counts = [1.0, 5.0], [3, 1]
    assert float(token_weighted(means, counts)) == 2.0
    assert np.mean(means) == 3.0
    assert perplexity(means, counts) == pytest.approx(7.389, abs=5e-4)
    assert np.mean(np.exp(means)) == pytest.approx(75.57, abs=5e-3)
    nine = perplexity([5.0, 1.0], [9, 1])
    assert nine == pytest.approx(99.48, abs=5e-3)  # an unweighted mean can err either way
    assert np.mean(np.exp([5.0, 1.0])) == pytest.approx(75.57, abs=5e-3)


def test_a_mean_of_perplexities_is_at_least_the_perplexity_of_the_mean() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        losses, counts = rng.uniform(0.5, 6.0, 4).tolist(), rng.integers(1, 9, 4).tolist()
        weighted = float(token_weighted(np.exp(losses).tolist(), counts))
        assert weighted >= perplexity(losses, counts)


def test_clip_witness() -> None:
    """Gradients (3, 4) and (0, 0.5), largest norm 1."""
    one, two = np.array([3.0, 4.0]), np.array([0.0, 0.5])
    reduced_first = clip_by_norm((one + two) / 2, 1.0)
    clipped_first = (clip_by_norm(one, 1.0) + clip_by_norm(two, 1.0)) / 2
    np.testing.assert_allclose(reduced_first, np.array([1.5, 2.25]) / math.hypot(1.5, 2.25))
    np.testing.assert_allclose(clipped_first, [0.3, 0.65])
    assert np.max(np.abs(reduced_first - clipped_first)) > 0.1
    np.testing.assert_array_equal(clip_by_norm(two, 1.0), two)
    np.testing.assert_array_equal(clip_by_norm(np.zeros(2), 1.0), np.zeros(2))


def test_the_outer_gradient_is_weighted_by_active_tokens() -> None:
    g, counts = draw(10, 2, 3), [4, 0, 5, 1]
    parts = np.split(g, np.cumsum(counts)[:-1])
    nothing = np.full((2, 3), np.nan)  # the mean of a rank without active tokens
    means = [part.mean(axis=0) if len(part) else nothing for part in parts]
    np.testing.assert_allclose(token_weighted(means, counts), g.mean(axis=0), rtol=RTOL)
    kept = [mean for mean, count in zip(means, counts, strict=True) if count]
    assert np.max(np.abs(np.mean(kept, axis=0) - g.mean(axis=0))) > 1e-2
    equal = [part.mean(axis=0) for part in np.split(g, 5)]
    np.testing.assert_allclose(np.mean(equal, axis=0), g.mean(axis=0), rtol=RTOL)


def test_momentum_reduces_before_or_after_if_each_step_has_its_own_weights() -> None:
    """Eq. 17 is linear; un-weighted local buffers, reduced later, are wrong once n_r varies."""
    counts = [(3, 1), (1, 3), (2, 2)]
    W, m = np.zeros((2, 3)), np.zeros((2, 3))
    local, unweighted = [m, m], [m, m]
    for step, n in enumerate(counts):
        G = [draw(2, 3, seed=10 * step + rank) for rank in range(2)]
        m, _ = momentum(m, W, token_weighted(G, n), 0.9, 0.1)
        shares = [count / sum(n) for count in n]
        local = [momentum(local[rank], W, shares[rank] * G[rank], 0.9, 0.1)[0] for rank in range(2)]
        unweighted = [momentum(unweighted[rank], W, G[rank], 0.9, 0.1)[0] for rank in range(2)]
    np.testing.assert_allclose(sum(local), m, rtol=RTOL, atol=1e-15)
    late = token_weighted(unweighted, counts[-1])
    assert np.max(np.abs(late - m)) > 1e-2


def test_delta_momentum_must_reduce_the_gradient_first() -> None:
    """Eq. 22 is not linear: mean(g^T g) is not g^T g of the mean."""
    m, g = draw(2, 3), [draw(2, 3, seed=rank) for rank in (1, 2)]
    mean = (g[0] + g[1]) / 2
    right = np.asarray(delta_momentum(m, mean, 0.9, 0.1))
    late = (
        np.asarray(delta_momentum(m, g[0], 0.9, 0.1))
        + np.asarray(delta_momentum(m, g[1], 0.9, 0.1))
    ) / 2
    assert np.max(np.abs(late - right)) > 1e-2
    gap = (g[0].T @ g[0] + g[1].T @ g[1]) / 2 - mean.T @ mean
    np.testing.assert_allclose(right - late, 0.1 * m @ gap, rtol=1e-10)


def test_newton_schulz_is_neither_additive_nor_per_shard() -> None:
    g = [draw(4, 6, seed=rank) for rank in (1, 2)]
    whole = np.asarray(newton_schulz((g[0] + g[1]) / 2))
    mean = (np.asarray(newton_schulz(g[0])) + np.asarray(newton_schulz(g[1]))) / 2
    assert np.max(np.abs(mean - whole)) > 1e-2
    full = (g[0] + g[1]) / 2
    shards = np.vstack([np.asarray(newton_schulz(rows)) for rows in np.split(full, 2)])
    assert np.max(np.abs(shards - whole)) > 1e-2
    flat = full.reshape(-1)
    again = np.concatenate(np.split(flat, 3)).reshape(4, 6)  # flat shards re-formed to 2-D first
    np.testing.assert_array_equal(np.asarray(newton_schulz(again)), whole)


def test_the_batch_form_of_eq_28_reduces_its_sums() -> None:
    W, X, U = draw(2, 3), 0.3 * draw(5, 3, seed=1), draw(5, 2, seed=2)
    whole = projected_descent_batch(W, X, U, 0.1)
    parts = [(X[:3], U[:3]), (X[3:], U[3:])]
    decay = sum(x.T @ x for x, _ in parts)
    gradient = sum(u.T @ x for x, u in parts)
    np.testing.assert_allclose(W @ (np.eye(3) - 0.1 * decay) - 0.1 * gradient, whole, rtol=RTOL)
    residual = sum((x @ W.T + u).T @ x for x, u in parts)
    np.testing.assert_allclose(W - 0.1 * residual, whole, rtol=RTOL)


def test_a_chunk_update_shared_by_the_batch_reduces_inner_gradients_every_chunk() -> None:
    """A level shared by two ranks: sums of gradients reduce; two local updates in turn do not."""
    W1, W2 = draw(4, 3), draw(3, 4, seed=1)
    X, D = draw(6, 3, seed=2), draw(6, 3, seed=3)
    zero = np.zeros(4)
    whole = cms_level_update(W1, W2, X, D, np.ones(6), 0.1, zero)
    ranks = [
        cms_level_update(W1, W2, X[part], D[part], np.ones(3), 0.1, zero)
        for part in (slice(0, 3), slice(3, 6))
    ]
    for place in range(2):
        change = sum(rank[place] - (W1, W2)[place] for rank in ranks)
        np.testing.assert_allclose((W1, W2)[place] + change, whole[place], rtol=1e-11)
    in_turn = cms_level_update(ranks[0][0], ranks[0][1], X[3:], D[3:], np.ones(3), 0.1, zero)
    assert np.max(np.abs(in_turn[0] - whole[0])) > 1e-4


@pytest.mark.parametrize(
    ("values", "counts"), [([1.0], [0]), ([1.0, 2.0], [1]), ([1.0, 2.0], [2, -1]), ([], [])]
)
def test_a_mean_without_tokens_is_refused(values: list[float], counts: list[int]) -> None:
    with pytest.raises(BadInputs, match="needs tokens"):
        token_weighted(values, counts)
