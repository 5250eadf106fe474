"""Load an image on a device and find its kernels and their parameter sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueup.oracle.backends.cuda.compiler import Image
from trueup.oracle.backends.cuda.driver import Device, DriverError, bindings, call
from trueup.oracle.backends.cuda.images import ELF_MAGIC, kernels_in_cubin, kernels_in_ptx
from trueup.oracle.errors import BackendUnavailable, CompileError, ContractError, OracleError

_LOG_BYTES = 8192


@dataclass(frozen=True)
class Function:
    """A kernel ready to launch, with the size of each parameter and its static shared memory."""

    handle: Any
    parameters: tuple[int, ...]
    static_shared: int


def check_image(code: bytes, kind: str, where: str, entries: list[str]) -> None:
    """Refuse a file that is no cubin or PTX, or lacks an entry, before the driver sees it."""
    if kind == "cubin":
        there = kernels_in_cubin(code)
        legible = code.startswith(ELF_MAGIC)
    else:
        text = code.decode("utf-8", errors="replace")
        there = kernels_in_ptx(text)
        legible = ".version" in text and b"\0" not in code.rstrip(b"\0")
    if not legible:
        raise ContractError(
            f"this is no {kind}",
            where=where,
            expected="an ELF image" if kind == "cubin" else "PTX text with a .version line",
            fix="build it with nvcc -cubin or nvcc -ptx",
        )
    missing = [entry for entry in entries if entry not in there]
    if missing:
        raise ContractError(
            f"no kernel {', '.join(missing)}",
            where=where,
            expected="one of " + ", ".join(there) if there else "a kernel entry",
            fix="give `entry` the symbol as the file has it (mangled, for a C++ kernel)",
        )


def load_functions(image: Image, device: Device, where: str) -> dict[str, Function]:
    """Load the image in the current context and resolve every entry."""
    # PTX has to end with a zero byte.
    code = image.code + b"\0" if image.kind == "ptx" else image.code
    try:
        library = call("cuLibraryLoadData", code, [], [], 0, [], [], 0)
        return {entry: _function(library, symbol) for entry, symbol in image.symbols.items()}
    except DriverError as error:
        raise _explain(error, image, code, device, where) from error


def _function(library: Any, symbol: str) -> Function:
    driver = bindings()
    kernel = call("cuLibraryGetKernel", library, symbol.encode())
    handle = call("cuKernelGetFunction", kernel)
    # Loading lazily, at the launch, could wait for a kernel that never returns.
    call("cuFuncLoad", handle)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    return Function(handle, _sizes(handle), int(call("cuFuncGetAttribute", attribute, handle)))


def _sizes(handle: Any) -> tuple[int, ...]:
    sizes: list[int] = []
    while True:
        try:
            _, size = call("cuFuncGetParamInfo", handle, len(sizes))
        except DriverError as error:
            if error.name != "CUDA_ERROR_INVALID_VALUE":  # past the last parameter
                raise
            return tuple(sizes)
        sizes.append(int(size))


def _explain(
    error: DriverError, image: Image, code: bytes, device: Device, where: str
) -> OracleError:
    kind = image.kind
    if error.name == "CUDA_ERROR_NO_BINARY_FOR_GPU":
        return ContractError(
            f"the {kind} holds no code for this device",
            where=where,
            expected=f"code for {device.arch} ({device.name})",
            fix=f"build it with -arch={device.arch}",
        )
    if error.name == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
        return BackendUnavailable(
            "the PTX is newer than the driver",
            where=where,
            fix="update the driver, or build the PTX with an older toolkit",
        )
    if error.name == "CUDA_ERROR_INVALID_PTX":
        return CompileError(_assembler_log(code) or error.name, where=where)
    if error.sticky:
        return BackendUnavailable("the CUDA context is lost", got=error.name, fix="start anew")
    return ContractError(
        f"the driver does not load this {kind}", where=where, got=str(error), fix="build it again"
    )


def _assembler_log(code: bytes) -> str:
    """Load once more with a log buffer, and return the assembler's first line."""
    driver = bindings()
    options = driver.CUjit_option
    log = bytearray(_LOG_BYTES)
    driver.cuLibraryLoadData(
        code,
        [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES],
        [log, _LOG_BYTES],
        2,
        [],
        [],
        0,
    )
    lines = bytes(log).split(b"\0")[0].decode(errors="replace").strip().splitlines()
    return lines[0].strip() if lines else ""
