"""Heads and blocks of the agent as modules: what the programme says must hold of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueup.kernels.torch as t

B, DIM, ATOMS = 5, 12, 11
ONES = torch.ones(B)


def actions() -> Tensor:
    return torch.stack([torch.randint(0, size, (B,)) for size in (4, 3, 3, 3)], 1)


def head_and_trunk(scale: float = 0.2) -> tuple[t.C51Head, Tensor]:
    return t.C51Head(DIM, ATOMS, trunk_scale=scale), torch.randn(B, DIM, requires_grad=True)


def loss_of(head: t.C51Head, logits: Tensor, signal: Tensor | None = None) -> Any:
    generator = torch.Generator().manual_seed(1)
    p_next = torch.softmax(torch.randn(B, 4, ATOMS, generator=generator), -1)
    returns = torch.randn(B, 4, generator=generator) / 3
    chosen = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 1], [2, 2, 1, 2], [3, 1, 1, 1], [0, 0, 0, 0]])
    support = t.support_of(-2.03, 2.01, ATOMS)
    rows = returns, torch.full((B, 4), 0.9), ONES
    return head.loss(logits, chosen, p_next, support, support, *rows, signal=signal)


def test_the_gradient_that_enters_the_trunk_is_scaled_and_nothing_else() -> None:
    grads: list[list[Tensor]] = []
    for scale in (1.0, 0.2):
        torch.manual_seed(0)
        head, h = head_and_trunk(scale)
        loss_of(head, head(h)).total.backward()
        grads.append([h.grad, head.value.weight.grad, head.advantage.weight.grad])  # type: ignore[list-item]
    torch.testing.assert_close(grads[1][0], 0.2 * grads[0][0])
    assert torch.equal(grads[1][1], grads[0][1])
    assert torch.equal(grads[1][2], grads[0][2])


def test_a_number_added_to_logits_has_no_gradient_and_a_shift_has() -> None:
    """The theorem of the scalar bias: sum(p) - sum(m) is 0 up to rounding."""
    head, h = head_and_trunk()
    logits = head(h).detach()
    bias = torch.zeros(B, 13, 1, requires_grad=True)
    signal = torch.linspace(-1, 1, B)
    total = loss_of(head, logits + bias, signal).total
    d_bias, d_shift = torch.autograd.grad(total, (bias, head.shift))
    assert d_bias.abs().max() <= 2 * ATOMS * 2.0**-24
    assert d_shift.abs().max() > 1e-3


def test_only_taken_directions_train_the_shift() -> None:
    head, h = head_and_trunk()
    signal = torch.ones(B)
    support = t.support_of(-2.03, 2.01, ATOMS)
    chosen = torch.zeros(B, 4, dtype=torch.long)
    p_next = torch.softmax(torch.randn(B, 4, ATOMS), -1)
    rows = torch.zeros(B, 4), torch.full((B, 4), 0.9), ONES
    head.loss(head(h), chosen, p_next, support, support, *rows, signal=signal).total.backward()
    assert head.shift.grad is not None
    assert head.shift.grad[0] != 0
    assert head.shift.grad[1:].tolist() == [0, 0, 0]


def test_all_atoms_of_direction_move_and_no_others() -> None:
    head, h = head_and_trunk()
    logits, support = head(h), t.support_of(-1.0, 1.0, ATOMS)
    signal = torch.rand(B)
    moved = head.q(logits, support, signal) - head.q(logits, support)
    torch.testing.assert_close(moved[:, :4], signal[:, None] * head.shift, atol=1e-6, rtol=0)
    assert not moved[:, 4:].any()


def test_the_first_of_equal_actions_is_taken() -> None:
    head, _ = head_and_trunk()
    q = torch.zeros(2, 13)
    q[1, [2, 3, 9, 12]] = 1.0
    assert head.greedy(q).tolist() == [[0, 0, 0, 0], [2, 0, 2, 2]]
    rows = torch.arange(26).view(2, 13)
    assert head.taken(rows, head.greedy(q)).tolist() == [[0, 4, 7, 10], [15, 17, 22, 25]]


def test_iqn_scales_the_trunk_once_and_its_heads_not_at_all() -> None:
    target, chosen = torch.randn(B, 4, 5), actions()
    grads: list[list[Tensor]] = []
    for scale in (1.0, 0.25):
        torch.manual_seed(0)
        head, h = t.IQNHead(DIM, trunk_scale=scale), torch.randn(B, DIM, requires_grad=True)
        head.loss(head(h), chosen, target, ONES).total.backward()
        grads.append([h.grad, head.output.weight.grad])  # type: ignore[list-item]
    torch.testing.assert_close(grads[1][0], 0.25 * grads[0][0])
    assert torch.equal(grads[1][1], grads[0][1])


@pytest.mark.parametrize("i0", [0, 1])
def test_the_cosines_of_iqn(i0: int) -> None:
    head = t.IQNHead(DIM, n_cos=3, i0=i0)
    assert head.cosines[2].tolist() == pytest.approx([[1, 0, -1], [0, -1, 0]][i0], abs=1e-6)
    theta = head(torch.randn(B, DIM))
    assert theta.shape == (B, 13, 5)
    torch.testing.assert_close(head.q(theta), t.cvar(theta))


@pytest.mark.parametrize(("dim_in", "count"), [(12, 6), (7, 7)])
def test_a_gated_residual_network_starts_as_the_programme_says(dim_in: int, count: int) -> None:
    grn = t.GatedResidual(dim_in, 12)
    assert len(list(grn.parameters())) == count
    assert grn.gamma.tolist() == [1.0] * 12
    assert not grn.beta.any()
    assert not grn.b_a.any()
    x = torch.randn(B, dim_in)
    out = grn(x)
    torch.testing.assert_close(out.mean(1), torch.zeros(B), atol=1e-6, rtol=0)
    assert (out < 0).any()  # signed: no ReLU
    with torch.no_grad():
        grn.b_b[12:] = -90  # a shut gate leaves the layer norm of the residual
        residual = x if grn.W_res is None else x @ grn.W_res.mT
        want = nn.functional.layer_norm(residual, (12,))
        torch.testing.assert_close(grn(x), want, atol=1e-5, rtol=1e-5)


def test_selection_starts_even_and_leaves_the_pad() -> None:
    select = t.VariableSelection(128, sigma=6.0)
    x = torch.randn(B, 128)
    out, w = select(x)
    assert torch.equal(out, x)
    torch.testing.assert_close(w, torch.full((B, 6), 1 / 6))
    with torch.no_grad():
        select.b[2] = 60.0  # one group takes all
    out, _ = select(x)
    assert torch.equal(out[:, 121:], x[:, 121:])
    torch.testing.assert_close(out[:, 60:76], 6 * x[:, 60:76])
    assert not out[:, :60].abs().max() > 1e-20


def test_a_scan_is_causal_and_reaches_back() -> None:
    core = t.SelectiveScan(6, heads=2, head_dim=3, state=4)
    x = torch.randn(2, 9, 6, requires_grad=True)
    y = core(x)
    (grad,) = torch.autograd.grad(y[:, -1].sum(), x, retain_graph=True)
    assert (grad[:, 0] != 0).all()
    later = x.detach().clone()
    later[:, 5:] += 1
    assert torch.equal(core(later)[:, :5], y[:, :5])
    y.square().sum().backward()
    for name, parameter in core.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_step_sizes_start_within_their_bounds() -> None:
    core = t.SelectiveScan(6, heads=64, dt_min=0.01, dt_max=0.05)
    dt = nn.functional.softplus(core.dt_bias.detach())
    assert 0.00999 < dt.min().item() <= dt.max().item() < 0.05001


def test_the_gate_of_experts() -> None:
    gate = t.MoEGate(128)
    assert sum(item.numel() for item in gate.parameters()) == 8776
    g = gate(torch.randn(B, 128))
    torch.testing.assert_close(g.sum(1), torch.ones(B))
    same = torch.randn(B, 1, 7).expand(-1, 8, -1)
    torch.testing.assert_close(gate.mix(g, same), same[:, 0])
    assert gate.balance(torch.full((B, 8), 1 / 8)).item() == pytest.approx(1.0)
    assert gate.balance(torch.eye(8)[[3] * B]).item() == pytest.approx(8.0)


def test_a_head_keeps_its_state() -> None:
    head, x = t.C51Head(DIM, ATOMS), torch.randn(B, DIM)
    other = t.C51Head(DIM, ATOMS)
    assert set(other.state_dict()) == {
        "shift", "value.weight", "value.bias", "advantage.weight", "advantage.bias",
    }  # fmt: skip
    other.load_state_dict(head.state_dict())
    assert torch.equal(other(x), head(x))


SHAPES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "C51Head": (lambda: t.C51Head(DIM, ATOMS), (B, DIM)),
    "IQNHead": (lambda: t.IQNHead(DIM), (B, DIM)),
    "GatedResidual": (lambda: t.GatedResidual(DIM, 8), (B, DIM)),
    "VariableSelection": (lambda: t.VariableSelection(128), (B, 128)),
    "SelectiveScan": (lambda: t.SelectiveScan(DIM, 2, 3, 4), (B, 9, DIM)),
    "MoEGate": (lambda: t.MoEGate(DIM), (B, DIM)),
}


def first(returned: Any) -> Tensor:
    out: Tensor = returned[0] if isinstance(returned, tuple) else returned
    return out


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_modules_take_another_precision(name: str, dtype: torch.dtype) -> None:
    """In the input, in the weights, in one of them; gradients have the weights' dtype."""
    make, shape = SHAPES[name]
    module, x = make(), torch.randn(shape)
    want = first(module(x))
    close: dict[str, float] = {"rtol": 0.05, "atol": 0.1}
    torch.testing.assert_close(first(module(x.to(dtype))).float(), want, **close)
    module.to(dtype)
    for given in (x, x.to(dtype)):
        out = first(module(given))
        torch.testing.assert_close(out.float(), want, **close)
    out.float().square().sum().backward()
    for key, parameter in module.named_parameters():
        if key != "shift":  # moves no logit
            assert parameter.grad is not None, key
            assert parameter.grad.dtype is dtype


@pytest.mark.parametrize("name", SHAPES)
def test_a_state_dict_is_all_that_a_module_made_of_nothing_needs(name: str) -> None:
    """Buffers that follow from the arguments survive the meta device and a cast."""
    make, shape = SHAPES[name]
    module, x = make(), torch.randn(shape)
    with torch.device("meta"):
        other = make()
    other.to_empty(device="cpu").load_state_dict(module.state_dict())
    assert torch.equal(first(other(x)), first(module(x)))
    module.bfloat16().float()
    for key, value in module.named_buffers():
        assert torch.equal(value, other.get_buffer(key)), key


def test_levels_stay_in_float32_where_weights_do_not() -> None:
    head = t.IQNHead(DIM).bfloat16()
    assert head.tau.tolist() == torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
    theta = torch.tensor([-3.0, -1, 0, 1, 2]).expand(B, 13, 5)
    torch.testing.assert_close(head.q(theta, 0.25), torch.full((B, 13), -2.2))
    assert t.IQNHead(DIM).double().cosines.dtype is torch.float64


@pytest.mark.parametrize("name", SHAPES)
def test_modules_tell_a_wrong_input_at_once(name: str) -> None:
    make, shape = SHAPES[name]
    module, width = make(), shape[-1]
    for wrong in ((*shape[:-1], width + 1), (width,), (2, *shape)):
        with pytest.raises(ValueError, match=r"got [hx] \(.*, expected \(.*\)"):
            module(torch.randn(wrong))
    with pytest.raises(ValueError, match=r"of torch\.int32, expected a floating dtype"):
        module(torch.ones(shape, dtype=torch.int32))
    assert first(module(torch.randn(0, *shape[1:]))).shape[0] == 0


def test_an_action_of_another_branch_is_told() -> None:
    """Magnitude 3 would be the first order type."""
    head, h = head_and_trunk()
    chosen = actions()
    chosen[2, 1] = 3
    with pytest.raises(ValueError, match="action 3 of branch 1 at row 2, expected 0 to 2"):
        head.taken(head(h), chosen)


def test_thompson_sampling_moves_with_the_shift() -> None:
    head, _ = head_and_trunk()
    logits = torch.zeros(B, 13, ATOMS)
    u, support = torch.full((B, 4), 0.5), t.support_of(-1.0, 1.0, ATOMS)
    signal = torch.linspace(-1, 1, B)
    drawn = head.sample(logits, support, u, signal)
    torch.testing.assert_close(drawn.sampled, signal[:, None] * head.shift.detach())
    assert drawn.action.tolist() == [0, 0, 0, 2, 2]  # equal ones: the first
    assert head.sample(logits, support, u).action.tolist() == [0] * B


def test_a_step_compiles_whole() -> None:
    torch.compiler.reset()
    trunk, (head, h) = t.GatedResidual(DIM), head_and_trunk()
    signal, support = torch.linspace(-1, 1, B), t.support_of(-2.03, 2.01, ATOMS)
    p_next, chosen = torch.softmax(torch.randn(B, 4, ATOMS), -1), actions()
    rows = torch.randn(B, 4), torch.full((B, 4), 0.9), ONES

    def step(h: Tensor) -> Any:
        told = head.loss(head(trunk(h)), chosen, p_next, support, support, *rows, signal=signal)
        return told.total

    grads = []
    for run in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
        run(h).backward()
        parameters = [*trunk.parameters(), *head.parameters()]
        grads.append([item.grad for item in parameters])
        for parameter in parameters:
            parameter.grad = None
    for one, two in zip(*grads, strict=True):
        torch.testing.assert_close(one, two)


def test_autocast_leaves_the_losses_in_float32() -> None:
    head, h = head_and_trunk()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = head(h)
        told = loss_of(head, logits)
    assert logits.dtype is torch.float32
    assert told.total.dtype is torch.float32
    told.total.backward()
    assert h.grad is not None


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: t.C51Head(3, 1), "n_atoms: got 1, expected 2 or more"),
        (lambda: t.C51Head(3, branches=(2, 3)), "shift: got 4 numbers, expected 2"),
        (lambda: t.C51Head(3, branches=()), "expected positive numbers"),
        (lambda: t.IQNHead(3, taus=(0.5, 0.2)), "ascending within"),
        (lambda: t.IQNHead(3, taus=(0.5, 1.0)), "ascending within"),
        (lambda: t.GatedResidual(3, eps=0.0), "expected a positive number"),
        (lambda: t.GatedResidual(3, multiply="bf16"), "expected one of f32, tf32"),
        (lambda: t.VariableSelection(100), "expected 7 ascending within"),
        (lambda: t.SelectiveScan(3, heads=0), "got heads 0, expected 1 or more"),
        (lambda: t.C51Head(0), "C51Head: got dim 0, expected 1 or more"),
        (lambda: t.IQNHead(3, n_cos=0), "IQNHead: got n_cos 0, expected 1 or more"),
        (lambda: t.GatedResidual(3, 0), "GatedResidual: got dim 0, expected 1 or more"),
        (lambda: t.SelectiveScan(3, dt_min=0.0), "expected 0 < dt_min <= dt_max"),
        (
            lambda: t.C51Head(3, 5).q(torch.ones(2, 13, 5), torch.ones(12, 3)),
            r"got support \(12, 3\), expected \(2, 13, 3\)",
        ),
        (
            lambda: t.C51Head(3).greedy(torch.ones(2, 12)),
            r"got scores \(2, 12\), expected \(2, 13\)",
        ),
        (
            lambda: t.C51Head(3).shifts(torch.ones(2, 1)),
            r"got signal \(2, 1\), expected \(B\)",
        ),
        (lambda: t.SelectiveScan(3)(torch.ones(2, 3)), r"got x \(2, 3\), expected \(B, T, 3\)"),
        (lambda: t.MoEGate(3, 0), "got experts 0, expected 1 or more"),
        (
            lambda: t.C51Head(3, branches=(4, 3)).taken(torch.ones(2, 7), torch.ones(2, 4)),
            r"got actions \(2, 4\), expected \(2, 2\)",
        ),
    ],
)
def test_wrong_calls_are_told(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()
