"""Equations of Nested Learning: optimisers and fast weights."""

from trueup.reference.nl.adam_memory import adam_memory
from trueup.reference.nl.associative_memory import associative_memory
from trueup.reference.nl.cms_forward import cms_forward, cms_level
from trueup.reference.nl.cms_update import cms_update
from trueup.reference.nl.cms_update_level import cms_level_update
from trueup.reference.nl.cms_variants import cms_independent
from trueup.reference.nl.deep_momentum import deep_momentum
from trueup.reference.nl.deep_momentum_linear import deep_momentum_linear
from trueup.reference.nl.delta_momentum import delta_momentum
from trueup.reference.nl.delta_momentum_rank1 import delta_momentum_rank1
from trueup.reference.nl.ftrl import ftrl
from trueup.reference.nl.gradient_descent import gradient_descent
from trueup.reference.nl.hebbian_step import hebbian_step
from trueup.reference.nl.inner_momentum import inner_momentum
from trueup.reference.nl.linear_attention import linear_attention
from trueup.reference.nl.m3 import m3, m3_slow
from trueup.reference.nl.momentum import momentum
from trueup.reference.nl.momentum_objective import momentum_objective
from trueup.reference.nl.muon import muon
from trueup.reference.nl.muon_library import muon_library
from trueup.reference.nl.newton_schulz import newton_schulz
from trueup.reference.nl.newton_schulz_bf16 import newton_schulz_bf16
from trueup.reference.nl.newton_schulz_objective import newton_schulz_objective
from trueup.reference.nl.online_writes import online_writes
from trueup.reference.nl.preconditioned_momentum import preconditioned_momentum
from trueup.reference.nl.projected_descent import projected_descent
from trueup.reference.nl.projected_descent_batch import projected_descent_batch
from trueup.reference.nl.projected_descent_chunk import projected_descent_chunk
from trueup.reference.nl.projected_descent_order import projected_descent_order
from trueup.reference.nl.projections import projections
from trueup.reference.nl.proximal_descent import proximal_descent
from trueup.reference.nl.self_modifying import self_modifying
from trueup.reference.nl.self_modifying_dot import self_modifying_dot
from trueup.reference.nl.undamped_momentum import undamped_momentum

__all__ = [
    "adam_memory",
    "associative_memory",
    "cms_forward",
    "cms_independent",
    "cms_level",
    "cms_level_update",
    "cms_update",
    "deep_momentum",
    "deep_momentum_linear",
    "delta_momentum",
    "delta_momentum_rank1",
    "ftrl",
    "gradient_descent",
    "hebbian_step",
    "inner_momentum",
    "linear_attention",
    "m3",
    "m3_slow",
    "momentum",
    "momentum_objective",
    "muon",
    "muon_library",
    "newton_schulz",
    "newton_schulz_bf16",
    "newton_schulz_objective",
    "online_writes",
    "preconditioned_momentum",
    "projected_descent",
    "projected_descent_batch",
    "projected_descent_chunk",
    "projected_descent_order",
    "projections",
    "proximal_descent",
    "self_modifying",
    "self_modifying_dot",
    "undamped_momentum",
]
