"""Eq. 20, Eq. 24, M3, Adam's memory and the chunk update as operators, against references."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from trueup.kernels.torch import (
    adam_memory_,
    cms_level_update_,
    m3_,
    m3_slow_,
    muon_,
    muon_library_,
    preconditioned_momentum_,
)
from trueup.reference.nl.adam_memory import adam_memory
from trueup.reference.nl.cms_update_level import cms_level_update
from trueup.reference.nl.m3 import m3, m3_slow
from trueup.reference.nl.muon import muon
from trueup.reference.nl.muon_library import muon_library
from trueup.reference.nl.preconditioned_momentum import preconditioned_momentum

F64 = torch.float64
shapes = pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4)])


def randoms(count: int, *shape: int) -> list[Tensor]:
    return [torch.randn(shape, dtype=F64) for _ in range(count)]


def close(got: Tensor, want: object) -> None:
    np.testing.assert_allclose(got.numpy(), np.asarray(want), rtol=1e-11, atol=1e-12)


@shapes
@pytest.mark.parametrize("reading", ["left", "hadamard"])
def test_preconditioned_momentum(shape: tuple[int, int], reading: str) -> None:
    m, W, g = randoms(3, *shape)
    (P,) = randoms(1, shape[0], shape[0] if reading == "left" else shape[1])
    name = {"left": "P", "hadamard": "p"}[reading]
    want = preconditioned_momentum(
        m.numpy(), W.numpy(), g.numpy(), 0.9, 0.1, reading=reading, **{name: P.numpy()}
    )
    preconditioned_momentum_(m, W, g, P, 0.9, 0.1, reading=reading)
    close(m, want[0])
    close(W, want[1])


@shapes
def test_muon(shape: tuple[int, int]) -> None:
    m, W, g = randoms(3, *shape)
    want = muon(m.numpy(), W.numpy(), g.numpy(), 0.9, 0.1)
    muon_(m, W, g, 0.9, 0.1)
    close(m, want[0])
    close(W, want[1])


@shapes
@pytest.mark.parametrize(
    ("reading", "nesterov", "factor"),
    [
        ("nesterov", True, "original"),
        ("plain", False, "original"),
        ("nesterov_match_rms", True, "match_rms_adamw"),
    ],
)
def test_muon_library(shape: tuple[int, int], reading: str, nesterov: bool, factor: str) -> None:
    m, W, g = randoms(3, *shape)
    want = muon_library(m.numpy(), W.numpy(), g.numpy(), 0.9, 0.1, 0.2, reading=reading)
    muon_library_(m, W, g, 0.9, 0.1, 0.2, narrow=False, nesterov=nesterov, shape_factor=factor)
    close(m, want[0])
    close(W, want[1])


@shapes
def test_m3(shape: tuple[int, int]) -> None:
    W, M1, S, O2, g = randoms(5, *shape)
    V = torch.rand(shape, dtype=F64)
    sums = M1.numpy(), V.numpy(), S.numpy(), O2.numpy()
    want = m3(W.numpy(), *sums, g.numpy(), 0.7, 0.3, 0.4, 0.1, 0.01)
    m3_(W, M1, V, S, O2, g, (0.7, 0.3), 0.4, 0.1, 0.01)
    for got, expected in zip((W, M1, V, S), want, strict=True):
        close(got, expected)


@shapes
def test_m3_slow(shape: tuple[int, int]) -> None:
    M2, S, O2 = randoms(3, *shape)
    want = m3_slow(M2.numpy(), S.numpy(), 0.5)
    m3_slow_(M2, S, O2, 0.5)
    for got, expected in zip((M2, S, O2), want, strict=True):
        close(got, expected)


@shapes
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_adam_memory(shape: tuple[int, int], lam: float) -> None:
    sum_g, g = randoms(2, *shape)
    sum_gg = torch.rand(shape, dtype=F64)
    sum_g[0, 0] = sum_gg[0, 0] = g[0, 0] = 0  # nothing was ever seen
    want = adam_memory(sum_g.numpy(), sum_gg.numpy(), g.numpy(), lam)
    memory = adam_memory_(sum_g, sum_gg, g, lam)
    for got, expected in zip((sum_g, sum_gg, memory), want, strict=True):
        close(got, expected)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("active", [[1, 0, 1, 1], [0, 0, 0, 0]])
def test_cms_level_update(mean: bool, active: list[int]) -> None:
    (W1,), (W2,), (x, delta) = randoms(1, 6, 3), randoms(1, 3, 6), randoms(2, 4, 3)
    mask, old = torch.tensor(active).bool(), (W1.clone(), W2.clone())
    reading = "mean" if mean else "sum"
    given = W1.numpy(), W2.numpy(), x.numpy(), delta.numpy(), mask.double().numpy()
    want = cms_level_update(*given, 0.1, np.zeros(4), reading=reading)
    cms_level_update_(W1, W2, x, delta, mask, 0.1, mean=mean)
    close(W1, want[0])
    close(W2, want[1])
    assert any(active) or (torch.equal(W1, old[0]) and torch.equal(W2, old[1]))


def test_opcheck() -> None:
    M = [torch.randn(3, 4) for _ in range(6)]
    ops = torch.ops.trueup
    ns = ("quintic5", 1e-7, "clamp", False)
    P, V = torch.randn(3, 3), M[2].abs()
    for operator, given in (
        (ops.preconditioned_momentum_, (*M[:3], P, 0.9, 0.1, "left")),
        (ops.muon_, (*M[:3], 0.9, 0.1, *ns)),
        (ops.muon_library_, (*M[:3], 0.9, 0.1, 0.01, True, *ns)),
        (ops.m3_, (*M[:2], V, *M[3:], 0.7, 0.3, 0.4, 0.1, 0.1, "quintic5", 1e-7)),
        (ops.m3_slow_, (*M[:3], 0.5, "quintic5", 1e-7)),
        (ops.adam_memory_, (M[0], V, M[1], 0.1)),
        (
            ops.cms_level_update_,
            (M[0], M[1].T.contiguous(), M[2], M[3], torch.ones(3).bool(), 0.1, False, None),
        ),
    ):
        torch.library.opcheck(operator, given)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: preconditioned_momentum_(t, t, t, t, 0.9, 0.1, reading="right"),
        lambda t: muon_(t, t, t, 0.9, 0.1, eps_rule="max"),
        lambda t: muon_library_(t, t, t, 0.9, 0.1, 0.0, shape_factor="sqrt"),
        lambda t: cms_level_update_(t, t, t, t, t[0], 0.1, multiply="bf16"),
    ],
)
def test_wrong_options_are_told(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match="expected one of"):
        call(torch.ones(2, 2))
