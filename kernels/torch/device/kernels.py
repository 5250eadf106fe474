"""A shipped kernel as a callable on CUDA tensors, launched on torch's current stream.

The first call at a shape evaluates the contract's expressions and packs its sizes; later calls
write pointers and scalars into what is packed already, so that a call costs some microseconds.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

from trueup.kernels.torch.device.compiler import Unavailable, cuda_core
from trueup.kernels.torch.device.contract import (
    BUFFERS,
    Argument,
    Contract,
    Geometry,
    contract_path,
    load_contract,
)
from trueup.kernels.torch.device.driver import Loaded, load

_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "bool": torch.bool,
}
_SCALARS: dict[str, Any] = {
    "f64": ctypes.c_double,
    "f32": ctypes.c_float,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
}


class _Plan:
    """Launches at one set of shapes: geometry, packed parameters, and the workspace's shapes."""

    def __init__(self, contract: Contract, given: Sequence[Any]) -> None:
        names = [arg.name for arg in contract.given()]
        values = dict(zip(names, given, strict=True))
        buffers = [arg for arg in contract.given() if arg.role in BUFFERS]
        sizes = contract.sizes({arg.name: values[arg.name].shape for arg in buffers})
        self.outside = contract.outside(sizes)
        integers = {key: value for key, value in values.items() if isinstance(value, int)}
        self.geometry: tuple[Geometry, ...] = ()
        self.workspace: list[tuple[ctypes.c_void_p, tuple[int, ...], torch.dtype]] = []
        if self.outside is not None:
            return
        self.geometry = contract.geometry({**integers, **sizes})
        slots: dict[str, Any] = {}
        for arg in contract.args:
            slots[arg.name] = _slot(arg, sizes)
            if arg.role == "workspace":
                shape = arg.extents({**integers, **sizes})
                self.workspace.append((slots[arg.name], shape, _DTYPES[arg.dtype]))
        self.slots = [slots[name] for name in names]
        self.packed = [
            (ctypes.c_void_p * len(item.args))(
                *(ctypes.addressof(slots[name]) for name in item.args)
            )
            for item in self.geometry
        ]
        self.addresses = [ctypes.addressof(block) for block in self.packed]
        self._all = slots  # the packed pointers point into these


def _slot(arg: Argument, sizes: dict[str, int]) -> Any:
    if arg.role == "axis":
        return ctypes.c_int32(sizes[arg.name])
    if arg.role == "scalar":
        return _SCALARS[arg.dtype]()
    return ctypes.c_void_p()


class Kernel:
    """A contract's kernel; call it with the contract's buffers and scalars, in its order."""

    def __init__(self, contract: Contract, loader: Callable[[Contract, str], Loaded]) -> None:
        """Keep the contract; `loader` gives its functions for an architecture, once a device."""
        self.contract = contract
        self._given = contract.given()
        self._buffers = [
            (index, arg.name, _DTYPES.get(arg.dtype), arg.dtype)
            for index, arg in enumerate(self._given)
            if arg.role in BUFFERS
        ]
        self._integers = [
            index
            for index, arg in enumerate(self._given)
            if arg.role == "scalar" and arg.dtype[0] in "iu"
        ]
        self._loader = loader
        self._loaded: dict[int, Loaded] = {}
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        # Parameters are packed in place: autograd's threads may launch the same plan.
        self._lock = threading.Lock()

    def refuses(self, *given: Any) -> str | None:
        """Say why the kernel cannot take these tensors (dtype, layout, size), or None."""
        device = given[self._buffers[0][0]].device
        for index, name, dtype, wanted in self._buffers:
            tensor = given[index]
            if tensor.dtype is not dtype:
                return f"{name} is {tensor.dtype}, the kernel takes {wanted}"
            if not tensor.is_contiguous():
                return f"{name} is not contiguous"
            if tensor.device != device:
                return f"{name} is on {tensor.device}, not on {device}"
        return self._plan(given).outside

    def attempt(self, *given: Any) -> str | None:
        """Launch on the current stream of the tensors' device, unless the kernel refuses them.

        Tensors and scalars come in the contract's order, without axes and workspace. Returns
        None once queued, else what `refuses` says; raises ValueError for shapes that do not fit.
        """
        reason = self.refuses(*given)
        if reason is not None:
            return reason
        first = given[self._buffers[0][0]]
        index = first.device.index or 0
        if first.is_cuda and torch.cuda.current_device() != index:
            with torch.cuda.device(index):
                self._run(given, index, first)
        else:
            self._run(given, index, first)
        return None

    def _run(self, given: Sequence[Any], index: int, first: torch.Tensor) -> None:
        plan = self._plan(given)
        loaded = self._loaded.get(index) or self._load(index, first)
        work = [
            (slot, torch.empty(shape, dtype=dtype, device=first.device))
            for slot, shape, dtype in plan.workspace
        ]
        stream = torch.cuda.current_stream(index).cuda_stream if first.is_cuda else 0
        with self._lock:
            for slot, value in zip(plan.slots, given, strict=True):
                slot.value = value.data_ptr() if isinstance(value, torch.Tensor) else value
            for slot, space in work:
                slot.value = space.data_ptr()
            for geometry, address in zip(plan.geometry, plan.addresses, strict=True):
                loaded.launch(geometry, address, stream)

    def _plan(self, given: Sequence[Any]) -> _Plan:
        key = tuple(given[index].shape for index, *_ in self._buffers)
        if self._integers:
            key += tuple(given[index] for index in self._integers)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _Plan(self.contract, given)
        return plan

    def _load(self, index: int, first: torch.Tensor) -> Loaded:
        arch = "host"
        if first.is_cuda:
            major, minor = torch.cuda.get_device_capability(index)
            arch = f"sm_{major}{minor}"
        self._loaded[index] = self._loader(self.contract, arch)
        return self._loaded[index]


@cache
def kernel(name: str) -> Kernel:
    """Return the shipped kernel of a contract's id; nothing is compiled before its first call."""
    return Kernel(load_contract(contract_path(name)), load)


@cache
def why_not() -> str | None:
    """Say why no kernel can run in this process (no device, no compiler), or None."""
    if not torch.cuda.is_available():
        return "torch sees no CUDA device"
    try:
        cuda_core()
    except Unavailable as error:
        return str(error)
    return None
