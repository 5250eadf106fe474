"""The 0.05 and 0.95 quantiles of each branch's values, and the supports that they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import BRANCHES, alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

# As fractions of whole numbers: a place that is a product of rounded numbers may be in another gap.
_LEVELS = tuple(torch.tensor(level).item().as_integer_ratio() for level in (0.05, 0.95))


def q_quantiles(q: Tensor, branches: Sequence[int] = BRANCHES) -> Tensor:
    """Give the 0.05 and 0.95 quantiles of each branch's values, between two order statistics.

        over the M = B b_k values x of branch k, sorted: x at (M - 1) level, linear in between
    Shapes: q (B, A), the actions of all branches one after another; returns (2 K,): the K branches
    at 0.05, then at 0.95. Not differentiable. Raises ValueError for another shape, and for no row.
    """
    ranked("q_quantiles", "q", q, "B A")
    rows = max(q.shape[0], 1)
    expect("q_quantiles", q=(q, (rows, sum(branches))))
    with torch.no_grad():
        quantiles: Tensor = _quantiles(*alike(q), list(branches))
    return quantiles


def branch_supports(
    quantiles: Tensor,
    n_atoms: int = 51,
    *,
    q: Tensor | None = None,
    widening: float = 0.0,
    margin: float = 0.2,
    half_min: float = 0.5,
    branches: Sequence[int] = BRANCHES,
) -> Tensor:
    """Give every action the support of its branch, from the branch's two quantiles lo and hi.

        mid = (lo + hi) / 2,  half = max(half_min, (1 + margin) (hi - lo) / 2)
        half_b = half (1 + widening std of the sample's q over the branch);  mid -+ half_b
    Shapes: quantiles (2 K,) as of `q_quantiles`; q (B, A), needed where widening is not 0. Returns
    (A, 3), or (B, A, 3) with q: (v_min, v_max, delta_z), float32. Raises ValueError for shapes that
    do not fit, for fewer than two atoms and for a widening without q.
    """
    if n_atoms < 2:
        raise ValueError(f"n_atoms: got {n_atoms}, expected 2 or more")
    if widening and q is None:
        raise ValueError(f"branch_supports: got widening {widening} and no q, expected q (B, A)")
    expect("branch_supports", quantiles=(quantiles, (2 * len(branches),)))
    with torch.no_grad():
        values = quantiles.new_zeros(1, sum(branches)) if q is None else q
        ranked("branch_supports", "q", values, "B A")
        expect("branch_supports", q=(values, (values.shape[0], sum(branches))))
        numbers = n_atoms, widening, margin, half_min, list(branches)
        rows = _supports(quantiles.float(), values.float(), *numbers)
        each = zip(rows.split(1, 1), branches, strict=True)
        rows = torch.cat([row.expand(-1, size, -1) for row, size in each], 1)
        return rows[0] if q is None else rows


def _plain(q: Tensor, branches: Sequence[int]) -> Tensor:
    parts = [part.flatten().sort().values for part in q.split(list(branches), 1)]
    out = []
    for above, below in _LEVELS:
        for ordered in parts:
            place = above * (ordered.numel() - 1)
            left = place // below
            low, high = ordered[left], ordered[min(left + 1, ordered.numel() - 1)]
            out.append(low + (place % below) / below * (high - low))
    return torch.stack(out)


def _fast(q: Tensor, branches: Sequence[int]) -> Tensor | Refused:
    if tuple(branches) != BRANCHES:
        return Refused(f"the kernel is for branches of {BRANCHES} actions")
    quantiles = _fake(q, branches)
    refused = launch("dqn.q_quantiles", q.contiguous(), quantiles)
    return quantiles if refused is None else refused


def _fake(q: Tensor, branches: Sequence[int]) -> Tensor:
    return q.new_empty((2 * len(branches),))


def _plain_supports(
    quantiles: Tensor,
    q: Tensor,
    n_atoms: int,
    widening: float,
    margin: float,
    half_min: float,
    branches: Sequence[int],
) -> Tensor:
    low, high = quantiles.chunk(2)
    half, middle = ((1 + margin) * (high - low) / 2).clamp(min=half_min), (low + high) / 2
    spread = torch.stack([part.std(1, correction=0) for part in q.split(list(branches), 1)], 1)
    wide = half * (1 + widening * spread)
    return torch.stack([middle - wide, middle + wide, 2 * wide / (n_atoms - 1)], -1)


def _fast_supports(
    quantiles: Tensor,
    q: Tensor,
    n_atoms: int,
    widening: float,
    margin: float,
    half_min: float,
    branches: Sequence[int],
) -> Tensor | Refused:
    if tuple(branches) != BRANCHES:
        return Refused(f"the kernel is for branches of {BRANCHES} actions")
    support = _fake_supports(quantiles, q)
    numbers = n_atoms, widening, margin, half_min
    refused = launch("dqn.atom_support", *contiguous(quantiles, q), *numbers, support)
    return support if refused is None else refused


def _fake_supports(quantiles: Tensor, q: Tensor, *_: Any) -> Tensor:
    return q.new_empty((q.shape[0], quantiles.shape[0] // 2, 3))


_supports = operator(
    "atom_support(Tensor quantiles, Tensor q, int n_atoms, float widening, float margin, "
    "float half_min, int[] branches) -> Tensor",
    _plain_supports,
    fast=_fast_supports,
    fake=_fake_supports,
)
_quantiles = operator(
    "q_quantiles(Tensor q, int[] branches) -> Tensor", _plain, fast=_fast, fake=_fake
)
