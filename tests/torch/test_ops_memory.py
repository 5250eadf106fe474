"""Linear attention and the online write as operators: values, both derivatives, torch's checks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from trueup.kernels.torch.ops.attention import linear_attention
from trueup.kernels.torch.ops.writes import online_write
from trueup.reference.nl.linear_attention import linear_attention as reference

F64 = torch.float64


def sequences(N: int, T: int, d_k: int, d_v: int, grad: bool = False) -> list[Tensor]:
    shapes = [(N, T, d_k), (N, T, d_k), (N, T, d_v), (N, d_v, d_k)]
    return [torch.randn(shape, dtype=F64, requires_grad=grad) for shape in shapes]


@pytest.mark.parametrize("reading", ["post", "pre"])
@pytest.mark.parametrize("T", [1, 5, 64, 65, 131])
@pytest.mark.parametrize("with_mask", [True, False])
def test_attention_is_the_reference(reading: str, T: int, with_mask: bool) -> None:
    q, k, v, M_0 = sequences(2, T, 3, 4)
    mask = torch.rand(2, T) > 0.4 if with_mask else None
    y, M = linear_attention(q, k, v, M_0, mask, reading=reading)
    writes = None if mask is None else mask.double().numpy()
    want = reference(q.numpy(), k.numpy(), v.numpy(), M_0.numpy(), writes, reading=reading)
    np.testing.assert_allclose(y.numpy(), want[0], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(M.numpy(), want[1], rtol=1e-11, atol=1e-11)


def test_e11_witness() -> None:
    """Spec E11: post 1, 2, 3; pre 0, 0, 1; final memory [3, 0]."""
    k = torch.tensor([[[1.0, 0], [1, 1], [0, 2]]], dtype=F64)
    v = torch.tensor([[[1.0], [2], [-1]]], dtype=F64)
    q = torch.tensor([[[1.0, 1], [0, 1], [1, -1]]], dtype=F64)
    post, M = linear_attention(q, k, v)
    pre, _ = linear_attention(q, k, v, reading="pre")
    assert post.flatten().tolist() == [1, 2, 3]
    assert pre.flatten().tolist() == [0, 0, 1]
    assert M.flatten().tolist() == [3, 0]


@pytest.mark.parametrize("reading", ["post", "pre"])
def test_attention_s_derivatives_are_finite_differences(reading: str) -> None:
    given = sequences(2, 4, 3, 2, grad=True)

    def run(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        return linear_attention(*tensors, reading=reading)

    assert gradcheck(run, given)
    assert gradgradcheck(run, given, fast_mode=True)


def test_attention_s_derivatives_are_autograd_s_over_several_chunks() -> None:
    given = sequences(1, 150, 3, 2, grad=True)
    q, k, v, M_0 = given
    y, M = linear_attention(*given)
    scores = (q @ k.mT).tril()
    plain_y, plain_M = scores @ v + q @ M_0.mT, M_0 + v.mT @ k
    weights = torch.randn_like(y), torch.randn_like(M)
    mine = torch.autograd.grad([y, M], given, weights)
    theirs = torch.autograd.grad([plain_y, plain_M], given, weights)
    for got, want in zip(mine, theirs, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


def test_sixteen_bits_are_summed_in_float32() -> None:
    q, k, v, M_0 = (item.bfloat16() for item in sequences(1, 70, 3, 2))
    y, M = linear_attention(q, k, v, M_0)
    wide_y, wide_M = linear_attention(q.float(), k.float(), v.float(), M_0.float())
    assert y.dtype is torch.bfloat16
    assert M.dtype is torch.float32
    assert torch.equal(y, wide_y.bfloat16())
    assert torch.equal(M, wide_M)


@pytest.mark.parametrize("pull", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("per_token", [True, False])
def test_a_write_and_its_derivatives(pull: float, per_token: bool) -> None:
    _, k, v, M = sequences(2, 3, 4, 5, grad=True)
    eta = torch.rand((2, 3) if per_token else (), dtype=F64, requires_grad=True)

    def run(*tensors: Tensor) -> Tensor:
        return online_write(*tensors, pull=pull)

    want = M.detach().clone()
    for n in range(2):
        for t in range(3):
            rate = eta[n, t] if per_token else eta
            error = pull * (M[n] @ k[n, t]) - v[n, t]
            want[n] -= (rate * torch.outer(error, k[n, t])).detach()
    torch.testing.assert_close(run(M, k, v, eta).detach(), want, rtol=1e-12, atol=1e-12)
    assert gradcheck(run, (M, k, v, eta))
    assert gradgradcheck(run, (M, k, v, eta))


def test_opcheck() -> None:
    q, k, v, M_0 = (item.detach().float().requires_grad_() for item in sequences(2, 5, 3, 4))
    torch.library.opcheck(torch.ops.trueup.linear_attention, (q, k, v, M_0, True, "auto"))
    eta = torch.tensor(0.1, requires_grad=True)
    torch.library.opcheck(torch.ops.trueup.online_write, (M_0, k, v, eta, 1.0))


def test_wrong_calls_are_told() -> None:
    q, k, v, M_0 = sequences(2, 5, 3, 4)
    with pytest.raises(ValueError, match="expected one of post, pre"):
        linear_attention(q, k, v, reading="after")
    with pytest.raises(ValueError, match="expected one of auto, chunk, recurrent"):
        linear_attention(q, k, v, form="parallel")
    with pytest.raises(ValueError, match=r"got q \(2, 5, 3\), k \(2, 4, 3\)"):
        linear_attention(q, k[:, :4], v)
    with pytest.raises(ValueError, match=r"expected \(N, d_v, d_k\)"):
        linear_attention(q, k, v, M_0.mT)
    with pytest.raises(ValueError, match=r"expected \(\) or \(N, C\)"):
        online_write(M_0, k, v, torch.ones(3))
