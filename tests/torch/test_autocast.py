"""Under autocast: operators keep their own precision, and gradients meet their inputs' dtypes."""

from __future__ import annotations

import pytest
import torch

from trueup.kernels.torch import DeltaMomentum, LinearMemory, cms_level, linear_attention
from trueup.kernels.torch.ops.writes import online_write


def test_an_operator_computes_under_autocast_what_it_computes_without() -> None:
    q, k, v = (torch.randn(2, 70, 5) for _ in range(3))
    M, eta = torch.randn(2, 5, 5), torch.tensor(0.1)
    W1, W2 = torch.randn(2, 7, 5), torch.randn(2, 5, 7)
    plain = [*linear_attention(q, k, v), online_write(M, k, v, eta), cms_level(q, W1, W2)]
    with torch.autocast("cpu", torch.bfloat16):
        cast = [*linear_attention(q, k, v), online_write(M, k, v, eta), cms_level(q, W1, W2)]
        assert (q @ M).dtype is torch.bfloat16
    for one, two in zip(plain, cast, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("rule", ["attention", "l2", "dgd"])
@pytest.mark.parametrize("mode", ["through", "straight_through"])
def test_a_memory_trains_under_autocast(rule: str, mode: str) -> None:
    module = LinearMemory(4, rule=rule, chunk=3, write_grad=mode, learn_eta=True)
    optimizer = DeltaMomentum([module.W_k, module.W_v, module.W_q], 0.01)
    with torch.autocast("cpu", torch.bfloat16):
        y, memory = module(torch.randn(2, 8, 4))
        loss = (y.float() - 1).square().mean()
    loss.backward()
    assert memory.dtype is torch.float32
    assert module.W_q.grad is not None
    assert module.W_q.grad.dtype is torch.float32
    before = module.W_q.detach().clone()
    with torch.autocast("cpu", torch.bfloat16):
        optimizer.step()
    again = LinearMemory(4)
    again.W_q.data.copy_(before)
    again.W_q.grad = module.W_q.grad
    DeltaMomentum([again.W_q], 0.01).step()
    assert torch.equal(module.W_q, again.W_q)
