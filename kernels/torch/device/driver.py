"""Load an image and launch its functions through the CUDA driver, in torch's own context."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from trueup.kernels.torch.device.compiler import Image, Unavailable, compile_contract
from trueup.kernels.torch.device.contract import Contract, Geometry

_FREE_SHARED = 48 * 1024  # above it a kernel has to be told that it may


class Loaded(Protocol):
    """A contract's functions on one device."""

    def launch(self, geometry: Geometry, arguments: int, stream: int) -> None:
        """Queue one launch; `arguments` is the address of the array of parameter pointers."""


class DriverFunctions:
    """The functions of one contract, loaded into the current CUDA context of torch."""

    def __init__(self, image: Image) -> None:
        """Load the image; raise Unavailable where the driver refuses it."""
        from cuda.bindings import driver

        self._driver = driver
        self._attach()
        library = self._call(driver.cuLibraryLoadData(image.code, [], [], 0, [], [], 0))
        self._functions: dict[str, Any] = {}
        for entry, symbol in image.symbols.items():
            found = self._call(driver.cuLibraryGetKernel(library, symbol.encode()))
            self._functions[entry] = self._call(driver.cuKernelGetFunction(found))
        self._shared = dict.fromkeys(self._functions, _FREE_SHARED)

    def launch(self, geometry: Geometry, arguments: int, stream: int) -> None:
        """Queue one launch on the stream."""
        function = self._functions[geometry.entry]
        if geometry.shared > self._shared[geometry.entry]:
            self._allow(geometry.entry, geometry.shared)
        given = (*geometry.grid, *geometry.block, geometry.shared, stream, arguments, 0)
        (status,) = self._driver.cuLaunchKernel(function, *given)
        if status == self._driver.CUresult.CUDA_ERROR_INVALID_CONTEXT:
            self._attach()
            (status,) = self._driver.cuLaunchKernel(function, *given)
        if status:
            raise RuntimeError(f"{geometry.entry}: the launch was refused: {status.name}")

    def _attach(self) -> None:
        """Make torch's context, the device's primary one, current in a thread that has none."""
        if int(self._call(self._driver.cuCtxGetCurrent())):
            return
        device = self._call(self._driver.cuDeviceGet(torch.cuda.current_device()))
        self._call(
            self._driver.cuCtxSetCurrent(self._call(self._driver.cuDevicePrimaryCtxRetain(device)))
        )

    def _allow(self, entry: str, size: int) -> None:
        attributes = self._driver.CUfunction_attribute
        attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call(self._driver.cuFuncSetAttribute(self._functions[entry], attribute, size))
        self._shared[entry] = size

    def _call(self, result: tuple[Any, ...]) -> Any:
        if result[0]:
            raise Unavailable(f"the CUDA driver says {result[0].name}")
        return result[1] if len(result) > 1 else None


def load(contract: Contract, arch: str) -> Loaded:
    """Compile for the architecture, and load into the current context."""
    return DriverFunctions(compile_contract(contract, arch))
