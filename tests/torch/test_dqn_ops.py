"""The agent's operators on the CPU: float64 references, finite differences, torch's own checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import trueup.kernels.torch as t
from trueup.reference import dqn

F64 = torch.float64
B, N, H, D = 3, 5, 4, 6
BOUNDS = torch.tensor([1, 2, 2, 4, 5, 7, 8], dtype=torch.int32)


def random(*shape: int, grad: bool = False) -> Tensor:
    return torch.randn(*shape, dtype=F64).requires_grad_(grad)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got.detach().numpy(), np.asarray(want), rtol=1e-10, atol=1e-11)


def numpy(given: dict[str, Any]) -> dict[str, Any]:
    return {
        name: item.detach().numpy() if isinstance(item, Tensor) else item
        for name, item in given.items()
    }


def supports(*rows: int, n: int = N) -> Tensor:
    low = torch.randn(*rows) - 2
    return t.support_of(low, low + 2 + torch.rand(*rows), n).double()


def c51_inputs(positions: bool = False, shifted: bool = True, n: int = N) -> dict[str, Any]:
    given = {
        "logits": random(B, 4, n, grad=True),
        "p_next": torch.softmax(random(B, 4, n), -1),
        "support": supports(B, 4, n=n),
        "next_support": supports(B, 4, n=n),
        "returns": random(B, 4) / 3,
        "discount": torch.rand(B, 4, dtype=F64),
        "weight": 0.3 + torch.rand(B, dtype=F64),
    }
    if positions:
        given["positions"] = torch.linspace(0, 1, n, dtype=F64) ** 1.5
    if shifted:
        given["shift"] = random(B, 4, grad=True) / 4
        given["next_shift"] = random(B, 4) / 4
    return given


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("n", [2, N, 11])
def test_the_c51_loss_and_its_gradients(positions: bool, shifted: bool, n: int) -> None:
    given = c51_inputs(positions, shifted, n)
    want = dqn.c51_loss(**numpy(given))
    got = t.c51_loss(**given)
    close(got.losses, want[0])
    assert got.invalid.sum() == 0
    omega = 0.25 * given["weight"].unsqueeze(1) / B
    close(got.total, (omega.numpy() * want[0]).sum())
    leaves = [given[name] for name in ("logits", "shift") if name in given]
    grads = torch.autograd.grad(3 * got.total, leaves)
    close(grads[0], 3 * want[1])
    if shifted:
        close(grads[1], 3 * omega.numpy() * want[2])


def test_the_c51_loss_by_finite_differences() -> None:
    given = c51_inputs(positions=True)
    rest = {name: item for name, item in given.items() if name not in ("logits", "shift")}

    def run(logits: Tensor, shift: Tensor) -> Tensor:
        return t.c51_loss(logits=logits, shift=shift, **rest).total

    shift = given["shift"].detach().requires_grad_()
    assert gradcheck(run, (given["logits"], shift))


def test_golden_numbers_of_the_shifted_loss() -> None:
    """z = [-1, 0, 1], shift 0.1: L 0.96151967, dL/dshift -0.625."""
    logits = torch.tensor([0, 0.5, -0.5], dtype=F64).expand(1, 4, 3).clone().requires_grad_()
    shift = torch.full((1, 4), 0.1, dtype=F64, requires_grad=True)
    support = torch.tensor([-1.0, 1, 1], dtype=F64).expand(1, 4, 3)
    p_next = torch.tensor([0.25, 0.5, 0.25], dtype=F64).expand(1, 4, 3)
    half, quarter = torch.full((1, 4), 0.5, dtype=F64), torch.full((1, 4), 0.25, dtype=F64)
    one = torch.ones(1, dtype=F64)
    got = t.c51_loss(
        logits, p_next, support, support, quarter, half, one, shift=shift, branch_weight=1.0
    )
    d_logits, d_shift = torch.autograd.grad(got.total, (logits, shift))
    assert got.losses[0, 0].item() == pytest.approx(0.96151967, abs=5e-9)
    assert d_shift[0, 0].item() == pytest.approx(-0.625, abs=1e-12)
    assert d_logits[0, 0].tolist() == pytest.approx([0.21969589, -0.16851961, -0.05117628])


def test_degenerate_supports_and_unknown_targets_are_flagged() -> None:
    given = c51_inputs()
    support, returns = given["support"].clone(), given["returns"].clone()
    support[0, 1, 2] = 0
    returns[2, 3] = torch.nan
    given |= {"support": support, "returns": returns}
    got, want = t.c51_loss(**given), dqn.c51_loss(**numpy(given))
    assert got.invalid.tolist() == want[3].tolist()
    assert got.invalid.nonzero().tolist() == [[0, 1], [2, 3]]
    close(got.losses, want[0])


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_expected_values(positions: bool, shifted: bool) -> None:
    logits, support = random(2, 2, N, grad=True), supports(2, 2)
    support[0, 1] = torch.tensor([1.0, 0.0, 0.5])
    given = {"logits": logits, "support": support}
    if positions:
        given["positions"] = torch.linspace(0, 1, N, dtype=F64) ** 1.5
    if shifted:
        given["shift"] = random(2, 2, grad=True)
    want = dqn.expected_q(**numpy(given))
    q, invalid = t.expected_q(**given)
    close(q, want[0])
    assert invalid.tolist() == want[1].tolist()
    leaves = [given[name] for name in ("logits", "shift") if name in given]

    def run(*moving: Tensor) -> Tensor:
        names = ["logits", "shift"]
        return t.expected_q(**(given | dict(zip(names, moving, strict=False))))[0]

    assert gradcheck(run, leaves)
    assert torch.autograd.gradgradcheck(run, leaves)


@pytest.mark.parametrize("reading", ["divided", "undivided"])
@pytest.mark.parametrize("kappa", [1.0, 0.5])
def test_the_quantile_loss(reading: str, kappa: float) -> None:
    theta, target = random(B, 4, N, grad=True), random(B, 4, 7)
    tau, weight = torch.rand(N, dtype=F64), torch.rand(B, dtype=F64)
    want = dqn.iqn_loss(
        theta.detach().numpy(), target.numpy(), tau.numpy(), weight.numpy(), kappa, reading=reading
    )

    def run(theta: Tensor) -> Tensor:
        return t.iqn_loss(theta, target, tau, weight, kappa, reading=reading).total

    got = t.iqn_loss(theta, target, tau, weight, kappa, reading=reading)
    close(got.losses, want[0])
    close(torch.autograd.grad(got.total, theta)[0], want[1])
    assert gradcheck(run, (theta,))


def test_golden_numbers_of_the_quantile_loss() -> None:
    theta = torch.tensor([-2.0, -1, 0, 1, 2], dtype=F64).expand(1, 4, 5).clone().requires_grad_()
    target = torch.tensor([0.5, -3], dtype=F64).expand(1, 4, 2)
    tau = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95], dtype=F64)
    got = t.iqn_loss(theta, target, tau, torch.ones(1, dtype=F64))
    (grad,) = torch.autograd.grad(got.total, theta)
    assert got.losses[0].tolist() == pytest.approx([2.221875] * 4)
    assert grad[0, 2].tolist() == pytest.approx([0.45, 0.25, 0.125, 0.1875, 0.05])


@pytest.mark.parametrize(
    ("level", "value"), [(0.25, -2.2), (0.5, -1.35), (1.0, -0.15), (0.05, -3.0)]
)
def test_value_at_risk(level: float, value: float) -> None:
    theta = torch.tensor([-3.0, -1, 0, 1, 2], dtype=F64)
    assert t.cvar(theta, level=level).item() == pytest.approx(value, abs=1e-12)


def grn_inputs(projected: bool) -> list[Tensor | None]:
    D_in = 7 if projected else D
    shapes = [(B, D_in), (H, D_in), (H,), (2 * D, H), (2 * D,), (D,), (D,)]
    given: list[Tensor | None] = [random(*shape, grad=True) for shape in shapes]
    return [*given, random(D, D_in, grad=True) if projected else None]


@pytest.mark.parametrize("projected", [False, True])
def test_the_gated_residual_network(projected: bool) -> None:
    given = [item for item in grn_inputs(projected) if item is not None]
    plain = [item.detach().numpy() for item in given]
    saved = dqn.grn_forward(*plain)
    out = t.gated_residual(*given)
    close(out, saved[0])
    d_out = random(B, D)
    x, W_a, _, W_b, _, gamma, _ = plain[:7]
    want = dqn.grn_backward(d_out.numpy(), x, W_a, W_b, gamma, *saved[1:], *plain[7:])
    grads = torch.autograd.grad(out, given, d_out)
    for got, expected in zip(grads, want, strict=True):
        close(got, expected)
    assert gradcheck(t.gated_residual, given)


@pytest.mark.parametrize("sigma", [1.0, 6.0])
def test_variable_selection(sigma: float) -> None:
    x, W, b = (random(*shape, grad=True) for shape in ((B, 9), (6, 9), (6,)))
    plain = [item.detach().numpy() for item in (x, W, b)]
    want = dqn.vsn_forward(*plain, BOUNDS.numpy(), sigma)
    out, w = t.select_variables(x, W, b, BOUNDS, sigma)
    close(out, want[0])
    close(w, want[1])
    assert not w.requires_grad
    d_out = random(B, 9)
    want = dqn.vsn_backward(d_out.numpy(), plain[0], plain[1], w.numpy(), BOUNDS.numpy(), sigma)
    for got, expected in zip(torch.autograd.grad(out, (x, W, b), d_out), want, strict=True):
        close(got, expected)
    assert gradcheck(lambda *g: t.select_variables(*g, BOUNDS, sigma)[0], (x, W, b))


def test_a_gate_of_zeros_with_six_changes_no_bit() -> None:
    x = torch.randn(50, 9)
    out, _ = t.select_variables(x, torch.zeros(6, 9), torch.zeros(6), BOUNDS, 6.0)
    assert torch.equal(out, x)


def scan_inputs(T: int, heads: int = 2) -> list[Tensor]:
    P, M = 3, 2
    shapes = [(B, T, heads, P), (B, T, heads), (heads,), (heads,), (B, T, M), (B, T, M), (heads,)]
    given = [random(*shape, grad=True) for shape in shapes]
    return [*given, (0.3 + torch.rand(B, T, dtype=F64)).requires_grad_()]


@pytest.mark.parametrize("T", [1, 2, 64, 65, 131])
def test_the_selective_scan(T: int) -> None:
    given = scan_inputs(T)
    plain = [item.detach().numpy() for item in given]
    y = t.selective_scan(*given)
    close(y, dqn.selective_scan_forward(*plain))
    dy = torch.randn_like(y)
    want = dqn.selective_scan_backward(dy.numpy(), *plain)
    for got, expected in zip(torch.autograd.grad(y, given, dy), want, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-8, atol=1e-9)


def test_the_selective_scan_by_finite_differences() -> None:
    given = [
        item.detach()[:1].requires_grad_() if item.ndim > 1 else item for item in scan_inputs(3)
    ]
    assert gradcheck(t.selective_scan, given)


def test_golden_numbers_of_the_scan() -> None:
    """Delta = [.5, 1, .25], A = -1, D = .5: y = 1, -.18394, -.28897."""
    delta = torch.tensor([0.5, 1, 0.25], dtype=F64)
    x, Bm, Cm = ([1.0, 2, -1], [1.0, 0.5, 2], [1.0, -1, 0.5])
    rows = [torch.tensor(item, dtype=F64) for item in (x, Bm, Cm)]
    zero = torch.zeros(1, dtype=F64)
    y = t.selective_scan(
        rows[0].view(1, 3, 1, 1), torch.log(torch.expm1(delta)).view(1, 3, 1), zero, zero,
        rows[1].view(1, 3, 1), rows[2].view(1, 3, 1), zero + 0.5,
    )  # fmt: skip
    assert y.flatten().tolist() == pytest.approx([1.0, -0.18393972, -0.28897341], abs=5e-9)
    h = 0.5 * np.exp(-1) + 1.0
    assert y[0, 1].item() == pytest.approx(-h + 1.0, abs=1e-12)


def test_long_sums_of_decays_do_not_cancel() -> None:
    """In float32, with fast forgetting, chunks are as good as steps one after another."""
    given = scan_inputs(64)
    given[3] = given[3].detach() + 3  # A near -20
    y = t.selective_scan(*(item.float() for item in given))
    want = t.selective_scan(*given)
    torch.testing.assert_close(y.double(), want, rtol=2e-5, atol=2e-5)


def test_experts() -> None:
    shapes = [(B, 7), (H, 7), (H,), (5, H), (5,)]
    given = [random(*shape, grad=True) for shape in shapes]
    plain = [item.detach().numpy() for item in given]
    g = t.moe_gate(*given)
    want_g, h = dqn.moe_gate_forward(*plain)
    close(g, want_g)
    dg = random(B, 5)
    want = dqn.moe_gate_backward(dg.numpy(), plain[0], plain[1], plain[3], h, want_g)
    for got, expected in zip(torch.autograd.grad(g, given, dg), want, strict=True):
        close(got, expected)
    assert gradcheck(t.moe_gate, given)
    experts, gate = random(B, 5, D, grad=True), g.detach().requires_grad_()
    close(t.moe_mixture(gate, experts), dqn.moe_mixture_forward(want_g, experts.detach().numpy()))
    assert gradcheck(t.moe_mixture, (gate, experts))
    loss, d_gate = dqn.moe_balance(want_g)
    close(t.moe_balance(gate).reshape(1), loss)
    close(torch.autograd.grad(t.moe_balance(gate), gate)[0], d_gate)


@pytest.mark.parametrize("branches", [(4, 3, 3, 3), (2, 5)])
def test_dueling(branches: tuple[int, ...]) -> None:
    value, advantage = random(B, N, grad=True), random(B, sum(branches), N, grad=True)

    def run(value: Tensor, advantage: Tensor) -> Tensor:
        return t.dueling(value, advantage, branches)

    logits = run(value, advantage)
    if branches == (4, 3, 3, 3):
        close(logits, dqn.dueling_forward(value.detach().numpy(), advantage.detach().numpy()))
    assert gradcheck(run, (value, advantage))
    torch.testing.assert_close(run(value, advantage + 5), logits)


def opchecks() -> dict[str, Callable[[], tuple[Any, ...]]]:
    """Arguments of every operator, in the order of its schema."""

    def floats(*given: Any) -> tuple[Any, ...]:
        return tuple(
            item.detach().float().requires_grad_(item.requires_grad)
            if isinstance(item, Tensor) and item.is_floating_point()
            else item
            for item in given
        )

    def detached(*given: Any) -> tuple[Any, ...]:
        return tuple(x.detach() if isinstance(x, Tensor) else x for x in floats(*given))

    def c51() -> tuple[Any, ...]:
        made = c51_inputs(positions=True)
        order = ("logits", "p_next", "support", "next_support", "returns", "discount", "weight")
        rest = ("positions", "shift", "next_shift")
        return floats(*(made[name] for name in (*order, *rest)), 0.25)

    def grn_saved() -> tuple[Any, ...]:
        given = grn_inputs(True)
        out, *saved = torch.ops.trueup.grn(*detached(*given), 1e-5, False)
        kept = [given[place] for place in (0, 1, 3, 5)]
        return (*detached(out, *kept, *saved, given[7]), False)

    def quantiles() -> tuple[Any, ...]:
        rows = random(B, 4, N, grad=True), random(B, 4, 7), torch.rand(N), torch.rand(B)
        return (*floats(*rows), 1.0)

    def selection(*first: Tensor) -> tuple[Any, ...]:
        return (*floats(*first), BOUNDS, 1.0)

    x, logits = random(B, 9, grad=True), random(B, 4, N, grad=True)
    gate = random(H, 7), random(H), random(5, H), random(5)
    return {
        "c51_loss": c51,
        "expected_q": lambda: floats(logits, supports(B, 4), None, random(B, 4)),
        "dueling": lambda: (*floats(random(B, N), random(B, 13, N, grad=True)), [4, 3, 3, 3]),
        "dueling_backward": lambda: (*floats(random(B, 13, N)), [4, 3, 3, 3]),
        "iqn_loss": quantiles,
        "grn": lambda: (*floats(*grn_inputs(True)), 1e-5, False),
        "grn_backward": grn_saved,
        "vsn": lambda: selection(x, random(6, 9), random(6)),
        "vsn_backward": lambda: selection(random(B, 9), x.detach(), random(6, 9), random(B, 6)),
        "selective_scan": lambda: floats(*scan_inputs(5)),
        "selective_scan_backward": lambda: detached(random(B, 5, 2, 3), *scan_inputs(5)),
        "moe_gate": lambda: floats(random(B, 7, grad=True), *gate),
        "moe_gate_backward": lambda: floats(
            random(B, 5), random(B, 7), gate[0], gate[2], random(B, H), random(B, 5)
        ),
        "scale_gradient": lambda: (*floats(random(B, D, grad=True)), 0.2),
        "moe_mixture": lambda: floats(random(B, 5, grad=True), random(B, 5, D)),
        "moe_mixture_backward": lambda: floats(random(B, D), random(B, 5), random(B, 5, D)),
    }


@pytest.mark.parametrize("name", opchecks())
def test_opcheck(name: str) -> None:
    torch.library.opcheck(getattr(torch.ops.trueup, name), opchecks()[name]())


def test_sixteen_bits_are_computed_in_float32() -> None:
    given = [item.detach().bfloat16() for item in grn_inputs(True) if item is not None]
    out = t.gated_residual(*given)
    assert out.dtype is torch.float32
    assert torch.equal(out, t.gated_residual(*(item.float() for item in given)))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda m: t.expected_q(m, m), r"got logits \(2, 3\), expected \(B, n_actions, n_atoms\)"),
        (lambda m: t.dueling(m, m[None]), r"got advantage \(1, 2, 3\), expected \(2, 13, 3\)"),
        (lambda m: t.cvar(m, level=0.0), "expected more than 0 and at most 1"),
        (lambda m: t.support_of(0.0, 1.0, 1), "n_atoms: got 1, expected 2 or more"),
        (lambda m: t.moe_mixture(m, m), r"expected \(B, E, D\)"),
        (lambda m: t.moe_gate(m, m, m[0], m, m[0]), r"got b1 \(3,\)|got W1"),
        (lambda m: t.select_variables(m, m, m[0], BOUNDS), r"got W \(2, 3\), expected \(6, 3\)"),
        (
            lambda m: t.iqn_loss(m, m, m, m, reading="halved"),
            "expected one of divided, undivided",
        ),
        (
            lambda m: t.gated_residual(m, m, m[0], m, m[0], m[0], m[0], multiply="f16"),
            "expected one of f32, tf32",
        ),
        (
            lambda m: t.gated_residual(
                m, torch.ones(4, 3), torch.ones(4), torch.ones(4, 4), torch.ones(4),
                torch.ones(2), torch.ones(2),
            ),
            "got no W_res for D_in = 3 and D = 2",
        ),
    ],
)  # fmt: skip
def test_wrong_calls_are_told(call: Callable[[Tensor], Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call(torch.ones(2, 3))
