"""The optimizers of Nested Learning as `torch.optim.Optimizer` classes."""

from trueup.kernels.torch.optim.capture import LayerCapture
from trueup.kernels.torch.optim.deep import DeepMomentum
from trueup.kernels.torch.optim.delta import DeltaMomentum
from trueup.kernels.torch.optim.m3 import M3
from trueup.kernels.torch.optim.matrices import split_parameters
from trueup.kernels.torch.optim.muon import MuonNS
from trueup.kernels.torch.optim.projected import ProjectedDescent

__all__ = [
    "M3",
    "DeepMomentum",
    "DeltaMomentum",
    "LayerCapture",
    "MuonNS",
    "ProjectedDescent",
    "split_parameters",
]
