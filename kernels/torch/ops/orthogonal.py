"""The NS of Eq. 24: Newton-Schulz orthogonalisation, quintic or cubic, in any precision."""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

from trueup.kernels.torch.ops.registry import Refused, large, launch, one_of, operator

QUINTIC = (3.4445, -4.7750, 2.0315)
CUBIC = (1.5, -0.5, 0.0)
EPS = 1e-7
EPS_RULES = ("clamp", "add")
WIDE = 3072
"""The lesser side from which symmetric products fill the device: on an H200 they took 2.5 ms at
4096 x 4096 where the library's Newton-Schulz took 3.2, and 0.32 ms at 1024 x 4096 against 0.25."""


def polynomial(name: str) -> tuple[int, tuple[float, float, float]]:
    """Give the number of steps and (a, b, c) of `quintic5` or `cubicN`; ValueError for others."""
    if name == "quintic5":
        return 5, QUINTIC
    steps = name.removeprefix("cubic")
    if name.startswith("cubic") and steps.isdecimal() and int(steps) > 0:
        return int(steps), CUBIC
    raise ValueError(f"poly: got {name!r}, expected quintic5, or cubicN with N steps (cubic3)")


def newton_schulz(
    G: Tensor,
    *,
    poly: str = "quintic5",
    eps: float = EPS,
    eps_rule: str = "clamp",
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Push all singular values of a matrix towards 1 by an odd polynomial.

        X = G / max(|G|, eps);  A = X X^T;  X <- a X + (b A + c A^2) X
    Shapes: G (r, c), or (N, r, c) for N matrices. Computed, and returned, in `dtype`: G's own if
    None; the library's Muon takes bfloat16. `poly` is `quintic5` or `cubicN`; `eps_rule` is
    `clamp`, or `add` for |G| + eps. Raises ValueError for other options or another rank.
    """
    steps, coefficients = polynomial(poly)
    one_of("eps_rule", eps_rule, EPS_RULES)
    if G.ndim not in (2, 3):
        raise ValueError(f"newton_schulz: got {tuple(G.shape)}, expected a matrix or a stack")
    return _newton_schulz(G.to(dtype or G.dtype), steps, *coefficients, eps, eps_rule == "add")


def _plain(G: Tensor, steps: int, a: float, b: float, c: float, eps: float, add: bool) -> Tensor:
    tall = G.shape[-2] > G.shape[-1]
    X = G.mT if tall else G
    norm = X.norm(dim=(-2, -1), keepdim=True)
    X = X / (norm + eps if add else norm.clamp(min=eps))
    product = torch.addmm if X.ndim == 2 else torch.baddbmm
    for _ in range(steps):
        gram = X @ X.mT
        if c:
            gram = product(gram, gram, gram, beta=b, alpha=c)
            X = product(X, gram, X, beta=a)
        else:
            X = product(X, gram, X, beta=a, alpha=b)
    return (X.mT if tall else X).clone(memory_format=torch.contiguous_format)


def _fake(G: Tensor, *_: object) -> Tensor:
    return torch.empty_like(G, memory_format=torch.contiguous_format)


def _fast(
    G: Tensor, steps: int, a: float, b: float, c: float, eps: float, add: bool
) -> Tensor | Refused:
    if G.ndim != 2:
        return Refused("the kernels take one matrix, not a stack")
    narrow = G.dtype is torch.bfloat16
    if narrow and min(G.shape) >= WIDE:
        if find_spec("triton") is None:
            return Refused("bfloat16 of this size needs triton, which comes with torch for CUDA")
        from trueup.kernels.torch.device.symmetric import newton_schulz_symmetric

        return newton_schulz_symmetric(G, steps, a, b, c, eps, add)
    if (steps, (a, b, c), add) != (5, QUINTIC, False):
        return Refused("the kernel is for quintic5 with clamp")
    result = torch.empty_like(G, memory_format=torch.contiguous_format)
    contract = "nl.newton_schulz_bf16" if narrow else "nl.newton_schulz"
    refused = large(G) or launch(contract, G.contiguous(), result, eps)
    return result if refused is None else refused


_newton_schulz = operator(
    "newton_schulz(Tensor G, int steps, float a, float b, float c, float eps, bool add) -> Tensor",
    _plain,
    fast=_fast,
    fake=_fake,
)
