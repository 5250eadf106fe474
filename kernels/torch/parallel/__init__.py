"""Several processes: sharded matrices re-formed, token-weighted means, what must be equal."""

from trueup.kernels.torch.parallel.reduce import (
    Ranks,
    gather_rows,
    mean_weight,
    ranks_of,
    sum_over,
    token_weighted,
)
from trueup.kernels.torch.parallel.shards import is_sharded, reshard_, whole

__all__ = [
    "Ranks",
    "gather_rows",
    "is_sharded",
    "mean_weight",
    "ranks_of",
    "reshard_",
    "sum_over",
    "token_weighted",
    "whole",
]
