"""Equations of Nested Learning: optimisers and fast weights."""

from trueup.reference.nl.delta_momentum import delta_momentum
from trueup.reference.nl.delta_momentum_rank1 import delta_momentum_rank1
from trueup.reference.nl.momentum import momentum
from trueup.reference.nl.newton_schulz import newton_schulz
from trueup.reference.nl.projected_descent import projected_descent
from trueup.reference.nl.projected_descent_batch import projected_descent_batch

__all__ = [
    "delta_momentum",
    "delta_momentum_rank1",
    "momentum",
    "newton_schulz",
    "projected_descent",
    "projected_descent_batch",
]
