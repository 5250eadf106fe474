"""Holds a launch's arguments against the parameters that the compiler deduced, and packs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trueup.oracle.backends.base import Buffer, Launch, Parameter, Scalar
from trueup.oracle.backends.host.library import Slot
from trueup.oracle.errors import ContractError

_FLOATS = {"float16": 2, "bfloat16": -2, "float32": 4, "float64": 8}
_FLOAT_NAMES = {size: name for name, size in _FLOATS.items()}
_ALIGNMENT = 16


def check(
    launches: Sequence[Launch], slots: Mapping[str, tuple[Slot, ...]], buffers: Sequence[Buffer]
) -> None:
    """Raise ContractError where a launch does not fit its kernel's parameters."""
    known = {buffer.name: buffer for buffer in buffers}
    writable: set[str] = set()
    for launch in launches:
        parameters = _parameters(launch, slots)
        for position, (argument, slot) in enumerate(zip(launch.args, parameters, strict=True)):
            where = f"{launch.entry}, argument {position + 1}"
            if isinstance(argument, Scalar):
                _check_scalar(argument, slot, where)
            else:
                _check_buffer(argument, known.get(argument), slot, where)
                if slot.parameter.kind == "pointer":
                    writable.add(argument)
    for name in (arg for launch in launches for arg in launch.args if isinstance(arg, str)):
        if known[name].role in ("out", "inout") and name not in writable:
            raise ContractError(
                f"`{name}` is declared {known[name].role}, and every kernel takes it as const",
                where=", ".join(launch.entry for launch in launches if name in launch.args),
                got="const pointer",
                expected="a pointer that the kernel may write through",
                fix="declare the role in, or give the output buffer",
            )


def _parameters(launch: Launch, slots: Mapping[str, tuple[Slot, ...]]) -> tuple[Slot, ...]:
    if launch.entry not in slots:
        raise ContractError(
            f"the entry `{launch.entry}` was not loaded",
            expected=f"one of {', '.join(slots) or 'no entry'}",
            fix="name it among the entries of load()",
        )
    parameters = slots[launch.entry]
    if len(parameters) != len(launch.args):
        names = ", ".join(arg if isinstance(arg, str) else arg.name for arg in launch.args)
        deduced = ", ".join(_text(slot.parameter) for slot in parameters)
        raise ContractError(
            "the launch gives another number of arguments than the kernel takes",
            where=launch.entry,
            got=f"{len(launch.args)} ({names})",
            expected=f"{len(parameters)} ({deduced})",
            fix="list `args` in the order of the kernel's parameters",
        )
    return parameters


def _text(parameter: Parameter) -> str:
    if parameter.kind in ("pointer", "const pointer"):
        return parameter.kind
    return f"{8 * parameter.size}-bit {parameter.kind}"


def _check_buffer(name: str, buffer: Buffer | None, slot: Slot, where: str) -> None:
    if buffer is None:
        raise ContractError(
            f"no buffer is called `{name}`", where=where, fix="declare it as an [[arg]]"
        )
    if slot.parameter.kind not in ("pointer", "const pointer"):
        raise ContractError(
            f"`{name}` is declared as a buffer, and the kernel takes a value there",
            where=where,
            got=f"{buffer.role} {buffer.dtype.name} buffer",
            expected=_text(slot.parameter),
            fix="declare it a scalar, or correct the order of `args`",
        )
    size = _FLOATS.get(buffer.dtype.name)
    if slot.floating and size and slot.floating != size:
        raise ContractError(
            f"`{name}` is declared with another dtype than the kernel reads",
            where=where,
            got=f"declared {buffer.dtype.name}",
            expected=f"{_FLOAT_NAMES.get(slot.floating, 'a float')}, deduced from the kernel",
            fix="correct the dtype in the contract",
        )


def _check_scalar(scalar: Scalar, slot: Slot, where: str) -> None:
    dtype, parameter = scalar.value.dtype, slot.parameter
    kind = _scalar_kind(dtype)
    same_format = kind != "float" or _FLOATS[dtype.name] == slot.floating
    if kind == parameter.kind and dtype.itemsize == parameter.size and same_format:
        return
    named = parameter.kind == "float" and slot.floating in _FLOAT_NAMES
    deduced = _FLOAT_NAMES[slot.floating] if named else _text(parameter)
    raise ContractError(
        f"`{scalar.name}` is declared with another type than the kernel takes",
        where=where,
        got=f"declared {dtype.name} ({dtype.itemsize} bytes)",
        expected=f"{deduced} ({parameter.size} bytes), deduced from the kernel",
        fix="correct the dtype in the contract, or the order of `args`",
    )


def _scalar_kind(dtype: np.dtype[np.generic]) -> str:
    if dtype.name in _FLOATS:
        return "float"
    if dtype.kind in "iub":
        return "int"
    return "struct"


class Packed:
    """A launch's arguments in memory; `addresses` point at each."""

    def __init__(self, launch: Launch, addresses: Mapping[str, int]) -> None:
        """Lay every argument out at an alignment that suits any parameter."""
        contents = [
            addresses[arg].to_bytes(8, "little") if isinstance(arg, str) else arg.value.tobytes()
            for arg in launch.args
        ]
        offsets = [0]
        for content in contents:
            offsets.append(offsets[-1] + -(-len(content) // _ALIGNMENT) * _ALIGNMENT)
        self._memory = np.zeros(offsets[-1] + _ALIGNMENT, np.uint8)
        start = -(-self._memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        first = start - self._memory.ctypes.data
        for offset, content in zip(offsets, contents, strict=False):
            at = first + offset
            self._memory[at : at + len(content)] = np.frombuffer(content, np.uint8)
        self.addresses = [start + offset for offset in offsets[: len(contents)]]
