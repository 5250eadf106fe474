"""A number added to all logits of an action cannot be trained; the shift of the atoms can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.reference.dqn import adam_w, atom_shift, c51_loss, c51_projection
from trueup.reference.dqn.atoms import softmax

N = 51


def gamma(n: int, u: float) -> float:
    return n * u / (1.0 - n * u)


def fixture(seed: int, n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    support = np.tile([-2.0, 2.0, 4.0 / (n - 1)], (1, 4, 1))
    return {
        "logits": 2.0 * rng.standard_normal((1, 4, n)),
        "p_next": softmax(rng.standard_normal((1, 4, n))),
        "support": support,
        "next_support": support,
        "returns": rng.uniform(-0.5, 0.5, (1, 4)),
        "discount": np.full((1, 4), 0.9),
        "weight": np.full(1, 4.0),  # so that the gradient is p - m itself
    }


def bias_gradient(values: dict[str, Any], reading: str = "default") -> Any:
    """Sum dL/dlogit over the atoms: the gradient of one number added to all of them."""
    return c51_loss(**values, reading=reading)[1].sum(-1)


def test_the_gradient_of_a_scalar_bias_is_zero_in_double() -> None:
    for seed in range(50):
        assert np.abs(bias_gradient(fixture(seed))).max() <= 4 * gamma(N, 2.0**-53)


def test_the_same_by_complex_step() -> None:
    values = fixture(1)
    mass, _ = c51_projection(**{k: v for k, v in values.items() if k not in ("logits", "weight")})
    moved = values["logits"] + 1e-30j
    below = moved - values["logits"].max(-1, keepdims=True)
    log_p = below - np.log(np.exp(below).sum(-1, keepdims=True))
    slope = -(mass * log_p).sum(-1).imag / 1e-30
    assert np.abs(slope).max() <= 4 * gamma(N, 2.0**-53)


@pytest.mark.parametrize("number", [1e-3, 1.0, 100.0])
def test_the_loss_does_not_move(number: float) -> None:
    values = fixture(2)
    moved = values | {"logits": values["logits"] + number}
    np.testing.assert_allclose(c51_loss(**moved)[0], c51_loss(**values)[0], atol=1e-12)


def rounded_gradient(values: dict[str, Any], bias: float, mass: Any) -> tuple[float, float]:
    """Give sum(p - m) of the first branch in float32, and N u sum |p - m|, its noise bound."""
    logits = np.float32(values["logits"][0, 0]) + np.float32(bias)
    weight = np.exp(logits - logits.max(), dtype=np.float32)
    apart = weight / weight.sum(dtype=np.float32) - np.float32(mass)
    total = np.float32(0.0)
    for a in apart:
        total = np.float32(total + a)
    return float(total), N * 2.0**-24 * float(np.abs(apart).sum())


def test_rounding_noise_moves_the_bias_under_adam_and_not_under_sgd() -> None:
    """That a weight moved is no evidence that it is trained: compare the noise with its bound."""
    rate, steps = 1e-3, 600
    W, m, v = np.zeros(1), np.zeros(1), np.zeros(1)
    plain, largest = 0.0, 0.0
    for step in range(1, steps + 1):
        values = fixture(step)
        mass = c51_projection(**{k: x for k, x in values.items() if k not in ("logits", "weight")})[
            0
        ][0, 0]
        g, bound = rounded_gradient(values, float(W[0]), mass)
        assert abs(g) <= bound
        largest = max(largest, abs(g))
        plain -= rate * g
        W, m, v = adam_w(W, m, v, np.full(1, g), np.full(1, float(step)))
    assert 0.0 < largest < 1e-6
    assert abs(plain) < 1e-6
    assert abs(W[0]) > 1e3 * abs(plain)
    assert abs(W[0]) > 0.01


def test_a_projection_that_loses_mass_gives_the_bias_a_gradient() -> None:
    """A gradient above the noise is proof of a defect in the projection."""
    values = fixture(3, n=5) | {"returns": np.zeros((1, 4)), "discount": np.ones((1, 4))}
    assert np.abs(bias_gradient(values)).max() < 1e-14
    assert np.abs(bias_gradient(values, "integer_b")).min() > 0.5


def test_the_shift_of_the_atoms_has_a_gradient_on_the_same_inputs() -> None:
    values = fixture(1)
    shift = atom_shift(np.array([-0.5, 0.0, 0.5, 0.0]), np.full(1, 0.3))
    d_shift = c51_loss(**values, shift=shift, next_shift=np.zeros((1, 4)))[2]
    assert np.abs(d_shift).min() > 1e-3
