"""The Python backend: a callable on NumPy arrays or torch tensors as the kernel under test."""

from trueup.oracle.backends.python.backend import PythonBackend, PythonKernel
from trueup.oracle.backends.python.source import PythonCall, PythonSource

__all__ = ["PythonBackend", "PythonCall", "PythonKernel", "PythonSource"]
