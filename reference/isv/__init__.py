"""Equations of the internal-state bus: adaptive scalars kept on the device."""

from trueup.reference.isv.grad_norm_emas import grad_norm_emas
from trueup.reference.isv.tau import tau

__all__ = ["grad_norm_emas", "tau"]
