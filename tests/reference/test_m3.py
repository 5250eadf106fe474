"""M3 against its scalar witness, a plain re-implementation in torch, and its mutants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference.nl import m3, m3_slow, newton_schulz

SETTINGS = {"beta1": 0.7, "beta2": 0.4, "alpha": 0.6, "eta": 0.05, "epsilon": 1e-3}


def matrix(shape: tuple[int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def run(
    gradients: list[Any], f: int, settings: dict[str, float], beta3: float, reading: str
) -> list[Any]:
    """Run M3 from zero state over the gradients; theta after each of them."""
    zero = np.zeros_like(gradients[0])
    theta, M1, V, S, M2, O2 = (zero,) * 6
    seen = []
    for t, g in enumerate(gradients, start=1):
        theta, M1, V, S = m3(theta, M1, V, S, O2, g, **settings, reading=reading)
        if t % f == 0:
            slow = "identity" if reading in ("identity", "ema") else "quintic5"
            M2, S, O2 = m3_slow(M2, S, beta3, reading=slow)
        seen.append(theta)
    return seen


def test_scalar_witness() -> None:
    """NS = identity, g = 1, beta1 = beta3 = alpha = epsilon = eta = 1, beta2 = 0, f = 2."""
    ones = {"beta1": 1.0, "beta2": 0.0, "alpha": 1.0, "eta": 1.0, "epsilon": 1.0}
    got = run([np.ones((1, 1))] * 5, 2, ones, 1.0, "identity")
    assert [float(theta[0, 0]) for theta in got] == [-1, -3, -8, -14, -23]


def test_u21_averages_miss_the_witness() -> None:
    """With beta1 = 1 an average forgets everything: M1 stays at g."""
    one = np.ones((1, 1))
    theta, M1, V, S, O2 = (np.zeros((1, 1)),) * 5
    seen = []
    for _ in range(2):
        theta, M1, V, S = m3(theta, M1, V, S, O2, one, 1.0, 0.0, 1.0, 1.0, 1.0, reading="ema")
        seen.append(float(M1[0, 0]))
    assert seen == [1.0, 1.0]
    sums = np.zeros((1, 1))
    for _ in range(2):
        _, sums, _, _ = m3(theta, sums, V, S, O2, one, 1.0, 0.0, 1.0, 1.0, 1.0)
    assert sums[0, 0] == 2.0


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4)])
@pytest.mark.parametrize("f", [1, 2, 3])
def test_seven_steps_against_torch(shape: tuple[int, int], f: int) -> None:
    """Third source: the listing written anew on torch tensors, NS by singular values."""

    def ns(M: torch.Tensor) -> torch.Tensor:
        u, s, vt = torch.linalg.svd(M, full_matrices=False)
        s = s / torch.linalg.norm(M)
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        return u @ torch.diag(s) @ vt

    gradients = [matrix(shape, seed) for seed in range(1, 8)]
    got = run(gradients, f, SETTINGS, 0.8, "quintic5")
    theta = torch.zeros(shape, dtype=torch.float64)
    fast, squares, gathered, slow, read = (torch.zeros_like(theta) for _ in range(5))
    for t, (g, ours) in enumerate(zip(gradients, got, strict=True), start=1):
        G = torch.tensor(g)
        fast += 0.7 * G
        squares += 0.4 * G**2
        gathered += G
        theta -= 0.05 * (ns(fast) + 0.6 * read) / (squares.sqrt() + 1e-3)
        if t % f == 0:
            slow += 0.8 * gathered
            gathered.zero_()
            read = ns(slow)
        np.testing.assert_allclose(ours, theta.numpy(), rtol=1e-9, atol=1e-10)


def test_slow_read_is_used_from_the_following_step_on() -> None:
    gradients = [matrix((3, 4), seed) for seed in (1, 2, 3)]
    with_slow = run(gradients, 2, SETTINGS, 0.8, "quintic5")
    without = run(gradients, 2, SETTINGS | {"alpha": 0.0}, 0.8, "quintic5")
    np.testing.assert_array_equal(with_slow[0], without[0])
    np.testing.assert_array_equal(with_slow[1], without[1])
    assert np.max(np.abs(with_slow[2] - without[2])) > 1e-3


def test_buffer_holds_f_terms_and_each_gradient_once() -> None:
    """The off-by-one of the transcription: f + 1 terms would count one gradient twice."""
    shape, zero = (3, 4), np.zeros((3, 4))
    S, M2, total = zero, zero, zero
    for seed in range(1, 7):
        g = matrix(shape, seed)
        _, _, _, S = m3(zero, zero, zero, S, zero, g, **SETTINGS)
        total = total + g
        if seed % 3 == 0:
            M2, S, O2 = m3_slow(M2, S, 1.0)
            assert not S.any()
    np.testing.assert_allclose(M2, total, rtol=1e-13)
    np.testing.assert_allclose(O2, newton_schulz(total), rtol=1e-12, atol=1e-14)


def test_squares_only_grow() -> None:
    V = np.zeros((3, 4))
    for seed in range(4):
        zero = np.zeros((3, 4))
        _, _, grown, _ = m3(zero, zero, V, zero, zero, matrix((3, 4), seed), **SETTINGS)
        assert (grown >= V).all()
        V = grown


def test_division_by_the_root_destroys_orthogonality() -> None:
    """The remark of 3.8: the read's singular values are in the band, the step's are not."""
    shape = (4, 9)
    zero, g = np.zeros(shape), matrix(shape, 1)
    theta, M1, _, _ = m3(zero, zero, zero, zero, zero, g, **SETTINGS)
    read = np.linalg.svd(newton_schulz(M1), compute_uv=False)
    step = np.linalg.svd(theta, compute_uv=False)
    assert read.max() / read.min() < 1.1344 / 0.6818
    assert step.max() / step.min() > 2.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sign_of_the_slow_part_as_transcribed_both_ways(sign: float) -> None:
    theta, M1, V, S, O2, g = (matrix((3, 4), seed) for seed in range(6))
    V = np.abs(V)
    reading = "quintic5" if sign > 0 else "quintic5_minus"
    got = m3(theta, M1, V, S, O2, g, **SETTINGS, reading=reading)[0]
    root = np.sqrt(V + 0.4 * g * g) + 1e-3
    want = theta - 0.05 * (newton_schulz(M1 + 0.7 * g) + sign * 0.6 * O2) / root
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mutant", ["cubic3", "tall_skipped"])
def test_u20_is_killed_by_the_polynomial_and_by_the_transpose(mutant: str) -> None:
    """N1 on a tall matrix; N3: the mutant that skips tall ones is not equivariant."""
    M2, S = matrix((6, 3), 1), matrix((6, 3), 2)
    _, _, read = m3_slow(M2, S, 0.5)
    u, s, vt = np.linalg.svd(M2 + 0.5 * S, full_matrices=False)
    s = s / np.linalg.norm(s)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    np.testing.assert_allclose(read, (u * s) @ vt, atol=1e-12)
    _, _, wrong = m3_slow(M2, S, 0.5, reading=mutant)
    assert np.max(np.abs(wrong - read)) > 0.05
    _, _, turned = m3_slow(M2.T, S.T, 0.5, reading=mutant)
    equivariant = np.allclose(turned.T, wrong)
    assert equivariant is (mutant == "cubic3")
    cubed = np.linalg.svd(M2 + 0.5 * S, compute_uv=False)
    cubed = cubed / np.linalg.norm(cubed)
    for _ in range(3):
        cubed = 1.5 * cubed - 0.5 * cubed**3
    if mutant == "cubic3":
        np.testing.assert_allclose(np.linalg.svd(wrong, compute_uv=False), cubed, atol=1e-12)
