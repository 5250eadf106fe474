"""Running averages of what the variable selection looks at, and of the scan's retention."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import expect, ranked
from trueup.kernels.torch.ops.registry import Refused, in_place, launch, nothing, operator

_ALPHA = torch.tensor(0.05).item()  # the float32 of the kernels


def attention_focus_(w: Tensor, retention: Tensor, ema: Tensor, count: Tensor) -> None:
    """Average the weights of six feature groups and the scan's retention, in place.

        observed = [mean_b w, retention];  ema <- 0.95 ema + 0.05 observed, or observed at first
    Shapes: w (B, 6); retention (1,); ema (7,), of one dtype; count (1,), int32, which is raised: 0
    means that nothing was observed. Raises ValueError for shapes that do not fit.
    """
    _check("attention_focus_", w, retention, ema, count, 7)
    _focus(w, retention, ema, count)


def attention_summary_(w: Tensor, retention: Tensor, ema: Tensor, count: Tensor) -> None:
    """Average the largest mean weight, the entropy of the mean weights, and retention, in place.

        wbar = mean_b w;  observed = [max wbar, -sum wbar ln wbar / ln 6, retention]
    Shapes: w (B, 6); retention (1,); ema (3,), of one dtype; count (1,), int32, as in
    `attention_focus_`. Raises ValueError for shapes that do not fit.
    """
    _check("attention_summary_", w, retention, ema, count, 3)
    _summary(w, retention, ema, count)


def _check(name: str, w: Tensor, retention: Tensor, ema: Tensor, count: Tensor, slots: int) -> None:
    in_place(name, ema)
    ranked(name, "w", w, "B 6")
    expect(
        name,
        w=(w, (w.shape[0], 6)),
        retention=(retention, (1,)),
        ema=(ema, (slots,)),
        count=(count, (1,)),
    )


def _averaged(observed: Tensor, ema: Tensor, count: Tensor) -> None:
    blended = (1 - _ALPHA) * ema + _ALPHA * observed
    ema.copy_(torch.where(count > 0, blended, observed))
    count.add_(1)


def _plain(w: Tensor, retention: Tensor, ema: Tensor, count: Tensor) -> None:
    _averaged(torch.cat([w.to(ema.dtype).mean(0), retention.to(ema.dtype)]), ema, count)


def _plain_summary(w: Tensor, retention: Tensor, ema: Tensor, count: Tensor) -> None:
    mean = w.to(ema.dtype).mean(0)
    entropy = torch.special.entr(mean).sum() / math.log(6)
    _averaged(torch.cat([mean.max().view(1), entropy.view(1), retention.to(ema.dtype)]), ema, count)


def _fast(w: Tensor, retention: Tensor, ema: Tensor, count: Tensor) -> Refused | None:
    return launch("dqn.attention_focus", w.contiguous(), retention, ema, count)


def _fast_summary(w: Tensor, retention: Tensor, ema: Tensor, count: Tensor) -> Refused | None:
    return launch("dqn.attention_summary", w.contiguous(), retention, ema, count)


_WRITTEN = "(Tensor w, Tensor retention, Tensor(a!) ema, Tensor(b!) count) -> ()"
_focus = operator(f"attention_focus_{_WRITTEN}", _plain, fast=_fast, fake=nothing)
_summary = operator(
    f"attention_summary_{_WRITTEN}", _plain_summary, fast=_fast_summary, fake=nothing
)
