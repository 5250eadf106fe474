"""Variable selection: torch autograd, complex step, exact properties, mutants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import grn_forward, moe_mixture_forward, vsn_backward, vsn_forward
from trueup.reference.dqn.vsn_backward import WRONG as BACKWARD_WRONG
from trueup.reference.dqn.vsn_forward import BOUNDS, GROUPS
from trueup.reference.dqn.vsn_forward import WRONG as FORWARD_WRONG

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
SMALL = np.array([1, 3, 4, 4, 7, 9, 10])  # one group is empty; columns 0 and 10, 11 lie outside


def sample(D: int = 12, B: int = 5, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((B, D)),
        "W": rng.standard_normal((6, D)),
        "b": rng.standard_normal(6),
        "gb": SMALL if D == 12 else np.array(BOUNDS),
        "sigma": 1.7,
    }


def gradients(values: dict[str, Any], d_out: Any, reading: str = "both_paths") -> Any:
    w = vsn_forward(**values)[1]
    needed = {k: values[k] for k in ("x", "W", "gb", "sigma")}
    return vsn_backward(d_out, w=w, **needed, reading=reading)


def owner(gb: Any, D: int) -> list[int]:
    """Tell each column's group by a loop over the groups; 6 outside."""
    found = [6] * D
    for g in range(6):
        for i in range(gb[g], gb[g + 1]):
            found[i] = g
    return found


@pytest.mark.parametrize("D", [12, 128])
def test_torch_autograd(D: int) -> None:
    values = sample(D)
    x, W, b = (torch.tensor(values[k], requires_grad=True) for k in ("x", "W", "b"))
    w = torch.softmax(torch.nn.functional.linear(x, W, b), dim=1)
    gate = torch.cat([w * values["sigma"], torch.ones(len(values["x"]), 1)], dim=1)
    out = x * gate[:, owner(values["gb"], D)]
    got, weights = vsn_forward(**values)
    np.testing.assert_allclose(got, out.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(weights, w.detach().numpy(), rtol=1e-12)
    d_out = np.random.default_rng(1).standard_normal((5, D))
    out.backward(torch.tensor(d_out))
    for leaf, mine in zip((x, W, b), gradients(values, d_out), strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(mine, leaf.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_complex_step() -> None:
    values = sample()
    d_out = np.random.default_rng(2).standard_normal((5, 12))
    column = owner(SMALL, 12)

    def total(x: Any, W: Any, b: Any) -> Any:
        z = np.exp(x @ W.T + b)
        gate = np.concatenate([1.7 * z / z.sum(axis=1, keepdims=True), np.ones((5, 1))], axis=1)
        return (d_out * x * gate[:, column]).sum()

    base = [values[k] for k in ("x", "W", "b")]
    for number, mine in enumerate(gradients(values, d_out)):
        want = np.zeros_like(base[number])
        for place in np.ndindex(*want.shape):
            moved = [v.astype(complex) for v in base]
            moved[number][place] += 1e-30j
            want[place] = total(*moved).imag / 1e-30
        np.testing.assert_allclose(mine, want, rtol=1e-11, atol=1e-13)


def test_zero_logits_and_sigma_six_give_x_bit_for_bit_in_float32() -> None:
    """fl(1/6) * 6 is 1 in float32; scaling x first and by 6 after changes many by an ulp."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(100_000).astype(np.float32)
    w = np.float32(1.0) / np.float32(6.0)
    np.testing.assert_array_equal(x * (w * np.float32(6.0)), x)
    late = (x * w) * np.float32(6.0) != x
    assert 0.25 < late.mean() < 0.4
    values = sample() | {"W": np.zeros((6, 12)), "b": np.zeros(6), "sigma": 6.0}
    np.testing.assert_array_equal(vsn_forward(**values)[0], values["x"])


@PROFILE
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 100.0))
def test_weights_lie_on_the_simplex_and_dlogit_sums_to_zero(seed: int, scale: float) -> None:
    values = sample(seed=seed)
    values["W"] = scale * values["W"]
    _, w = vsn_forward(**values)
    assert (w >= 0).all()
    np.testing.assert_allclose(w.sum(axis=1), 1.0, atol=1e-14)
    d_out = np.random.default_rng(seed + 1).standard_normal((5, 12))
    db = gradients(values, d_out)[2]
    np.testing.assert_allclose(db.sum(), 0.0, atol=1e-12)


@PROFILE
@given(seed=st.integers(0, 10_000))
def test_permuting_the_features_of_a_group_commutes(seed: int) -> None:
    values = sample(128, seed=seed)
    rng = np.random.default_rng(seed)
    order = np.arange(128)
    first, last = BOUNDS[2], BOUNDS[3]
    order[first:last] = first + rng.permutation(last - first)
    moved = values | {"x": values["x"][:, order], "W": values["W"][:, order]}
    want = vsn_forward(**values)[0][:, order]
    np.testing.assert_allclose(vsn_forward(**moved)[0], want, rtol=1e-11)


def test_padding_stays_zero_and_has_no_gradient_from_the_gate() -> None:
    values = sample(128)
    values["x"][:, 122:] = 0.0
    out, _ = vsn_forward(**values)
    np.testing.assert_array_equal(out[:, 122:], 0.0)
    np.testing.assert_array_equal(out[:, 121], values["x"][:, 121])  # the direction signal


def test_a_saturated_logit_selects_one_group() -> None:
    values = sample(128)
    values["b"] = np.array([0.0, 0, 0, 1000.0, 0, 0])
    out, w = vsn_forward(**values)
    np.testing.assert_array_equal(w[:, 3], 1.0)
    np.testing.assert_array_equal(out[:, : BOUNDS[3]], 0.0)
    inside = slice(BOUNDS[3], BOUNDS[4])
    np.testing.assert_allclose(out[:, inside], 1.7 * values["x"][:, inside], rtol=1e-15)


def test_default_partition() -> None:
    assert GROUPS == ("market", "ofi", "tlob", "mtf", "portfolio", "plan_isv")
    assert list(np.diff(BOUNDS)) == [42, 18, 16, 16, 23, 6]
    assert list(BOUNDS) == sorted(BOUNDS)


def test_full_published_form_is_the_mixture_of_a_block_for_each_group() -> None:
    """out = sum_j w_j GRN_j(x_j): joined by the mixture of experts."""
    values = sample(128)
    rng = np.random.default_rng(4)
    _, w = vsn_forward(**values)
    blocks = []
    for g in range(6):
        x = values["x"][:, BOUNDS[g] : BOUNDS[g + 1]]
        parts = [(4, x.shape[1]), (4,), (10, 4), (10,), (5,), (5,), (5, x.shape[1])]
        parameters: Any = [rng.standard_normal(shape) for shape in parts]
        blocks.append(grn_forward(x, *parameters)[0])
    got = moe_mixture_forward(w, np.stack(blocks, axis=1))
    want = sum(w[:, g : g + 1] * blocks[g] for g in range(6))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reading", FORWARD_WRONG)
def test_forward_mutants_are_far_away(reading: str) -> None:
    values = sample(128)
    gap = np.abs(vsn_forward(**values, reading=reading)[0] - vsn_forward(**values)[0]).max()
    assert gap > 1e-3


@pytest.mark.parametrize("reading", BACKWARD_WRONG)
def test_backward_mutants_are_far_away(reading: str) -> None:
    values = sample()
    d_out = np.random.default_rng(1).standard_normal((5, 12))
    pairs = zip(gradients(values, d_out), gradients(values, d_out, reading), strict=True)
    assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3
