"""DeltaMomentum against the float64 reference over 100 steps, within a bound for all of them.

The bound. With unit round-off u and gamma_n = n u / (1 - n u), a sum of n products in any order,
fused or not, is within gamma_n of the sum of their magnitudes. One step computes
R = m g^T + I, D = R g and m' = alpha m - eta D, so that for n = d_in + d_out + 3
    |m'_computed - step(m_computed)| <= gamma_n (alpha |m| + eta (|m| |g|^T + I) |g|) = delta
entry by entry (alpha and eta are numbers of the format). The step is affine in m, with the matrix
A = alpha I - eta g^T g from the right. Hence for e, the error of m in the Frobenius norm, and E,
that of W,
    e' <= |A|_2 e + |delta|,        E' <= (1 + u) (E + e') + u |W'|
where |m| in delta is the reference's plus e. Nothing in it looks at the computed run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from trueup.kernels.torch import DeltaMomentum
from trueup.reference.nl import delta_momentum

F64 = NDArray[np.float64]
STEPS = 100
ALPHA, ETA = 0.875, 2.0**-5
SHAPES = [(2, 3), (3, 2), (5, 5), (7, 4), (24, 33)]


def gradients(shape: tuple[int, int]) -> list[F64]:
    """Full-rank gradients, a new one each step, with eta sigma_max^2 below 1 + alpha."""
    rng = np.random.default_rng(3)
    made = []
    for _ in range(STEPS):
        g = rng.normal(size=shape)
        g *= np.sqrt(rng.uniform(0.2, 1.2) / ETA) / np.linalg.norm(g, 2)
        made.append(g.astype(np.float32).astype(np.float64))
    return made


def trajectory(W: F64, sequence: list[F64]) -> Iterator[tuple[F64, F64, float, float]]:
    """The reference's m and W after each step, and the bounds e and E."""
    u, n = 2.0**-24, sum(W.shape) + 3
    gamma = n * u / (1 - n * u)
    m, e, E = np.zeros_like(W), 0.0, 0.0
    for g in sequence:
        size = np.abs(m) + e
        delta = ALPHA * size + ETA * ((size @ np.abs(g).T + np.eye(len(g))) @ np.abs(g))
        A = ALPHA * np.eye(g.shape[1]) - ETA * g.T @ g
        e = float(np.linalg.norm(A, 2) * e + gamma * np.linalg.norm(delta))
        m, W = delta_momentum(m, g, ALPHA, ETA, None, W)
        E = float((1 + u) * (E + e) + u * np.linalg.norm(W))
        yield m, W, e, E


def start(shape: tuple[int, int]) -> F64:
    W = np.random.default_rng(4).normal(size=shape)
    return W.astype(np.float32).astype(np.float64)


def run(
    W: F64, sequence: list[F64], lr: float = ETA, reading: str = "derived", foreach: bool = False
) -> Iterator[tuple[F64, F64]]:
    param = nn.Parameter(torch.tensor(W, dtype=torch.float32))
    optimizer = DeltaMomentum([param], lr, ALPHA, reading=reading, foreach=foreach)
    for g in sequence:
        param.grad = torch.tensor(g, dtype=torch.float32)
        optimizer.step()
        m = optimizer.state[param]["m"]
        yield m.double().numpy().copy(), param.detach().double().numpy().copy()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("foreach", [False, True])
def test_a_hundred_steps_stay_within_the_derived_bound(
    shape: tuple[int, int], foreach: bool
) -> None:
    sequence, W = gradients(shape), start(shape)
    want = trajectory(W, sequence)
    moved = 0.0
    for (m, W_got), (m_ref, W_ref, e, E) in zip(
        run(W, sequence, foreach=foreach), want, strict=True
    ):
        assert np.linalg.norm(m - m_ref) <= e
        assert np.linalg.norm(W_got - W_ref) <= E
        moved = max(moved, float(np.linalg.norm(W_ref - W)))
    assert moved > 500 * E  # the bound is far below what it bounds


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("lr", "reading"),
    [
        pytest.param(1.005 * ETA, "derived", id="half a percent in the rate"),
        pytest.param(ETA, "left_gg", id="left_gg"),
        pytest.param(ETA, "scalar", id="scalar"),
        pytest.param(ETA, "printed_objective_half", id="printed_objective_half"),
    ],
)
def test_the_bound_rejects_what_is_wrong(shape: tuple[int, int], lr: float, reading: str) -> None:
    sequence, W = gradients(shape), start(shape)
    outside = [
        np.linalg.norm(got - ref) > E
        for (_, got), (_, ref, _, E) in zip(
            run(W, sequence, lr, reading), trajectory(W, sequence), strict=True
        )
    ]
    assert any(outside)


def test_the_gradients_of_a_training_run_are_such_a_sequence() -> None:
    """Closed loop in float32; the reference is given the gradients that the run computed."""
    rng = np.random.default_rng(5)
    x = torch.tensor(rng.normal(size=(32, 6)), dtype=torch.float32)
    y = x @ torch.tensor(rng.normal(size=(6, 4)), dtype=torch.float32)
    layer = nn.Linear(6, 4, bias=False)
    W = layer.weight.detach().double().numpy().copy()
    optimizer = DeltaMomentum(layer.parameters(), ETA, ALPHA)
    sequence, losses, got = [], [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (layer(x) - y).square().mean()
        loss.backward()
        assert layer.weight.grad is not None
        sequence.append(layer.weight.grad.double().numpy().copy())
        optimizer.step()
        losses.append(loss.item())
        got.append(layer.weight.detach().double().numpy().copy())
    assert losses[-1] < 1e-2 * losses[0]
    for weights, (_, W_ref, _, E) in zip(got, trajectory(W, sequence), strict=True):
        assert np.linalg.norm(weights - W_ref) <= E


def test_a_preconditioner_is_used_kept_and_taken_away() -> None:
    rng = np.random.default_rng(6)
    W, P = rng.normal(size=(3, 4)), rng.normal(size=(3, 3))
    sequence = [rng.normal(size=(3, 4)) for _ in range(3)]
    param = nn.Parameter(torch.tensor(W))
    optimizer = DeltaMomentum([param], 0.1, 0.9)
    optimizer.set_preconditioner(param, torch.tensor(P))
    m = np.zeros_like(W)
    for place, g in enumerate(sequence):
        if place == 2:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer.set_preconditioner(param, None)
            optimizer.load_state_dict(saved)
        param.grad = torch.tensor(g)
        optimizer.step()
        m, W = delta_momentum(m, g, 0.9, 0.1, P, W)
    np.testing.assert_allclose(param.detach().numpy(), W, rtol=1e-12)
    optimizer.set_preconditioner(param, None)
    assert "P" not in optimizer.state[param]
    with pytest.raises(ValueError, match=r"expected \(3, 3\)"):
        optimizer.set_preconditioner(param, torch.eye(4))
    with pytest.raises(KeyError):
        optimizer.set_preconditioner(nn.Parameter(torch.eye(3)), None)
