"""CudaBackend: sources in, kernels on a device out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from trueup.oracle.backends.base import Source
from trueup.oracle.backends.cuda.compiler import (
    Image,
    compile_source,
    nvrtc_version,
    supported_archs,
)
from trueup.oracle.backends.cuda.driver import Device, driver_version, open_device
from trueup.oracle.backends.cuda.kernel import CudaKernel
from trueup.oracle.backends.cuda.loader import check_image
from trueup.oracle.errors import BackendUnavailable, ContractError


class CudaBackend:
    """Kernels on one NVIDIA GPU; making one starts the driver, the first load its context."""

    name: Literal["cuda"] = "cuda"
    placements: ClassVar[tuple[str, ...]] = ("guard",)
    orders: ClassVar[tuple[int, ...]] = (0,)

    def __init__(self, ordinal: int = 0) -> None:
        """Take the device of that ordinal, or raise BackendUnavailable."""
        self._device: Device = open_device(ordinal)

    @property
    def device(self) -> str:
        """Name, architecture, and the CUDA versions of driver and compiler."""
        driver, nvrtc = driver_version(), nvrtc_version()
        return (
            f"{self._device.name} ({self._device.arch}, driver CUDA {driver[0]}.{driver[1]}, "
            f"NVRTC {nvrtc[0]}.{nvrtc[1]})"
        )

    @property
    def hung(self) -> bool:
        """Whether a kernel that never returned is still running.

        Interpreter shutdown waits for it, inside the driver: flush what has been written and
        leave with `os._exit(code)`.
        """
        return self._device.hung

    @property
    def dead(self) -> str | None:
        """Why this process can run nothing more on the device, or None."""
        return self._device.dead

    def load(self, source: Source, entries: Sequence[str]) -> CudaKernel:
        """Compile a `.cu` for this device, or load a cubin or PTX."""
        where = str(source.path)
        if source.kind == "cu":
            return CudaKernel(compile_source(source, entries, self._arch()), self._device, where)
        try:
            code = source.path.read_bytes()
        except OSError as error:
            raise ContractError(
                f"cannot read the {source.kind}: {error}",
                where=where,
                fix=f"correct `{source.kind}`",
            ) from error
        check_image(code, source.kind, where, list(entries))
        symbols = {entry: entry for entry in entries}
        return CudaKernel(Image(code, source.kind, symbols), self._device, where)

    def _arch(self) -> str:
        """Return the newest architecture NVRTC knows whose code runs on this device."""
        major, minor = self._device.compute
        known = supported_archs()
        # Code for x.y runs on x.z for z >= y, never across majors.
        runs = [arch for arch in known if arch // 10 == major and arch % 10 <= minor]
        if not runs:
            raise BackendUnavailable(
                f"NVRTC does not compile for {self._device.arch}",
                got=f"NVRTC {'.'.join(map(str, nvrtc_version()))}",
                fix="install an nvidia-cuda-nvrtc that knows the device",
            )
        return f"sm_{max(runs)}"
