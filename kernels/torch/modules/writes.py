"""Online writes of a linear memory, chunk by chunk, and what is differentiated through them.

`write.grad` says which derivatives exist; values are the same bits in all three:
    through           the memory after a write is a function of everything it was made of
    straight_through  W_c = W_{c-1} + stop(change): derivatives pass to the memory before alone
    detached          the memory after a write is a constant
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trueup.kernels.torch.ops.attention import READINGS, linear_attention
from trueup.kernels.torch.ops.registry import at_least, one_of, wide
from trueup.kernels.torch.ops.writes import online_write

MODES = ("through", "straight_through", "detached")
RULES = {"dot": 0.0, "l2": 1.0, "dgd": 2.0}
"""Inner rules, and how strongly each pulls the memory's own reading back (see `online_write`)."""
Watch = Callable[[Tensor], None]


def linear_memory(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    M_0: Tensor,
    eta: Tensor | float | None = None,
    *,
    rule: str = "attention",
    chunk: int = 64,
    write_grad: str = "straight_through",
    read: str | None = None,
    mask: Tensor | None = None,
    checkpoint_every: int = 0,
    watch: Watch | None = None,
) -> tuple[Tensor, Tensor]:
    """Read and write a linear memory: y, and the memory after the last token.

    Rules: `attention`, Eq. 13-14, written token by token (`chunk` and `eta` play no part); with
    one inner step for each chunk, at the chunk-start memory, `dot` (Eq. 15 with eta), `l2`
    (section 5: a gradient step on 1/2 |M K - V|^2) or `dgd` (Eq. 28 with u = M k - v).
    Shapes: q, k (N, T, d_k); v, y (N, T, d_v); M_0 (N, d_v, d_k); eta 0-d or a number; mask (N, T),
    false where a token does not write. y is in v's dtype, the memory in float32 or wider: it is
    not rounded to 16 bits between writes. `read`: `post`, a token reads what its own chunk wrote
    (default of `attention`), or `pre` (default of the others). `write_grad` is one of MODES.
    `checkpoint_every` n > 0 keeps the memory of every n-th chunk alone for the backward pass and
    computes the others again. `watch` is called with each tensor that carries an earlier memory
    to later tokens. Raises ValueError for other shapes and options that do not exist.
    """
    one_of("write_grad", write_grad, MODES)
    one_of("rule", rule, ("attention", *RULES))
    one_of("read", read or "pre", READINGS)
    at_least("chunk", chunk, 1)
    at_least("checkpoint_every", checkpoint_every, 0)
    _check_shapes(q, k, v, M_0, mask)
    if mask is not None:
        writes = mask.bool().unsqueeze(-1)
        k, v = torch.where(writes, k, 0), torch.where(writes, v, 0)
    if rule == "attention":
        return _attention(q, k, v, M_0, write_grad, read or "post", watch)
    if eta is None:
        raise ValueError(f"rule {rule} needs eta")
    eta = torch.as_tensor(eta, device=v.device)
    run = partial(_chunks, chunk=chunk, pull=RULES[rule], write_grad=write_grad, watch=watch)
    run = partial(run, post=read == "post")
    M = wide(M_0)
    if not checkpoint_every:
        return run(M, q, k, v, eta)
    outputs = []
    for part in zip(*(x.split(chunk * checkpoint_every, 1) for x in (q, k, v)), strict=True):
        y, M = checkpoint(run, M, *part, eta, use_reentrant=False, preserve_rng_state=False)
        outputs.append(y)
    return torch.cat(outputs, 1), M


def _check_shapes(q: Tensor, k: Tensor, v: Tensor, M_0: Tensor, mask: Tensor | None) -> None:
    fits = q.ndim == v.ndim == 3 and k.shape == q.shape and v.shape[:2] == q.shape[:2]
    fits = fits and M_0.shape == (q.shape[0], v.shape[2], q.shape[2])
    if not fits or not (mask is None or mask.shape == q.shape[:2]):
        got = {"q": q, "k": k, "v": v, "M_0": M_0} | ({} if mask is None else {"mask": mask})
        raise ValueError(
            "linear_memory: got "
            + ", ".join(f"{name} {tuple(item.shape)}" for name, item in got.items())
            + ", expected (N, T, d_k), (N, T, d_k), (N, T, d_v), (N, d_v, d_k)"
            + ("" if mask is None else ", (N, T)")
        )


def _chunks(
    M: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    eta: Tensor,
    *,
    chunk: int,
    pull: float,
    write_grad: str,
    post: bool,
    watch: Watch | None,
) -> tuple[Tensor, Tensor]:
    """Read and write chunk by chunk."""
    outputs = []
    for queries, keys, values in zip(*(x.split(chunk, 1) for x in (q, k, v)), strict=True):
        written = _written(M, keys, values, eta, pull, write_grad)
        outputs.append((queries.to(M.dtype) @ (written if post else M).mT).to(values.dtype))
        M = written
        if watch is not None:
            watch(M)
    return torch.cat(outputs, 1), M


def _written(M: Tensor, k: Tensor, v: Tensor, eta: Tensor, pull: float, write_grad: str) -> Tensor:
    written = online_write(M, k, v, eta, pull=pull)
    if write_grad == "through":
        return written
    if write_grad == "detached":
        return written.detach()
    return written.detach() + (M - M.detach())  # adds 0: the value is that of `through`


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    M_0: Tensor,
    write_grad: str,
    read: str,
    watch: Watch | None,
) -> tuple[Tensor, Tensor]:
    if write_grad != "through":
        k, v = k.detach(), v.detach()
    start = M_0.detach() if write_grad == "detached" else M_0 + 0
    if watch is not None:
        watch(start)
    y, M = linear_attention(q, k, v, start, reading=read)
    if write_grad == "detached" and read == "pre":
        # The first token reads M_0 itself, before any write.
        first = q[:, :1] @ (M_0 - M_0.detach()).mT
        y = torch.cat([y[:, :1] + first, y[:, 1:]], 1)
    return y, M
