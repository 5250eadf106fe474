"""Compile a contract's `.cu` for a device with NVRTC, through cuda-core; no driver is touched."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from trueup.kernels.torch.device.contract import Contract


class Unavailable(RuntimeError):
    """Kernels cannot run here; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Image:
    """A cubin and the symbol of each entry."""

    code: bytes
    symbols: dict[str, str]


@cache
def compile_contract(contract: Contract, arch: str) -> Image:
    """Compile for an architecture such as "sm_90"; Unavailable without cuda-core or NVRTC."""
    core = cuda_core()
    entries = list(dict.fromkeys(launch.entry for launch in contract.launches))
    folders = [contract.source.parent, *contract.include]
    options: dict[str, Any] = {
        "arch": arch,
        "name": str(contract.source),
        "std": "c++17",
        "define_macro": list(contract.defines) or None,
    }
    if bundled_headers():
        options["use_bundled_headers"] = True
    else:
        folders += header_folders()
    options["include_path"] = [str(folder) for folder in folders]
    program = core.Program(
        contract.source.read_text(encoding="utf-8"), "c++", core.ProgramOptions(**options)
    )
    compiled = program.compile("cubin", name_expressions=entries)
    symbols = {entry: compiled.symbol_mapping[entry].decode() for entry in entries}
    return Image(bytes(compiled.code), symbols)


def cuda_core() -> Any:
    """Return cuda.core, or raise Unavailable naming the extra that brings it."""
    try:
        import cuda.core as core
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise Unavailable(f"{error}; pip install 'trueup[cuda]' brings it") from None
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:  # cuda.pathfinder raises errors of its own
        raise Unavailable(f"no NVRTC library: {str(error).splitlines()[0]}") from None
    if not hasattr(core, "Program"):
        raise Unavailable("this cuda-core is too old; pip install 'trueup[cuda]'")
    return core


@cache
def bundled_headers() -> bool:
    """Whether NVRTC brings cuda_bf16.h and its like itself, and cuda-core can ask for them."""
    core = cuda_core()
    if all(item.name != "use_bundled_headers" for item in fields(core.ProgramOptions)):
        return False
    try:
        options = core.ProgramOptions(name="probe.cu", arch="sm_90", use_bundled_headers=True)
        core.Program("#include <cuda_bf16.h>\n", "c++", options).compile("cubin")
    except Exception:  # an NVRTC before 13.3 refuses the option, in several ways
        return False
    return True


@cache
def header_folders() -> tuple[Path, ...]:
    """Find cuda_bf16.h and its like in NVIDIA's wheels or an installed toolkit; none if neither."""
    from cuda import pathfinder

    find = getattr(pathfinder, "find_nvidia_header_directory", lambda name: None)
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    places = [find("cudart"), *[f"{home}/include" for home in homes if home]]
    for place in (Path(place) for place in places if place):
        if (place / "cuda_bf16.h").is_file():
            return tuple(folder for folder in (place, place / "cccl") if folder.is_dir())
    return ()
