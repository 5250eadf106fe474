"""ProjectedDescent: Eq. 28 from a layer's captured inputs and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from trueup.kernels.torch import LayerCapture, ProjectedDescent
from trueup.kernels.torch.ops.descent import BATCH_READINGS, READINGS
from trueup.reference.nl import projected_descent, projected_descent_batch

F64 = torch.float64


def layer(d_in: int = 4, d_out: int = 3) -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(d_in, d_out, bias=False, dtype=F64)


def loss_of(net: nn.Module, x: Tensor, v: Tensor) -> Tensor:
    loss: Tensor = (net(x) - v).square().sum() / 2
    return loss


def problem(B: int, d_in: int = 4, d_out: int = 3) -> tuple[Tensor, Tensor]:
    return torch.randn(B, d_in, dtype=F64), torch.randn(B, d_out, dtype=F64)


def step(net: nn.Linear, x: Tensor, v: Tensor, **options: Any) -> tuple[Any, Any]:
    """One step, and the weights and surprises it started from."""
    W = net.weight.detach().numpy().copy()
    capture = LayerCapture(net)
    optimizer = ProjectedDescent(capture.weights(), capture, 0.1, **options)
    optimizer.zero_grad()
    loss_of(net, x, v).backward()
    optimizer.step()
    capture.remove()
    return W, (x.numpy() @ W.T - v.numpy())


@pytest.mark.parametrize("reading", BATCH_READINGS)
@pytest.mark.parametrize("B", [1, 3, 9])
def test_a_batch_step_is_the_reference(reading: str, B: int) -> None:
    net, (x, v) = layer(), problem(B)
    W, U = step(net, x, v, reading=reading)
    want = projected_descent_batch(W, x.numpy(), U, 0.1, reading=reading)
    np.testing.assert_allclose(net.weight.detach().numpy(), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("reading", ["derived", "prox"])
def test_the_mean_divides_both_terms(reading: str) -> None:
    """eq28.batch = mean: the decay by B here, the gradient by its own mean loss."""
    net, (x, v) = layer(), problem(5)
    W = net.weight.detach().numpy().copy()
    capture = LayerCapture(net)
    optimizer = ProjectedDescent(capture.weights(), capture, 0.1, reading=reading, batch="mean")
    (loss_of(net, x, v) / 5).backward()
    optimizer.step()
    U = x.numpy() @ W.T - v.numpy()
    want = projected_descent_batch(W, x.numpy(), U, 0.1, reading=f"{reading}_mean")
    np.testing.assert_allclose(net.weight.detach().numpy(), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("reading", READINGS)
def test_tokens_in_turn_are_the_loop_over_the_reference(reading: str) -> None:
    net, (x, v) = layer(), problem(5)
    W, U = step(net, x, v, reading=reading, order="tokens")
    for row, u in zip(x.numpy(), U, strict=True):
        W = projected_descent(W, row, u, 0.1, reading=reading)
    np.testing.assert_allclose(net.weight.detach().numpy(), W, rtol=1e-11, atol=1e-12)


def test_e18_witness_and_no_surprise_still_decays() -> None:
    """Spec, witness W of section 2, `derived`; then u = 0: a zero gradient still moves W."""
    net = nn.Linear(3, 2, bias=False, dtype=F64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 2, -1], [0, 1, 1]]))
    x, v = torch.tensor([[1.0, -1, 2]], dtype=F64), torch.tensor([[-4.0, 3]], dtype=F64)
    step(net, x, v)
    want = torch.tensor([[1.2, 1.8, -0.6], [0.1, 0.9, 1.2]], dtype=F64)
    torch.testing.assert_close(net.weight.detach(), want, rtol=0, atol=1e-15)
    step(net, x, net(x).detach())
    assert not torch.equal(net.weight.detach(), want)
    read = net.weight.detach() @ x[0]
    torch.testing.assert_close(read, (1 - 0.6) * (want @ x[0]), rtol=1e-12, atol=0)


def test_calls_of_one_step_are_taken_in_the_order_of_the_forward_passes() -> None:
    net, (x, v) = layer(), problem(6)
    capture = LayerCapture(net)
    (loss_of(net, x[:2], v[:2]) + loss_of(net, x[2:5], v[2:5])).backward()
    loss_of(net, x[5:], v[5:]).backward()
    with torch.no_grad():
        net(x)  # evaluation is not recorded
    net(x).sum()  # nor a call that no backward pass reached
    X, U = capture.rows(net.weight)
    assert torch.equal(X, x)
    torch.testing.assert_close(U, (x @ net.weight.T - v).detach())
    torch.testing.assert_close(U.mT @ X, net.weight.grad)


def test_leading_dimensions_are_rows_and_a_vector_is_one_row() -> None:
    net, (x, v) = layer(), problem(6)
    capture = LayerCapture(net)
    loss_of(net, x.view(2, 3, 4), v.view(2, 3, 3)).backward()
    loss_of(net, x[0], v[0]).backward()
    X, U = capture.rows(net.weight)
    assert torch.equal(X, torch.cat([x, x[:1]]))
    assert U.shape == (7, 3)


def test_a_clipped_gradient_clips_the_surprises_of_tokens_too() -> None:
    net, (x, v) = layer(), problem(3)
    W = net.weight.detach().numpy().copy()
    capture = LayerCapture(net)
    optimizer = ProjectedDescent(capture.weights(), capture, 0.1, order="tokens")
    loss_of(net, x, v).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.01)
    optimizer.step()
    U = (x.numpy() @ W.T - v.numpy()) * float(0.01 / (norm + 1e-6))
    for row, u in zip(x.numpy(), U, strict=True):
        W = projected_descent(W, row, u, 0.1)
    np.testing.assert_allclose(net.weight.detach().numpy(), W, rtol=1e-10, atol=1e-12)


def test_a_gradient_of_other_terms_is_refused_for_tokens() -> None:
    net, (x, v) = layer(), problem(3)
    capture = LayerCapture(net)
    optimizer = ProjectedDescent(capture.weights(), capture, 0.1, order="tokens")
    (loss_of(net, x, v) + net.weight.square().sum()).backward()
    with pytest.raises(RuntimeError, match="not that of the captured tokens"):
        optimizer.step()


def test_what_was_captured_is_forgotten_by_step_and_zero_grad() -> None:
    net, (x, v) = layer(), problem(3)
    capture = LayerCapture(net)
    optimizer = ProjectedDescent(capture.weights(), capture, 0.1)
    for forget in (optimizer.step, optimizer.zero_grad):
        loss_of(net, x, v).backward()
        assert capture.rows(net.weight)[0].shape == (3, 4)
        forget()
        with pytest.raises(RuntimeError, match="before the forward pass"):
            capture.rows(net.weight)


def test_a_step_without_captured_calls_and_foreign_weights_are_told() -> None:
    net, (x, v) = layer(), problem(3)
    loss_of(net, x, v).backward()
    capture = LayerCapture(net)
    optimizer = ProjectedDescent(capture.weights(), capture, 0.1)
    with pytest.raises(RuntimeError, match="before the forward pass"):
        optimizer.step()
    with pytest.raises(ValueError, match="no weight of a captured layer"):
        ProjectedDescent([nn.Parameter(torch.ones(2, 2))], capture)
    with pytest.raises(KeyError):
        capture.rows(nn.Parameter(torch.ones(2, 2)))
    with pytest.raises(ValueError, match=r"no nn\.Linear"):
        LayerCapture(nn.Tanh())


def test_tied_weights_are_one_parameter_with_the_rows_of_both_layers() -> None:
    one, two = layer(4, 4), layer(4, 4)
    two.weight = one.weight
    net = nn.Sequential(one, two)
    capture = LayerCapture(net)
    assert len(capture.weights()) == 1
    loss_of(net, *problem(3, 4, 4)).backward()
    X, U = capture.rows(one.weight)
    assert X.shape == (6, 4)
    torch.testing.assert_close(U.mT @ X, one.weight.grad)


def test_a_call_by_keyword_is_seen_and_a_weight_that_is_used_without_one_is_told() -> None:
    net, (x, v) = layer(), problem(3)
    capture = LayerCapture(net)
    (net(input=x) - v).square().sum().div(2).backward()
    assert torch.equal(capture.rows(net.weight)[0], x)
    heads = nn.MultiheadAttention(4, 2, batch_first=True, dtype=F64)
    capture = LayerCapture(heads)
    optimizer = ProjectedDescent(capture.weights(), capture)
    heads(x[None], x[None], x[None])[0].square().sum().backward()
    with pytest.raises(RuntimeError, match="used without a call, as by"):
        optimizer.step()
