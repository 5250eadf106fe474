"""The equations of the distributional agent in torch, as a user would write them."""

from __future__ import annotations

import torch
from torch import Tensor

from trueup.kernels.torch.dqn import scan

Result = tuple[Tensor, ...]


def layer_norm_backward(
    d_out: Tensor, xhat: Tensor, rstd: Tensor, gamma: Tensor, *_: Tensor
) -> Result:
    """The gradients of LayerNorm's input, gain and bias."""
    g = d_out * gamma
    projection = (g * xhat).mean(1, keepdim=True)
    dy = rstd[:, None] * (g - g.mean(1, keepdim=True) - xhat * projection)
    return dy, (d_out * xhat).sum(0), d_out.sum(0)


def c51_loss(
    logits: Tensor, p_next: Tensor, support: Tensor, next_support: Tensor, returns: Tensor,
    discount: Tensor, weight: Tensor, shift: Tensor, next_shift: Tensor, *_: Tensor,
) -> Result:  # fmt: skip
    """C51 on evenly spaced, shifted atoms: loss, gradients and flags."""
    B, _, n = logits.shape
    number = torch.arange(n, device=logits.device)
    first, step = support[..., :1] + shift[..., None], support[..., 2:]
    after = next_support[..., :1] + next_shift[..., None] + number * next_support[..., 2:]
    place = (returns[..., None] + discount[..., None] * after - first) / step
    inside = place.clamp(0, n - 1)
    cell = inside.floor().clamp(max=n - 2)
    share, low = inside - cell, cell.long()
    mass = torch.zeros_like(p_next).scatter_add(-1, low, p_next * (1 - share))
    mass = mass.scatter_add(-1, low + 1, p_next * share)
    log_p = torch.log_softmax(logits, -1)
    omega = (weight / (4 * B))[:, None, None]
    within = torch.where((place > 0) & (place < n - 1), p_next, 0)
    d_shift = (within * log_p.diff(dim=-1).gather(-1, low)).sum(-1) / step[..., 0]
    loss = -(mass * log_p).sum(-1)
    return loss, omega * (log_p.exp() - mass), d_shift, torch.zeros_like(loss, dtype=torch.int32)


def iqn_loss(
    theta: Tensor, target: Tensor, tau: Tensor, weight: Tensor, *rest: Tensor | float
) -> Result:
    """The quantile Huber loss and its gradient."""
    kappa = rest[-1]
    u = target[..., None, :] - theta[..., None]
    inner = u.clamp(-kappa, kappa)
    level = torch.where(u < 0, 1 - tau[:, None], tau[:, None]) / kappa
    loss = (level * inner.abs() * (u.abs() - inner.abs() / 2)).mean(-1).sum(-1)
    return loss, -(weight / weight.shape[0])[:, None, None] * (level * inner).mean(-1)


def grn_forward(
    x: Tensor, W_a: Tensor, b_a: Tensor, W_b: Tensor, b_b: Tensor, gamma: Tensor, beta: Tensor,
    *_: Tensor,
) -> Result:  # fmt: skip
    """The gated residual network with what its backward pass reads."""
    e = torch.nn.functional.elu(torch.addmm(b_a, x, W_a.T))
    u = torch.addmm(b_b, e, W_b.T)
    value, gate = u.chunk(2, 1)
    s = torch.sigmoid(gate)
    y = value * s + x
    variance, mean = torch.var_mean(y, 1, correction=0, keepdim=True)
    rstd = torch.rsqrt(variance + 1e-5)
    xhat = (y - mean) * rstd
    return gamma * xhat + beta, e, u, s, xhat, rstd[:, 0]


def grn_backward(
    d_out: Tensor, x: Tensor, W_a: Tensor, W_b: Tensor, gamma: Tensor, e: Tensor, u: Tensor,
    s: Tensor, xhat: Tensor, rstd: Tensor, *_: Tensor,
) -> Result:  # fmt: skip
    """The gradients of the gated residual network."""
    dy, dgamma, dbeta = layer_norm_backward(d_out, xhat, rstd, gamma)
    dv = dy * s
    du = torch.cat([dv, dv * u.chunk(2, 1)[0] * (1 - s)], 1)
    da = (du @ W_b) * torch.where(e > 0, 1, e + 1)
    return torch.addmm(dy, da, W_a), da.T @ x, da.sum(0), du.T @ e, du.sum(0), dgamma, dbeta


def _gate(w: Tensor, gb: Tensor, D: int, sigma: float) -> tuple[Tensor, Tensor]:
    """Give each feature's gate (B, D), and which group has it (6, D)."""
    at = torch.arange(D, device=w.device)
    member = ((at >= gb[:-1, None]) & (at < gb[1:, None])).to(w.dtype)
    return (w * sigma) @ member + (1 - member.sum(0)), member


def vsn_forward(x: Tensor, W: Tensor, b: Tensor, gb: Tensor, sigma: float, *_: Tensor) -> Result:
    """Variable selection over six groups."""
    w = torch.softmax(torch.addmm(b, x, W.T), 1)
    return x * _gate(w, gb, x.shape[1], sigma)[0], w


def vsn_backward(
    d_out: Tensor, x: Tensor, W: Tensor, w: Tensor, gb: Tensor, sigma: float, *_: Tensor
) -> Result:
    """The gradients of variable selection."""
    gate, member = _gate(w, gb, x.shape[1], sigma)
    dw = sigma * ((d_out * x) @ member.T)
    dlogit = w * (dw - (w * dw).sum(1, keepdim=True))
    return torch.addmm(d_out * gate, dlogit, W), dlogit.T @ x, dlogit.sum(0)


def selective_scan_forward(
    x: Tensor, dt_raw: Tensor, dt_bias: Tensor, A_log: Tensor, Bm: Tensor, Cm: Tensor, D: Tensor,
    dur: Tensor, *_: Tensor,
) -> Result:  # fmt: skip
    """The selective scan in chunks of 64 steps."""
    return (scan._plain(x, dt_raw, dt_bias, A_log, Bm, Cm, D, dur),)


def selective_scan_backward(
    dy: Tensor, x: Tensor, dt_raw: Tensor, dt_bias: Tensor, A_log: Tensor, Bm: Tensor, Cm: Tensor,
    D: Tensor, dur: Tensor, *_: Tensor,
) -> Result:  # fmt: skip
    """The gradients of the selective scan, by four scans in chunks of 64 steps."""
    return scan._plain_backward(dy, x, dt_raw, dt_bias, A_log, Bm, Cm, D, dur)


def grad_norms(g: Tensor, slices: Tensor, norms: Tensor) -> Result:
    """Eight norms; slices are those that `_norms` makes."""
    half = g.shape[1] // 2
    return (torch.stack([g[:, :half].norm(dim=1), g[:, half:].norm(dim=1)], 1).flatten(),)


def sum_tree_update(tree: Tensor, index: Tensor, leaf: Tensor) -> Result:
    """Write leaves, of indices that differ, in place, and add up their ancestors by levels."""
    node = tree.shape[0] // 2 + index.long()
    tree[node] = leaf
    for _ in range((tree.shape[0] // 2).bit_length() - 1):
        node = node // 2
        tree[node] = tree[2 * node] + tree[2 * node + 1]
    return (tree,)


def sum_tree_sample(tree: Tensor, u: Tensor, *_: Tensor) -> Result:
    """Draw a leaf from each stratum, level by level."""
    leaves, total = tree.shape[0] // 2, tree[1]
    v = (torch.arange(u.shape[0], device=u.device) + u) * total / u.shape[0]
    node = torch.ones_like(u, dtype=torch.long)
    for _ in range(leaves.bit_length() - 1):
        left = tree[2 * node]
        right = v >= left
        node, v = 2 * node + right, torch.where(right, v - left, v)
    return (node - leaves).int(), tree[node] / total
