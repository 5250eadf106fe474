"""Selective scan with bar durations, forward and backward: Mamba-2, arXiv:2405.21060."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_CHUNK = 64  # steps whose pairs are formed at once


def selective_scan(
    x: Tensor,
    dt_raw: Tensor,
    dt_bias: Tensor,
    A_log: Tensor,
    Bm: Tensor,
    Cm: Tensor,
    D: Tensor,
    dur: Tensor | None = None,
) -> Tensor:
    """Scan a state over time: Mamba-2, arXiv:2405.21060, with the duration of each bar.

        Delta = softplus(dt_raw + dt_bias) dur;  h_t = exp(-Delta_t exp(A_log)) h_{t-1}
        + Delta_t x_t B_t^T from h = 0;  y_t = h_t C_t + D x_t
    Shapes: x, y (B, T, H, P); dt_raw (B, T, H); dt_bias, A_log, D (H,); Bm, Cm (B, T, M), shared
    by the heads; dur (B, T), positive, 1 if None. Differentiable in all eight, once. Raises
    ValueError for shapes that do not fit.
    """
    ranked("selective_scan", "x", x, "B T H P")
    ranked("selective_scan", "Bm", Bm, "B T M")
    B, T, H, _ = x.shape
    expect(
        "selective_scan",
        dt_raw=(dt_raw, (B, T, H)),
        dt_bias=(dt_bias, (H,)),
        A_log=(A_log, (H,)),
        Bm=(Bm, (B, T, Bm.shape[2])),
        Cm=(Cm, Bm.shape),
        D=(D, (H,)),
        dur=(dur, (B, T)),
    )
    lasting = x.new_ones(B, T) if dur is None else dur
    y: Tensor = _forward(*alike(x, dt_raw, dt_bias, A_log, Bm, Cm, D, lasting))
    return y


def _decaying(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
    """Give out_t = sum_{s<=t} exp(l_{s+1} + ... + l_t) (q_t . k_s) v_s, in chunks.

    Shapes: q, k (B, H, T, d); v (B, H, T, e); log_decay (B, H, T), never positive.
    """
    state = v.new_zeros(*v.shape[:2], q.shape[-1], v.shape[-1])
    parts = []
    for start in range(0, v.shape[2], _CHUNK):
        part = slice(start, start + _CHUNK)
        keys, values, decay = k[:, :, part], v[:, :, part], log_decay[:, :, part]
        pairs = _segments(decay)
        scores = (q[:, :, part] @ keys.mT) * pairs
        since = decay.cumsum(-1).exp().unsqueeze(-1)
        parts.append(scores @ values + since * (q[:, :, part] @ state))
        left = pairs[..., -1, :].unsqueeze(-1)
        state = since[..., -1:, :] * state + (left * keys).mT @ values
    return torch.cat(parts, 2)


def _segments(decay: Tensor) -> Tensor:
    """Give exp(l_{s+1} + ... + l_t) at row t, column s; 0 above the diagonal.

    Each sum is made of its own terms: a difference of two long sums would cancel.
    """
    size = decay.shape[-1]
    below = torch.ones(size, size, dtype=torch.bool, device=decay.device).tril(-1)
    sums = torch.where(below, decay.unsqueeze(-1), 0).cumsum(-2)
    return sums.exp().tril()


def _softplus(z: Tensor) -> Tensor:
    return z.clamp(min=0) + torch.log1p(torch.exp(-z.abs()))


def _of_heads(keys: Tensor, H: int) -> Tensor:
    return keys.unsqueeze(1).expand(-1, H, -1, -1)


def _plain(
    x: Tensor,
    dt_raw: Tensor,
    dt_bias: Tensor,
    A_log: Tensor,
    Bm: Tensor,
    Cm: Tensor,
    D: Tensor,
    dur: Tensor,
) -> Tensor:
    delta, A = _softplus(dt_raw + dt_bias) * dur.unsqueeze(-1), -torch.exp(A_log)
    H = x.shape[2]
    write = (delta.unsqueeze(-1) * x).transpose(1, 2)
    read = _decaying(_of_heads(Cm, H), _of_heads(Bm, H), write, (delta * A).transpose(1, 2))
    return (read.transpose(1, 2) + D.unsqueeze(-1) * x).contiguous()


def _plain_backward(
    dy: Tensor,
    x: Tensor,
    dt_raw: Tensor,
    dt_bias: Tensor,
    A_log: Tensor,
    Bm: Tensor,
    Cm: Tensor,
    D: Tensor,
    dur: Tensor,
) -> tuple[Tensor, ...]:
    """Take the gradient back by two scans forward in time and two from the end.

    With G_t = dL/dh_t, what da_t multiplies is F_t = a_t G_t . h_{t-1} = sum_{s>=t} (dy_s . C_s h_s
    - Delta_s x_s . G_s B_s): no state is kept.
    """
    z, A, H = dt_raw + dt_bias, -torch.exp(A_log), x.shape[2]
    softplus = _softplus(z)
    delta = softplus * dur.unsqueeze(-1)
    write, into = (delta.unsqueeze(-1) * x).transpose(1, 2), dy.transpose(1, 2)
    decay = (delta * A).transpose(1, 2)
    B_keys, C_keys = _of_heads(Bm, H), _of_heads(Cm, H)
    seen = _decaying(C_keys, B_keys, write, decay).transpose(1, 2)
    dCm = _decaying(into, write, B_keys, decay).sum(1)
    # From the end: what entered step t + 1 decayed by a_{t+1}.
    later = torch.cat([decay[..., 1:], torch.zeros_like(decay[..., :1])], -1).flip(-1)
    back = [item.flip(2) for item in (B_keys, C_keys, write, into)]
    kept = _decaying(back[0], back[1], back[3], later).flip(2).transpose(1, 2)
    dBm = _decaying(back[2], back[3], back[1], later).flip(2).sum(1)
    inner = (x * kept).sum(-1)
    flow = ((dy * seen).sum(-1) - delta * inner).flip(1).cumsum(1).flip(1)
    d_size = inner + flow * A
    ddt_raw = d_size * dur.unsqueeze(-1) * torch.sigmoid(z)
    return (
        (delta.unsqueeze(-1) * kept + D.unsqueeze(-1) * dy).contiguous(),
        ddt_raw.contiguous(),
        ddt_raw.sum((0, 1)),
        (flow * delta).sum((0, 1)) * A,
        dBm.contiguous(),
        dCm.contiguous(),
        (dy * x).sum((0, 1, 3)),
        (d_size * softplus).sum(-1).contiguous(),
    )


def _fast(*given: Tensor) -> Tensor | Refused:
    y = _fake(*given)
    refused = launch("dqn.selective_scan_forward", *contiguous(*given), y)
    return y if refused is None else refused


def _fast_backward(dy: Tensor, *given: Tensor) -> tuple[Tensor, ...] | Refused:
    grads = _fake_backward(dy, *given)
    refused = launch("dqn.selective_scan_backward", *contiguous(dy, *given), *grads)
    return grads if refused is None else refused


def _fake(x: Tensor, *_: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _fake_backward(dy: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
    return tuple(item.new_empty(item.shape) for item in given)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, dy: Tensor) -> tuple[Tensor, ...]:
    grads: tuple[Tensor, ...] = _backwards(dy, *ctx.saved_tensors)
    return grads


_INPUTS = (
    "Tensor x, Tensor dt_raw, Tensor dt_bias, Tensor A_log, Tensor Bm, Tensor Cm, Tensor D, "
    "Tensor dur"
)
_forward = operator(f"selective_scan({_INPUTS}) -> Tensor", _plain, fast=_fast, fake=_fake)
_backwards = operator(
    f"selective_scan_backward(Tensor dy, {_INPUTS}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake_backward,
)
torch.library.register_autograd("trueup::selective_scan", _backward, setup_context=_keep)
