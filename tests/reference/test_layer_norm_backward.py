"""Layer normalisation backward against torch autograd, the complex step and golden numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import NotApplicable
from trueup.reference.dqn import layer_norm_backward

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
EPS = 1e-5
SHAPES = [(1, 1), (1, 7), (3, 4), (5, 33), (4, 2)]
rows = arrays(np.float64, (3, 6), elements=st.floats(-4.0, 4.0))


def forward(y: Any) -> tuple[Any, Any]:
    """Give (xhat, rstd) of the biased variance, for real or complex y."""
    centred = y - y.mean(axis=1, keepdims=True)
    rstd = 1.0 / np.sqrt((centred * centred).mean(axis=1) + EPS)
    return centred * rstd[:, None], rstd


def sample(shape: tuple[int, int], offset: float = 0.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(2)
    return (
        offset + rng.standard_normal(shape),
        rng.standard_normal(shape),
        rng.standard_normal(shape[1]),
    )


def test_golden() -> None:
    y, d_out, gamma = np.array([[1.0, 2, 3, 4]]), np.array([[1.0, 0, 0, 0]]), np.ones(4)
    xhat, rstd = forward(y)
    assert rstd[0] == pytest.approx(0.894423613, abs=6e-10)
    np.testing.assert_allclose(
        xhat, [[-1.34163542, -0.44721181, 0.44721181, 1.34163542]], atol=6e-9
    )
    dy, dgamma, dbeta = layer_norm_backward(d_out, xhat, rstd, gamma)
    np.testing.assert_allclose(dy, [[0.2683303, -0.35776837, -0.08944343, 0.1788815]], atol=6e-8)
    np.testing.assert_array_equal(dgamma, d_out[0] * xhat[0])
    np.testing.assert_array_equal(dbeta, d_out[0])
    wrong, *_ = layer_norm_backward(d_out, xhat, rstd, gamma, reading="elementwise")
    np.testing.assert_allclose(wrong, [[0.89442361, 0, 0, 0]], atol=6e-9)


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_torch_autograd(shape: tuple[int, int], offset: float) -> None:
    """Third source: the library's own layer_norm in float64, upstream gradient never 1."""
    y, d_out, gamma = sample(shape, offset)
    leaves = [torch.tensor(v, requires_grad=True) for v in (y, gamma, np.zeros(shape[1]))]
    out = torch.nn.functional.layer_norm(leaves[0], (shape[1],), leaves[1], leaves[2], EPS)
    out.backward(torch.tensor(d_out))
    got = layer_norm_backward(d_out, *forward(y), gamma)
    for leaf, mine in zip(leaves, got, strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(mine, leaf.grad.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
def test_complex_step(shape: tuple[int, int]) -> None:
    """Third source: the derivative of <d_out, gamma xhat(y)> without any differences."""
    y, d_out, gamma = sample(shape)
    want = np.zeros(shape)
    for place in np.ndindex(*shape):
        moved = y.astype(np.complex128)
        moved[place] += 1e-30j
        want[place] = (d_out * gamma * forward(moved)[0]).sum().imag / 1e-30
    dy, _, _ = layer_norm_backward(d_out, *forward(y), gamma)
    np.testing.assert_allclose(dy, want, rtol=1e-12, atol=1e-13)


@PROFILE
@given(y=rows, d_out=rows, gamma=arrays(np.float64, 6, elements=st.floats(-3.0, 3.0)))
def test_invariants_of_the_jacobian(y: Any, d_out: Any, gamma: Any) -> None:
    xhat, rstd = forward(y)
    dy, _, _ = layer_norm_backward(d_out, xhat, rstd, gamma)
    g = d_out * gamma
    scale = rstd[:, None] * (1.0 + np.abs(g).max())
    np.testing.assert_allclose(dy.sum(axis=1) / scale[:, 0], 0.0, atol=1e-12)
    leak = EPS * rstd**2  # eps / (var + eps)
    want = rstd * (g * xhat).sum(axis=1) * leak
    np.testing.assert_allclose(
        (dy * xhat).sum(axis=1) / scale[:, 0], want / scale[:, 0], atol=1e-11
    )


def test_zero_gamma_gives_zero_and_hides_every_mistake_in_dy() -> None:
    y, d_out, gamma = sample((3, 4))
    for reading in ("full", "elementwise", "mean_missing", "projection_missing"):
        dy, _, _ = layer_norm_backward(d_out, *forward(y), 0.0 * gamma, reading=reading)
        np.testing.assert_array_equal(dy, 0.0)


def test_linear_in_the_upstream_gradient() -> None:
    y, d_out, gamma = sample((3, 4))
    one = layer_norm_backward(d_out, *forward(y), gamma)
    two = layer_norm_backward(-2.5 * d_out, *forward(y), gamma)
    for mine, scaled in zip(one, two, strict=True):
        np.testing.assert_allclose(scaled, -2.5 * mine, rtol=1e-13, atol=1e-14)


def test_elementwise_is_off_by_more_than_the_signal() -> None:
    """Where the upstream gradient has a mean, the defect is larger than the gradient itself."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y, d_out = rng.standard_normal((8, 16)), rng.uniform(0.5, 1.5, (8, 16))
        right, *_ = layer_norm_backward(d_out, *forward(y), np.ones(16))
        wrong, *_ = layer_norm_backward(d_out, *forward(y), np.ones(16), reading="elementwise")
        assert np.linalg.norm(wrong - right) > np.linalg.norm(right)


def test_unbiased_variant_needs_two_elements() -> None:
    with pytest.raises(NotApplicable, match="D of at least 2"):
        layer_norm_backward(
            np.ones((1, 1)), np.zeros((1, 1)), np.ones(1), np.ones(1), reading="unbiased"
        )


def test_prepare_normalises_every_row_and_keeps_rstd_positive() -> None:
    declared = layer_norm_backward.__equation__  # type: ignore[attr-defined]
    rng = np.random.default_rng(1)
    values = {
        "d_out": rng.standard_normal((3, 8)),
        "xhat": 50.0 + 3.0 * rng.standard_normal((3, 8)),
        "rstd": np.full(3, -1.0),
        "gamma": np.ones(8),
    }
    ready = declared.prepare(rng, {"B": 3, "D": 8}, values)
    np.testing.assert_allclose(ready["xhat"].mean(axis=1), 0.0, atol=1e-13)
    variance = 1.0 / ready["rstd"] ** 2 - EPS
    norm = (ready["xhat"] ** 2).sum(axis=1)
    np.testing.assert_allclose(norm, 8 * variance / (variance + EPS), rtol=1e-10)
    assert np.all(ready["rstd"] > 0.0)
