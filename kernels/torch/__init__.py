"""Nested Learning in torch: the shipped kernels as operators, optimizers and memories.

Operators run the shipped CUDA kernels where they fit and plain torch elsewhere; `last_reason`
says why. `docs/torch.md` has an example of each.
"""

from trueup.kernels.torch.ops.attention import linear_attention
from trueup.kernels.torch.ops.deep import deep_momentum_
from trueup.kernels.torch.ops.descent import (
    projected_descent_,
    projected_descent_batch_,
    projected_descent_chunk_,
)
from trueup.kernels.torch.ops.momentum import delta_momentum_, delta_momentum_rank1_
from trueup.kernels.torch.ops.orthogonal import newton_schulz
from trueup.kernels.torch.ops.registry import last_reason
from trueup.kernels.torch.ops.writes import online_write
from trueup.kernels.torch.optim import (
    M3,
    DeepMomentum,
    DeltaMomentum,
    LayerCapture,
    MuonNS,
    ProjectedDescent,
    split_parameters,
)

__all__ = [
    "M3",
    "DeepMomentum",
    "DeltaMomentum",
    "LayerCapture",
    "MuonNS",
    "ProjectedDescent",
    "deep_momentum_",
    "delta_momentum_",
    "delta_momentum_rank1_",
    "last_reason",
    "linear_attention",
    "newton_schulz",
    "online_write",
    "projected_descent_",
    "projected_descent_batch_",
    "projected_descent_chunk_",
    "split_parameters",
]
