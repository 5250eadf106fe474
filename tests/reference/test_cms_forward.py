"""Eq. 30 and the variants of preprint 3.6: exact properties, torch, mpmath, finite differences."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from trueup.reference import BadInputs
from trueup.reference.nl import cms_forward, cms_independent, cms_level
from trueup.reference.nl.cms_forward import silu, silu_by_exp, silu_slope
from trueup.reference.nl.cms_variants import NestedLevel, reset_interval

READINGS = ("residual", "plain", "pre_norm")


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def test_silu_against_mpmath_and_its_quotient_form() -> None:
    z = np.array([-800.0, -40.0, -3.0, -1e-3, 0.0, 1e-8, 0.7, 5.0, 40.0, 800.0])
    with mpmath.workdps(50):
        want = [float(mpmath.mpf(v) / (1 + mpmath.exp(-mpmath.mpf(v)))) for v in z.tolist()]
    np.testing.assert_allclose(silu(z), want, rtol=1e-15, atol=1e-14)
    np.testing.assert_allclose(silu_by_exp(z), want, rtol=1e-15)


def test_silu_slope_against_finite_differences_and_torch() -> None:
    z = np.linspace(-6.0, 6.0, 41)
    numeric = (silu(z + 1e-6) - silu(z - 1e-6)) / 2e-6
    np.testing.assert_allclose(silu_slope(z), numeric, atol=1e-9)
    leaf = torch.tensor(z, requires_grad=True)
    torch.nn.functional.silu(leaf).sum().backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(silu_slope(z), leaf.grad.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("reading", READINGS)
def test_the_chain_against_torch(reading: str) -> None:
    x, W1, W2 = draw(5, 4), draw(3, 6, 4, seed=1), draw(3, 4, 6, seed=2)
    y = torch.tensor(x)
    for first, second in zip(torch.tensor(W1), torch.tensor(W2), strict=True):
        inner = torch.nn.functional.rms_norm(y, (4,), eps=1e-6) if reading == "pre_norm" else y
        change = torch.nn.functional.silu(inner @ first.T) @ second.T
        y = change if reading == "plain" else y + change
    np.testing.assert_allclose(cms_forward(x, W1, W2, reading=reading), y.numpy(), rtol=1e-12)


@pytest.mark.parametrize("reading", READINGS)
def test_q30_1_one_level_is_an_ordinary_block(reading: str) -> None:
    x, W1, W2 = draw(5, 4), draw(1, 6, 4, seed=1), draw(1, 4, 6, seed=2)
    want = cms_level(x, W1[0], W2[0], reading=reading)
    np.testing.assert_array_equal(cms_forward(x, W1, W2, reading=reading), want)


@pytest.mark.parametrize("reading", READINGS)
def test_q30_2_levels_that_are_identity_maps_leave_the_tokens(reading: str) -> None:
    """W2 = 0 with a residual branch; without one, silu(z) - silu(-z) = z."""
    x, eye = draw(5, 4), np.eye(4)
    if reading == "plain":
        W1, W2 = np.stack([np.vstack([eye, -eye])] * 3), np.stack([np.hstack([eye, -eye])] * 3)
    else:
        W1, W2 = draw(3, 8, 4), np.zeros((3, 4, 8))
    np.testing.assert_allclose(cms_forward(x, W1, W2, reading=reading), x, rtol=1e-14)


@pytest.mark.parametrize("reading", READINGS)
def test_q30_3_tokens_are_independent_between_updates(reading: str) -> None:
    x, W1, W2 = draw(6, 4), draw(2, 5, 4, seed=1), draw(2, 4, 5, seed=2)
    whole = cms_forward(x, W1, W2, reading=reading)
    for token in range(6):
        alone = cms_forward(x[token : token + 1], W1, W2, reading=reading)
        np.testing.assert_allclose(alone[0], whole[token], rtol=1e-13)
    order = [3, 1, 5, 0, 4, 2]
    shuffled = cms_forward(x[order], W1, W2, reading=reading)
    np.testing.assert_allclose(shuffled, whole[order], rtol=1e-13)


def test_the_fastest_level_is_applied_first() -> None:
    x, W1, W2 = draw(2, 3), draw(2, 4, 3, seed=1), draw(2, 3, 4, seed=2)
    want = cms_level(cms_level(x, W1[0], W2[0]), W1[1], W2[1])
    np.testing.assert_array_equal(cms_forward(x, W1, W2), want)
    assert np.max(np.abs(cms_forward(x, W1[::-1], W2[::-1]) - want)) > 1e-3


def test_u17_a_clipped_block_is_another_map_and_its_gradient_is_not_that_of_its_value() -> None:
    """A divisor held constant in training: values differ from evaluation, gradients from both."""
    x, W1, W2 = draw(3, 4), draw(5, 4, seed=1), draw(4, 5, seed=2)
    evaluation = cms_level(x, W1, W2)
    training = cms_level(x, W1, W2, reading="delta_clipped")
    assert np.max(np.abs(training - evaluation)) > 0.1

    def loss(second: Any) -> float:
        return float(np.sum(cms_level(x, W1, second, reading="delta_clipped") ** 2))

    step = np.zeros_like(W2)
    step[1, 2] = 1e-6
    numeric = (loss(W2 + step) - loss(W2 - step)) / 2e-6
    hidden = silu(x @ W1.T)
    divisor = np.maximum(np.linalg.norm(hidden @ W2.T, axis=1), 1.0)[:, None]
    held = (2.0 * training / divisor).T @ hidden  # the divisor treated as constant
    assert abs(held[1, 2] - numeric) > 1e-2 * abs(numeric)
    true = (2.0 * evaluation).T @ hidden  # the same check passes on the map of evaluation

    def plain(second: Any) -> float:
        return float(np.sum(cms_level(x, W1, second) ** 2))

    assert (plain(W2 + step) - plain(W2 - step)) / 2e-6 == pytest.approx(true[1, 2], rel=1e-6)


@pytest.mark.parametrize("reading", READINGS)
def test_one_level_makes_all_variants_equal(reading: str) -> None:
    x, W1, W2 = draw(5, 4), draw(1, 6, 4, seed=1), draw(1, 4, 6, seed=2)
    sequential = cms_forward(x, W1, W2, reading=reading)
    independent = cms_independent(x, W1, W2, np.ones(1), reading=reading)
    np.testing.assert_array_equal(independent, sequential)
    nested = NestedLevel(np.concatenate([W1.ravel(), W2.ravel()]), interval=1).parameters()
    first, second = nested[:24].reshape(6, 4), nested[24:].reshape(4, 6)
    np.testing.assert_array_equal(cms_level(x, first, second, reading=reading), sequential)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_hot_weights_select_a_level(place: int) -> None:
    x, W1, W2 = draw(5, 4), draw(3, 6, 4, seed=1), draw(3, 4, 6, seed=2)
    got = cms_independent(x, W1, W2, np.eye(3)[place])
    np.testing.assert_array_equal(got, cms_level(x, W1[place], W2[place]))


def test_a_nested_level_starts_again_when_its_context_ends() -> None:
    """C_outer = 8, C_inner = 3: three steps, then the state that the level above has learned."""
    assert reset_interval(8, 3) == 3
    level = NestedLevel(np.array([1.0]), reset_interval(8, 3))
    seen = []
    for step in range(7):
        seen.append(float(level.parameters()[0]))
        level.step(np.array([-0.25]))
        if step == 3:
            level.initial = np.array([5.0])  # learned above while a context runs: not seen yet
    assert seen == [1.0, 0.75, 0.5, 1.0, 0.75, 0.5, 5.0]
    with pytest.raises(BadInputs, match="at least one token"):
        reset_interval(8, 0)
