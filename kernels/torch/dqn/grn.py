"""The gated residual network, forward and backward: two linears, ELU, GLU, residual, layer norm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, one_of, operator

EPS = 1e-5
MULTIPLY = ("f32", "tf32")


def gated_residual(
    x: Tensor,
    W_a: Tensor,
    b_a: Tensor,
    W_b: Tensor,
    b_b: Tensor,
    gamma: Tensor,
    beta: Tensor,
    W_res: Tensor | None = None,
    *,
    eps: float = EPS,
    multiply: str = "f32",
) -> Tensor:
    """Apply a gated residual network; its structure is that of arXiv:1912.09363, one linear less.

        out = gamma LN(v sigmoid(g) + residual) + beta,  [v, g] = ELU(x W_a^T + b_a) W_b^T + b_b
    Shapes: x (B, D_in); W_a (H, D_in); b_a (H,); W_b (2 D, H); b_b (2 D,); gamma, beta (D,);
    W_res (D, D_in), or None where D = D_in: the residual is x. Returns (B, D), signed. `multiply`
    "tf32" lets the products run on tensor cores where a kernel does. Differentiable in all
    tensors, once. Raises ValueError for shapes that do not fit and for another `multiply`.
    """
    one_of("multiply", multiply, MULTIPLY)
    ranked("gated_residual", "x", x, "B D_in")
    ranked("gated_residual", "W_a", W_a, "H D_in")
    ranked("gated_residual", "gamma", gamma, "D")
    (H, D_in), D = W_a.shape, gamma.shape[0]
    expect(
        "gated_residual",
        x=(x, (x.shape[0], D_in)),
        b_a=(b_a, (H,)),
        W_b=(W_b, (2 * D, H)),
        b_b=(b_b, (2 * D,)),
        beta=(beta, (D,)),
        W_res=(W_res, (D, D_in)),
    )
    if W_res is None and D_in != D:
        raise ValueError(f"gated_residual: got no W_res for D_in = {D_in} and D = {D}")
    given = alike(x, W_a, b_a, W_b, b_b, gamma, beta, W_res)
    out: Tensor = _forward(*given, eps, multiply == "tf32")[0]
    return out


def _plain(
    x: Tensor,
    W_a: Tensor,
    b_a: Tensor,
    W_b: Tensor,
    b_b: Tensor,
    gamma: Tensor,
    beta: Tensor,
    W_res: Tensor | None,
    eps: float,
    tf32: bool,
) -> tuple[Tensor, ...]:
    a = torch.addmm(b_a, x, W_a.mT)
    e = torch.where(a > 0, a, torch.expm1(a))
    u = torch.addmm(b_b, e, W_b.mT)
    value, gate = u.chunk(2, 1)
    s = torch.sigmoid(gate)
    y = value * s + (x if W_res is None else x @ W_res.mT)
    centred = y - y.mean(1, keepdim=True)
    rstd = torch.rsqrt((centred * centred).mean(1) + eps)
    xhat = centred * rstd.unsqueeze(1)
    return gamma * xhat + beta, e, u, s, xhat, rstd


def _plain_backward(
    d_out: Tensor,
    x: Tensor,
    W_a: Tensor,
    W_b: Tensor,
    gamma: Tensor,
    e: Tensor,
    u: Tensor,
    s: Tensor,
    xhat: Tensor,
    rstd: Tensor,
    W_res: Tensor | None,
    tf32: bool,
) -> tuple[Tensor, ...]:
    g = d_out * gamma
    centred = g - g.mean(1, keepdim=True) - xhat * (g * xhat).mean(1, keepdim=True)
    dy = rstd.unsqueeze(1) * centred
    dv = dy * s
    du = torch.cat([dv, dv * u.chunk(2, 1)[0] * (1 - s)], 1)
    de = du @ W_b
    da = torch.where(e > 0, de, de * (e + 1))
    dx = da @ W_a + (dy if W_res is None else dy @ W_res)
    of_res = dy.new_empty(0) if W_res is None else dy.mT @ x
    sums = (d_out * xhat).sum(0), d_out.sum(0)
    return dx, da.mT @ x, da.sum(0), du.mT @ e, du.sum(0), *sums, of_res


def _contract(name: str, W_res: Tensor | None, tf32: bool) -> str:
    if W_res is not None:
        return f"dqn.grn_{name}_projected"
    return f"dqn.grn_{name}{'_tf32' if tf32 else ''}"


def _fast(
    x: Tensor,
    W_a: Tensor,
    b_a: Tensor,
    W_b: Tensor,
    b_b: Tensor,
    gamma: Tensor,
    beta: Tensor,
    W_res: Tensor | None,
    eps: float,
    tf32: bool,
) -> tuple[Tensor, ...] | Refused:
    if eps != EPS:
        return Refused(f"the kernel's eps is {EPS}")
    given = contiguous(x, W_a, b_a, W_b, b_b, gamma, beta, *(() if W_res is None else (W_res,)))
    saved = _fake(x, W_a, b_a, W_b, b_b, gamma)
    refused = launch(_contract("forward", W_res, tf32), *given, *saved)
    return saved if refused is None else refused


def _fast_backward(
    d_out: Tensor,
    x: Tensor,
    W_a: Tensor,
    W_b: Tensor,
    gamma: Tensor,
    e: Tensor,
    u: Tensor,
    s: Tensor,
    xhat: Tensor,
    rstd: Tensor,
    W_res: Tensor | None,
    tf32: bool,
) -> tuple[Tensor, ...] | Refused:
    optional = () if W_res is None else (W_res,)
    given = contiguous(d_out, x, W_a, W_b, gamma, e, u, s, xhat, rstd, *optional)
    grads = _fake_backward(d_out, x, W_a, W_b, gamma, e, u, s, xhat, rstd, W_res, tf32)
    written = grads[: 7 + len(optional)]
    refused = launch(_contract("backward", W_res, tf32), *given, *written)
    return grads if refused is None else refused


def _fake(
    x: Tensor, W_a: Tensor, b_a: Tensor, W_b: Tensor, b_b: Tensor, gamma: Tensor, *_: Any
) -> tuple[Tensor, ...]:
    B, H, D = x.shape[0], W_a.shape[0], gamma.shape[0]
    shapes = ((B, D), (B, H), (B, 2 * D), (B, D), (B, D), (B,))
    return tuple(x.new_empty(shape) for shape in shapes)


def _fake_backward(
    d_out: Tensor,
    x: Tensor,
    W_a: Tensor,
    W_b: Tensor,
    gamma: Tensor,
    e: Tensor,
    u: Tensor,
    s: Tensor,
    xhat: Tensor,
    rstd: Tensor,
    W_res: Tensor | None,
    tf32: bool,
) -> tuple[Tensor, ...]:
    H, D = W_a.shape[0], gamma.shape[0]
    of_res: Any = (0,) if W_res is None else W_res.shape
    shapes = (x.shape, W_a.shape, (H,), W_b.shape, (2 * D,), (D,), (D,), of_res)
    return tuple(x.new_empty(shape) for shape in shapes)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, W_a, _, W_b, _, gamma, _, W_res, _, ctx.tf32 = inputs
    ctx.projected = W_res is not None
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)
    kept = (x, W_a, W_b, gamma, *output[1:])
    ctx.save_for_backward(*kept, *((W_res,) if ctx.projected else ()))


def _backward(ctx: Any, d_out: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if d_out is None:
        return (None,) * 10
    *kept, last = ctx.saved_tensors
    kept, W_res = (kept, last) if ctx.projected else ([*kept, last], None)
    *grads, of_res = _backwards(d_out, *kept, W_res, ctx.tf32)
    return *grads, of_res if ctx.projected else None, None, None


_forward = operator(
    "grn(Tensor x, Tensor W_a, Tensor b_a, Tensor W_b, Tensor b_b, Tensor gamma, Tensor beta, "
    "Tensor? W_res, float eps, bool tf32) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
_backwards = operator(
    "grn_backward(Tensor d_out, Tensor x, Tensor W_a, Tensor W_b, Tensor gamma, Tensor e, "
    "Tensor u, Tensor s, Tensor xhat, Tensor rstd, Tensor? W_res, bool tf32) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake_backward,
)
torch.library.register_autograd("trueup::grn", _backward, setup_context=_keep)
