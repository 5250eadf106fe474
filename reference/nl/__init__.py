"""Equations of Nested Learning: optimisers and fast weights."""

from trueup.reference.nl.delta_momentum import delta_momentum
from trueup.reference.nl.delta_momentum_rank1 import delta_momentum_rank1
from trueup.reference.nl.momentum import momentum

__all__ = ["delta_momentum", "delta_momentum_rank1", "momentum"]
