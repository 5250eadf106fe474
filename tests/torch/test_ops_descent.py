"""Eq. 28 as operators: single, batch and token by token, against the float64 references."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from trueup.kernels.torch.ops.descent import (
    BATCH_READINGS,
    READINGS,
    projected_descent_,
    projected_descent_batch_,
    projected_descent_chunk_,
)
from trueup.reference.nl import projected_descent, projected_descent_batch
from trueup.reference.nl.projected_descent_chunk import projected_descent_chunk

SHAPES = [(2, 3), (3, 2), (5, 5), (7, 4)]
F64 = torch.float64


def batch(size: int, d_out: int, d_in: int, dtype: torch.dtype = F64) -> tuple[Tensor, ...]:
    return (
        torch.randn(d_out, d_in, dtype=dtype),
        torch.randn(size, d_in, dtype=dtype),
        torch.randn(size, d_out, dtype=dtype),
    )


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_one_sample_is_the_reference(reading: str, shape: tuple[int, int]) -> None:
    W, X, U = batch(1, *shape)
    want = projected_descent(W.numpy(), X[0].numpy(), U[0].numpy(), 0.1, reading=reading)
    projected_descent_(W, X[0], U[0], 0.1, reading=reading)
    np.testing.assert_allclose(W.numpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("size", [1, 3, 9])
def test_tokens_in_turn_are_the_loop_over_the_reference(reading: str, size: int) -> None:
    W, X, U = batch(size, 5, 4)
    X[1 % size] = 0  # no direction: c_t = 0 under `normalized`
    want = W.numpy().copy()
    for x, u in zip(X.numpy(), U.numpy(), strict=True):
        want = projected_descent(want, x, u, 0.1, reading=reading)
    projected_descent_chunk_(W, X, U, 0.1, reading=reading)
    np.testing.assert_allclose(W.numpy(), want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("reading", ["derived", "normalized"])
def test_tokens_with_rates_and_retention_of_their_own(reading: str) -> None:
    W, X, U = batch(7, 5, 4)
    eta = torch.rand(7, dtype=F64) / 5
    alpha = torch.rand(7, dtype=F64)
    alpha[4] = 0  # forgets all
    want = projected_descent_chunk(
        W.numpy(), X.numpy(), U.numpy(), eta.numpy(), alpha.numpy(), reading=reading
    )
    projected_descent_chunk_(W, X, U, eta, alpha, reading=reading)
    np.testing.assert_allclose(W.numpy(), want, rtol=1e-11, atol=1e-11)


def test_tokens_depend_on_their_order_and_are_not_the_batch_form() -> None:
    W, X, U = batch(3, 4, 5)
    turned, backwards, summed = W.clone(), W.clone(), W.clone()
    projected_descent_chunk_(turned, X, U, 0.1)
    projected_descent_chunk_(backwards, X.flip(0), U.flip(0), 0.1)
    projected_descent_batch_(summed, X, U, 0.1)
    assert (turned - backwards).abs().max() > 1e-3
    assert (turned - summed).abs().max() > 1e-3


@pytest.mark.parametrize("reading", BATCH_READINGS)
@pytest.mark.parametrize("size", [1, 3, 9])
def test_a_batch_is_the_reference(reading: str, size: int) -> None:
    W, X, U = batch(size, 5, 4)
    want = projected_descent_batch(W.numpy(), X.numpy(), U.numpy(), 0.1, reading=reading)
    projected_descent_batch_(W, X, U, 0.1, reading=reading)
    np.testing.assert_allclose(W.numpy(), want, rtol=1e-11, atol=1e-11)


def test_opcheck() -> None:
    W, X, U = batch(3, 4, 5, torch.float32)
    operators = torch.ops.trueup
    torch.library.opcheck(operators.projected_descent_, (W, X[0], U[0], 0.1, "derived"))
    torch.library.opcheck(operators.projected_descent_batch_, (W, X, U, 0.1, "prox"))
    rates = torch.full((3,), 0.1)
    torch.library.opcheck(operators.projected_descent_chunk_, (W, X, U, rates, rates, "normalized"))


def test_bfloat16_weights_are_computed_in_float32() -> None:
    W, X, U = batch(3, 4, 5, torch.float32)
    short = W.bfloat16()
    wide = short.float()
    projected_descent_batch_(wide, X, U, 0.1)
    projected_descent_batch_(short, X, U, 0.1)
    assert torch.equal(short, wide.bfloat16())


def test_wrong_calls_are_told() -> None:
    W, X, U = batch(3, 4, 5)
    with pytest.raises(ValueError, match="reading: got 'normalized'"):
        projected_descent_batch_(W, X, U, 0.1, reading="normalized")
    W.requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable"):
        projected_descent_(W, X[0], U[0], 0.1)
