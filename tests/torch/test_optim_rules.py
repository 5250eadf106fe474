"""DeepMomentum, MuonNS and M3 against golden numbers, witnesses, references and the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from trueup.kernels.torch import M3, DeepMomentum, MuonNS, deep_momentum_, newton_schulz
from trueup.reference.nl import newton_schulz as reference_ns

F64 = torch.float64
G0 = [[1.0, -1, 2], [-2, 2, -4]]
A1 = [[1.0, 0], [0, 1], [0.5, -0.5]]
A2 = [[0.2, 0, 0], [0, 0.3, 0.1]]
# Spec, section 9: F(g) after the inner step, alpha = .9, eta = .1.
EQ23 = {
    "dot_self": [
        [-0.7547697065, 0.7548195869, -0.6096339433],
        [0.7548308096, -0.7548308121, 0.6096616232],
    ],
    "l2_neg": [
        [-0.7270178724, 0.7404704618, -0.5885772234],
        [0.7270325337, -0.7404752843, 0.5885847211],
    ],
    "dot_ones": [
        [0.6352398111, 0.179465304, 0.2387231831],
        [-0.8565938306, -0.3393849256, -0.2721688857],
    ],
}


def matrix(rows: Any) -> Tensor:
    return torch.tensor(rows, dtype=F64)


@pytest.mark.parametrize("inner", EQ23)
def test_eq23_golden_numbers(inner: str) -> None:
    W = torch.zeros(2, 3, dtype=F64)
    deep_momentum_(matrix(A1), matrix(A2), W, matrix(G0), 0.9, 0.1, inner=inner)
    torch.testing.assert_close(W, matrix(EQ23[inner]), rtol=0, atol=6e-11)


@pytest.mark.parametrize("inner", EQ23)
def test_q23_1_inner_gradients_are_autograd_s(inner: str) -> None:
    one, two = torch.randn(4, 5, dtype=F64), torch.randn(5, 4, dtype=F64)
    g = torch.randn(3, 4, dtype=F64)
    first, second = one.clone().requires_grad_(), two.clone().requires_grad_()
    F = torch.tanh(g @ second.T) @ first.T
    losses = {
        "dot_self": lambda: (F * g).sum(),
        "l2_neg": lambda: (F + g).square().sum() / 2,
        "dot_ones": lambda: F.sum(),
    }
    grads = torch.autograd.grad(losses[inner](), (first, second))
    deep_momentum_(one, two, torch.zeros(3, 4, dtype=F64), g, 0.8, 0.05, inner=inner)
    for new, old, grad in zip((one, two), (first, second), grads, strict=True):
        want = 0.8 * old.detach() - 0.05 * grad
        torch.testing.assert_close(new, want, rtol=1e-12, atol=1e-12)


def test_q23_5_no_rate_and_no_decay_leave_the_network_bit_identical() -> None:
    param = nn.Parameter(torch.randn(3, 4))
    optimizer = DeepMomentum([param], lr=0.0, momentum=1.0, hidden=6)
    before = {key: value.clone() for key, value in optimizer.state[param].items()}
    param.grad = torch.randn(3, 4)
    optimizer.step()
    assert all(torch.equal(optimizer.state[param][key], value) for key, value in before.items())
    assert before["A1"].shape == (4, 6)


def test_deep_momentum_s_dot_self_descends() -> None:
    torch.manual_seed(2)
    layer = nn.Linear(5, 4, bias=False)
    x, y = torch.randn(64, 5), torch.randn(64, 4)
    optimizer = DeepMomentum(layer.parameters(), lr=0.5, hidden=8, scale=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (layer(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert min(losses) < losses[0] - 0.1


def test_ns_golden_numbers() -> None:
    """Spec, section 9."""
    got = newton_schulz(matrix([[1.0, 2], [3, 4]]))
    want = [[-0.6806610001, 0.8255396075], [0.7412954095, 0.2594400100]]
    torch.testing.assert_close(got, matrix(want), rtol=0, atol=6e-11)
    got = newton_schulz(matrix([[1.0, 2], [3, 4]]), poly="cubic5")
    want = [[-0.1221450209, 0.5809958314], [0.6839287760, 0.6368097435]]
    torch.testing.assert_close(got, matrix(want), rtol=0, atol=6e-11)
    assert torch.equal(newton_schulz(torch.zeros(2, 3)), torch.zeros(2, 3))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4), (1, 4)])
@pytest.mark.parametrize("poly", ["quintic5", "cubic3", "cubic15"])
@pytest.mark.parametrize("rule", ["clamp", "add"])
def test_ns_is_the_reference_also_in_a_stack(shape: tuple[int, int], poly: str, rule: str) -> None:
    stack = torch.randn(3, *shape, dtype=F64)
    got = newton_schulz(stack, poly=poly, eps_rule=rule)
    reading = poly if rule == "clamp" else f"{poly}_add"
    for one, G in zip(got, stack, strict=True):
        want = reference_ns(G.numpy(), reading=reading)
        np.testing.assert_allclose(one.numpy(), want, rtol=1e-11, atol=1e-12)
        alone = newton_schulz(G, poly=poly, eps_rule=rule)
        np.testing.assert_allclose(alone.numpy(), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", [(64, 64), (64, 200), (200, 64)])
def test_ns_in_bfloat16_is_within_the_spread_of_the_float64_one(shape: tuple[int, int]) -> None:
    """Spec 4.1: relative Frobenius 0.02 where products are fused, 0.04 otherwise."""
    G = torch.randn(shape, dtype=F64)
    want = newton_schulz(G)
    got = newton_schulz(G, dtype=torch.bfloat16)
    assert got.dtype is torch.bfloat16
    assert (got.double() - want).norm() <= 0.04 * want.norm()
    wrong = newton_schulz(G, poly="cubic5")
    assert (wrong - want).norm() > 0.04 * want.norm()


@pytest.mark.parametrize("shape", [(32, 48), (48, 32), (40, 40)])
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("rule", [None, "match_rms_adamw"])
def test_muon_agrees_with_the_library_s(
    shape: tuple[int, int], nesterov: bool, rule: str | None
) -> None:
    """Each step's change of the weights, to the bf16 spread of spec 4.1 and 4.3."""
    W = torch.randn(shape) / 10
    mine, theirs = nn.Parameter(W.clone()), nn.Parameter(W.clone())
    options: dict[str, Any] = {"lr": 0.02, "nesterov": nesterov, "adjust_lr_fn": rule}
    ours = MuonNS.library([mine], **options)
    library = torch.optim.Muon([theirs], **options)
    for _ in range(4):
        before = mine.detach().clone(), theirs.detach().clone()
        g = torch.randn(shape)
        mine.grad, theirs.grad = g.clone(), g.clone()
        ours.step()
        library.step()
        change = mine.detach() - before[0], theirs.detach() - before[1]
        assert (change[0] - change[1]).norm() <= 0.02 * change[1].norm()


def test_eq24_is_the_library_s_plain_form() -> None:
    """Nesterov off, no decay, rho = 1: m <- alpha m - g, W <- W + eta NS(m), in float64."""
    W = torch.randn(3, 5, dtype=F64)
    param, m = nn.Parameter(W.clone()), np.zeros((3, 5))
    optimizer = MuonNS([param], 0.1, 0.9, narrow=False)
    want = W.numpy().copy()
    for _ in range(3):
        g = torch.randn(3, 5, dtype=F64)
        param.grad = g
        optimizer.step()
        m = 0.9 * m - g.numpy()
        want = want + 0.1 * reference_ns(m)
    np.testing.assert_allclose(param.detach().numpy(), want, rtol=1e-9, atol=1e-10)


def test_q24_1_the_rate_is_outside() -> None:
    """E17: with the rate inside, NS would cancel it. Here twice the rate is twice the step."""
    steps = []
    for lr in (0.1, 0.2):
        param = nn.Parameter(torch.zeros(2, 3, dtype=F64))
        optimizer = MuonNS([param], lr, narrow=False)
        param.grad = matrix(G0) + matrix([[0.0, 1, 0], [1, 0, -1]])
        optimizer.step()
        steps.append(param.detach().clone())
    torch.testing.assert_close(2 * steps[0], steps[1], rtol=1e-12, atol=0)


def test_m3_witness() -> None:
    """Spec 3.8: -1, -3, -8, -14, -23 with the identity for NS."""
    param = nn.Parameter(torch.zeros(1, 1, dtype=F64))
    optimizer = M3([param], 1.0, (1.0, 0.0, 1.0), alpha=1.0, frequency=2, eps=1.0, poly="none")
    seen = []
    for _ in range(5):
        param.grad = torch.ones(1, 1, dtype=F64)
        optimizer.step()
        seen.append(param.item())
    assert seen == [-1, -3, -8, -14, -23]


def test_m3_by_hand_with_orthogonalisation() -> None:
    W = torch.randn(3, 4, dtype=F64)
    param = nn.Parameter(W.clone())
    optimizer = M3([param], 0.1, (0.7, 0.3, 0.5), alpha=0.4, frequency=3, eps=0.01, poly="cubic3")
    M1, M2, V, S, O2 = (np.zeros((3, 4)) for _ in range(5))
    want = W.numpy().copy()
    for t in range(1, 8):
        g = np.random.default_rng(t).normal(size=(3, 4))
        param.grad = torch.tensor(g)
        optimizer.step()
        M1, V, S = M1 + 0.7 * g, V + 0.3 * g * g, S + g
        top = reference_ns(M1, reading="cubic3") + 0.4 * O2
        want = want - 0.1 * top / (np.sqrt(V) + 0.01)
        if t % 3 == 0:
            M2, S = M2 + 0.5 * S, np.zeros((3, 4))
            O2 = reference_ns(M2, reading="cubic3")
    np.testing.assert_allclose(param.detach().numpy(), want, rtol=1e-11, atol=1e-12)


def test_opcheck() -> None:
    G = torch.randn(3, 4)
    torch.library.opcheck(
        torch.ops.trueup.newton_schulz, (G, 5, 3.4445, -4.775, 2.0315, 1e-7, False)
    )
    given = (torch.randn(4, 2), torch.randn(2, 4), torch.randn(3, 4), G, 0.9, 0.1, "l2_neg", 1.0)
    torch.library.opcheck(torch.ops.trueup.deep_momentum_, given)


def test_wrong_calls_are_told() -> None:
    with pytest.raises(ValueError, match="expected a matrix or a stack"):
        newton_schulz(torch.ones(3))
    with pytest.raises(ValueError, match="quintic5, or cubicN"):
        newton_schulz(torch.ones(3, 3), poly="septic")
    one = torch.ones(2, 2)
    with pytest.raises(ValueError, match="expected one of dot_self"):
        deep_momentum_(one, one, one, one, 0.9, 0.1, inner="dot")
