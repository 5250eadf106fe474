"""Nested Learning in torch: the shipped kernels as operators, optimizers and memories.

Operators run the shipped CUDA kernels where they fit and plain torch elsewhere; `last_reason`
says why. `docs/torch.md` has an example of each.
"""

from trueup.kernels.torch.modules import (
    ContinuumMemory,
    LevelSpec,
    LinearMemory,
    error_of,
    linear_memory,
)
from trueup.kernels.torch.ops.attention import linear_attention
from trueup.kernels.torch.ops.cms import cms_level, cms_level_update_
from trueup.kernels.torch.ops.deep import deep_momentum_
from trueup.kernels.torch.ops.descent import (
    projected_descent_,
    projected_descent_batch_,
    projected_descent_chunk_,
)
from trueup.kernels.torch.ops.elementwise import adam_memory_, preconditioned_momentum_
from trueup.kernels.torch.ops.m3 import m3_, m3_slow_
from trueup.kernels.torch.ops.momentum import delta_momentum_, delta_momentum_rank1_
from trueup.kernels.torch.ops.muon import muon_, muon_library_
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
    "ContinuumMemory",
    "DeepMomentum",
    "DeltaMomentum",
    "LayerCapture",
    "LevelSpec",
    "LinearMemory",
    "MuonNS",
    "ProjectedDescent",
    "adam_memory_",
    "cms_level",
    "cms_level_update_",
    "deep_momentum_",
    "delta_momentum_",
    "delta_momentum_rank1_",
    "error_of",
    "last_reason",
    "linear_attention",
    "linear_memory",
    "m3_",
    "m3_slow_",
    "muon_",
    "muon_library_",
    "newton_schulz",
    "online_write",
    "preconditioned_momentum_",
    "projected_descent_",
    "projected_descent_batch_",
    "projected_descent_chunk_",
    "split_parameters",
]
