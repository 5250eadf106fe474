"""Nested Learning in torch: the shipped kernels as operators, optimizers and memories."""
