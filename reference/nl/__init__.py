"""Equations of Nested Learning: optimisers and fast weights."""

from trueup.reference.nl.cms_forward import cms_forward, cms_level
from trueup.reference.nl.cms_update import cms_update
from trueup.reference.nl.cms_update_level import cms_level_update
from trueup.reference.nl.cms_variants import cms_independent
from trueup.reference.nl.deep_momentum import deep_momentum
from trueup.reference.nl.deep_momentum_linear import deep_momentum_linear
from trueup.reference.nl.delta_momentum import delta_momentum
from trueup.reference.nl.delta_momentum_rank1 import delta_momentum_rank1
from trueup.reference.nl.linear_attention import linear_attention
from trueup.reference.nl.m3 import m3, m3_slow
from trueup.reference.nl.momentum import momentum
from trueup.reference.nl.muon import muon
from trueup.reference.nl.muon_library import muon_library
from trueup.reference.nl.newton_schulz import newton_schulz
from trueup.reference.nl.online_writes import online_writes
from trueup.reference.nl.projected_descent import projected_descent
from trueup.reference.nl.projected_descent_batch import projected_descent_batch
from trueup.reference.nl.projected_descent_chunk import projected_descent_chunk
from trueup.reference.nl.projected_descent_order import projected_descent_order
from trueup.reference.nl.self_modifying import self_modifying
from trueup.reference.nl.self_modifying_dot import self_modifying_dot

__all__ = [
    "cms_forward",
    "cms_independent",
    "cms_level",
    "cms_level_update",
    "cms_update",
    "deep_momentum",
    "deep_momentum_linear",
    "delta_momentum",
    "delta_momentum_rank1",
    "linear_attention",
    "m3",
    "m3_slow",
    "momentum",
    "muon",
    "muon_library",
    "newton_schulz",
    "online_writes",
    "projected_descent",
    "projected_descent_batch",
    "projected_descent_chunk",
    "projected_descent_order",
    "self_modifying",
    "self_modifying_dot",
]
