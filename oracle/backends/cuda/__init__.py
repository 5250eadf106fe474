"""The CUDA backend: compile with NVRTC, load through the driver, run on a device."""

from trueup.oracle.backends.cuda.backend import CudaBackend
from trueup.oracle.backends.cuda.compiler import compile_cubin

__all__ = ["CudaBackend", "compile_cubin"]
