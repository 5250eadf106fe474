"""Equations of the branching distributional DQN."""

from trueup.reference.dqn.layer_norm_backward import layer_norm_backward

__all__ = ["layer_norm_backward"]
