"""Load a kernel by its contract and launch it on torch's device, stream and tensors.

This needs NumPy, torch and cuda-bindings, and nothing else of trueup: a bare GPU machine runs it.
"""

from __future__ import annotations

import ast
import ctypes
import math
import operator
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from cuda.bindings import driver, nvrtc

KERNELS = Path(__file__).resolve().parent.parent / "kernels"

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS: dict[str, Callable[..., Any]] = {"ceil": math.ceil, "min": min, "max": max}
_TYPES: dict[str, Any] = {"f32": torch.float32, "i32": torch.int32}


class BenchmarkError(Exception):
    """A kernel could not be built or launched; the message says which and why."""


@dataclass(frozen=True)
class Variant:
    """A change to a contract's launches (entry to {grid, block}) or to its source's text."""

    label: str = "as shipped"
    launches: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    replace: Sequence[tuple[str, str]] = ()


def evaluate(expression: str | int, sizes: Mapping[str, int]) -> int:
    """Evaluate a contract's expression over axes, in exact arithmetic."""

    def walk(node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int(value)):
                return Fraction(value)
            case ast.Name(id=name):
                return Fraction(sizes[name])
            case ast.BinOp(left=left, op=op, right=right):
                return Fraction(_OPERATORS[type(op)](walk(left), walk(right)))
            case ast.Call(func=ast.Name(id=name), args=args):
                return Fraction(_CALLS[name](*map(walk, args)))
        raise BenchmarkError(f"cannot evaluate {expression!r}")

    return int(walk(ast.parse(str(expression), mode="eval").body))


class Kernel:
    """One contract's kernel, compiled for the current device."""

    def __init__(self, contract: str, variant: Variant | None = None) -> None:
        """Build `contract`, such as "nl/delta_momentum_rank1", as `variant` says."""
        variant = variant or Variant()
        path = KERNELS / f"{contract}.toml"
        table = tomllib.loads(path.read_text())
        self.args: list[dict[str, Any]] = table["arg"]
        self.launches = [
            {**launch, **variant.launches.get(launch["entry"], {})} for launch in table["launch"]
        ]
        source = path.parent / table["contract"]["source"]
        text = source.read_text()
        for old, new in variant.replace:
            if old not in text:
                raise BenchmarkError(f"{variant.label}: {old!r} is not in {source.name}")
            text = text.replace(old, new)
        include = [path.parent / folder for folder in table["contract"].get("include", [])]
        # cuModuleLoadData copies the image.
        image = ctypes.create_string_buffer(_cubin(text, source.name, include))
        module = _driver(driver.cuModuleLoadData(ctypes.addressof(image)))
        self.functions = {
            launch["entry"]: _driver(driver.cuModuleGetFunction(module, launch["entry"].encode()))
            for launch in self.launches
        }

    def buffers(self, sizes: Mapping[str, int], roles: Sequence[str]) -> dict[str, torch.Tensor]:
        """Allocate the arguments of these roles, filled with NaN (integers: the lowest one)."""
        made = {}
        for arg in self.args:
            if arg["role"] in roles:
                shape = [evaluate(extent, sizes) for extent in arg["shape"]]
                if arg["role"] == "workspace":
                    shape = self._workspace_shape(shape, sizes)
                kind = _TYPES[arg["dtype"]]
                fill = math.nan if kind.is_floating_point else torch.iinfo(kind).min
                made[arg["name"]] = torch.full(shape, fill, dtype=kind, device="cuda")
        return made

    def _workspace_shape(self, shape: list[int], sizes: Mapping[str, int]) -> list[int]:
        """Leave a row for each block of the first launch, whose grid a variant may have changed."""
        if len(shape) != 2:
            return shape
        return [max(shape[0], evaluate(self.launches[0]["grid"], sizes)), shape[1]]

    def bind(
        self,
        sizes: Mapping[str, int],
        tensors: Mapping[str, torch.Tensor],
        scalars: Mapping[str, float],
    ) -> Callable[[], None]:
        """Return a call that makes all the launches on torch's current stream."""
        values: dict[str, Any] = {}
        for arg in self.args:
            name = arg["name"]
            if arg["role"] == "axis":
                values[name] = ctypes.c_int32(sizes[name])
            elif arg["role"] == "scalar":
                values[name] = ctypes.c_float(scalars[name])
            else:
                values[name] = ctypes.c_void_p(tensors[name].data_ptr())
        ready = []
        for launch in self.launches:
            pointers = [ctypes.addressof(values[name]) for name in launch["args"]]
            packed = (ctypes.c_void_p * len(pointers))(*pointers)
            extents = [evaluate(launch[key], sizes) for key in ("grid", "block")]
            ready.append((self.functions[launch["entry"]], extents, packed))

        def run() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for function, (grid, block), packed in ready:
                address = ctypes.addressof(packed)
                _driver(
                    driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, address, 0)
                )

        # The packed pointers point into these, and the tensors must outlive the launches.
        run.keep = (values, dict(tensors))  # type: ignore[attr-defined]
        return run


def _driver(result: tuple[Any, ...]) -> Any:
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise BenchmarkError(f"the driver says {result[0]!r}")
    return result[1] if len(result) > 1 else None


def _cubin(text: str, name: str, include: Sequence[Path]) -> bytes:
    major, minor = torch.cuda.get_device_capability()
    options = ["--std=c++17", f"--gpu-architecture=sm_{major}{minor}"]
    options += [f"--include-path={folder.resolve()}" for folder in include]
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], [])
    encoded = [option.encode() for option in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise BenchmarkError(f"{name} does not compile:\n{log.decode(errors='replace')}")
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = bytes(size)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin
