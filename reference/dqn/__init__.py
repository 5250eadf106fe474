"""Equations of the branching distributional DQN."""

from trueup.reference.dqn.action_factoring import (
    action_encoding,
    action_factoring,
    counterfactual_reward,
    legacy_action,
)
from trueup.reference.dqn.adam_w import adam_w
from trueup.reference.dqn.adaptive_entropy import adaptive_entropy
from trueup.reference.dqn.atom_shift import atom_shift, atom_shift_gradient
from trueup.reference.dqn.attention_focus import attention_focus, attention_summary
from trueup.reference.dqn.aux_heads import aux_heads
from trueup.reference.dqn.aux_weight import aux_direction, aux_weight
from trueup.reference.dqn.branch_budgets import branch_budgets
from trueup.reference.dqn.c51_loss import c51_loss
from trueup.reference.dqn.c51_projection import c51_projection
from trueup.reference.dqn.conservative import conservative
from trueup.reference.dqn.differential_sharpe import differential_sharpe, sharpe
from trueup.reference.dqn.dueling import dueling_backward, dueling_forward
from trueup.reference.dqn.entropy_term import entropy_term
from trueup.reference.dqn.expected_q import expected_q, expected_q_backward
from trueup.reference.dqn.expected_sarsa import sarsa_mixture, sarsa_policy
from trueup.reference.dqn.expectile import expectile, expectile_backup
from trueup.reference.dqn.grad_norms import grad_norms
from trueup.reference.dqn.greedy import advantage_noise, epsilon_greedy, greedy_action
from trueup.reference.dqn.grn_backward import grn_backward
from trueup.reference.dqn.grn_forward import grn_forward
from trueup.reference.dqn.hold_quality import hold_quality
from trueup.reference.dqn.iqn import cvar, iqn_loss
from trueup.reference.dqn.iqn_inputs import cosine_embedding, iqn_target
from trueup.reference.dqn.layer_norm_backward import layer_norm_backward
from trueup.reference.dqn.liquid_time_constant import liquid_mod, liquid_step, liquid_step_backward
from trueup.reference.dqn.mag_concat import mag_concat, mag_concat_backward
from trueup.reference.dqn.moe_gate import moe_balance, moe_gate_backward, moe_gate_forward
from trueup.reference.dqn.moe_mixture import moe_mixture_backward, moe_mixture_forward
from trueup.reference.dqn.nan_flags import nan_flags
from trueup.reference.dqn.order_book import order_book
from trueup.reference.dqn.percentile_scaling import percentile_scaling, tanh_scaling
from trueup.reference.dqn.priorities import importance_weights, priorities
from trueup.reference.dqn.q_quantiles import atom_support, q_quantiles
from trueup.reference.dqn.saxpy_correction import saxpy_correction
from trueup.reference.dqn.selective_scan_backward import selective_scan_backward
from trueup.reference.dqn.selective_scan_forward import selective_scan_forward
from trueup.reference.dqn.sum_tree import sum_tree_rebuild, sum_tree_update
from trueup.reference.dqn.sum_tree_sample import sum_tree_sample
from trueup.reference.dqn.symlog import symexp, symexp_backward, symlog, symlog_backward
from trueup.reference.dqn.targets import bdq_target, nstep_return
from trueup.reference.dqn.td_priority import td_priority
from trueup.reference.dqn.thompson import thompson
from trueup.reference.dqn.trunk import horizon_value, trunk_gradient
from trueup.reference.dqn.vsn_backward import vsn_backward
from trueup.reference.dqn.vsn_forward import vsn_forward

__all__ = [
    "action_encoding",
    "action_factoring",
    "adam_w",
    "adaptive_entropy",
    "advantage_noise",
    "atom_shift",
    "atom_shift_gradient",
    "atom_support",
    "attention_focus",
    "attention_summary",
    "aux_direction",
    "aux_heads",
    "aux_weight",
    "bdq_target",
    "branch_budgets",
    "c51_loss",
    "c51_projection",
    "conservative",
    "cosine_embedding",
    "counterfactual_reward",
    "cvar",
    "differential_sharpe",
    "dueling_backward",
    "dueling_forward",
    "entropy_term",
    "epsilon_greedy",
    "expected_q",
    "expected_q_backward",
    "expectile",
    "expectile_backup",
    "grad_norms",
    "greedy_action",
    "grn_backward",
    "grn_forward",
    "hold_quality",
    "horizon_value",
    "importance_weights",
    "iqn_loss",
    "iqn_target",
    "layer_norm_backward",
    "legacy_action",
    "liquid_mod",
    "liquid_step",
    "liquid_step_backward",
    "mag_concat",
    "mag_concat_backward",
    "moe_balance",
    "moe_gate_backward",
    "moe_gate_forward",
    "moe_mixture_backward",
    "moe_mixture_forward",
    "nan_flags",
    "nstep_return",
    "order_book",
    "percentile_scaling",
    "priorities",
    "q_quantiles",
    "sarsa_mixture",
    "sarsa_policy",
    "saxpy_correction",
    "selective_scan_backward",
    "selective_scan_forward",
    "sharpe",
    "sum_tree_rebuild",
    "sum_tree_sample",
    "sum_tree_update",
    "symexp",
    "symexp_backward",
    "symlog",
    "symlog_backward",
    "tanh_scaling",
    "td_priority",
    "thompson",
    "trunk_gradient",
    "vsn_backward",
    "vsn_forward",
]
