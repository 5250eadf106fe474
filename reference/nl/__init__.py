"""Equations of Nested Learning: optimisers and fast weights."""

from trueup.reference.nl.deep_momentum import deep_momentum
from trueup.reference.nl.deep_momentum_linear import deep_momentum_linear
from trueup.reference.nl.delta_momentum import delta_momentum
from trueup.reference.nl.delta_momentum_rank1 import delta_momentum_rank1
from trueup.reference.nl.m3 import m3, m3_slow
from trueup.reference.nl.momentum import momentum
from trueup.reference.nl.muon import muon
from trueup.reference.nl.muon_library import muon_library
from trueup.reference.nl.newton_schulz import newton_schulz
from trueup.reference.nl.projected_descent import projected_descent
from trueup.reference.nl.projected_descent_batch import projected_descent_batch

__all__ = [
    "deep_momentum",
    "deep_momentum_linear",
    "delta_momentum",
    "delta_momentum_rank1",
    "m3",
    "m3_slow",
    "momentum",
    "muon",
    "muon_library",
    "newton_schulz",
    "projected_descent",
    "projected_descent_batch",
]
