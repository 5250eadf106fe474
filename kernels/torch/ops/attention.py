"""Eq. 13-14 as a differentiable operator: unnormalised linear attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.registry import Refused, launch, one_of, operator, wide

READINGS = ("post", "pre")
FORMS = ("auto", "chunk", "recurrent")
SHORT = 16
"""Tokens up to which the recurrent kernel is taken: a tensor core's tile has 16 rows, and that of
the chunk kernel is then mostly padding, while M is read and written once by either."""
_CHUNK = 64  # tokens whose scores are formed at once


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    M_0: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    reading: str = "post",
    form: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Write and read a linear memory token by token: Nested Learning, Eq. 13-14.

        M_t = M_{t-1} + v_t k_t^T,    y_t = M_t q_t      (`pre`: y_t = M_{t-1} q_t)
    Shapes: q, k (N, T, d_k); v, y (N, T, d_v); M_0, M_T (N, d_v, d_k), zero if None; mask (N, T),
    false where a token reads but does not write. Returns y in v's dtype, and M_T in float32 or
    wider. `form` chooses between two kernels of the same values: `chunk` on tensor cores, or
    `recurrent`, token by token in float32 (`post` alone); `auto` takes that one up to SHORT
    tokens. Plain torch works in chunks. Differentiable in q, k, v and M_0, twice as well. Raises
    ValueError for shapes that do not fit and for another reading or form.
    """
    one_of("reading", reading, READINGS)
    one_of("form", form, FORMS)
    if q.ndim != 3 or q.shape != k.shape or v.shape[:2] != q.shape[:2]:
        raise ValueError(
            f"linear_attention: got q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}, "
            "expected (N, T, d_k), (N, T, d_k), (N, T, d_v)"
        )
    if mask is not None and mask.shape != q.shape[:2]:
        raise ValueError(f"linear_attention: got mask {tuple(mask.shape)}, expected (N, T)")
    if mask is not None:
        writes = mask.bool().unsqueeze(-1)
        k, v = torch.where(writes, k, 0), torch.where(writes, v, 0)
    if M_0 is None:
        M_0 = wide(v).new_zeros(q.shape[0], v.shape[2], k.shape[2])
    elif M_0.shape != (q.shape[0], v.shape[2], k.shape[2]):
        raise ValueError(f"linear_attention: got M_0 {tuple(M_0.shape)}, expected (N, d_v, d_k)")
    y, M = _attention(q, k, v, M_0, reading == "post", form)
    return y, M


def _plain(
    q: Tensor, k: Tensor, v: Tensor, M_0: Tensor, post: bool, form: str
) -> tuple[Tensor, Tensor]:
    dtype, M = v.dtype, wide(M_0)
    q, k, v = (item.to(M.dtype) for item in (q, k, v))
    read = []
    for start in range(0, q.shape[1], _CHUNK):
        part = slice(start, start + _CHUNK)
        queries, keys, values = q[:, part], k[:, part], v[:, part]
        scores = (queries @ keys.mT).tril(0 if post else -1)
        read.append(queries @ M.mT + scores @ values)
        M = M + values.mT @ keys
    y = torch.cat(read, 1) if read else torch.empty_like(v)
    return y.to(dtype), M.clone() if M is M_0 else M


def _fast(
    q: Tensor, k: Tensor, v: Tensor, M_0: Tensor, post: bool, form: str
) -> tuple[Tensor, Tensor] | Refused:
    contract = _contract(v.dtype, q.shape[1], post, form)
    if isinstance(contract, Refused):
        return contract
    y, M = _fake(q, k, v, M_0, post, form)
    given = (item.contiguous() for item in (q, k, v, wide(M_0)))
    writes = torch.ones(q.shape[:2], dtype=torch.uint8, device=q.device)
    refused = launch(contract, *given, writes, y, M)
    return (y, M) if refused is None else refused


def _contract(dtype: torch.dtype, tokens: int, post: bool, form: str) -> str | Refused:
    """Name the kernel of a call, or say why there is none."""
    narrow = dtype is torch.bfloat16
    if form == "recurrent" and (narrow or not post):
        return Refused("the recurrent kernel is for float32 and the reading post")
    if narrow and not post:
        return Refused("there is no kernel for the reading pre in bfloat16")
    if narrow:
        return "nl.linear_attention_bf16"
    if not post:
        return "nl.linear_attention_pre"
    short = form == "recurrent" or (form == "auto" and tokens <= SHORT)
    return "nl.linear_attention_recurrent" if short else "nl.linear_attention"


def _fake(
    q: Tensor, k: Tensor, v: Tensor, M_0: Tensor, post: bool, form: str
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(v, memory_format=torch.contiguous_format), torch.empty_like(
        wide(M_0), memory_format=torch.contiguous_format
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, M_0, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, M_0)


def _backward(ctx: Any, dy: Tensor, dM: Tensor) -> tuple[Tensor | None, ...]:
    """Differentiate by the operator itself: three linear attentions, two of them from the end.

    dq_t = M_t^T dy_t. With R_s = dM + sum_{t>=s} dy_t q_t^T (`pre`: t > s), dv_s = R_s k_s,
    dk_s = R_s^T v_s, and dM_0 is R before the first token.
    """
    q, k, v, M_0 = ctx.saved_tensors
    dy, dM = dy.to(v.dtype), dM.to(wide(M_0).dtype)
    dq, _ = _attention(dy, v, k, M_0.mT, *ctx.options)
    back_q, back_k, back_v, back_dy = (item.flip(1) for item in (q, k, v, dy))
    dv, dM_0 = _attention(back_k, back_q, back_dy, dM, *ctx.options)
    dk, _ = _attention(back_v, back_dy, back_q, dM.mT, *ctx.options)
    dq, dk = dq.to(q.dtype), dk.flip(1).to(k.dtype)
    return dq, dk, dv.flip(1).to(v.dtype), dM_0.to(M_0.dtype), None, None


_attention = operator(
    "linear_attention(Tensor q, Tensor k, Tensor v, Tensor M_0, bool post, str form) "
    "-> (Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
torch.library.register_autograd("trueup::linear_attention", _backward, setup_context=_keep)
