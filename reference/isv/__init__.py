"""Equations of the internal-state bus: adaptive scalars kept on the device."""

from trueup.reference.isv.adaptive_clip import adaptive_clip
from trueup.reference.isv.cql_alpha import cql_alpha
from trueup.reference.isv.epsilon import epsilon
from trueup.reference.isv.fold_warmup import fold_warmup
from trueup.reference.isv.gamma import gamma
from trueup.reference.isv.grad_balancer import grad_balancer
from trueup.reference.isv.grad_norm_emas import grad_norm_emas
from trueup.reference.isv.kelly_cap import kelly_cap
from trueup.reference.isv.plan_threshold import plan_threshold
from trueup.reference.isv.polyak import polyak
from trueup.reference.isv.reward_emas import reward_emas
from trueup.reference.isv.rms_ema import rms_ema
from trueup.reference.isv.soft_reset import soft_reset
from trueup.reference.isv.state_kl import state_kl
from trueup.reference.isv.tau import tau

__all__ = [
    "adaptive_clip",
    "cql_alpha",
    "epsilon",
    "fold_warmup",
    "gamma",
    "grad_balancer",
    "grad_norm_emas",
    "kelly_cap",
    "plan_threshold",
    "polyak",
    "reward_emas",
    "rms_ema",
    "soft_reset",
    "state_kl",
    "tau",
]
