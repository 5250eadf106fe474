"""The shipped kernels in torch: operators, optimizers and memories, and `dqn`, an agent's parts.

Operators run the shipped CUDA kernels where they fit and plain torch elsewhere; `last_reason`
says why. `docs/torch.md` has an example of each.
"""

from trueup.kernels.torch.dqn import (
    C51Head,
    GatedResidual,
    IQNHead,
    MoEGate,
    SelectiveScan,
    VariableSelection,
    c51_loss,
    cvar,
    dueling,
    expected_q,
    gated_residual,
    iqn_loss,
    moe_balance,
    moe_gate,
    moe_mixture,
    select_variables,
    selective_scan,
    support_of,
)
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
    "C51Head",
    "ContinuumMemory",
    "DeepMomentum",
    "DeltaMomentum",
    "GatedResidual",
    "IQNHead",
    "LayerCapture",
    "LevelSpec",
    "LinearMemory",
    "MoEGate",
    "MuonNS",
    "ProjectedDescent",
    "SelectiveScan",
    "VariableSelection",
    "adam_memory_",
    "c51_loss",
    "cms_level",
    "cms_level_update_",
    "cvar",
    "deep_momentum_",
    "delta_momentum_",
    "delta_momentum_rank1_",
    "dueling",
    "error_of",
    "expected_q",
    "gated_residual",
    "iqn_loss",
    "last_reason",
    "linear_attention",
    "linear_memory",
    "m3_",
    "m3_slow_",
    "moe_balance",
    "moe_gate",
    "moe_mixture",
    "muon_",
    "muon_library_",
    "newton_schulz",
    "online_write",
    "preconditioned_momentum_",
    "projected_descent_",
    "projected_descent_batch_",
    "projected_descent_chunk_",
    "select_variables",
    "selective_scan",
    "split_parameters",
    "support_of",
]
