"""A kernel loaded on a CUDA device: guarded buffers in, launches, buffers and faults out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trueup.oracle.backends.arguments import Bytes, as_array, check_sizes, pack
from trueup.oracle.backends.base import (
    Buffer,
    Fault,
    Launch,
    Parameter,
    RunOptions,
    RunResult,
)
from trueup.oracle.backends.cuda.compiler import Image
from trueup.oracle.backends.cuda.driver import Device, DriverError, bindings, call
from trueup.oracle.backends.cuda.loader import Function, load_functions
from trueup.oracle.backends.guards import Guarded
from trueup.oracle.errors import BackendUnavailable, ContractError

# Above this much shared memory a kernel has to be told that it may.
_FREE_SHARED = 48 * 1024
# The launch queue holds some thousand launches, and a full one blocks without a time limit.
_QUEUE = 128
_LARGEST_DIMENSION = 2**31 - 1


class _TimeLimit(Exception):
    """The launches did not return in time."""


class _Refused(Exception):
    """The driver did not take a launch."""


@dataclass
class _Placed:
    """A buffer on the device: its layout, and the address of the whole allocation."""

    guarded: Guarded
    base: int

    @property
    def address(self) -> int:
        return self.base + self.guarded.guard


class CudaKernel:
    """One image on one device."""

    def __init__(self, image: Image, device: Device, where: str) -> None:
        """Load the image, so that what the driver refuses shows now and not at the first run."""
        self._device, self._where = device, where
        with device.current():
            self._functions: dict[str, Function] = load_functions(image, device, where)

    def signature(self, entry: str) -> tuple[Parameter, ...] | None:
        """Return None: the driver knows the parameters' sizes, which `run` checks, not kinds."""
        return None

    def parameter_sizes(self, entry: str) -> tuple[int, ...]:
        """Return the size in bytes of each parameter, as the driver knows it."""
        return self._function(entry).parameters

    def run(
        self, launches: Sequence[Launch], buffers: Sequence[Buffer], options: RunOptions
    ) -> RunResult:
        """Run the launches in order; after a crash or a hang the buffers are as they started."""
        if options.placement != "guard" or options.order != 0:
            raise ContractError(
                "the cuda backend has guard zones only, and no order of its own",
                got=f"placement {options.placement}, order {options.order}",
            )
        layouts = [Guarded.lay_out(buffer, options) for buffer in buffers]
        ran = [0]
        wholes: list[Bytes] = [layout.start for layout in layouts]
        faults: list[Fault] = []
        with self._device.current():
            self._check(launches, layouts)
            try:
                with self._placed(layouts) as placed:
                    try:
                        self._launch(launches, placed, options, ran)
                    except _Refused as refused:
                        faults.append(Fault("launch refused", str(refused)))
                        self._finish(options)
                    wholes = [self._read(item) for item in placed]
            except _TimeLimit:
                self._device.give_up_on_kernel(options.time_limit)
                message = f"the launches did not return within {options.time_limit:g} s"
                return _result(layouts, wholes, ran[0], [*faults, Fault("time limit", message)])
            except DriverError as error:
                if not error.sticky:
                    raise
                faults.append(_crash(error, launches[: ran[0]]))
        if faults and faults[-1].kind == "crash":
            self._device.lose_context()
            return _result(layouts, wholes, ran[0], faults)
        for layout, whole in zip(layouts, wholes, strict=True):
            faults += layout.faults(whole)
        return _result(layouts, wholes, ran[0], faults)

    def _function(self, entry: str) -> Function:
        if entry not in self._functions:
            raise ContractError(
                f"{entry} was not loaded",
                where=self._where,
                expected="one of " + ", ".join(self._functions),
            )
        return self._functions[entry]

    def _check(self, launches: Sequence[Launch], layouts: list[Guarded]) -> None:
        """Hold every launch to its kernel's parameters before anything runs."""
        addresses = {layout.buffer.name: 0 for layout in layouts}
        for launch in launches:
            given = pack(launch.args, addresses).sizes
            check_sizes(launch, given, self._function(launch.entry).parameters)

    @contextlib.contextmanager
    def _placed(self, layouts: list[Guarded]) -> Iterator[list[_Placed]]:
        """Put the buffers on the device; free them unless the context is lost or hangs."""
        placed: list[_Placed] = []
        try:
            for layout in layouts:
                placed.append(_Placed(layout, _allocate(layout.start.nbytes)))
            for item in placed:
                start = item.guarded.start
                address = start.ctypes.data
                call("cuMemcpyHtoDAsync", item.base, address, start.nbytes, self._device.stream)
            yield placed
        except (BackendUnavailable, DriverError) as error:
            if not (isinstance(error, DriverError) and error.sticky):
                _free(placed)
            raise
        else:
            # Not reached after a time limit: freeing waits for the kernel, which does not return.
            _free(placed)

    def _launch(
        self,
        launches: Sequence[Launch],
        placed: list[_Placed],
        options: RunOptions,
        ran: list[int],
    ) -> None:
        addresses = {item.guarded.buffer.name: item.address for item in placed}
        deadline = time.monotonic() + options.time_limit
        for launch in launches:
            if 0 in launch.grid:
                continue  # nothing to run, and the driver takes no empty grid
            packed = pack(launch.args, addresses)
            _launch_one(self._function(launch.entry), launch, packed.address, self._device)
            ran[0] += 1
            if ran[0] % _QUEUE == 0 and not self._device.wait(deadline):
                raise _TimeLimit
        if not self._device.wait(deadline):
            raise _TimeLimit

    def _finish(self, options: RunOptions) -> None:
        if not self._device.wait(time.monotonic() + options.time_limit):
            raise _TimeLimit

    def _read(self, item: _Placed) -> Bytes:
        whole = np.empty_like(item.guarded.start)
        stream = self._device.stream
        call("cuMemcpyDtoHAsync", whole.ctypes.data, item.base, whole.nbytes, stream)
        call("cuStreamSynchronize", stream)
        return whole


def _launch_one(function: Function, launch: Launch, arguments: int, device: Device) -> None:
    sizes = (*launch.grid, *launch.block)
    if min(sizes) < 0 or max(sizes) > _LARGEST_DIMENSION or launch.shared < 0:
        raise _Refused(f"{_describe(launch)}: sizes must lie in 0 .. 2**31 - 1")
    try:
        if launch.shared + function.static_shared > _FREE_SHARED:
            attribute = bindings().CUfunction_attribute
            attribute = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("cuFuncSetAttribute", function.handle, attribute, launch.shared)
        call(
            "cuLaunchKernel",
            function.handle,
            *sizes,
            launch.shared,
            device.stream,
            arguments,
            0,
        )
    except DriverError as error:
        if error.sticky:
            raise
        raise _Refused(f"{_describe(launch)}: {error}{_limits(launch, device)}") from error


def _describe(launch: Launch) -> str:
    return (
        f"{launch.entry} <<<{list(launch.grid)}, {list(launch.block)}, "
        f"{launch.shared} bytes shared>>>"
    )


def _limits(launch: Launch, device: Device) -> str:
    threads = device.attribute("MAX_THREADS_PER_BLOCK")
    if int(np.prod(launch.block, dtype=np.int64)) > threads:
        return f" (the device takes {threads} threads per block)"
    shared = device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    if launch.shared > shared:
        return f" (the device has {shared} bytes of shared memory per block)"
    return ""


def _allocate(nbytes: int) -> int:
    try:
        return int(call("cuMemAlloc", nbytes))
    except DriverError as error:
        if error.name != "CUDA_ERROR_OUT_OF_MEMORY":
            raise
        raise BackendUnavailable(
            "the device has too little free memory",
            got=f"a buffer of {nbytes / 2**20:.0f} MiB",
            fix="free the device, or lower the sizes",
        ) from error


def _free(placed: list[_Placed]) -> None:
    for item in placed:
        call("cuMemFree", item.base)


def _crash(error: DriverError, ran: Sequence[Launch]) -> Fault:
    entries = ", ".join(dict.fromkeys(launch.entry for launch in ran))
    return Fault("crash", f"{entries or 'the launches'}: {error.name}")


def _result(
    layouts: list[Guarded], wholes: list[Bytes], ran: int, faults: list[Fault]
) -> RunResult:
    buffers = {
        layout.buffer.name: as_array(layout.inside(whole), layout.buffer.dtype, layout.buffer.shape)
        for layout, whole in zip(layouts, wholes, strict=True)
    }
    return RunResult(buffers, ran, tuple(faults))
