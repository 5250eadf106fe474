"""What is done branch by branch: exploration, returns, budgets, and the magnitude's input."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, numbered, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_LEAST_RMS, _LEAST_NORM = (torch.tensor(least).item() for least in (1e-6, 1e-12))
_Two = tuple[Tensor, Tensor]


def epsilon_greedy(greedy: Tensor, random_action: Tensor, u: Tensor, epsilon: Tensor) -> Tensor:
    """Explore each branch on its own: random_action where u < epsilon, else greedy.

    Shapes: greedy, random_action (B, 4), whole numbers; u (B, 4) in [0, 1), a draw for each branch;
    epsilon (1,), which is not read by the host. Returns (B, 4), int32. Raises ValueError for shapes
    that do not fit.
    """
    ranked("epsilon_greedy", "greedy", greedy, "B 4")
    rows = (greedy.shape[0], 4)
    expect(
        "epsilon_greedy",
        greedy=(greedy, rows),
        random_action=(random_action, rows),
        u=(u, rows),
        epsilon=(epsilon, (1,)),
    )
    with torch.no_grad():
        draw, rate = alike(u, epsilon)
        actions: Tensor = _explore(numbered(greedy), numbered(random_action), draw, rate)
    return actions


def nstep_return(rewards: Tensor, done: Tensor, gamma: Tensor, aversion: float = 1.5) -> _Two:
    """Add up n rewards for every branch, and give the discount of what follows.

        R_k = sum_i gamma_k^i f(r_i) to the first terminal step, f(r) = aversion r for losses;
        D_k = gamma_k^n, 0 after a terminal step: a target is R_k + D_k Q'
    Shapes: rewards, done (B, n_steps), done 1 or true at a terminal step; gamma (4,). Returns
    (returns, discount), each (B, 4). Not differentiable. Raises ValueError for shapes that do not
    fit.
    """
    ranked("nstep_return", "rewards", rewards, "B n_steps")
    expect("nstep_return", done=(done, rewards.shape), gamma=(gamma, (4,)))
    with torch.no_grad():
        returns, discount = _return(*alike(rewards, done.to(rewards.dtype), gamma), aversion)
    return returns, discount


def branch_budgets(norm: Tensor, reference: Tensor, frac: Tensor, lo: Tensor, hi: Tensor) -> _Two:
    """Give each branch, and the trunk, its budget of every auxiliary component.

        beta_ck = clip(frac_c reference_k / max(norm_ck, 1e-12), lo_c, hi_c);  trunk_c their mean
    Shapes: norm (c, 4), gradient norms of the components; reference (4,); frac, lo, hi (c,).
    Returns beta (c, 4) and trunk (c,), which `saxpy_correction_` takes row by row. Four equal
    budgets give the trunk the same bits. Raises ValueError for shapes that do not fit.
    """
    ranked("branch_budgets", "norm", norm, "c 4")
    c = norm.shape[:1]
    expect(
        "branch_budgets",
        norm=(norm, (*c, 4)),
        reference=(reference, (4,)),
        frac=(frac, c),
        lo=(lo, c),
        hi=(hi, c),
    )
    with torch.no_grad():
        beta, trunk = _budgets(*alike(norm, reference, frac, lo, hi))
    return beta, trunk


def mag_concat(h: Tensor, q_dir: Tensor, h_rms: Tensor, c_max: float = 100.0) -> _Two:
    """Append the direction's values to the features, scaled to their size.

        [h, c q_dir],  c = min(h_rms / max(rms(q_dir), 1e-6), c_max), the rms over the whole block
    Shapes: h (B, D); q_dir (B, 4); h_rms (1,), the running rms of h. Returns (B, D + 4) and c (1,),
    which is a constant in the gradient. Differentiable in h and q_dir, once. Raises ValueError for
    shapes that do not fit.
    """
    ranked("mag_concat", "h", h, "B D")
    expect("mag_concat", q_dir=(q_dir, (h.shape[0], 4)), h_rms=(h_rms, (1,)))
    joined, c = _concat(*alike(h, q_dir, h_rms.detach()), c_max)
    return joined, c


def _plain_explore(greedy: Tensor, random_action: Tensor, u: Tensor, epsilon: Tensor) -> Tensor:
    return torch.where(u < epsilon, random_action, greedy)


def _fast_explore(
    greedy: Tensor, random_action: Tensor, u: Tensor, epsilon: Tensor
) -> Tensor | Refused:
    actions = _fake_explore(greedy)
    given = contiguous(greedy, random_action, u, epsilon)
    refused = launch("dqn.epsilon_greedy", *given, actions)
    return actions if refused is None else refused


def _fake_explore(greedy: Tensor, *_: Tensor) -> Tensor:
    return greedy.new_empty(greedy.shape)


def _plain_return(rewards: Tensor, done: Tensor, gamma: Tensor, aversion: float) -> _Two:
    felt = torch.where(rewards >= 0, rewards, aversion * rewards)
    total = rewards.new_zeros((rewards.shape[0], gamma.shape[0]))
    alive, power = torch.ones_like(total), torch.ones_like(total)
    for reward, over in zip(felt.split(1, 1), done.split(1, 1), strict=True):
        total = total + alive * (power * reward)
        alive, power = alive * (1 - over), power * gamma
    return total, power * alive


def _fast_return(rewards: Tensor, done: Tensor, gamma: Tensor, aversion: float) -> _Two | Refused:
    returns, discount = _fake_return(rewards, done, gamma)
    given = contiguous(rewards, done, gamma)
    refused = launch("dqn.nstep_return", *given, aversion, returns, discount)
    return (returns, discount) if refused is None else refused


def _fake_return(rewards: Tensor, done: Tensor, gamma: Tensor, *_: Any) -> _Two:
    shape = (rewards.shape[0], gamma.shape[0])
    return rewards.new_empty(shape), rewards.new_empty(shape)


def _plain_budgets(norm: Tensor, reference: Tensor, frac: Tensor, lo: Tensor, hi: Tensor) -> _Two:
    ratio = reference / torch.where(norm > _LEAST_NORM, norm, _LEAST_NORM)
    raw, low, high = frac.unsqueeze(1) * ratio, lo.unsqueeze(1), hi.unsqueeze(1)
    beta = torch.where(raw < low, low, torch.where(raw > high, high, raw))
    first, second, third, last = beta.unbind(1)
    return beta, (first + second + third + last) / 4


def _fast_budgets(
    norm: Tensor, reference: Tensor, frac: Tensor, lo: Tensor, hi: Tensor
) -> _Two | Refused:
    beta, trunk = _fake_budgets(norm)
    given = contiguous(norm, reference, frac, lo, hi)
    refused = launch("dqn.branch_budgets", *given, beta, trunk)
    return (beta, trunk) if refused is None else refused


def _fake_budgets(norm: Tensor, *_: Tensor) -> _Two:
    return norm.new_empty(norm.shape), norm.new_empty(norm.shape[:1])


def _scale(q_dir: Tensor, h_rms: Tensor, c_max: float) -> Tensor:
    rms = q_dir.square().mean().sqrt().clamp(min=_LEAST_RMS)
    return (h_rms / rms).clamp(max=c_max)


def _plain_concat(h: Tensor, q_dir: Tensor, h_rms: Tensor, c_max: float) -> _Two:
    c = _scale(q_dir, h_rms, c_max)
    return torch.cat([h, c * q_dir], 1), c


def _fast_concat(h: Tensor, q_dir: Tensor, h_rms: Tensor, c_max: float) -> _Two | Refused:
    joined, c = _fake_concat(h)
    refused = launch("dqn.mag_concat", *contiguous(h, q_dir, h_rms), c_max, joined, c)
    return (joined, c) if refused is None else refused


def _fake_concat(h: Tensor, *_: Any) -> _Two:
    return h.new_empty((h.shape[0], h.shape[1] + 4)), h.new_empty(1)


def _plain_concat_backward(d: Tensor, q_dir: Tensor, h_rms: Tensor, c_max: float) -> _Two:
    return d[:, :-4].clone(), _scale(q_dir, h_rms, c_max) * d[:, -4:]


def _fast_concat_backward(d: Tensor, q_dir: Tensor, h_rms: Tensor, c_max: float) -> _Two | Refused:
    d_h, d_q = _fake_concat_backward(d, q_dir)
    given = contiguous(d, q_dir, h_rms)
    refused = launch("dqn.mag_concat_backward", *given, c_max, d_h, d_q)
    return (d_h, d_q) if refused is None else refused


def _fake_concat_backward(d: Tensor, q_dir: Tensor, *_: Any) -> _Two:
    return d.new_empty((d.shape[0], d.shape[1] - 4)), q_dir.new_empty(q_dir.shape)


def _keep_concat(ctx: Any, inputs: tuple[Any, ...], output: _Two) -> None:
    _, q_dir, h_rms, ctx.c_max = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q_dir, h_rms)


def _backward_concat(ctx: Any, d: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if d is None:
        return (None,) * 4
    return *_concat_backward(d, *ctx.saved_tensors, ctx.c_max), None, None


_explore = operator(
    "epsilon_greedy(Tensor greedy, Tensor random_action, Tensor u, Tensor epsilon) -> Tensor",
    _plain_explore,
    fast=_fast_explore,
    fake=_fake_explore,
)
_return = operator(
    "nstep_return(Tensor rewards, Tensor done, Tensor gamma, float aversion) -> (Tensor, Tensor)",
    _plain_return,
    fast=_fast_return,
    fake=_fake_return,
)
_budgets = operator(
    "branch_budgets(Tensor norm, Tensor reference, Tensor frac, Tensor lo, Tensor hi) "
    "-> (Tensor, Tensor)",
    _plain_budgets,
    fast=_fast_budgets,
    fake=_fake_budgets,
)
_concat = operator(
    "mag_concat(Tensor h, Tensor q_dir, Tensor h_rms, float c_max) -> (Tensor, Tensor)",
    _plain_concat,
    fast=_fast_concat,
    fake=_fake_concat,
)
_concat_backward = operator(
    "mag_concat_backward(Tensor d, Tensor q_dir, Tensor h_rms, float c_max) -> (Tensor, Tensor)",
    _plain_concat_backward,
    fast=_fast_concat_backward,
    fake=_fake_concat_backward,
)
torch.library.register_autograd("trueup::mag_concat", _backward_concat, setup_context=_keep_concat)
