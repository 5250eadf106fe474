"""Sums and means over the ranks that share weights, and the order of their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Ranks:
    """The ranks that share what is updated; `group` None is this process alone."""

    group: Any
    size: int
    rank: int


ALONE = Ranks(None, 1, 0)


def ranks_of(group: Any, who: str) -> Ranks:
    """Resolve a `group` option: a process group, "local", or None.

    Raises RuntimeError for None in a run of several processes: what is updated from local tokens
    alone would drift apart between ranks, and nothing would tell.
    """
    several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    if group == "local":
        return ALONE
    if group is None:
        if several:
            raise RuntimeError(
                f"{who}: {dist.get_world_size()} processes run and no group is given: pass the "
                "process group whose ranks share the weights, or group='local' if every rank "
                "trains its own"
            )
        return ALONE
    if not several:
        return ALONE
    return Ranks(group, dist.get_world_size(group), dist.get_rank(group))


def sum_over(tensor: Tensor, ranks: Ranks) -> Tensor:
    """Give the sum over all ranks, on each of them."""
    if ranks.size == 1:
        return tensor
    total = tensor.clone()
    dist.all_reduce(total, group=ranks.group)
    return total


def gather_rows(rows: Tensor, ranks: Ranks) -> Tensor:
    """Give the rows of all ranks, rank 0's first: the token order of one process."""
    if ranks.size == 1:
        return rows
    counts = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(ranks.size)]
    dist.all_gather(counts, counts[0].new_tensor([rows.shape[0]]), group=ranks.group)
    sizes = [int(count) for count in counts]
    # Gathered tensors have one size: shorter ones are padded.
    padded = rows.new_zeros(max(sizes), *rows.shape[1:])
    padded[: rows.shape[0]] = rows
    gathered = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(gathered, padded, group=ranks.group)
    return torch.cat([part[:size] for part, size in zip(gathered, sizes, strict=True)])


def same_on_all(values: Tensor, ranks: Ranks, what: str) -> None:
    """Raise RuntimeError unless every rank has the same whole numbers."""
    if ranks.size == 1:
        return
    low, high = values.clone(), values.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN, group=ranks.group)
    dist.all_reduce(high, op=dist.ReduceOp.MAX, group=ranks.group)
    if not torch.equal(low, high):
        raise RuntimeError(
            f"{what} differ between ranks: from {low.tolist()} to {high.tolist()}; a memory that "
            "ranks share takes the same number of tokens on each of them at every call"
        )


def token_weighted(value: Tensor, tokens: int | Tensor, ranks: Ranks) -> Tensor:
    """Give sum_r n_r v_r / sum_r n_r: the mean over all active tokens of local means.

    For losses and gradients; a plain mean over ranks is another number where the counts differ.
    A rank without tokens contributes nothing, whatever its value; none anywhere gives 0.
    """
    count = torch.as_tensor(tokens, dtype=value.dtype, device=value.device)
    weighted = torch.where(count > 0, value, 0) * count
    total = sum_over(count, ranks)
    return sum_over(weighted, ranks) / total.clamp(min=1)


def mean_weight(tokens: int | Tensor, ranks: Ranks) -> Tensor:
    """Give n_r N / sum_r n_r, by which a rank multiplies its local mean loss.

    The mean over N ranks of the gradients, which data parallel wrappers take, is then the gradient
    of the mean over all active tokens, also where ranks hold different numbers of them.
    """
    count = torch.as_tensor(tokens, dtype=torch.float64)
    if ranks.size > 1 and dist.get_backend(ranks.group) == "nccl":
        count = count.cuda()
    return (count * ranks.size / sum_over(count, ranks).clamp(min=1)).cpu()
