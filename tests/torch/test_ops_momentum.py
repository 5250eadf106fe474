"""Eq. 22 as operators: against the float64 reference, the kernels, and torch's own checks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from trueup.kernels.torch.ops import momentum
from trueup.kernels.torch.ops.momentum import (
    DELTA_READINGS,
    delta_momentum_,
    delta_momentum_rank1_,
)
from trueup.reference.nl import delta_momentum, delta_momentum_rank1

SHAPES = [(2, 3), (3, 2), (5, 5), (7, 4)]
F64 = torch.float64


def matrices(d_out: int, d_in: int, dtype: torch.dtype = F64) -> list[Tensor]:
    shapes = [(d_out, d_in)] * 3 + [(d_out, d_out)]
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


CASES = [
    (reading, shape)
    for reading in DELTA_READINGS
    for shape in SHAPES
    if reading != "literal_left" or shape[0] == shape[1]
]


@pytest.mark.parametrize(("reading", "shape"), CASES)
@pytest.mark.parametrize("with_P", [True, False])
def test_every_reading_is_the_reference_over_two_steps(
    reading: str, shape: tuple[int, int], with_P: bool
) -> None:
    m, W, g, P = matrices(*shape)
    want_m, want_W = m.numpy().copy(), W.numpy().copy()
    for _ in range(2):
        gradient = torch.randn_like(g)
        delta_momentum_(m, W, gradient, 0.9, 0.1, P if with_P else None, reading=reading)
        want_m, want_W = delta_momentum(
            want_m,
            gradient.numpy(),
            0.9,
            0.1,
            P.numpy() if with_P else None,
            want_W,
            reading=reading,
        )
    np.testing.assert_allclose(m.numpy(), want_m, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(W.numpy(), want_W, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_rank1_is_the_reference_and_the_full_form_of_an_outer_product(
    shape: tuple[int, int],
) -> None:
    m, W, _, _ = matrices(*shape)
    u, x = torch.randn(shape[0], dtype=F64), torch.randn(shape[1], dtype=F64)
    want = delta_momentum_rank1(m.numpy(), u.numpy(), x.numpy(), 0.9, 0.1, W.numpy())
    full_m, full_W = m.clone(), W.clone()
    delta_momentum_(full_m, full_W, torch.outer(u, x), 0.9, 0.1)
    delta_momentum_rank1_(m, W, u, x, 0.9, 0.1)
    for got, expected, full in zip((m, W), want, (full_m, full_W), strict=True):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(full.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_what_no_kernel_computes_is_refused_with_its_reason() -> None:
    m, W, g, P = matrices(3, 4, torch.float32)
    assert "reading literal_right" in str(momentum._fast(m, W, g, P, 0.9, 0.1, "literal_right"))
    assert "P" in str(momentum._fast(m, W, g, None, 0.9, 0.1, "derived"))


def test_sixteen_bit_weights_keep_a_wide_momentum() -> None:
    m, W, g, _ = matrices(3, 4, torch.float32)
    short = W.bfloat16()
    wide_m, wide_W = m.clone(), short.float()
    delta_momentum_(wide_m, wide_W, g.bfloat16().float(), 0.9, 0.1)
    delta_momentum_(m, short, g.bfloat16(), 0.9, 0.1)
    assert torch.equal(m, wide_m)
    assert torch.equal(short, wide_W.bfloat16())


def test_opcheck() -> None:
    m, W, g, P = matrices(3, 4, torch.float32)
    operators = torch.ops.trueup
    torch.library.opcheck(operators.delta_momentum_, (m, W, g, P, 0.9, 0.1, "derived"))
    torch.library.opcheck(operators.delta_momentum_, (m, W, g, None, 0.9, 0.1, "scalar"))
    u, x = torch.randn(3), torch.randn(4)
    torch.library.opcheck(operators.delta_momentum_rank1_, (m, W, u, x, 0.9, 0.1))


def test_wrong_calls_are_told() -> None:
    m, W, g, _ = matrices(3, 4)
    with pytest.raises(ValueError, match="expected one of derived"):
        delta_momentum_(m, W, g, 0.9, 0.1, reading="left")
    with pytest.raises(ValueError, match="square"):
        delta_momentum_(m, W, g, 0.9, 0.1, reading="literal_left")
    W.requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable"):
        delta_momentum_(m, W, g, 0.9, 0.1)
