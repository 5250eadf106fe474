"""One contract on one backend: compiled once, its cases run and its bounds evaluated on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.backends.base import (
    AnyArray,
    Backend,
    Buffer,
    Kernel,
    Launch,
    Parameter,
    RunOptions,
    RunResult,
    Scalar,
)
from trueup.oracle.bounds import Evaluator
from trueup.oracle.bus import bus_buffer, split, stray_words, without_slots
from trueup.oracle.contract import Arg, Contract, LaunchPlan
from trueup.oracle.errors import ContractError
from trueup.oracle.inputs import Draw
from trueup.oracle.memory import buffer_of, filled, logical, stray_writes
from trueup.oracle.references import Reference, check_values, resolve

# What any CUDA device of the supported generations takes.
_MAX_THREADS, _MAX_GRID, _MAX_SHARED = 1024, (2**31 - 1, 65535, 65535), 227 * 1024


@dataclass
class Session:
    """A contract, its reference and its compiled kernel."""

    contract: Contract
    backend: Backend
    reference: Reference
    kernel: Kernel
    time_limit: float = 20.0  # seconds for all the launches of one run together
    _evaluators: dict[tuple[Any, ...], Evaluator] = field(default_factory=dict)

    @classmethod
    def open(cls, contract: Contract, backend: Backend) -> Session:
        """Resolve the reference and compile the kernel.

        Raises ContractError, CompileError or BackendUnavailable.
        """
        reference = resolve(contract)
        return cls(contract, backend, reference, _load(contract, backend))

    @cached_property
    def placements(self) -> tuple[str, ...]:
        """What may lie beside a buffer on this backend."""
        return tuple(getattr(self.backend, "placements", ("guard",)))

    def run(self, draw: Draw, options: RunOptions) -> RunResult:
        """Run the kernel on a draw; the result's buffers have the arguments' own shapes."""
        axes = draw.case.axes
        args = [arg for arg in self.contract.args if arg.is_buffer and arg.slot is None]
        buffers = [buffer_of(arg, axes, draw.native.get(arg.name)) for arg in args]
        bus = bus_buffer(self.contract, draw, options)
        options = replace(options, time_limit=self.time_limit)
        if options.dirty:
            own = without_slots(self.contract, options.dirty)
            options = replace(options, dirty=self._dirty(buffers, own))
        passed = buffers if bus is None else [*buffers, bus]
        result = self.kernel.run(self.launches(draw), passed, options)
        faults = list(result.faults)
        shown: dict[str, AnyArray] = {}
        if bus is not None and bus.name in result.buffers:
            storage = result.buffers[bus.name]
            if not result.faults:
                faults += stray_words(self.contract, bus, storage)
            shown |= split(self.contract, storage)
        for arg, buffer in zip(args, buffers, strict=True):
            if arg.name not in result.buffers:
                continue
            storage = result.buffers[arg.name]
            if not result.faults:
                faults += stray_writes(arg, axes, buffer, storage, options)
            shown[arg.name] = logical(arg, axes, storage)
        return replace(result, buffers=shown, faults=tuple(faults))

    def launches(self, draw: Draw) -> list[Launch]:
        """Resolve the contract's launches at the draw's sizes."""
        sizes: dict[str, int] = dict(draw.case.axes)
        for arg in self.contract.with_role("scalar"):
            if arg.numpy.kind in "iu":
                sizes[arg.name] = int(draw.native[arg.name])
        if self.contract.call is not None:
            # A callable is called, not launched: what stands for its launch carries the scalars.
            values = tuple(
                self._argument(arg.name, sizes, draw)
                for arg in self.contract.with_role("scalar", "axis")
            )
            return [Launch(self.contract.python or "", (1, 1, 1), (1, 1, 1), 0, values)]
        return [self._launch(plan, sizes, draw) for plan in self.contract.launches]

    def evaluator(self, draw: Draw, reading: str | None = None) -> Evaluator:
        """Return the bounds of a draw, under this contract's reading or another one."""
        key = (draw.case.id, draw.seed, reading, *(a.tobytes() for a in draw.native.values()))
        if key not in self._evaluators:
            forms: Sequence[Callable[..., Any]] = (
                self.reference.forms if reading is None else self.reference.forms_of(reading)
            )
            evaluator = Evaluator(
                forms,
                dict(draw.wide),
                self.contract.precision,
                [arg.dtype for arg in self.contract.outputs],
                seed=draw.seed,
            )
            check_values(self.contract, draw, evaluator, self.time_limit)
            self._evaluators[key] = evaluator
        return self._evaluators[key]

    def outputs(self, result: RunResult) -> list[AnyArray]:
        """Pick the arrays the reference is compared with, in its order."""
        return [result.buffers[arg.name] for arg in self.contract.outputs]

    def _launch(self, plan: LaunchPlan, sizes: Mapping[str, int], draw: Draw) -> Launch:
        where = f"{self.contract.path}: launch ({plan.entry})"
        grid = _three([e.value(sizes, f"{where}.grid") for e in plan.grid])
        block = _three([e.value(sizes, f"{where}.block") for e in plan.block])
        shared = plan.shared.value(sizes, f"{where}.shared")
        threads = block[0] * block[1] * block[2]
        too_wide = [g for g, limit in zip(grid, _MAX_GRID, strict=True) if not 0 <= g <= limit]
        if not 1 <= threads <= _MAX_THREADS or too_wide or not 0 <= shared <= _MAX_SHARED:
            raise ContractError(
                "no CUDA device takes this launch",
                where=where,
                got=f"grid {grid}, block {block}, shared {shared} bytes at {dict(sizes)}",
                expected=f"1..{_MAX_THREADS} threads, grid within {_MAX_GRID}, "
                f"shared <= {_MAX_SHARED}",
                fix="correct the expressions, or state the legal sizes in [contract] limits",
            )
        args = tuple(self._argument(name, sizes, draw) for name in plan.args)
        return Launch(plan.entry, grid, block, shared, args)

    def _argument(self, name: str, sizes: Mapping[str, int], draw: Draw) -> str | Scalar:
        arg = self.contract.arg(name)
        if arg.role == "axis":
            return Scalar(name, np.int32(sizes[name]))
        if arg.role == "scalar":
            value: Any = draw.native[name][()]
            return Scalar(name, value)
        return name

    def _dirty(
        self, buffers: Sequence[Buffer], dirty: Mapping[str, AnyArray]
    ) -> dict[str, NDArray[Any]]:
        """Give the start contents flat where the buffer itself is laid out flat."""
        out: dict[str, NDArray[Any]] = {}
        for buffer in buffers:
            value = dirty.get(buffer.name)
            if value is None:
                continue
            fits = value.shape == buffer.shape
            out[buffer.name] = value if fits else filled(buffer.shape, buffer.dtype)
        return out


def _three(values: list[int]) -> tuple[int, int, int]:
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _load(contract: Contract, backend: Backend) -> Kernel:
    if contract.source is not None:
        kernel = backend.load(contract.source, contract.entries)
        for plan in contract.launches:
            _check_signature(contract, kernel, plan)
        _check_written(contract, kernel)
        return kernel
    from trueup.oracle.backends.python import PythonBackend, PythonSource

    assert contract.python is not None
    assert contract.call is not None
    assert isinstance(backend, PythonBackend)
    return backend.load(PythonSource.of(contract.python, contract.path, contract.call), ())


def _check_signature(contract: Contract, kernel: Kernel, plan: LaunchPlan) -> None:
    """Hold the roles and dtypes of a launch's arguments against what the compiler deduced."""
    signature = kernel.signature(plan.entry)
    if signature is None:
        return
    where = f"{contract.path}: launch ({plan.entry}).args"
    if len(signature) != len(plan.args):
        raise ContractError(
            "the kernel takes another number of arguments",
            where=where,
            got=f"{len(plan.args)}: {', '.join(plan.args)}",
            expected=f"{len(signature)}: {', '.join(p.kind for p in signature)}",
        )
    for position, (name, parameter) in enumerate(zip(plan.args, signature, strict=True)):
        arg = contract.arg(name)
        if not _fits(arg, parameter):
            raise ContractError(
                f"argument {position} (`{name}`) does not fit the kernel's parameter",
                where=where,
                got=f"{arg.role} {arg.dtype}",
                expected=f"{parameter.kind} of {parameter.size} bytes",
            )


def _check_written(contract: Contract, kernel: Kernel) -> None:
    """Hold every argument that is written to some launch that can: others may only read it."""
    const: dict[str, bool] = {}
    for plan in contract.launches:
        signature = kernel.signature(plan.entry)
        if signature is None:
            return
        for name, parameter in zip(plan.args, signature, strict=True):
            const[name] = const.get(name, True) and parameter.kind == "const pointer"
    for name, always in const.items():
        if always and contract.arg(name).role in ("out", "inout", "workspace"):
            raise ContractError(
                f"`{name}` is written, but every launch takes it as const",
                where=f"{contract.path}: arg {name}",
                got=contract.arg(name).role,
                expected="in",
            )


def _fits(arg: Arg, parameter: Parameter) -> bool:
    """Whether an argument can be passed as this parameter: pointer, size, integer or float."""
    if arg.is_buffer or parameter.kind in ("pointer", "const pointer"):
        return arg.is_buffer and parameter.kind in ("pointer", "const pointer")
    if parameter.size != arg.numpy.itemsize:
        return False
    if parameter.kind == "struct":  # half and bfloat16 are classes in CUDA C++
        return arg.numpy.kind not in "iub"
    return (parameter.kind == "float") == (arg.numpy.kind not in "iub")
