"""The distributional agent in torch: losses, heads and blocks on the shipped kernels."""

from trueup.kernels.torch.dqn.aggregation import dueling
from trueup.kernels.torch.dqn.atoms import expected_q, support_of
from trueup.kernels.torch.dqn.auxiliary import AuxLosses, aux_direction, aux_heads, aux_weight
from trueup.kernels.torch.dqn.blocks import GatedResidual, MoEGate, SelectiveScan, VariableSelection
from trueup.kernels.torch.dqn.branches import (
    branch_budgets,
    epsilon_greedy,
    mag_concat,
    nstep_return,
)
from trueup.kernels.torch.dqn.c51 import C51Loss, c51_loss
from trueup.kernels.torch.dqn.experts import moe_balance, moe_gate, moe_mixture
from trueup.kernels.torch.dqn.focus import attention_focus_, attention_summary_
from trueup.kernels.torch.dqn.gradients import grad_norms, nan_flags_, saxpy_correction_
from trueup.kernels.torch.dqn.grn import gated_residual
from trueup.kernels.torch.dqn.heads import C51Head, IQNHead
from trueup.kernels.torch.dqn.iqn import IQNLoss, cvar, iqn_loss
from trueup.kernels.torch.dqn.liquid import liquid_mod, liquid_step
from trueup.kernels.torch.dqn.market import (
    Book,
    Joint,
    action_encoding,
    action_factoring,
    differential_sharpe_,
    order_book,
)
from trueup.kernels.torch.dqn.projection import c51_projection, td_priority
from trueup.kernels.torch.dqn.quantiles import branch_supports, q_quantiles
from trueup.kernels.torch.dqn.replay import (
    importance_weights,
    priorities,
    sum_tree_rebuild_,
    sum_tree_sample,
    sum_tree_update_,
)
from trueup.kernels.torch.dqn.sampling import Drawn, advantage_noise, greedy_action, thompson
from trueup.kernels.torch.dqn.scan import selective_scan
from trueup.kernels.torch.dqn.selection import select_variables
from trueup.kernels.torch.dqn.shift import atom_shift, atom_shift_gradient
from trueup.kernels.torch.dqn.terms import conservative, entropy_term, expectile, expectile_backup
from trueup.kernels.torch.dqn.transforms import symexp, symlog

__all__ = [
    "AuxLosses",
    "Book",
    "C51Head",
    "C51Loss",
    "Drawn",
    "GatedResidual",
    "IQNHead",
    "IQNLoss",
    "Joint",
    "MoEGate",
    "SelectiveScan",
    "VariableSelection",
    "action_encoding",
    "action_factoring",
    "advantage_noise",
    "atom_shift",
    "atom_shift_gradient",
    "attention_focus_",
    "attention_summary_",
    "aux_direction",
    "aux_heads",
    "aux_weight",
    "branch_budgets",
    "branch_supports",
    "c51_loss",
    "c51_projection",
    "conservative",
    "cvar",
    "differential_sharpe_",
    "dueling",
    "entropy_term",
    "epsilon_greedy",
    "expected_q",
    "expectile",
    "expectile_backup",
    "gated_residual",
    "grad_norms",
    "greedy_action",
    "importance_weights",
    "iqn_loss",
    "liquid_mod",
    "liquid_step",
    "mag_concat",
    "moe_balance",
    "moe_gate",
    "moe_mixture",
    "nan_flags_",
    "nstep_return",
    "order_book",
    "priorities",
    "q_quantiles",
    "saxpy_correction_",
    "select_variables",
    "selective_scan",
    "sum_tree_rebuild_",
    "sum_tree_sample",
    "sum_tree_update_",
    "support_of",
    "symexp",
    "symlog",
    "td_priority",
    "thompson",
]
