"""Guarded arrays that a callable can take, as NumPy arrays or torch tensors, and back again."""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np

from trueup.oracle.backends.arguments import Bytes
from trueup.oracle.backends.base import AnyArray, Buffer
from trueup.oracle.backends.guards import Guarded
from trueup.oracle.backends.python.source import DeviceName, Kind
from trueup.oracle.errors import BackendUnavailable, ContractError


class Arrays(Protocol):
    """What differs between NumPy and torch."""

    device: str

    def allocate(self, start: Bytes) -> Any:
        """Return fresh memory with these bytes."""
        ...

    def view(self, memory: Any, layout: Guarded) -> Any:
        """Return the payload as an array of the buffer's dtype and shape."""
        ...

    def bytes_of(self, memory: Any) -> Bytes:
        """Return the memory's bytes on the CPU."""
        ...

    def result(self, value: object, buffer: Buffer) -> AnyArray | str:
        """Return a returned value as a NumPy array, or say in words what it is instead."""
        ...

    def finish(self) -> None:
        """Wait until everything the callable started is done."""
        ...


def arrays(kind: Kind, device: DeviceName) -> Arrays:
    """Return the arrays of a kind; torch is imported only for kind torch."""
    return TorchArrays(device) if kind == "torch" else NumpyArrays()


class NumpyArrays:
    """NumPy arrays in memory."""

    device = f"CPU, NumPy {np.__version__}"

    def allocate(self, start: Bytes) -> Any:
        """Copy."""
        return start.copy()

    def view(self, memory: Any, layout: Guarded) -> Any:
        """View the payload."""
        return layout.inside(memory).view(layout.buffer.dtype).reshape(layout.buffer.shape)

    def bytes_of(self, memory: Any) -> Bytes:
        """Return the very memory."""
        taken: Bytes = memory
        return taken

    def result(self, value: object, buffer: Buffer) -> AnyArray | str:
        """Take arrays and NumPy scalars; a Python number has no dtype to hold to."""
        if not isinstance(value, np.ndarray | np.generic):
            return f"a {type(value).__name__}"
        array: AnyArray = np.asarray(value)
        if array.dtype != buffer.dtype or array.shape != buffer.shape:
            return f"{array.dtype} {array.shape}"
        return np.array(array, copy=True, order="C")

    def finish(self) -> None:
        """Nothing runs on."""


class TorchArrays:
    """Torch tensors on the CPU or the current CUDA device."""

    def __init__(self, device: DeviceName) -> None:
        """Import torch, and see that the device is there."""
        try:
            import torch
        except ImportError as error:
            raise BackendUnavailable(
                'a contract with kind = "torch" needs torch',
                got=str(error),
                fix="pip install 'trueup[torch]'",
            ) from error
        if device == "cuda" and not torch.cuda.is_available():
            raise BackendUnavailable(
                "torch sees no CUDA device",
                got=f"torch {torch.__version__}",
                fix='run where torch.cuda.is_available() is true, or set device = "cpu"',
            )
        self._torch: Any = torch
        self._device = device
        name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
        self.device = f"{name}, torch {torch.__version__}"

    def allocate(self, start: Bytes) -> Any:
        """Copy to the device, as bytes."""
        return self._torch.from_numpy(start.copy()).to(self._device)

    def view(self, memory: Any, layout: Guarded) -> Any:
        """View the payload; torch's dtypes have the names of NumPy's and ml_dtypes'."""
        name = layout.buffer.dtype.name
        dtype = getattr(self._torch, name, None)
        if not isinstance(dtype, self._torch.dtype):
            raise ContractError(
                f"torch has no dtype {name}", where=layout.buffer.name, fix="declare another dtype"
            )
        return layout.inside(memory).view(dtype).reshape(layout.buffer.shape)

    def bytes_of(self, memory: Any) -> Bytes:
        """Bring the bytes to the CPU."""
        taken: Bytes = memory.cpu().numpy()
        return taken

    def result(self, value: object, buffer: Buffer) -> AnyArray | str:
        """Take tensors on the declared device."""
        torch = self._torch
        if not isinstance(value, torch.Tensor):
            return f"a {type(value).__name__}"
        tensor: Any = value
        name, shape = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
        if name != buffer.dtype.name or shape != buffer.shape:
            return f"{name} {shape}"
        if tensor.device.type != self._device:
            return f"a tensor on {tensor.device}"
        # Bytes first: NumPy has no view of torch's bfloat16.
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().copy()
        array: AnyArray = raw.view(buffer.dtype).reshape(buffer.shape)
        return array

    def finish(self) -> None:
        """Poll, since a signal cannot interrupt torch.cuda.synchronize."""
        if self._device == "cuda":
            event = self._torch.cuda.Event()
            event.record()
            while not event.query():
                time.sleep(0.0005)
