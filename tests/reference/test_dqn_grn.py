"""Gated residual network: torch autograd, complex step, exact properties, mutants, tensor list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import NotApplicable
from trueup.reference.dqn import grn_backward, grn_forward
from trueup.reference.dqn.activations import elu, sigmoid
from trueup.reference.dqn.grn_backward import WRONG as BACKWARD_WRONG
from trueup.reference.dqn.grn_forward import WRONG as FORWARD_WRONG
from trueup.reference.dqn.grn_tensors import (
    AFTER,
    BEFORE,
    TRUNK,
    Tensor,
    grn_tensors,
    initial,
    with_grn_trunk,
)

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
EPS = 1e-5
MODES = [pytest.param((5, 6, 4, 3), id="projected"), pytest.param((5, 6, 6, 6), id="identity")]


def block(shape: tuple[int, int, int, int], seed: int = 0) -> dict[str, Any]:
    """Give a block's input and parameters for (B, H, D_in, D)."""
    B, H, D_in, D = shape
    rng = np.random.default_rng(seed)
    values = {
        "x": rng.standard_normal((B, D_in)),
        "W_a": rng.standard_normal((H, D_in)),
        "b_a": rng.standard_normal(H),
        "W_b": rng.standard_normal((2 * D, H)),
        "b_b": rng.standard_normal(2 * D),
        "gamma": rng.standard_normal(D),
        "beta": rng.standard_normal(D),
    }
    return values | ({} if D_in == D else {"W_res": rng.standard_normal((D, D_in))})


def gradients(values: dict[str, Any], d_out: Any, reading: str = "full") -> dict[str, Any]:
    """Give the gradients by name, from a forward pass of the reference."""
    _, e, u, s, xhat, rstd = grn_forward(**values)
    needed = {k: values[k] for k in ("x", "W_a", "W_b", "gamma", "W_res") if k in values}
    saved = {"e": e, "u": u, "s": s, "xhat": xhat, "rstd": rstd}
    parts = grn_backward(d_out, **needed, **saved, reading=reading)
    names = ("x", "W_a", "b_a", "W_b", "b_b", "gamma", "beta", "W_res")
    return dict(zip(names, parts, strict=False))


def by_torch(values: dict[str, Any]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Run the block with the library's own ELU, GLU and layer norm."""
    leaf = {name: torch.tensor(v, requires_grad=True) for name, v in values.items()}
    F = torch.nn.functional
    e = F.elu(F.linear(leaf["x"], leaf["W_a"], leaf["b_a"]))
    q = F.glu(F.linear(e, leaf["W_b"], leaf["b_b"]))  # value half first, then the gate
    r = F.linear(leaf["x"], leaf["W_res"]) if "W_res" in leaf else leaf["x"]
    return F.layer_norm(q + r, q.shape[1:], leaf["gamma"], leaf["beta"], EPS), leaf


@pytest.mark.parametrize("shape", MODES)
def test_torch_autograd(shape: tuple[int, int, int, int]) -> None:
    values = block(shape)
    out, leaf = by_torch(values)
    np.testing.assert_allclose(grn_forward(**values)[0], out.detach().numpy(), atol=1e-12)
    d_out = np.random.default_rng(9).standard_normal(tuple(out.shape))
    out.backward(torch.tensor(d_out))
    for name, mine in gradients(values, d_out).items():
        grad = leaf[name].grad
        assert grad is not None
        np.testing.assert_allclose(mine, grad.numpy(), rtol=1e-11, atol=1e-11, err_msg=name)


def complex_block(values: dict[str, Any]) -> Any:
    """Evaluate the block on complex numbers; comparisons look at the real part."""
    a = values["x"] @ values["W_a"].T + values["b_a"]
    e = np.where(a.real > 0, a, np.exp(a) - 1)
    u = e @ values["W_b"].T + values["b_b"]
    D = values["gamma"].shape[0]
    r = values["x"] @ values["W_res"].T if "W_res" in values else values["x"]
    y = u[:, :D] / (1 + np.exp(-u[:, D:])) + r
    c = y - y.mean(axis=1, keepdims=True)
    return (
        values["gamma"] * c / np.sqrt((c * c).mean(axis=1, keepdims=True) + EPS) + (values["beta"])
    )


@pytest.mark.parametrize("shape", MODES)
def test_complex_step(shape: tuple[int, int, int, int]) -> None:
    values = block(shape, 3)
    d_out = np.random.default_rng(4).standard_normal((shape[0], shape[3]))
    got = gradients(values, d_out)
    rng = np.random.default_rng(5)
    for name, mine in got.items():
        direction = rng.standard_normal(values[name].shape)
        moved = values | {name: values[name] + 1e-30j * direction}
        want = (d_out * complex_block(moved)).sum().imag / 1e-30
        scale = np.abs(mine * direction).sum()
        assert abs((mine * direction).sum() - want) <= 1e-12 * scale, name


def test_published_block_composes_into_two_linears() -> None:
    """The published block has one more linear between ELU and GLU: W_b = W_glu W_1."""
    values = block((4, 5, 6, 6), 7)
    rng = np.random.default_rng(8)
    W_1, b_1 = rng.standard_normal((7, 5)), rng.standard_normal(7)
    W_glu, b_glu = rng.standard_normal((12, 7)), rng.standard_normal(12)
    e = elu(values["x"] @ values["W_a"].T + values["b_a"])
    glu = (e @ W_1.T + b_1) @ W_glu.T + b_glu
    y = torch.tensor(glu[:, :6] * sigmoid(glu[:, 6:]) + values["x"])
    gain = torch.tensor(values["gamma"]), torch.tensor(values["beta"])
    want = torch.nn.functional.layer_norm(y, (6,), *gain, EPS)
    composed = values | {"W_b": W_glu @ W_1, "b_b": W_glu @ b_1 + b_glu}
    np.testing.assert_allclose(grn_forward(**composed)[0], want.numpy(), atol=1e-12)


@PROFILE
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 50.0))
def test_layer_norm_identities(seed: int, scale: float) -> None:
    """sum xhat = 0, sum xhat^2 = D var / (var + eps), sum dy = 0 where the residual is linear."""
    values = block((3, 4, 5, 5), seed)
    values["x"] = scale * values["x"]
    out, _, u, s, xhat, rstd = grn_forward(**values)
    y = u[:, :5] * s + values["x"]
    var = y.var(axis=1)
    np.testing.assert_allclose(xhat.sum(axis=1), 0.0, atol=1e-11)
    np.testing.assert_allclose((xhat**2).sum(axis=1), 5 * var / (var + EPS), rtol=1e-9)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(var + EPS), rtol=1e-11)
    np.testing.assert_allclose(out, values["gamma"] * xhat + values["beta"], rtol=1e-12)


@PROFILE
@given(seed=st.integers(0, 10_000), c=st.floats(-50.0, 50.0))
def test_a_constant_in_the_residual_changes_nothing(seed: int, c: float) -> None:
    """W_res x + c 1 is one more input feature of value 1 with weight c in every row."""
    values = block((3, 4, 2, 5), seed)
    want = grn_forward(**values)[0]
    wider = values | {
        "x": np.concatenate([values["x"], np.ones((3, 1))], axis=1),
        "W_a": np.concatenate([values["W_a"], np.zeros((4, 1))], axis=1),
        "W_res": np.concatenate([values["W_res"], np.full((5, 1), c)], axis=1),
    }
    np.testing.assert_allclose(grn_forward(**wider)[0], want, rtol=1e-8, atol=1e-8)


def test_gamma_zero_gives_beta_and_no_gradient_of_x() -> None:
    values = block((5, 6, 4, 3))
    values["gamma"] = np.zeros(3)
    out = grn_forward(**values)[0]
    np.testing.assert_array_equal(out, np.tile(values["beta"], (5, 1)))
    got = gradients(values, np.ones((5, 3)))
    for name in ("x", "W_a", "b_a", "W_b", "b_b", "W_res"):
        np.testing.assert_array_equal(got[name], 0.0)
    assert np.abs(got["beta"]).min() > 0


@pytest.mark.parametrize("how", ["gate shut", "value zero"])
def test_without_glu_the_block_is_the_layer_norm_of_its_residual(how: str) -> None:
    values = block((5, 6, 6, 6))
    half = slice(6, None) if how == "gate shut" else slice(0, 6)
    values["W_b"][half] = 0.0
    values["b_b"][half] = -800.0 if how == "gate shut" else 0.0
    x = torch.tensor(values["x"])
    gain = torch.tensor(values["gamma"]), torch.tensor(values["beta"])
    want = torch.nn.functional.layer_norm(x, (6,), *gain, EPS)
    np.testing.assert_allclose(grn_forward(**values)[0], want.numpy(), atol=1e-12)


def test_elu_is_continuous_at_zero_with_slope_one() -> None:
    h = 1e-9
    assert elu(np.array([0.0]))[0] == 0.0
    slopes = elu(np.array([h, -h])) / np.array([h, -h])
    np.testing.assert_allclose(slopes, 1.0, atol=2e-9)
    assert sigmoid(np.array([-1e4]))[0] == 0.0


def test_output_is_signed_and_its_rows_have_mean_zero_before_the_gain() -> None:
    values = block((40, 6, 6, 6)) | {"gamma": np.ones(6), "beta": np.zeros(6)}
    out = grn_forward(**values)[0]
    assert (out < 0).mean() > 0.3
    np.testing.assert_allclose(out.mean(axis=1), 0.0, atol=1e-13)


@pytest.mark.parametrize("reading", FORWARD_WRONG)
def test_forward_mutants_are_far_from_the_block(reading: str) -> None:
    """At least 100 bounds of the float32 error, here 1e-6 of the output's size each."""
    values = block((6, 6, 6, 6), 2)
    if reading == "eps_outside" or reading == "eps_dropped":  # seen where the variance is small
        for name in ("x", "W_b", "b_b"):
            values[name] = 1e-3 * values[name]
    right, wrong = grn_forward(**values), grn_forward(**values, reading=reading)
    gap = max(np.abs(a - b).max() for a, b in zip(right, wrong, strict=True))
    assert gap > 1e-4


@pytest.mark.parametrize("reading", BACKWARD_WRONG)
@pytest.mark.parametrize("shape", MODES)
def test_backward_mutants_are_far_from_the_gradient(
    reading: str, shape: tuple[int, int, int, int]
) -> None:
    values = block(shape, 6)
    d_out = np.random.default_rng(1).standard_normal((shape[0], shape[3])) + 0.5
    right, wrong = gradients(values, d_out), gradients(values, d_out, reading)
    gap = max(np.abs(right[k] - wrong[k]).max() for k in right)
    assert gap > 1e-3


def test_elementwise_layer_norm_is_wrong_by_more_than_the_gradient() -> None:
    """Measured by the programme: a relative error of dx above 1."""
    for seed in range(5):
        values = block((16, 8, 12, 12), seed) | {"gamma": np.ones(12)}
        d_out = np.random.default_rng(seed).uniform(0.5, 1.5, (16, 12))
        right, wrong = gradients(values, d_out)["x"], gradients(values, d_out, "elementwise")["x"]
        assert np.linalg.norm(wrong - right) > np.linalg.norm(right)


def test_sites_that_share_a_buffer_spoil_the_gradient() -> None:
    """forward(online), forward(auxiliary), backward(online): each site needs its own five."""
    online, auxiliary = block((5, 6, 6, 6), 0), block((5, 6, 6, 6), 1)
    d_out = np.random.default_rng(3).standard_normal((5, 6))
    want = gradients(online, d_out)
    names = ("e", "u", "s", "xhat", "rstd")
    shared: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    for site, values in (("online", online), ("auxiliary", auxiliary)):
        saved = dict(zip(names, grn_forward(**values)[1:], strict=True))
        assert len(saved) == 5
        own[site], shared = saved, saved
    needed = {k: online[k] for k in ("x", "W_a", "W_b", "gamma")}
    right = grn_backward(d_out, **needed, **own["online"])
    spoilt = grn_backward(d_out, **needed, **shared)
    np.testing.assert_array_equal(right[0], want["x"])
    assert np.abs(spoilt[0] - want["x"]).max() > 0.1


def variance(y: Any, one_pass: bool) -> Any:
    """Give the variance of float32 rows, in one pass or in two."""
    mean = np.asarray(np.mean(y, axis=1, dtype=np.float32))
    if one_pass:
        return np.mean(y * y, axis=1, dtype=np.float32) - mean * mean
    c = y - mean[:, None]
    return np.mean(c * c, axis=1, dtype=np.float32)


@pytest.mark.parametrize(
    ("offset", "one_pass", "two_pass"), [(10.0, 1e-6, 1e-6), (1000.0, 1e-2, 1e-6)]
)
def test_one_pass_variance_is_useless_far_from_zero(
    offset: float, one_pass: float, two_pass: float
) -> None:
    rng = np.random.default_rng(0)
    y = (offset + rng.standard_normal((64, 256))).astype(np.float32)
    want = y.astype(np.float64).var(axis=1)
    error = {way: np.abs(variance(y, way) / want - 1).max() for way in (True, False)}
    assert error[True] > one_pass
    assert error[False] < two_pass


def test_without_projection_the_widths_must_agree() -> None:
    values = block((5, 6, 4, 3))
    del values["W_res"]
    with pytest.raises(NotApplicable, match="W_res"):
        grn_forward(**values)


def old_list() -> list[Tensor]:
    trunk = [Tensor(n, s) for n, s in zip(TRUNK, [(8, 5), (8,), (8, 8), (8,)], strict=True)]
    return trunk + [Tensor(f"head{i}", (i + 1, 3)) for i in range(BEFORE - 4)]


def test_accounting_of_tensors() -> None:
    old = old_list()
    new = with_grn_trunk(old, 5, 8, 8)
    assert (len(old), len(new)) == (BEFORE, AFTER) == (86, 95)
    assert [len(grn_tensors("g", *w)) for w in ((5, 8, 8), (8, 8, 8))] == [7, 6]
    place = {tensor.name: number for number, tensor in enumerate(new)}
    for number, tensor in enumerate(old[4:], start=4):
        assert place[tensor.name] == number + 9
        assert new[place[tensor.name]] == tensor
    assert len(old[4:]) == 82


@pytest.mark.parametrize("widths", [(8, 8, 8), (5, 8, 9)])
def test_other_widths_give_another_count_and_are_refused(widths: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="13 tensors"):
        with_grn_trunk(old_list(), *widths)


def test_a_list_without_the_trunk_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with"):
        with_grn_trunk(old_list()[1:], 5, 8, 8)


def test_initial_values() -> None:
    rng = np.random.default_rng(0)
    for tensor in grn_tensors("grn1", 128, 160, 120):
        value = initial(tensor, rng)
        if tensor.name.endswith("gamma"):
            np.testing.assert_array_equal(value, 1.0)
        elif len(tensor.shape) == 1:
            np.testing.assert_array_equal(value, 0.0)
        else:
            assert value.size >= 10**4
            assert value.var() == pytest.approx(2 / sum(tensor.shape), rel=0.05)
