"""Auxiliary heads: their two losses under one mask, their weight, and the direction they tell."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, flat, numbered, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class AuxLosses(NamedTuple):
    """What `aux_heads` gives; `total` alone is differentiable."""

    total: Tensor
    """Scalar: w_aux (mse + ce)."""
    mse: Tensor
    """Scalar: squared error of the predicted return, mean over the labelled rows."""
    ce: Tensor
    """Scalar: cross-entropy of the regime, mean over the labelled rows."""


def aux_heads(
    pred: Tensor, target: Tensor, logits: Tensor, label: Tensor, w_aux: float | Tensor = 1.0
) -> AuxLosses:
    """Give the losses of next-bar return and regime under one mask: rows with a label from 0 on.

        total = w_aux (sum_v (pred - target)^2 - sum_v log softmax(logits)_label) / max(1, rows v)
    Shapes: pred, target (B,); logits (B, K); label (B,), whole numbers below K, -1 where a row has
    none; w_aux a number, or a tensor of one element, which is not read by the host. Differentiable
    in pred and logits, once. Raises ValueError for shapes that do not fit.
    """
    ranked("aux_heads", "logits", logits, "B K")
    B = logits.shape[0]
    expect("aux_heads", pred=(pred, (B,)), target=(target, (B,)), label=(label, (B,)))
    given = *alike(pred, target.detach(), logits), numbered(label)
    if isinstance(w_aux, Tensor):
        total, mse, ce, _, _ = _losses(*given, 1.0)
        total = w_aux.detach().reshape(1) * total
    else:
        total, mse, ce, _, _ = _losses(*given, w_aux)
    return AuxLosses(total.squeeze(0), mse.squeeze(0), ce.squeeze(0))


def aux_weight(
    health: Tensor,
    sharpe_ema: Tensor,
    w_base: float = 0.1,
    sharpe_ref: float = 20.0,
    w_floor: float = 0.1,
) -> Tensor:
    """Give the weight of both auxiliary losses: less where the run does well, 0 without health.

        w_base clip(health, 0, 1) clip(1 - sharpe_ema / sharpe_ref, w_floor, 1)
    Shapes: health, sharpe_ema and the result (1,). Not differentiable. Raises ValueError for
    another shape.
    """
    expect("aux_weight", health=(health, (1,)), sharpe_ema=(sharpe_ema, (1,)))
    with torch.no_grad():
        weight: Tensor = _weight(*alike(health, sharpe_ema), w_base, sharpe_ref, w_floor)
    return weight


def aux_direction(logits: Tensor) -> Tensor:
    """Turn regime logits into a direction between -1 and 1, the signal that moves atoms.

        s = 2 p_up - 1,  p_up = sum of softmax(logits) above the middle class + half of its own
    Shapes: logits (B, K), classes from strongest down to strongest up. Returns (B,), 0 for equal
    logits. Differentiable, as often as wanted. Raises ValueError for another shape.
    """
    ranked("aux_direction", "logits", logits, "B K")
    signal: Tensor = _direction(*alike(logits))
    return signal


def _plain(pred: Tensor, target: Tensor, logits: Tensor, label: Tensor, w_aux: float) -> _Outputs:
    valid = label >= 0
    per_row = 1 / valid.sum().clamp(min=1).to(pred.dtype)
    residual = torch.where(valid, pred - target, 0)
    log_p = torch.log_softmax(logits, 1)
    hit = label.long().clamp(min=0).unsqueeze(1)
    mse = residual.square().sum() * per_row
    ce = -torch.where(valid, log_p.gather(1, hit).squeeze(1), 0).sum() * per_row
    error = torch.softmax(logits, 1) - torch.zeros_like(log_p).scatter(1, hit, 1)
    d_logits = torch.where(valid.unsqueeze(1), w_aux * per_row * error, 0)
    total = w_aux * (mse + ce)
    d_pred = 2 * w_aux * per_row * residual
    return total.view(1), mse.view(1), ce.view(1), d_pred, d_logits


def _fast(
    pred: Tensor, target: Tensor, logits: Tensor, label: Tensor, w_aux: float
) -> _Outputs | Refused:
    total, mse, ce, d_pred, d_logits = _fake(pred, target, logits)
    given = contiguous(pred, target, logits, label)
    refused = launch("dqn.aux_heads", *given, w_aux, mse, ce, total, d_pred, d_logits)
    return (total, mse, ce, d_pred, d_logits) if refused is None else refused


def _fake(pred: Tensor, target: Tensor, logits: Tensor, *_: Any) -> _Outputs:
    total, mse, ce = (pred.new_empty(1) for _ in range(3))
    return total, mse, ce, pred.new_empty(pred.shape), logits.new_empty(logits.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: _Outputs) -> None:
    _, *rest = output
    ctx.mark_non_differentiable(*rest)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*rest[2:])


def _backward(ctx: Any, d_total: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if d_total is None:
        return (None,) * 5
    d_pred, d_logits = ctx.saved_tensors
    return d_total * d_pred, None, d_total * d_logits, None, None


def _plain_weight(
    health: Tensor, sharpe_ema: Tensor, w_base: float, sharpe_ref: float, w_floor: float
) -> Tensor:
    schedule = (1 - sharpe_ema / sharpe_ref).clamp(w_floor, 1)
    return w_base * health.clamp(0, 1) * schedule


def _fast_weight(
    health: Tensor, sharpe_ema: Tensor, w_base: float, sharpe_ref: float, w_floor: float
) -> Tensor | Refused:
    weight = _fake_weight(health)
    numbers = w_base, sharpe_ref, w_floor
    refused = launch("dqn.aux_weight", *flat(health, sharpe_ema), *numbers, weight)
    return weight if refused is None else refused


def _fake_weight(health: Tensor, *_: Any) -> Tensor:
    return health.new_empty(1)


def _sides(K: int, device: torch.device) -> Tensor:
    """Give -1, 0 and 1 for the classes below, in and above the middle."""
    return torch.sign(2 * torch.arange(K, device=device) - (K - 1))


def _plain_direction(logits: Tensor) -> Tensor:
    return (torch.softmax(logits, 1) * _sides(logits.shape[1], logits.device)).sum(1)


def _fast_direction(logits: Tensor) -> Tensor | Refused:
    signal = _fake_direction(logits)
    refused = launch("dqn.aux_direction", logits.contiguous(), signal)
    return signal if refused is None else refused


def _fake_direction(logits: Tensor) -> Tensor:
    return logits.new_empty(logits.shape[:1])


def _keep_direction(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward_direction(ctx: Any, d: Tensor) -> Tensor:
    (logits,) = ctx.saved_tensors
    p, sides = torch.softmax(logits, 1), _sides(logits.shape[1], logits.device)
    return d.unsqueeze(1) * p * (sides - (p * sides).sum(1, keepdim=True))


_losses = operator(
    "aux_heads(Tensor pred, Tensor target, Tensor logits, Tensor label, float w_aux) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
_weight = operator(
    "aux_weight(Tensor health, Tensor sharpe_ema, float w_base, float sharpe_ref, float w_floor) "
    "-> Tensor",
    _plain_weight,
    fast=_fast_weight,
    fake=_fake_weight,
)
_direction = operator(
    "aux_direction(Tensor logits) -> Tensor",
    _plain_direction,
    fast=_fast_direction,
    fake=_fake_direction,
)
torch.library.register_autograd("trueup::aux_heads", _backward, setup_context=_keep)
torch.library.register_autograd(
    "trueup::aux_direction", _backward_direction, setup_context=_keep_direction
)
