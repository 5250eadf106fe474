"""The memory modules of Nested Learning: linear memories with online writes, and the CMS."""

from trueup.kernels.torch.modules.continuum import ContinuumMemory
from trueup.kernels.torch.modules.levels import LevelSpec
from trueup.kernels.torch.modules.linear import LinearMemory
from trueup.kernels.torch.modules.signals import error_of
from trueup.kernels.torch.modules.writes import linear_memory

__all__ = ["ContinuumMemory", "LevelSpec", "LinearMemory", "error_of", "linear_memory"]
