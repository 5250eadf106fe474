"""Section 5: which derivatives pass an online write, in three modes with one forward value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from trueup.kernels.torch.modules import LinearMemory, linear_memory
from trueup.kernels.torch.modules.writes import MODES
from trueup.reference.nl.online_writes_chunks import (
    Inner,
    Mode,
    online_writes_chunks,
    projection_gradient,
)

F64 = torch.float64
modes = pytest.mark.parametrize("mode", MODES)
rules = pytest.mark.parametrize("rule", ["l2", "dgd"])


def problem(T: int, d_in: int = 3, d_out: int = 2) -> dict[str, Tensor]:
    return {
        "k": torch.randn(1, T, d_in, dtype=F64, requires_grad=True),
        "v": torch.randn(1, T, d_out, dtype=F64, requires_grad=True),
        "M": torch.randn(1, d_out, d_in, dtype=F64, requires_grad=True),
        "eta": torch.tensor(0.13, dtype=F64, requires_grad=True),
    }


def outer_loss(given: dict[str, Tensor], weights: list[float], chunk: int, **options: Any) -> Any:
    """sum_c w_c 1/2 |W_{c-1} X_c - V_c|^2: every chunk is read where the one before left off."""
    y, M = linear_memory(
        given["k"], given["k"], given["v"], given["M"], given["eta"], chunk=chunk, **options
    )
    errors = (y - given["v"]).square().sum((0, 2)) / 2
    parts = errors.split(chunk)
    return sum(w * part.sum() for w, part in zip(weights, parts, strict=True)), y, M


@modes
@rules
@pytest.mark.parametrize(("T", "chunk"), [(2, 1), (8, 4), (10, 4), (7, 3)])
def test_derivatives_are_the_closed_forms(mode: Mode, rule: Inner, T: int, chunk: int) -> None:
    given = problem(T)
    sizes = [len(part) for part in torch.arange(T).split(chunk)]
    weights = [size / T for size in sizes]
    loss, _, M = outer_loss(given, weights, chunk, rule=rule, write_grad=mode)
    grads = dict(
        zip(given, torch.autograd.grad(loss, list(given.values()), allow_unused=True), strict=True)
    )
    k, v = (given[name][0].detach().numpy().T for name in ("k", "v"))
    edges = np.cumsum(sizes)[:-1]
    want = online_writes_chunks(
        given["M"][0].detach().numpy(),
        np.split(k, edges, axis=1),
        np.split(v, edges, axis=1),
        [0.13] * len(sizes),
        mode=mode,
        inner=rule,
        weights=weights,
    )
    np.testing.assert_allclose(M[0].detach().numpy(), want.memory, rtol=1e-11, atol=1e-12)
    expected = {
        "k": np.concatenate(want.X, axis=1).T[None],
        "v": np.concatenate(want.V, axis=1).T[None],
        "M": want.W0[None],
        "eta": np.array(sum(want.eta)),
    }
    for name, value in expected.items():
        got = grads[name]
        found = np.zeros_like(value) if got is None else got.numpy()
        np.testing.assert_allclose(found, value, rtol=1e-10, atol=1e-11, err_msg=name)


def test_scalar_witness() -> None:
    """Spec section 5: W1 = .6; through dW0 .36, dv1 .12, dx1 -.24, deta -2.4; st dW0 .6; det 0."""
    want = {
        "through": (0.36, 0.12, -0.24, -2.4),
        "straight_through": (0.6, 0, 0, 0),
        "detached": (0, 0, 0, 0),
    }
    for mode, numbers in want.items():
        W, eta = (torch.tensor(value, dtype=F64, requires_grad=True) for value in (1.0, 0.1))
        x1, v1 = (torch.tensor(value, dtype=F64, requires_grad=True) for value in (2.0, 0.0))
        zero, one = torch.zeros((), dtype=F64), torch.ones((), dtype=F64)
        k, v = torch.stack([x1, one]).view(1, 2, 1), torch.stack([v1, zero]).view(1, 2, 1)
        q = torch.stack([zero, one]).view(1, 2, 1)  # the first chunk is not read
        y, _ = linear_memory(q, k, v, W.view(1, 1, 1), eta, rule="l2", chunk=1, write_grad=mode)
        assert y[0, 1, 0].item() == pytest.approx(0.6, abs=1e-15)
        loss = y[0, 1, 0] ** 2 / 2
        if loss.requires_grad:
            found = torch.autograd.grad(loss, (W, v1, x1, eta), allow_unused=True)
        else:
            found = (None,) * 4
        got = [0.0 if item is None else item.item() for item in found]
        assert got == pytest.approx(numbers, abs=1e-12)


@rules
@pytest.mark.parametrize("read", ["pre", "post"])
@pytest.mark.parametrize("every", [0, 2])
def test_through_is_finite_differences(rule: str, read: str, every: int) -> None:
    given = problem(5)
    q = torch.randn(1, 5, 3, dtype=F64, requires_grad=True)

    def run(q: Tensor, k: Tensor, v: Tensor, M: Tensor, eta: Tensor) -> Any:
        options: dict[str, Any] = {"read": read, "checkpoint_every": every}
        return linear_memory(q, k, v, M, eta, rule=rule, chunk=2, write_grad="through", **options)

    assert torch.autograd.gradcheck(run, (q, *given.values()))


@pytest.mark.parametrize("rule", ["attention", "dot", "l2", "dgd"])
@pytest.mark.parametrize("read", ["pre", "post"])
def test_forward_values_are_the_same_bits_in_every_mode(rule: str, read: str) -> None:
    given = {name: value.detach().float() for name, value in problem(11).items()}
    q = torch.randn(1, 11, 3)
    results = []
    for mode in MODES:
        M = given["M"].clone().requires_grad_()
        results.append(
            linear_memory(
                q,
                given["k"],
                given["v"],
                M,
                given["eta"],
                rule=rule,
                chunk=3,
                write_grad=mode,
                read=read,
            )
        )
    for y, M in results[1:]:
        assert torch.equal(y, results[0][0])
        assert torch.equal(M, results[0][1])


@modes
@pytest.mark.parametrize("read", ["pre", "post"])
def test_attention_in_every_mode_is_autograd_on_the_token_loop(mode: str, read: str) -> None:
    given = problem(5)
    q = torch.randn(1, 5, 3, dtype=F64, requires_grad=True)
    leaves = [q, given["k"], given["v"], given["M"]]
    y, _ = linear_memory(*leaves, rule="attention", write_grad=mode, read=read)
    M, rows = given["M"][0], []
    for t in range(5):
        before = M
        change = torch.outer(given["v"][0, t], given["k"][0, t])
        if mode == "through":
            M = M + change
        else:
            M = M + change.detach()
            M = M.detach() if mode == "detached" else M
        rows.append((before if read == "pre" else M) @ q[0, t])
    weights = torch.randn(5, 2, dtype=F64)
    mine = torch.autograd.grad((y[0] * weights).sum(), leaves, allow_unused=True)
    theirs = torch.autograd.grad((torch.stack(rows) * weights).sum(), leaves, allow_unused=True)
    for got, want in zip(mine, theirs, strict=True):
        zero = torch.zeros(())
        torch.testing.assert_close(
            zero if got is None or not got.any() else got,
            zero if want is None or not want.any() else want,
            rtol=1e-11,
            atol=1e-12,
            check_dtype=False,
        )


def test_the_gap_between_through_and_straight_through_is_the_write_s_term() -> None:
    """U10: -eta Gamma X1 X1^T; a write without gradients does not have it."""
    given, grads = problem(4), {}
    for mode in ("through", "straight_through"):
        loss, y, _ = outer_loss(given, [0.0, 1.0], 2, rule="l2", write_grad=mode)
        (grads[mode],) = torch.autograd.grad(loss, given["M"])
    E2 = (y - given["v"])[0, 2:].detach()
    gamma = E2.T @ given["k"][0, 2:].detach()
    X1 = given["k"][0, :2].detach()
    gap = -0.13 * (gamma @ X1.T) @ X1
    torch.testing.assert_close(grads["through"] - grads["straight_through"], gap[None])
    assert gap.abs().max() > 0.01


def test_detaching_the_surprise_is_another_derivative() -> None:
    """DGD, one token: through gives Gamma (I - 2 eta x x^T); a frozen u would give one eta."""
    given = problem(2)
    loss, y, _ = outer_loss(given, [0.0, 1.0], 1, rule="dgd", write_grad="through")
    (got,) = torch.autograd.grad(loss, given["M"])
    gamma = torch.outer((y - given["v"])[0, 1], given["k"][0, 1]).detach()
    x = given["k"][0, 0].detach()
    want = gamma @ (torch.eye(3, dtype=F64) - 0.26 * torch.outer(x, x))
    torch.testing.assert_close(got[0], want)


def test_a_projection_s_derivative() -> None:
    """X1 = K Z1: dK = (dl2/dX1) Z1^T."""
    given = problem(4)
    Z, K = torch.randn(1, 4, 5, dtype=F64), torch.randn(3, 5, dtype=F64, requires_grad=True)
    given["k"] = Z @ K.T
    loss, _, _ = outer_loss(given, [1.0, 1.0], 2, rule="l2", write_grad="through")
    dK, dX = torch.autograd.grad(loss, (K, given["k"]))
    want = projection_gradient(dX[0].numpy().T, Z[0].numpy().T)
    np.testing.assert_allclose(dK.numpy(), want, rtol=1e-11)


def test_backward_by_chunks_on_one_graph_is_one_backward_on_the_sum() -> None:
    given = problem(6)
    loss, y, _ = outer_loss(given, [1.0] * 3, 2, rule="l2", write_grad="through")
    (once,) = torch.autograd.grad(loss, given["M"], retain_graph=True)
    total = torch.zeros_like(once)
    for part in ((y - given["v"]).square().sum((0, 2)) / 2).split(2):
        total += torch.autograd.grad(part.sum(), given["M"], retain_graph=True)[0]
    torch.testing.assert_close(total, once, rtol=1e-12, atol=1e-12)


def saved_bytes(every: int) -> tuple[int, Tensor]:
    """What autograd holds after a forward pass, each storage once; and the gradient of M_0."""
    torch.manual_seed(0)
    d, T = 32, 64
    q, k, v = (torch.randn(1, T, d) / 6 for _ in range(3))
    M, eta = torch.randn(1, d, d, requires_grad=True), torch.tensor(0.01)
    held: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y, _ = linear_memory(
            q, k, v, M, eta, rule="l2", chunk=2, write_grad="through", checkpoint_every=every
        )
    y.square().sum().backward()
    assert M.grad is not None
    return sum(held.values()), M.grad


def test_checkpoints_hold_fewer_memories_and_change_no_bit() -> None:
    plain, gradient = saved_bytes(0)
    less, same = saved_bytes(8)
    assert torch.equal(gradient, same)
    memories = 32 * 32 * 4
    assert plain > 32 * memories  # a memory for each of 32 chunks
    assert less < 12 * memories  # 4 of them, and the inputs


@modes
@pytest.mark.parametrize("rule", ["attention", "l2", "dgd"])
@pytest.mark.parametrize("every", [0, 2])
def test_the_metric_shows_the_active_mode(mode: str, rule: str, every: int) -> None:
    module = LinearMemory(4, rule=rule, chunk=2, write_grad=mode, checkpoint_every=every)
    y, _ = module(torch.randn(3, 7, 4))
    y.square().sum().backward()
    metrics = module.gradient_metrics()
    assert module.active_mode() == mode
    assert (metrics["write_grad_norm"] > 0) == (mode == "through")
    assert (metrics["carry_grad_norm"] > 0) == (mode != "detached")


def test_the_metric_catches_a_module_that_says_through_and_stops_gradients() -> None:
    module = LinearMemory(4, rule="l2", chunk=2, write_grad="through")
    module.write_grad = "detached"
    module(torch.randn(3, 7, 4))[0].square().sum().backward()
    assert module.active_mode() == "detached"


@pytest.mark.parametrize("rule", ["attention", "l2"])
def test_a_sequence_does_not_depend_on_its_batch_and_continues_where_it_was(rule: str) -> None:
    module = LinearMemory(4, rule=rule, chunk=2, eta=0.05).double()
    x = torch.randn(3, 8, 4, dtype=F64)
    y, memory = module(x)
    alone, kept = module(x[1:2])
    torch.testing.assert_close(alone[0], y[1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(kept[0], memory[1], rtol=1e-12, atol=1e-12)
    first, state = module(x[:, :4])
    second, last = module(x[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), y, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(last, memory, rtol=1e-12, atol=1e-12)


def test_masked_tokens_read_and_do_not_write() -> None:
    module = LinearMemory(4, rule="l2", chunk=2, eta=0.05)
    x, mask = torch.randn(1, 4, 4), torch.tensor([[True, False, True, True]])
    start = torch.randn(1, 4, 4)
    y, memory = module(x, start, mask)
    other = x.clone()
    other[0, 1] += 1
    y_other, same = module(other, start, mask)
    assert torch.equal(memory, same)
    assert not torch.equal(y[0, 1], y_other[0, 1])


def test_the_learned_rate_and_memory_train_and_compile() -> None:
    torch._dynamo.reset()
    module = LinearMemory(4, rule="dgd", chunk=2, learn_eta=True, write_grad="through")
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    x = torch.randn(2, 6, 4)
    y, _ = compiled(x)
    want, _ = module(x)
    torch.testing.assert_close(y, want)
    y.square().sum().backward()
    assert module.eta.grad is not None
    assert module.memory.grad is not None


@pytest.mark.parametrize(
    "options",
    [{"rule": "hebb"}, {"write_grad": "stop"}, {"read": "after"}, {"chunk": 0}, {"eta": -0.1}],
)
def test_options_that_do_not_exist_are_told(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got|too small"):
        LinearMemory(4, **options)
    with pytest.raises(ValueError, match=r"got x \(2, 4\)"):
        LinearMemory(4)(torch.ones(2, 4))
    with pytest.raises(ValueError, match="needs eta"):
        linear_memory(*(torch.ones(1, 2, 2) for _ in range(4)), rule="l2")
