"""Eq. 24 and the library's Muon against torch.optim.Muon, golden numbers and exact properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.nl import deep_momentum_linear, momentum, muon, muon_library, newton_schulz
from trueup.reference.nl.muon import sign_like
from trueup.reference.nl.muon_library import shape_factor

PROFILE = settings(derandomize=True, deadline=None, max_examples=30)
READINGS = muon.__equation__.readings  # type: ignore[attr-defined]
ALPHA, ETA = 0.9, 0.1
WITNESS = (
    np.array([[1.0, -1.0, 2.0], [-2.0, 2.0, -4.0]]),
    np.array([[0.0, 1.0, 0.0], [1.0, 0.0, -1.0]]),
    np.array([[1.0, 0.0, 1.0], [0.0, -1.0, 2.0]]),
)
AFTER_THREE = np.array(
    [[-0.5941977850, -0.3232346404, -0.3684836940], [-0.2264372380, -0.5433136263, 0.5628708627]]
)


def matrix(shape: tuple[int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def by_svd(M: np.ndarray) -> np.ndarray:
    """Third source: p five times on the singular values of LAPACK."""
    u, s, vt = np.linalg.svd(M, full_matrices=False)
    s = s / np.linalg.norm(M)
    for _ in range(5):
        s = s * (3.4445 + s * s * (-4.7750 + 2.0315 * s * s))
    return np.asarray((u * s) @ vt)


@pytest.mark.parametrize("eta", [1e-3, 1e-1])
def test_q24_1_and_e17_literal_result_does_not_depend_on_a_constant_rate(eta: float) -> None:
    m, W, last = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3))
    for g in WITNESS:
        last = W
        m, W = muon(m, W, g, ALPHA, eta, reading="literal_quintic5")
    np.testing.assert_allclose(W - last, AFTER_THREE, atol=6e-11)
    values = np.linalg.svd(W - last, compute_uv=False)
    np.testing.assert_allclose(values, [0.8584037239, 0.7209452457], atol=6e-11)


def test_q24_1_trajectories_agree_to_twelve_digits_and_corrected_ones_scale_with_the_rate() -> None:
    def trajectory(eta: float, reading: str) -> np.ndarray:
        m, W = np.zeros((2, 3)), np.zeros((2, 3))
        for g in WITNESS:
            m, W = muon(m, W, g, ALPHA, eta, reading=reading)
        return W

    literal = [trajectory(eta, "literal_quintic5") for eta in (1e-3, 1e-1)]
    np.testing.assert_allclose(literal[0], literal[1], rtol=1e-12)
    outside = [trajectory(eta, "outside_quintic5") for eta in (1e-3, 1e-1)]
    np.testing.assert_allclose(100.0 * outside[0], outside[1], rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4)])
def test_q24_2_without_the_non_linearity_it_is_momentum_with_the_rate_outside(
    shape: tuple[int, int],
) -> None:
    """At a constant rate Eq. 17 from rest has m times eta, and the same weights."""
    W, m = matrix(shape, 9), np.zeros(shape)
    plain_m, plain_W = m, W
    linear_m, linear_W = m, W
    for seed in (1, 2, 3):
        g = matrix(shape, seed)
        m, W = muon(m, W, g, ALPHA, ETA, reading="identity")
        plain_m, plain_W = momentum(plain_m, plain_W, g, ALPHA, ETA)
        linear_m, linear_W = deep_momentum_linear(linear_m, linear_W, g, ALPHA, ETA)
    np.testing.assert_allclose(ETA * m, plain_m, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(W, plain_W, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(linear_W, plain_W)


@pytest.mark.parametrize("shape", [(8, 32), (32, 8), (6, 24)])
def test_q24_3_singular_values_of_the_update_lie_in_the_band(shape: tuple[int, int]) -> None:
    m, W, g = (matrix(shape, seed) for seed in (1, 2, 3))
    m_next, W_next = muon(m, W, g, ALPHA, ETA)
    update = (W_next - W) / ETA
    s = np.linalg.svd(m_next, compute_uv=False) / np.linalg.norm(m_next)
    assert s.min() >= 0.0052  # below, the band does not hold
    values = np.linalg.svd(update, compute_uv=False)
    assert values.min() >= 0.6818
    assert values.max() <= 1.1344
    np.testing.assert_allclose(update, by_svd(m_next), atol=1e-12)
    for mutant in ("identity", "elementwise_tanh", "normalised_only"):
        wrong = np.linalg.svd(
            (muon(m, W, g, ALPHA, ETA, reading=mutant)[1] - W) / ETA, compute_uv=False
        )
        assert wrong.min() < 0.68 or wrong.max() > 1.2024, mutant


@PROFILE
@given(seed=st.integers(0, 1000))
def test_q24_4_opposite_gradients_from_opposite_momenta_move_oppositely(seed: int) -> None:
    m, g = matrix((3, 5), seed), matrix((3, 5), seed + 1)
    zero = np.zeros((3, 5))
    for reading in READINGS:
        one = muon(m, zero, g, ALPHA, ETA, reading=reading)
        two = muon(-m, zero, -g, ALPHA, ETA, reading=reading)
        np.testing.assert_array_equal(one[0], -two[0])
        np.testing.assert_array_equal(one[1], -two[1])


def test_readings_of_the_place_coincide_at_unit_rate() -> None:
    m, W, g = (matrix((3, 4), seed) for seed in (1, 2, 3))
    for polynomial in ("quintic5", "cubic5"):
        one = muon(m, W, g, ALPHA, 1.0, reading=f"outside_{polynomial}")
        two = muon(m, W, g, ALPHA, 1.0, reading=f"literal_{polynomial}")
        np.testing.assert_array_equal(one[1], two[1])


def test_u1_first_step_from_rest_is_the_gradients_sign_and_rotations_kill_it() -> None:
    g, zero = matrix((3, 4), 1), np.zeros((3, 4))
    m, W = muon(zero, zero, g, ALPHA, ETA, reading="elementwise_tanh")
    np.testing.assert_allclose(m, -(1 - ALPHA) * np.sign(g), rtol=1e-6)
    np.testing.assert_allclose(W, ETA * m, rtol=1e-12)
    G, Q = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[0.6, -0.8], [0.8, 0.6]])
    assert np.max(np.abs(newton_schulz(Q @ G) - Q @ newton_schulz(G))) < 1e-14
    assert np.max(np.abs(sign_like(Q @ G) - Q @ sign_like(G))) > 0.3


LIBRARY = [
    pytest.param(nesterov, match, id=f"{'nesterov' if nesterov else 'plain'}-{match}")
    for nesterov in (True, False)
    for match in ("original", "match_rms_adamw")
]


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
@pytest.mark.parametrize(("nesterov", "match"), LIBRARY)
def test_torch_optim_muon_over_three_steps(
    shape: tuple[int, int], nesterov: bool, match: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Third source: the library, its Newton-Schulz kept in float64 so that all digits count."""

    def precise(grad: Any, coefficients: Any, steps: int, eps: float) -> Any:
        X = grad.T if grad.size(0) > grad.size(1) else grad
        X = X / X.norm().clamp(min=eps)
        a, b, c = coefficients
        for _ in range(steps):
            A = X @ X.T
            X = a * X + (b * A + c * A @ A) @ X
        return X.T if grad.size(0) > grad.size(1) else X

    monkeypatch.setattr(torch.optim._muon, "_zeropower_via_newtonschulz", precise)
    lr, decay, mu = 0.05, 0.3, 0.9
    W, m = matrix(shape, 9), np.zeros(shape)
    leaf = torch.nn.Parameter(torch.tensor(W))
    optimiser = torch.optim.Muon(
        [leaf], lr=lr, weight_decay=decay, momentum=mu, nesterov=nesterov, adjust_lr_fn=match
    )
    reading = ("nesterov" if nesterov else "plain") + ("_match_rms" * (match != "original"))
    for seed in (1, 2, 3):
        g = matrix(shape, seed)
        m, W = muon_library(m, W, g, mu, lr, decay, reading=reading)
        leaf.grad = torch.tensor(g)
        optimiser.step()
        np.testing.assert_allclose(leaf.detach().numpy(), W, rtol=1e-10, atol=1e-12)
    buffer = optimiser.state[leaf]["momentum_buffer"].numpy()
    np.testing.assert_allclose(buffer, m, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("nesterov", [True, False])
def test_torch_optim_muon_as_it_is_differs_by_its_bf16(nesterov: bool) -> None:
    """0.012-0.016 relative in the update were measured; another rule is tens of times farther."""
    shape, lr = (96, 64), 0.05
    W, g = matrix(shape, 1), matrix(shape, 2)
    leaf = torch.nn.Parameter(torch.tensor(W, dtype=torch.float32))
    leaf.grad = torch.tensor(g, dtype=torch.float32)
    torch.optim.Muon([leaf], lr=lr, weight_decay=0.0, momentum=0.9, nesterov=nesterov).step()
    _, want = muon_library(
        np.zeros(shape), W, g, 0.9, lr, 0.0, reading="nesterov" if nesterov else "plain"
    )
    off = np.linalg.norm(leaf.detach().double().numpy() - want) / np.linalg.norm(want - W)
    assert 0.001 < off < 0.02


def test_library_equals_eq_24_without_its_additions() -> None:
    """Nesterov off, no decay, rho = 1, alpha = mu, eta = lr: average and sum differ by 1 - mu."""
    shape, W = (4, 6), matrix((4, 6), 9)
    mine, theirs = (np.zeros(shape), W), (np.zeros(shape), W)
    for seed in (1, 2, 3):
        g = matrix(shape, seed)
        mine = muon(*mine, g, ALPHA, ETA)
        theirs = muon_library(*theirs, g, ALPHA, ETA, 0.0, reading="plain")
        np.testing.assert_allclose(-(1 - ALPHA) * mine[0], theirs[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-11, atol=1e-12)


def test_sum_and_average_give_the_same_weights_and_other_buffers() -> None:
    zero, W = np.zeros((4, 6)), matrix((4, 6), 9)
    one, two = (zero, W), (zero, W)
    for seed in (1, 2, 3):
        g = matrix((4, 6), seed)
        one = muon_library(*one, g, ALPHA, ETA, 0.1, reading="plain")
        two = muon_library(*two, g, ALPHA, ETA, 0.1, reading="sum_buffer")
    np.testing.assert_allclose(one[1], two[1], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(one[0], (1 - ALPHA) * two[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("rows", "columns", "reading", "want"),
    [
        (8, 2, "nesterov", 2.0),
        (2, 8, "nesterov", 1.0),
        (25, 4, "plain_match_rms", 1.0),
        (4, 100, "nesterov_match_rms", 2.0),
        (4, 16, "shape_without_floor", 0.5),
        (4, 16, "shape_inverted", 2.0),
        (16, 4, "shape_missing", 1.0),
    ],
)
def test_shape_factor(rows: int, columns: int, reading: str, want: float) -> None:
    assert shape_factor(rows, columns, reading) == want
