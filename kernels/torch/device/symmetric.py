"""Symmetric products of bf16 matrices on tensor cores, in Triton: half of the tiles, mirrored.

X X^T and c A^2 + b A of a symmetric A are symmetric: only the tiles on and below the diagonal are
computed, and each is written a second time, transposed. That is a third of what Newton-Schulz
multiplies. Sums run in a fixed order; the result is bitwise symmetric and repeatable.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

SIDE, DEPTH = 128, 64


@triton.jit
def _symmetric(  # type: ignore[no-untyped-def]
    x, a, out, n, k, alpha, beta, HAS_A: tl.constexpr, WHOLE: tl.constexpr,
    SIDE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    # Tile number i (i + 1) / 2 + j is row i, column j <= i. The root may be off by one.
    i = ((tl.sqrt(8.0 * tile + 1.0) - 1.0) * 0.5).to(tl.int32)
    i = tl.where(i * (i + 1) // 2 > tile, i - 1, i)
    i = tl.where((i + 1) * (i + 2) // 2 <= tile, i + 1, i)
    j = tile - i * (i + 1) // 2
    rows = i * SIDE + tl.arange(0, SIDE)
    columns = j * SIDE + tl.arange(0, SIDE)
    depth = tl.arange(0, DEPTH)
    left = x + rows[:, None].to(tl.int64) * k + depth[None, :]
    right = x + columns[:, None].to(tl.int64) * k + depth[None, :]
    total = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for at in range(0, k, DEPTH):
        if WHOLE:
            p, q = tl.load(left), tl.load(right)
        else:
            inside = depth[None, :] < k - at
            p = tl.load(left, mask=inside & (rows[:, None] < n), other=0.0)
            q = tl.load(right, mask=inside & (columns[:, None] < n), other=0.0)
        total = tl.dot(p, tl.trans(q), total)
        left += DEPTH
        right += DEPTH
    here = rows[:, None].to(tl.int64) * n + columns[None, :]
    inside = (rows[:, None] < n) & (columns[None, :] < n)
    if HAS_A:
        total = alpha * total + beta * tl.load(a + here, mask=inside, other=0.0).to(tl.float32)
    value = total.to(out.dtype.element_ty)
    tl.store(out + here, value, mask=inside)
    if i != j:
        mirrored = columns[:, None].to(tl.int64) * n + rows[None, :]
        inside = (columns[:, None] < n) & (rows[None, :] < n)
        tl.store(out + mirrored, tl.trans(value), mask=inside)


def symmetric_product(
    X: Tensor, out: Tensor, A: Tensor | None = None, alpha: float = 1.0, beta: float = 0.0
) -> Tensor:
    """Write X X^T, or alpha X X^T + beta A, into `out` and return it.

    Shapes: X (n, k); A, out (n, n), A symmetric; all contiguous, bfloat16 (or float16), on one
    device. Sums are float32, rounded once. For a symmetric X the product is its square.
    """
    n, k = X.shape
    tiles = triton.cdiv(n, SIDE)
    whole = n % SIDE == 0 and k % DEPTH == 0
    given = X if A is None else A
    grid = (tiles * (tiles + 1) // 2,)
    _symmetric[grid](
        X, given, out, n, k, alpha, beta, A is not None, whole, SIDE, DEPTH,
        num_warps=8, num_stages=4,
    )  # fmt: skip
    return out


def newton_schulz_symmetric(
    G: Tensor, steps: int, a: float, b: float, c: float, eps: float, add: bool
) -> Tensor:
    """Orthogonalise a bf16 matrix as `newton_schulz` does, with symmetric products.

    Shapes: G and the result (r, c), bfloat16. The product with X is the library's (cuBLAS).
    """
    tall = G.shape[0] > G.shape[1]
    X = (G.mT if tall else G).contiguous()
    norm = X.norm()
    X = X / (norm + eps if add else norm.clamp(min=eps))
    gram, polynomial = (X.new_empty(X.shape[0], X.shape[0]) for _ in range(2))
    spare = torch.empty_like(X)
    for _ in range(steps):
        symmetric_product(X, gram)
        if c:
            symmetric_product(gram, polynomial, gram, c, b)
            torch.addmm(X, polynomial, X, beta=a, out=spare)
        else:
            torch.addmm(X, gram, X, beta=a, alpha=b, out=spare)
        X, spare = spare, X
    return X.mT.contiguous() if tall else X
