"""Equations of the branching distributional DQN."""
