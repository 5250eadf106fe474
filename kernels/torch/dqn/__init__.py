"""The distributional agent in torch: losses, heads and blocks on the shipped kernels."""

from trueup.kernels.torch.dqn.aggregation import dueling
from trueup.kernels.torch.dqn.atoms import expected_q, support_of
from trueup.kernels.torch.dqn.blocks import (
    GatedResidual,
    MoEGate,
    SelectiveScan,
    VariableSelection,
)
from trueup.kernels.torch.dqn.c51 import C51Loss, c51_loss
from trueup.kernels.torch.dqn.experts import moe_balance, moe_gate, moe_mixture
from trueup.kernels.torch.dqn.grn import gated_residual
from trueup.kernels.torch.dqn.heads import C51Head, IQNHead
from trueup.kernels.torch.dqn.iqn import IQNLoss, cvar, iqn_loss
from trueup.kernels.torch.dqn.scan import selective_scan
from trueup.kernels.torch.dqn.selection import select_variables

__all__ = [
    "C51Head",
    "C51Loss",
    "GatedResidual",
    "IQNHead",
    "IQNLoss",
    "MoEGate",
    "SelectiveScan",
    "VariableSelection",
    "c51_loss",
    "cvar",
    "dueling",
    "expected_q",
    "gated_residual",
    "iqn_loss",
    "moe_balance",
    "moe_gate",
    "moe_mixture",
    "select_variables",
    "selective_scan",
    "support_of",
]
