"""Prioritised replay: a sum tree in place, its samples, priorities and importance weights.

Source: PER, arXiv:1511.05952. A tree over C leaves is one tensor (2 C,): node 1 is the root, node i
the sum of nodes 2 i and 2 i + 1, leaves stand from C on, place 0 is unused.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, expect, flat, numbered, ranked
from trueup.kernels.torch.ops.registry import Refused, in_place, launch, nothing, operator


def sum_tree_rebuild_(tree: Tensor) -> None:
    """Add every parent up from the leaves, in place, level by level from below.

    Shapes: tree (2 C,). Raises ValueError for another shape.
    """
    in_place("sum_tree_rebuild_", tree)
    _check("sum_tree_rebuild_", tree)
    _rebuild(tree)


def sum_tree_update_(tree: Tensor, index: Tensor, leaf: Tensor) -> None:
    """Write a batch of leaves, in place, and add up anew every parent above them.

    Shapes: tree (2 C,); index (n,), whole numbers: of equal ones the last is written, others than
    0 to C - 1 are left out; leaf (n,). No difference is added: a parent is the rounded sum of its
    children. Raises ValueError for shapes that do not fit.
    """
    in_place("sum_tree_update_", tree)
    _check("sum_tree_update_", tree)
    ranked("sum_tree_update_", "index", index, "n")
    expect("sum_tree_update_", leaf=(leaf, index.shape))
    _update(tree, numbered(index), leaf.detach().to(tree.dtype))


def sum_tree_sample(tree: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one leaf from each of B strata of the total priority.

        v_b = ((b + u_b) total) / B;  from the root: v < left ? go left : (v -= left, go right)
    Shapes: tree (2 C,); u (B,) in [0, 1). Returns index (B,), int32, and probability (B,), the
    leaf's share of the root. A leaf of priority 0 is never drawn; where the root is not positive
    and finite, index is -1 and probability 0. Raises ValueError for shapes that do not fit.
    """
    _check("sum_tree_sample", tree)
    ranked("sum_tree_sample", "u", u, "B")
    with torch.no_grad():
        index, probability = _sample(tree, u.to(tree.dtype))
    return index, probability


def priorities(td: Tensor, alpha: float = 0.6, eps: float = 1e-6) -> Tensor:
    """Turn the errors of four branches into what a leaf holds: (sum_k |td_k| + eps)^alpha.

    Shapes: td (B, 4). Returns (B,). Raises ValueError for another shape.
    """
    ranked("priorities", "td", td, "B 4")
    expect("priorities", td=(td, (td.shape[0], 4)))
    with torch.no_grad():
        leaf: Tensor = _priorities(*alike(td), alpha, eps)
    return leaf


def importance_weights(probability: Tensor, beta: float, p_min: Tensor | None = None) -> Tensor:
    """Weigh samples so that a skewed draw leaves the mean gradient as it was.

        w_i = (N P_i)^-beta / max_j (N P_j)^-beta
    Shapes: probability (B,); p_min (1,), the least probability of the buffer, for a maximum over
    the buffer in place of the batch. Returns (B,). Raises ValueError for shapes that do not fit.
    """
    ranked("importance_weights", "probability", probability, "B")
    expect("importance_weights", p_min=(p_min, (1,)))
    with torch.no_grad():
        weight: Tensor = _weights(*alike(probability, p_min), beta)
    return weight


def _check(name: str, tree: Tensor) -> None:
    if tree.ndim != 1 or tree.shape[0] < 2 or tree.shape[0] % 2:
        raise ValueError(f"{name}: got tree {tuple(tree.shape)}, expected (2 C,) with C leaves")
    if tree.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name}: got a tree of {tree.dtype}, expected torch.float32")


def _plain_rebuild(tree: Tensor) -> None:
    C = tree.shape[0] // 2
    for first in _levels(C):
        last = min(2 * first, C)
        tree[first:last] = tree[2 * first : 2 * last].view(-1, 2).sum(1)


def _levels(C: int) -> list[int]:
    """Give the first node of every level that has parents, the deepest first."""
    return [1 << depth for depth in range((C - 1).bit_length() - 1, -1, -1)]


def _plain_update(tree: Tensor, index: Tensor, leaf: Tensor) -> None:
    C, n = tree.shape[0] // 2, index.shape[0]
    known = (index >= 0) & (index < C)
    order = torch.where(known, torch.arange(1, n + 1, device=tree.device), 0)
    place = torch.where(known, index, 0).long()
    last = order.new_zeros(C).scatter_reduce_(0, place, order, "amax")
    touched = torch.cat([last.new_zeros(C), last]) > 0
    if n:
        tree[C:] = torch.where(last > 0, leaf[(last - 1).clamp(min=0)], tree[C:])
    for first in _levels(C):
        below, above = slice(2 * first, 2 * min(2 * first, C)), slice(first, min(2 * first, C))
        touched[above] = touched[below].view(-1, 2).any(1)
        tree[above] = torch.where(touched[above], tree[below].view(-1, 2).sum(1), tree[above])


def _plain_sample(tree: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    C, B, total = tree.shape[0] // 2, u.shape[0], tree[1]
    v = (torch.arange(B, device=u.device) + u) * total / B
    v = torch.where(v >= total, torch.nextafter(total, torch.zeros_like(total)), v)
    node = torch.ones_like(u, dtype=torch.long)
    for _ in range((2 * C - 1).bit_length() - 1):
        parent = node < C
        left = tree[torch.where(parent, 2 * node, 0)]
        right = ~(v < left)  # NaN too, as in the kernel
        v = torch.where(parent & right, v - left, v)
        node = torch.where(parent, 2 * node + right, node)
    leaf = _positive(tree[C:], node - C)
    usable = total.isfinite() & (total > 0) & (leaf >= 0)
    share = tree[C + leaf.clamp(min=0)] / total
    return torch.where(usable, leaf, -1).int(), torch.where(usable, share, 0)


def _positive(leaves: Tensor, leaf: Tensor) -> Tensor:
    """Keep a leaf that has a priority; else the nearest to the left, else to the right, else -1."""
    C, place = leaves.shape[0], torch.arange(leaves.shape[0], device=leaves.device)
    before = torch.where(leaves > 0, place, -1).cummax(0).values
    after = torch.where(leaves > 0, place, C).flip(0).cummin(0).values.flip(0)
    found = torch.where(before[leaf] >= 0, before[leaf], after[leaf])
    return torch.where(found < C, found, -1)


def _plain_priorities(td: Tensor, alpha: float, eps: float) -> Tensor:
    return (td.abs().sum(1) + eps) ** alpha


def _plain_weights(probability: Tensor, p_min: Tensor | None, beta: float) -> Tensor:
    if not probability.numel():
        return probability.clone()
    return ((probability.amin() if p_min is None else p_min) / probability) ** beta


def _fast_rebuild(tree: Tensor) -> Refused | None:
    return launch("dqn.sum_tree_rebuild", tree)


def _fast_update(tree: Tensor, index: Tensor, leaf: Tensor) -> Refused | None:
    return launch("dqn.sum_tree_update", tree, *flat(index, leaf))


def _fast_sample(tree: Tensor, u: Tensor) -> tuple[Tensor, Tensor] | Refused:
    index, probability = _fake_sample(tree, u)
    refused = launch("dqn.sum_tree_sample", *flat(tree, u), index, probability)
    return (index, probability) if refused is None else refused


def _fast_priorities(td: Tensor, alpha: float, eps: float) -> Tensor | Refused:
    leaf = _fake_priorities(td)
    refused = launch("dqn.priorities", td.contiguous(), leaf, alpha, eps)
    return leaf if refused is None else refused


def _fast_weights(probability: Tensor, p_min: Tensor | None, beta: float) -> Tensor | Refused:
    if p_min is not None:
        return Refused("the kernel takes the maximum over the batch")
    weight = _fake_weights(probability)
    refused = launch("dqn.importance_weights", probability.contiguous(), weight, beta)
    return weight if refused is None else refused


def _fake_sample(tree: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    return u.new_empty(u.shape, dtype=torch.int32), tree.new_empty(u.shape)


def _fake_priorities(td: Tensor, *_: Any) -> Tensor:
    return td.new_empty(td.shape[:1])


def _fake_weights(probability: Tensor, *_: Any) -> Tensor:
    return probability.new_empty(probability.shape)


_rebuild = operator(
    "sum_tree_rebuild_(Tensor(a!) tree) -> ()", _plain_rebuild, fast=_fast_rebuild, fake=nothing
)
_update = operator(
    "sum_tree_update_(Tensor(a!) tree, Tensor index, Tensor leaf) -> ()",
    _plain_update,
    fast=_fast_update,
    fake=nothing,
)
_sample = operator(
    "sum_tree_sample(Tensor tree, Tensor u) -> (Tensor, Tensor)",
    _plain_sample,
    fast=_fast_sample,
    fake=_fake_sample,
)
_priorities = operator(
    "priorities(Tensor td, float alpha, float eps) -> Tensor",
    _plain_priorities,
    fast=_fast_priorities,
    fake=_fake_priorities,
)
_weights = operator(
    "importance_weights(Tensor probability, Tensor? p_min, float beta) -> Tensor",
    _plain_weights,
    fast=_fast_weights,
    fake=_fake_weights,
)
