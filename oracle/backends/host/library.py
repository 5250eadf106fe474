"""A built kernel library: its entries' parameters, and one launch through the C interface."""

from __future__ import annotations

import ctypes
import functools
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trueup.oracle.backends.base import Launch, Parameter, ParameterKind
from trueup.oracle.backends.host.build import LIBRARY, SYMBOLS
from trueup.oracle.backends.host.memory import Region, reserve
from trueup.oracle.errors import BackendUnavailable

_KINDS: tuple[ParameterKind, ...] = ("int", "float", "pointer", "const pointer", "struct")
_MOST_PARAMETERS = 512
_MOST_REPORTS = 33
_STACK_BYTES, _STACK_COUNT = 256 * 1024, 1024


# Two threads of Python may not run kernels at once: stacks and signal handlers are the process's.
_ONE_AT_A_TIME = threading.Lock()


class _Described(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint32), ("kind", ctypes.c_int32), ("floating", ctypes.c_int32))


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("bytes", ctypes.c_uint64))


class Report(ctypes.Structure):
    """What the runtime says about one fault."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("signal", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("pc", ctypes.c_uint64),
        ("is_write", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("column", ctypes.c_int32),
        ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
        ("file", ctypes.c_char * 256),
        ("message", ctypes.c_char * 3072),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("order", ctypes.c_uint64),
        ("time_limit", ctypes.c_double),
        ("dynamic_shared", ctypes.c_void_p),
        ("dynamic_bytes", ctypes.c_uint64),
        ("statics", ctypes.POINTER(_Range)),
        ("static_count", ctypes.c_uint64),
        ("stacks", ctypes.c_void_p),
        ("stack_bytes", ctypes.c_uint64),
        ("stack_count", ctypes.c_uint64),
        ("reports", ctypes.POINTER(Report)),
        ("report_capacity", ctypes.c_uint64),
        ("report_count", ctypes.POINTER(ctypes.c_uint64)),
        ("fill", ctypes.c_uint32),
    )


class Slot(NamedTuple):
    """A parameter as deduced; for a float, or a pointer to them, its bytes (negative: bf16)."""

    parameter: Parameter
    floating: int


@functools.cache
def _stacks() -> int:
    """Reserve the stacks that all libraries of the process share: one runs at a time."""
    return reserve(_STACK_BYTES * _STACK_COUNT)


class Library:
    """The shared object of one source and its entries, loaded."""

    def __init__(self, folder: Path, entries: Sequence[str]) -> None:
        """Load the library and read its table of parameters."""
        self.path = folder / LIBRARY
        self._dll = ctypes.CDLL(str(self.path))
        self._index = {entry: index for index, entry in enumerate(entries)}
        symbols = json.loads((folder / SYMBOLS).read_text(encoding="utf-8"))
        self.base = self._address(0) - symbols["anchor"] if entries else 0
        shared = symbols["shared"]
        self._statics = (_Range * len(shared))(
            *(_Range(self.base + offset, size) for offset, size in shared)
        )
        self._state = [(self.base + offset, size) for offset, size in symbols["state"]]
        self._pristine = [ctypes.string_at(address, size) for address, size in self._state]
        self.slots = {entry: self._describe(index) for entry, index in self._index.items()}

    def _address(self, index: int) -> int:
        function = getattr(self._dll, f"cuhost_launch_{index}")
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def _describe(self, index: int) -> tuple[Slot, ...]:
        table = (_Described * _MOST_PARAMETERS)()
        count = getattr(self._dll, f"cuhost_describe_{index}")(table, _MOST_PARAMETERS)
        return tuple(
            Slot(Parameter(int(one.size), _KINDS[one.kind]), int(one.floating))
            for one in table[:count]
        )

    def launch(
        self,
        launch: Launch,
        addresses: Sequence[int],
        dynamic: Region,
        *,
        fill: int,
        order: int,
        seconds: float,
    ) -> tuple[bool, list[Report]]:
        """Run one launch; return whether it came to its end, and what it reported."""
        reports = (Report * _MOST_REPORTS)()
        count = ctypes.c_uint64(0)
        options = _Options(
            order=order,
            time_limit=seconds,
            dynamic_shared=dynamic.address,
            dynamic_bytes=launch.shared,
            statics=self._statics,
            static_count=len(self._statics),
            stacks=_stacks(),
            stack_bytes=_STACK_BYTES,
            stack_count=_STACK_COUNT,
            reports=reports,
            report_capacity=_MOST_REPORTS,
            report_count=ctypes.pointer(count),
            fill=fill,
        )
        shape = (ctypes.c_uint32 * 6)(*launch.grid, *launch.block)
        arguments = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        function = getattr(self._dll, f"cuhost_launch_{self._index[launch.entry]}")
        with _ONE_AT_A_TIME:
            outcome = function(arguments, shape, ctypes.byref(options))
        if outcome < 0:
            raise BackendUnavailable("the system gives no timer to limit a kernel's time with")
        return outcome == 0, list(reports[: count.value])

    def restore(self) -> None:
        """Set the module's variables back to how they were loaded: a fault left them anyhow."""
        for (address, _), content in zip(self._state, self._pristine, strict=True):
            ctypes.memmove(address, content, len(content))
