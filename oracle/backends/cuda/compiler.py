"""Compile a `.cu` to a cubin with NVRTC, through cuda.core; no driver and no device needed.

Only `Program.compile("cubin")` is used: compiling to PTX, and asking an object for a kernel, touch
the driver, which on a machine without one raises and may leave a lock held.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trueup.oracle.backends.base import Source
from trueup.oracle.backends.cuda.images import kernels_in_source
from trueup.oracle.errors import BackendUnavailable, CompileError, ContractError

HEADERS = Path(__file__).parent / "headers"
PRELUDE = HEADERS / "trueup_prelude.cuh"

_ERROR = re.compile(
    r"^(?P<file>[^\n]+?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #\d+(?:-D)?)?: (?P<text>.*)$",
    re.MULTILINE,
)
# NVRTC compiles name expressions as a file of this name.
_NAME_MAP = "__nv_name_map"
_BAD_NAME = re.compile(r'Input name expression was: "(?P<name>[^"]*)"')


@dataclass(frozen=True)
class Image:
    """Code for the driver, and the symbol of each entry asked for."""

    code: bytes
    kind: str  # "cubin" | "ptx"
    symbols: dict[str, str]


def compile_cubin(source: Source, entries: Sequence[str], arch: str) -> bytes:
    """Compile for an architecture such as "sm_90"; `entries` as in Backend.load."""
    return compile_source(source, entries, arch).code


def compile_source(source: Source, entries: Sequence[str], arch: str) -> Image:
    """Compile, and find each entry's symbol: `extern "C"` names as they are, others mangled."""
    text = read_source(source)
    core = _cuda_core()
    names = list(dict.fromkeys(entries))
    options = core.ProgramOptions(
        arch=arch,
        name=str(source.path),
        std="c++17",
        lineinfo=True,
        fma=True,
        define_macro=[(name, value) for name, value in source.defines.items()] or None,
        pre_include=str(PRELUDE),
        **_include_options(source),
    )
    try:
        program = core.Program(text, "c++", options)
        compiled = program.compile("cubin", name_expressions=names)
    except Exception as error:
        if not _is_compiler_error(error):
            raise
        raise _explain(str(error), source, text, names) from None
    symbols = {name: compiled.symbol_mapping[name].decode() for name in names}
    return Image(bytes(compiled.code), "cubin", symbols)


def read_source(source: Source) -> str:
    """Read the source as text; the path is the contract's, so a bad one is the contract's error."""
    try:
        return source.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(
            f"cannot read the source: {error}", where=str(source.path), fix="correct `source`"
        ) from error


def nvrtc_version() -> tuple[int, int]:
    """Return the version of the NVRTC library, or raise BackendUnavailable."""
    _cuda_core()
    from cuda.bindings import nvrtc

    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:  # cuda.pathfinder raises its own errors where no library is found
        raise _no_nvrtc(error) from error
    if int(status) != 0:
        raise _no_nvrtc(status)
    return int(major), int(minor)


def supported_archs() -> list[int]:
    """Return what NVRTC compiles for, as numbers: 90 for sm_90."""
    nvrtc_version()
    from cuda.bindings import nvrtc

    status, archs = nvrtc.nvrtcGetSupportedArchs()
    return [int(arch) for arch in archs] if int(status) == 0 else []


def _cuda_core() -> Any:
    try:
        import cuda.core as core
    except ImportError as error:
        raise BackendUnavailable(
            "the cuda backend needs the package cuda-core",
            got=str(error),
            fix="pip install 'trueup[cuda]'",
        ) from error
    return core


def _no_nvrtc(cause: object) -> BackendUnavailable:
    return BackendUnavailable(
        "the cuda backend finds no NVRTC library",
        got=str(cause).splitlines()[0],
        fix="pip install 'trueup[cuda]' (it brings nvidia-cuda-nvrtc)",
    )


def _include_options(source: Source) -> dict[str, Any]:
    # Headers of the source's own folder come first, as with every compiler.
    found = toolkit_headers()
    folders = [source.path.absolute().parent, *source.include, HEADERS, *found.folders]
    options: dict[str, Any] = {"include_path": [str(folder) for folder in folders]}
    if found.bundled:
        options["use_bundled_headers"] = True
    return options


@dataclass(frozen=True)
class ToolkitHeaders:
    """Where cuda_fp16.h and its like come from: inside NVRTC, a folder, or nowhere."""

    bundled: bool = False
    folders: tuple[Path, ...] = ()


@functools.cache
def toolkit_headers() -> ToolkitHeaders:
    """Prefer the headers bundled with NVRTC (they match it), else the toolkit's or the wheels'."""
    core = _cuda_core()
    nvrtc_version()
    if any(field.name == "use_bundled_headers" for field in fields(core.ProgramOptions)):
        try:  # cuda.core refuses the option, or the compiler does, where NVRTC is older than 13.3
            options = core.ProgramOptions(name="probe.cu", arch="sm_90", use_bundled_headers=True)
            core.Program("#include <cuda_bf16.h>\n", "c++", options).compile("cubin")
            return ToolkitHeaders(bundled=True)
        except Exception as error:
            if not (_is_compiler_error(error) or "use_bundled_headers" in str(error)):
                raise
    folder = _toolkit_folder()
    if folder is None:
        return ToolkitHeaders()
    return ToolkitHeaders(folders=tuple(f for f in (folder, folder / "cccl") if f.is_dir()))


def _toolkit_folder() -> Path | None:
    """Find the include folder of NVIDIA's wheels or of an installed toolkit."""
    from cuda import pathfinder

    find = getattr(pathfinder, "find_nvidia_header_directory", lambda name: None)
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    folders = [find("cudart"), *[f"{home}/include" for home in homes if home]]
    there = (Path(folder) for folder in folders if folder)
    return next((folder for folder in there if (folder / "cuda_bf16.h").is_file()), None)


def _is_compiler_error(error: Exception) -> bool:
    # The class is private to cuda.core; its name has been stable.
    return type(error).__name__ == "NVRTCError"


def _explain(log: str, source: Source, text: str, names: list[str]) -> Exception:
    first_name_error = None
    for match in _ERROR.finditer(log):
        if match["file"] != _NAME_MAP:
            return _compile_error(match["text"], f"{match['file']}:{match['line']}")
        first_name_error = first_name_error or match["text"]
    bad = {"".join(match["name"].split()) for match in _BAD_NAME.finditer(log)}
    missing = [name for name in names if "".join(name.split()) in bad]
    if missing:
        there = kernels_in_source(text)
        return ContractError(
            f"no kernel {', '.join(missing)}",
            where=str(source.path),
            got=first_name_error,
            expected="one of " + ", ".join(there) if there else "a __global__ function",
            fix="correct `entry`; name an instance of a template as in kernel<float, 4>",
        )
    lines = [line for line in log.rstrip("\0").splitlines() if line.strip()]
    return _compile_error(lines[-1] if lines else "unknown NVRTC error", str(source.path))


def _compile_error(text: str, where: str) -> CompileError:
    fix = None
    if "cannot open source file" in text:
        fix = "give its folder in `include`"
        found = toolkit_headers()
        if not found.bundled and not found.folders:
            fix = "CUDA's own headers come with: pip install nvidia-cuda-runtime nvidia-cuda-cccl"
    return CompileError(text, where=where, fix=fix)
