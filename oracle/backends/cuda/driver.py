"""One device through the CUDA driver API: its primary context, a stream, and waiting with a limit.

The driver is touched only after libcuda.so.1 has been seen to load: without it, cuda.bindings may
raise with a lock held, and the next call then waits for ever. The context is the device's primary
one, which torch uses too.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import time
from collections.abc import Iterator
from typing import Any

from trueup.oracle.backends.cuda.compiler import nvrtc_version
from trueup.oracle.errors import BackendUnavailable

# Errors after which nothing in the context answers any more.
STICKY = frozenset(
    "CUDA_ERROR_" + name
    for name in (
        "ILLEGAL_ADDRESS",
        "ILLEGAL_INSTRUCTION",
        "MISALIGNED_ADDRESS",
        "INVALID_ADDRESS_SPACE",
        "INVALID_PC",
        "HARDWARE_STACK_ERROR",
        "LAUNCH_FAILED",
        "LAUNCH_TIMEOUT",
        "ASSERT",
        "ECC_UNCORRECTABLE",
        "CONTEXT_IS_DESTROYED",
        "TENSOR_MEMORY_LEAK",
        "CONTAINED",
        "UNKNOWN",
    )
)
# cuFuncGetParamInfo and cuFuncLoad are there from this driver on.
_OLDEST_DRIVER = (12, 4)


class DriverError(Exception):
    """A driver call failed: `name` is the CUresult's, such as CUDA_ERROR_INVALID_VALUE."""

    def __init__(self, name: str, call: str, *, fatal: bool = False) -> None:
        """Keep the result's name; `fatal` where the call itself says that the context is lost."""
        self.name = name
        self._fatal = fatal
        super().__init__(f"{call}: {name}")

    @property
    def sticky(self) -> bool:
        """Whether the context is lost with it."""
        return self._fatal or self.name in STICKY


def bindings() -> Any:
    """Return cuda.bindings.driver, or raise BackendUnavailable without having touched a driver."""
    nvrtc_version()  # also says whether the packages are there
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise BackendUnavailable(
            "the cuda backend finds no NVIDIA driver: libcuda.so.1 does not load",
            fix="run on a machine with an NVIDIA GPU and driver, or choose --backend host",
        ) from None
    from cuda.bindings import driver

    return driver


def call(function: str, *args: Any) -> Any:
    """Call a driver function; raise DriverError unless it succeeds; return its value, if any."""
    status, *values = getattr(_loaded_bindings(), function)(*args)
    if int(status) != 0:
        raise DriverError(getattr(status, "name", str(status)), function)
    return values[0] if len(values) == 1 else tuple(values) if values else None


@functools.cache
def _loaded_bindings() -> Any:
    return bindings()


def driver_version() -> tuple[int, int]:
    """Return the CUDA version the driver supports."""
    number = int(call("cuDriverGetVersion"))
    return number // 1000, number % 1000 // 10


def device_count() -> int:
    """Start the driver and count its devices; raise BackendUnavailable where it cannot work."""
    bindings()
    try:
        version = driver_version()
        oldest = max(_OLDEST_DRIVER, (nvrtc_version()[0], 0))
        if version < oldest:
            raise BackendUnavailable(
                "the NVIDIA driver is too old for this NVRTC",
                got=f"CUDA {version[0]}.{version[1]}",
                expected=f"CUDA {oldest[0]}.{oldest[1]} or later",
                fix=f"update the driver, or install nvidia-cuda-nvrtc for CUDA {version[0]}",
            )
        call("cuInit", 0)
        return int(call("cuDeviceGetCount"))
    except DriverError as error:
        raise BackendUnavailable(
            "the NVIDIA driver does not start",
            got=error.name,
            fix="see whether nvidia-smi lists a device, and CUDA_VISIBLE_DEVICES",
        ) from error


@functools.cache
def open_device(ordinal: int) -> Device:
    """Return the one Device of an ordinal: whoever loses the context loses it for all."""
    count = device_count()
    if not 0 <= ordinal < count:
        raise BackendUnavailable(
            f"no CUDA device {ordinal}" if count else "the NVIDIA driver has no device",
            got=f"{count} devices",
            fix="see nvidia-smi and CUDA_VISIBLE_DEVICES, or choose --backend host",
        )
    return Device(ordinal)


class Device:
    """A device, its primary context (retained on first use), one stream and one event.

    `dead`
    says why the device cannot be used in this process any more; `hung` that a kernel is still
    running on it, so that the driver would wait for it at exit.
    """

    def __init__(self, ordinal: int) -> None:
        """Look the device up; no context is made yet."""
        self.dead: str | None = None
        self.hung = False
        self._context: Any = None
        self.stream: Any = None
        self._event: Any = None
        self._device = call("cuDeviceGet", ordinal)
        name = call("cuDeviceGetName", 256, self._device)
        self.name = name.split(b"\0")[0].decode()
        self.compute = (
            self.attribute("COMPUTE_CAPABILITY_MAJOR"),
            self.attribute("COMPUTE_CAPABILITY_MINOR"),
        )

    @property
    def arch(self) -> str:
        """The architecture name that compilers take."""
        return f"sm_{self.compute[0]}{self.compute[1]}"

    def attribute(self, name: str) -> int:
        """Read a device attribute by the end of its enumerator's name."""
        kind = getattr(_loaded_bindings().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call("cuDeviceGetAttribute", kind, self._device))

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make the context current for a block of code, and leave the caller's as it was."""
        if self.dead:
            raise BackendUnavailable(
                f"{self.name} cannot be used in this process any more: {self.dead}",
                fix="start a new process",
            )
        if self._context is None:
            self._open()
        call("cuCtxPushCurrent", self._context)
        try:
            yield
        finally:
            # In a lost context popping fails as well.
            with contextlib.suppress(DriverError):
                call("cuCtxPopCurrent")

    def wait(self, deadline: float) -> bool:
        """Wait for all work on the stream; False if the deadline (time.monotonic) came first."""
        driver = _loaded_bindings()
        call("cuEventRecord", self._event, self.stream)
        spins = 0
        while True:
            (status,) = driver.cuEventQuery(self._event)
            if status == driver.CUresult.CUDA_SUCCESS:
                return True
            if status != driver.CUresult.CUDA_ERROR_NOT_READY:
                raise DriverError(status.name, "cuEventQuery", fatal=True)
            if time.monotonic() > deadline:
                return False
            spins += 1
            if spins > 200:  # short kernels are not made to wait for a sleep to end
                time.sleep(0.0005)

    def give_up_on_kernel(self, seconds: float) -> None:
        """Mark the device as running a kernel that does not return."""
        self.hung = True
        self.dead = f"a kernel is still running after its time limit of {seconds:g} s"

    def lose_context(self) -> None:
        """Mark the device dead: the driver gives this process no other context after a crash."""
        self.dead = "a kernel lost the CUDA context"

    def _open(self) -> None:
        driver = _loaded_bindings()
        self._context = call("cuDevicePrimaryCtxRetain", self._device)
        call("cuCtxPushCurrent", self._context)
        try:
            # Non-blocking: neither waits for nor holds up what torch does on its own streams.
            flags = int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
            self.stream = call("cuStreamCreate", flags)
            flags = int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)
            self._event = call("cuEventCreate", flags)
        finally:
            call("cuCtxPopCurrent")
