"""Equations of the branching distributional DQN."""

from trueup.reference.dqn.attention_focus import attention_focus, attention_summary
from trueup.reference.dqn.aux_heads import aux_heads
from trueup.reference.dqn.aux_weight import aux_direction, aux_weight
from trueup.reference.dqn.conservative import conservative
from trueup.reference.dqn.entropy_term import entropy_term
from trueup.reference.dqn.expectile import expectile, expectile_backup
from trueup.reference.dqn.grn_backward import grn_backward
from trueup.reference.dqn.grn_forward import grn_forward
from trueup.reference.dqn.layer_norm_backward import layer_norm_backward
from trueup.reference.dqn.liquid_time_constant import liquid_mod, liquid_step, liquid_step_backward
from trueup.reference.dqn.moe_gate import moe_balance, moe_gate_backward, moe_gate_forward
from trueup.reference.dqn.moe_mixture import moe_mixture_backward, moe_mixture_forward
from trueup.reference.dqn.selective_scan_backward import selective_scan_backward
from trueup.reference.dqn.selective_scan_forward import selective_scan_forward
from trueup.reference.dqn.vsn_backward import vsn_backward
from trueup.reference.dqn.vsn_forward import vsn_forward

__all__ = [
    "attention_focus",
    "attention_summary",
    "aux_direction",
    "aux_heads",
    "aux_weight",
    "conservative",
    "entropy_term",
    "expectile",
    "expectile_backup",
    "grn_backward",
    "grn_forward",
    "layer_norm_backward",
    "liquid_mod",
    "liquid_step",
    "liquid_step_backward",
    "moe_balance",
    "moe_gate_backward",
    "moe_gate_forward",
    "moe_mixture_backward",
    "moe_mixture_forward",
    "selective_scan_backward",
    "selective_scan_forward",
    "vsn_backward",
    "vsn_forward",
]
