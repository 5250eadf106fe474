"""Selective scan: golden numbers, dual and chunked forms, autograd, complex step, mutants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import selective_scan_backward, selective_scan_forward
from trueup.reference.dqn.selective_scan_backward import WRONG as BACKWARD_WRONG
from trueup.reference.dqn.selective_scan_backward import selective_scan_backward_by_sums
from trueup.reference.dqn.selective_scan_forward import WRONG as FORWARD_WRONG
from trueup.reference.dqn.selective_scan_forward import (
    retention,
    scan_in_chunks,
    selective_scan_dual,
    states,
    steps,
    written,
)

PROFILE = settings(derandomize=True, deadline=None, max_examples=25)
OUTPUTS = ("x", "dt_raw", "dt_bias", "A_log", "Bm", "Cm", "D", "dur")


def sample(seed: int = 0, B: int = 2, T: int = 7, H: int = 3, P: int = 2, M: int = 4) -> Any:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((B, T, H, P)),
        "dt_raw": rng.standard_normal((B, T, H)),
        "dt_bias": rng.standard_normal(H),
        "A_log": rng.uniform(-1.0, 1.0, H),
        "Bm": rng.standard_normal((B, T, M)),
        "Cm": rng.standard_normal((B, T, M)),
        "D": rng.standard_normal(H),
        "dur": rng.uniform(0.5, 2.0, (B, T)),
    }


def golden() -> dict[str, Any]:
    """B = H = P = M = 1, A = -1, D = 0.5, Delta through the inverse of softplus."""
    delta = np.array([0.5, 1.0, 0.25])
    column = {"x": [1.0, 2, -1], "Bm": [1.0, 0.5, 2], "Cm": [1.0, -1, 0.5]}
    values: dict[str, Any] = {k: np.reshape(v, (1, 3, 1)) for k, v in column.items()}
    return values | {
        "x": values["x"][..., None],
        "dt_raw": np.log(np.expm1(delta)).reshape(1, 3, 1),
        "dt_bias": np.zeros(1),
        "A_log": np.zeros(1),
        "D": np.full(1, 0.5),
        "dur": np.ones((1, 3)),
    }


def test_golden() -> None:
    values = golden()
    delta, _, a = steps(*(values[k] for k in ("dt_raw", "dt_bias", "A_log", "dur")))
    h = states(a, written(delta, values["x"], values["Bm"]))
    np.testing.assert_allclose(h.ravel(), [0.5, 1.18393972, 0.42205318], atol=6e-9)
    y = selective_scan_forward(**values)
    np.testing.assert_allclose(y.ravel(), [1.0, -0.18393972, -0.28897341], atol=6e-9)


@pytest.mark.parametrize("chunk", [1, 3, 4, 12])
def test_chunked_equals_sequential(chunk: int) -> None:
    values = sample(1, T=12)
    want = selective_scan_forward(**values)
    got = scan_in_chunks(**values, chunk=chunk)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@PROFILE
@given(seed=st.integers(0, 10_000))
def test_dual_form_equals_the_scan(seed: int) -> None:
    values = sample(seed)
    want = selective_scan_forward(**values)
    np.testing.assert_allclose(selective_scan_dual(**values), want, rtol=1e-10, atol=1e-13)


def by_torch(values: dict[str, Any]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    leaf = {name: torch.tensor(v, requires_grad=True) for name, v in values.items()}
    z = leaf["dt_raw"] + leaf["dt_bias"]
    delta = torch.nn.functional.softplus(z, threshold=1e9) * leaf["dur"][:, :, None]
    a = torch.exp(-delta * torch.exp(leaf["A_log"]))
    h = torch.zeros(*values["x"][:, 0].shape, values["Bm"].shape[2], dtype=torch.float64)
    y = []
    for t in range(values["x"].shape[1]):
        u = delta[:, t, :, None] * leaf["x"][:, t]
        h = a[:, t, :, None, None] * h + torch.einsum("bhp,bm->bhpm", u, leaf["Bm"][:, t])
        read = torch.einsum("bhpm,bm->bhp", h, leaf["Cm"][:, t])
        y.append(read + leaf["D"][:, None] * leaf["x"][:, t])
    return torch.stack(y, dim=1), leaf


@pytest.mark.parametrize("function", [selective_scan_backward, selective_scan_backward_by_sums])
def test_torch_autograd(function: Any) -> None:
    values = sample(2)
    y, leaf = by_torch(values)
    np.testing.assert_allclose(selective_scan_forward(**values), y.detach().numpy(), atol=1e-12)
    dy = np.random.default_rng(3).standard_normal(tuple(y.shape))
    y.backward(torch.tensor(dy))
    for name, mine in zip(OUTPUTS, function(dy, **values), strict=True):
        grad = leaf[name].grad
        assert grad is not None
        np.testing.assert_allclose(mine, grad.numpy(), rtol=1e-9, atol=1e-11, err_msg=name)


def test_complex_step_of_every_input() -> None:
    values = sample(4, B=1, T=4, H=2, P=1, M=2)
    dy = np.random.default_rng(5).standard_normal((1, 4, 2, 1))

    def loss(v: dict[str, Any]) -> Any:
        z = v["dt_raw"] + v["dt_bias"]
        delta = np.log(1 + np.exp(z)) * v["dur"][:, :, None]
        a = np.exp(-delta * np.exp(v["A_log"]))
        h, total = np.zeros((1, 2, 1, 2), complex), 0
        for t in range(4):
            u = delta[:, t, :, None] * v["x"][:, t]
            h = a[:, t, :, None, None] * h + u[..., None] * v["Bm"][:, t, None, None]
            y = (h * v["Cm"][:, t, None, None]).sum(-1) + v["D"][:, None] * v["x"][:, t]
            total = total + (dy[:, t] * y).sum()
        return total

    for name, mine in zip(OUTPUTS, selective_scan_backward(dy, **values), strict=True):
        want = np.zeros_like(values[name])
        for place in np.ndindex(*want.shape):
            moved = {k: v.astype(complex) for k, v in values.items()}
            moved[name][place] += 1e-30j
            want[place] = loss(moved).imag / 1e-30
        np.testing.assert_allclose(mine, want, rtol=1e-11, atol=1e-13, err_msg=name)


def test_finite_differences() -> None:
    values = sample(6)
    dy = np.random.default_rng(7).standard_normal(values["x"].shape)
    rng = np.random.default_rng(8)
    for name, mine in zip(OUTPUTS, selective_scan_backward(dy, **values), strict=True):
        way, h = rng.standard_normal(values[name].shape), 1e-5
        ends = [
            (dy * selective_scan_forward(**(values | {name: values[name] + s * h * way}))).sum()
            for s in (1, -1)
        ]
        assert (mine * way).sum() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


def test_every_parameter_has_a_gradient_and_the_last_loss_reaches_the_first_step() -> None:
    values = sample(9)
    dy = np.zeros_like(values["x"])
    dy[:, -1] = 1.0
    got = dict(zip(OUTPUTS, selective_scan_backward(dy, **values), strict=True))
    for name, gradient in got.items():
        assert np.abs(gradient).max() > 0, name
    for name in ("x", "dt_raw", "Bm"):
        assert np.abs(got[name][:, 0]).max() > 0, name


@PROFILE
@given(seed=st.integers(0, 10_000), t=st.integers(0, 6))
def test_causal_bit_for_bit(seed: int, t: int) -> None:
    values = sample(seed)
    later = {k: v.copy() for k, v in values.items()}
    for name in ("x", "dt_raw", "Bm", "Cm", "dur"):
        later[name][:, t + 1 :] = 3.0
    want = selective_scan_forward(**values)[:, : t + 1]
    np.testing.assert_array_equal(selective_scan_forward(**later)[:, : t + 1], want)


@PROFILE
@given(seed=st.integers(0, 10_000))
def test_linear_in_x_and_decays_stay_inside_zero_and_one(seed: int) -> None:
    values, other = sample(seed), sample(seed + 1)
    both = selective_scan_forward(**(values | {"x": 2.0 * values["x"] - other["x"]}))
    want = 2.0 * selective_scan_forward(**values) - selective_scan_forward(
        **(values | {"x": other["x"]})
    )
    np.testing.assert_allclose(both, want, rtol=1e-9, atol=1e-11)
    of = [values[k] for k in ("dt_raw", "dt_bias", "A_log", "dur")]
    _, _, a = steps(*of)
    assert (a > 0).all()
    assert (a < 1).all()
    assert 0 < float(retention(*of)) < 1


def test_batch_permutation_is_equivariant_bit_for_bit() -> None:
    values = sample(3, B=4)
    order = np.array([2, 0, 3, 1])
    per_sample = {k: values[k][order] for k in ("x", "dt_raw", "Bm", "Cm", "dur")}
    want = selective_scan_forward(**values)[order]
    np.testing.assert_array_equal(selective_scan_forward(**(values | per_sample)), want)


def test_limits_forget_and_freeze() -> None:
    values = sample(5)
    forgetful = values | {"A_log": np.full(3, 12.0)}
    delta, _, a = steps(*(forgetful[k] for k in ("dt_raw", "dt_bias", "A_log", "dur")))
    h = states(a, written(delta, values["x"], values["Bm"]))
    np.testing.assert_allclose(h, written(delta, values["x"], values["Bm"]), atol=1e-12)
    still = values | {"dt_raw": np.full((2, 7, 3), -60.0), "dt_bias": np.zeros(3)}
    delta, _, a = steps(*(still[k] for k in ("dt_raw", "dt_bias", "A_log", "dur")))
    np.testing.assert_allclose(states(a, written(delta, values["x"], values["Bm"])), 0, atol=1e-20)
    np.testing.assert_allclose(a, 1.0, atol=1e-15)


def test_a_duration_of_one_switches_durations_off() -> None:
    values = sample(6) | {"dur": np.ones((2, 7))}
    want = selective_scan_forward(**values, reading="duration_dropped")
    np.testing.assert_array_equal(selective_scan_forward(**values), want)


@pytest.mark.parametrize("reading", FORWARD_WRONG)
def test_forward_mutants_are_far_away(reading: str) -> None:
    values = sample(7)
    gap = np.abs(
        selective_scan_forward(**values, reading=reading) - selective_scan_forward(**values)
    )
    assert gap.max() > 1e-2


@pytest.mark.parametrize("reading", BACKWARD_WRONG)
def test_backward_mutants_are_far_away(reading: str) -> None:
    values = sample(8)
    dy = np.random.default_rng(9).standard_normal(values["x"].shape)
    right = selective_scan_backward(dy, **values)
    wrong = selective_scan_backward(dy, **values, reading=reading)
    assert max(np.abs(a - b).max() for a, b in zip(right, wrong, strict=True)) > 1e-2


def test_float32_states_stay_inside_the_error_recursion() -> None:
    """b <- a b + a |h| (|Delta A| + 5) u + 3 u |Delta x B| + u |h'|, over 256 steps."""
    rng = np.random.default_rng(0)
    T, u = 256, 2.0**-24
    delta, A = rng.uniform(0.01, 1.0, T).astype(np.float32), np.float32(-0.7)
    x, B = (rng.standard_normal(T).astype(np.float32) for _ in range(2))
    h32, h, bound, worst = np.float32(0.0), 0.0, 0.0, 0.0
    for t in range(T):
        a32 = np.exp(np.float32(delta[t] * A))
        h32 = np.float32(a32 * h32) + np.float32(np.float32(delta[t] * x[t]) * B[t])
        a, write = np.exp(float(delta[t]) * float(A)), float(delta[t]) * float(x[t]) * float(B[t])
        after = a * h + write
        slack = a * abs(h) * (abs(float(delta[t]) * float(A)) + 5) * u
        bound = a * bound + slack + 3 * u * abs(write) + u * abs(after)
        h = after
        worst = max(worst, abs(float(h32) - h) / bound)
    assert 0 < worst < 1
