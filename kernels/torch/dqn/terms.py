"""Conservative, expectile and entropy terms of a branch: value and gradient come from one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, numbered, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

BRANCH_WEIGHT = 0.25  # the mean over the four branches
_Two = tuple[Tensor, Tensor]


def conservative(
    Q: Tensor,
    actions: Tensor,
    weight: Tensor,
    alpha: float | Tensor,
    branch_weight: float = BRANCH_WEIGHT,
) -> Tensor:
    """Push down the values of actions that the data did not take: CQL, arXiv:2006.04779.

        branch_weight / B sum_b weight_b alpha (logsumexp_a Q_b - Q_b[actions_b])
    Shapes: Q (B, A) of one branch; actions (B,) from 0 to A - 1; weight (B,); alpha a number, or a
    tensor of one element, which is not read by the host. Returns a scalar, differentiable in Q,
    once. Raises ValueError for shapes that do not fit.
    """
    ranked("conservative", "Q", Q, "B A")
    rows = Q.shape[:1]
    expect("conservative", actions=(actions, rows), weight=(weight, rows))
    values, weights = alike(Q, weight.detach())
    given = values, numbered(actions), weights
    if isinstance(alpha, Tensor):
        loss, _ = _conservative(*given, 1.0, branch_weight)
        return alpha.detach().reshape(()) * loss.squeeze(0)
    loss, _ = _conservative(*given, alpha, branch_weight)
    return loss.squeeze(0)


def expectile(
    Q: Tensor,
    actions: Tensor,
    V: Tensor,
    weight: Tensor,
    tau: float,
    branch_weight: float = BRANCH_WEIGHT,
) -> Tensor:
    """Pull the state value to an expectile of the values of the data: IQL, arXiv:2110.06169.

        branch_weight / B sum_b weight_b |tau - 1{u < 0}| u^2,  u = Q_b[actions_b] - V_b
    Shapes: Q (B, A) of one branch, from the target network, a constant; actions (B,) from 0 to
    A - 1; V, weight (B,). Returns a scalar, differentiable in V, once. Raises ValueError for shapes
    that do not fit and a tau outside (0, 1).
    """
    if not 0 < tau < 1:
        raise ValueError(f"expectile: got tau {tau}, expected a number between 0 and 1")
    ranked("expectile", "Q", Q, "B A")
    rows = Q.shape[:1]
    expect("expectile", actions=(actions, rows), V=(V, rows), weight=(weight, rows))
    values, states, weights = alike(Q.detach(), V, weight.detach())
    loss, _ = _expectile(values, numbered(actions), states, weights, tau, branch_weight)
    return loss.squeeze(0)


def expectile_backup(r: Tensor, done: Tensor, v_next: Tensor, gamma: Tensor) -> Tensor:
    """Give each branch's target from the value of the next state: r + gamma_k (1 - done) v_next.

    Shapes: r, done, v_next (B,), done 1 or true at a terminal state; gamma (K,). Returns (B, K), a
    constant. Raises ValueError for shapes that do not fit.
    """
    ranked("expectile_backup", "r", r, "B")
    ranked("expectile_backup", "gamma", gamma, "K")
    expect("expectile_backup", done=(done, r.shape), v_next=(v_next, r.shape))
    with torch.no_grad():
        target: Tensor = _backup(*alike(r, done.to(r.dtype), v_next, gamma))
    return target


def entropy_term(
    Q: Tensor,
    weight: Tensor,
    strength: float,
    T: float = 1.0,
    branch_weight: float = BRANCH_WEIGHT,
) -> Tensor:
    """Reward the spread of a branch's policy p = softmax(Q / T).

        -branch_weight / B sum_b weight_b strength H(p_b)
    Shapes: Q (B, A) of one branch; weight (B,). Returns a scalar, differentiable in Q, once. Raises
    ValueError for shapes that do not fit and a temperature that is not positive.
    """
    if not T > 0:
        raise ValueError(f"entropy_term: got T {T}, expected a positive number")
    ranked("entropy_term", "Q", Q, "B A")
    expect("entropy_term", weight=(weight, Q.shape[:1]))
    loss, _ = _entropy(*alike(Q, weight.detach()), strength, T, branch_weight)
    return loss.squeeze(0)


def _plain_conservative(
    Q: Tensor, actions: Tensor, weight: Tensor, alpha: float, branch_weight: float
) -> _Two:
    at = actions.long().unsqueeze(1)
    log_p = torch.log_softmax(Q, 1)
    scale = branch_weight * alpha / Q.shape[0]
    error = torch.softmax(Q, 1) - torch.zeros_like(Q).scatter(1, at, 1)
    loss = -scale * (weight * log_p.gather(1, at).squeeze(1)).sum()
    return loss.view(1), scale * (weight.unsqueeze(1) * error)


def _fast_conservative(
    Q: Tensor, actions: Tensor, weight: Tensor, alpha: float, branch_weight: float
) -> _Two | Refused:
    loss, d_Q = _fake_of_q(Q)
    given = contiguous(Q, actions, weight)
    refused = launch("dqn.conservative", *given, alpha, branch_weight, loss, d_Q)
    return (loss, d_Q) if refused is None else refused


def _plain_expectile(
    Q: Tensor, actions: Tensor, V: Tensor, weight: Tensor, tau: float, branch_weight: float
) -> _Two:
    u = Q.gather(1, actions.long().unsqueeze(1)).squeeze(1) - V
    pull, scale = weight * ((u < 0).to(u.dtype) - tau).abs() * u, branch_weight / Q.shape[0]
    return scale * (pull * u).sum().view(1), -2 * scale * pull


def _fast_expectile(
    Q: Tensor, actions: Tensor, V: Tensor, weight: Tensor, tau: float, branch_weight: float
) -> _Two | Refused:
    loss, d_V = _fake_expectile(Q, actions, V)
    given = contiguous(Q, actions, V, weight)
    refused = launch("dqn.expectile", *given, tau, branch_weight, loss, d_V)
    return (loss, d_V) if refused is None else refused


def _plain_backup(r: Tensor, done: Tensor, v_next: Tensor, gamma: Tensor) -> Tensor:
    return r.unsqueeze(1) + gamma * ((1 - done) * v_next).unsqueeze(1)


def _fast_backup(r: Tensor, done: Tensor, v_next: Tensor, gamma: Tensor) -> Tensor | Refused:
    target = _fake_backup(r, done, v_next, gamma)
    refused = launch("dqn.expectile_backup", *contiguous(r, done, v_next, gamma), target)
    return target if refused is None else refused


def _plain_entropy(
    Q: Tensor, weight: Tensor, strength: float, T: float, branch_weight: float
) -> _Two:
    log_p = torch.log_softmax(Q / T, 1)
    p, omega = log_p.exp(), weight * (branch_weight * strength / Q.shape[0])
    H = -(p * log_p).sum(1, keepdim=True)
    slope = p * (log_p + H) / T
    return -(omega * H.squeeze(1)).sum().view(1), omega.unsqueeze(1) * slope


def _fast_entropy(
    Q: Tensor, weight: Tensor, strength: float, T: float, branch_weight: float
) -> _Two | Refused:
    loss, d_Q = _fake_of_q(Q)
    numbers = strength, T, branch_weight
    refused = launch("dqn.entropy_term", *contiguous(Q, weight), *numbers, loss, d_Q)
    return (loss, d_Q) if refused is None else refused


def _fake_of_q(Q: Tensor, *_: Any) -> _Two:
    return Q.new_empty(1), Q.new_empty(Q.shape)


def _fake_expectile(Q: Tensor, actions: Tensor, V: Tensor, *_: Any) -> _Two:
    return V.new_empty(1), V.new_empty(V.shape)


def _fake_backup(r: Tensor, done: Tensor, v_next: Tensor, gamma: Tensor) -> Tensor:
    return r.new_empty((r.shape[0], gamma.shape[0]))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: _Two) -> None:
    ctx.count = len(inputs)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, d_loss: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    (gradient,) = ctx.saved_tensors
    return (None if d_loss is None else d_loss * gradient, *(None,) * (ctx.count - 1))


def _backward_expectile(ctx: Any, d_loss: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    first, *rest = _backward(ctx, d_loss)
    return rest[0], rest[1], first, *rest[2:]


_conservative = operator(
    "conservative(Tensor Q, Tensor actions, Tensor weight, float alpha, float branch_weight) "
    "-> (Tensor, Tensor)",
    _plain_conservative,
    fast=_fast_conservative,
    fake=_fake_of_q,
)
_expectile = operator(
    "expectile(Tensor Q, Tensor actions, Tensor V, Tensor weight, float tau, float branch_weight) "
    "-> (Tensor, Tensor)",
    _plain_expectile,
    fast=_fast_expectile,
    fake=_fake_expectile,
)
_backup = operator(
    "expectile_backup(Tensor r, Tensor done, Tensor v_next, Tensor gamma) -> Tensor",
    _plain_backup,
    fast=_fast_backup,
    fake=_fake_backup,
)
_entropy = operator(
    "entropy_term(Tensor Q, Tensor weight, float strength, float T, float branch_weight) "
    "-> (Tensor, Tensor)",
    _plain_entropy,
    fast=_fast_entropy,
    fake=_fake_of_q,
)
torch.library.register_autograd("trueup::conservative", _backward, setup_context=_keep)
torch.library.register_autograd("trueup::entropy_term", _backward, setup_context=_keep)
torch.library.register_autograd("trueup::expectile", _backward_expectile, setup_context=_keep)
