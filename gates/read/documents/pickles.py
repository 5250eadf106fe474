"""Scans pickles opcode by opcode: which globals they name. Nothing is ever unpickled.

A literal counts as an operand only if it was pushed last: any opcode that this scanner does not
follow hides what lies below it, so that a name can be missed only as "unknown", never as harmless.
"""

from __future__ import annotations

import io
import pickletools
import struct
import warnings
from dataclasses import dataclass, field

from trueup.gates.findings import show
from trueup.gates.read.documents.source import Report
from trueup.gates.read.limits import Fault

_TORCH_MAGIC = 0x1950A86A20F9469CFC6C  # the first of the five pickles of torch's old form
_TORCH_PICKLES = 5
_STRINGS = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING",
            "SHORT_BINSTRING")  # fmt: skip
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_GETS = ("GET", "BINGET", "LONG_BINGET")
_NO_PUSH = ("PROTO", "FRAME", "STOP")
_FRAME = 9  # bytes of the opcode and its length
_MAX_GLOBALS = 10_000


@dataclass(slots=True)
class Scanned:
    """What one stream of pickles names: global -> first byte."""

    globals: dict[str, int] = field(default_factory=dict)
    pickles: int = 0
    opcodes: int = 0
    end: int = 0  # byte after the last complete pickle
    first_long: int | None = None
    broken: bool = False


@dataclass(slots=True)
class _Stack:
    """The literals that were pushed last, and the memo."""

    top: list[str | None] = field(default_factory=list)
    memo: dict[int, str | None] = field(default_factory=dict)

    def push(self, value: str | None) -> None:
        """Only the last two matter."""
        self.top = [*self.top[-1:], value]

    def last(self) -> str | None:
        """The literal on top, if it is one."""
        return self.top[-1] if self.top else None


def scan_stream(data: bytes, name: str, report: Report, *, size: int | None = None) -> Scanned:
    """All pickles of a stream, one after the other. `size`: bytes of the whole file."""
    out = Scanned()
    while out.end < len(data):
        start = out.end
        if _is_torch_data(out) and not _begins_pickle(data, start):
            return out
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts of protocol 0
            problem = _scan_one(data, start, out, name, report)
        if problem is None:
            continue
        if _is_torch_data(out):
            return out  # the bytes of tensors, which happen to begin like a pickle
        if out.pickles:
            got = f"{(size or len(data)) - start} bytes, begin with {show(data[start : start + 8])}"
            report(Fault("pickle_trailing", got, byte=start, key=name))
        else:
            report(Fault("pickle_broken", problem, byte=start, key=name))
            out.broken = True
        return out
    return out


def _is_torch_data(out: Scanned) -> bool:
    """Whether what follows is what torch's old form puts after its pickles."""
    return out.first_long == _TORCH_MAGIC and out.pickles >= _TORCH_PICKLES


def _begins_pickle(data: bytes, at: int) -> bool:
    return data[at : at + 1] == b"\x80" and data[at + 1 : at + 2] in (b"\2", b"\3", b"\4", b"\5")


def _scan_one(data: bytes, start: int, out: Scanned, name: str, report: Report) -> str | None:
    """One pickle from `start`: None if it is complete, or what is wrong with it."""
    stream = io.BytesIO(data)
    stream.seek(start)
    stack, found, faults, opcodes = _Stack(), dict[str, int](), list[Fault](), 0
    problem = None
    try:
        for op, arg, position in pickletools.genops(stream):
            at = position or 0
            opcodes += 1
            if op.name == "FRAME" and isinstance(arg, int) and at + _FRAME + arg > len(data):
                raise ValueError(f"a frame of {arg} bytes at {at} of {len(data)}")
            if opcodes == 2 and not out.pickles and isinstance(arg, int):
                out.first_long = arg
            named = _step(op.name, arg, at, stack)
            if named is None:
                continue
            text, kind = named
            if kind is None:
                if len(found) < _MAX_GLOBALS:
                    found.setdefault(text, at)
            else:
                faults.append(Fault(kind, text, byte=at, key=name))
    except (ValueError, OverflowError, struct.error, IndexError) as error:
        problem = str(error).split("\n")[0][:120]
    # What an incomplete pickle names before it breaks would be imported all the same.
    if problem is None or not out.pickles:
        for one, at in found.items():
            out.globals.setdefault(one, at)
        for fault in faults:
            report(fault)
    if problem is None:
        out.pickles += 1
        out.opcodes += opcodes
        out.end = stream.tell()
    return problem


def _step(op: str, arg: object, at: int, stack: _Stack) -> tuple[str, str | None] | None:
    """Follow one opcode; the global it names, or the kind of fault it is."""
    if op in _STRINGS:
        stack.push(arg if isinstance(arg, str) else None)
    elif op == "MEMOIZE":
        stack.memo[len(stack.memo)] = stack.last()
    elif op in _PUTS and isinstance(arg, int):
        stack.memo[arg] = stack.last()
    elif op in _GETS and isinstance(arg, int):
        stack.push(stack.memo.get(arg))
    elif op in ("GLOBAL", "INST"):
        stack.push(None)
        parts = str(arg).split(" ")
        if len(parts) != 2:
            return f"the operands {show(str(arg))}", "pickle_unknown_global"
        return ".".join(parts), None
    elif op == "STACK_GLOBAL":
        module, attribute = stack.top if len(stack.top) == 2 else (None, None)
        stack.push(None)
        if not module or not attribute:
            return f"operands that are computed, at byte {at}", "pickle_unknown_global"
        return f"{module}.{attribute}", None
    elif op.startswith("EXT"):
        stack.push(None)
        return f"copyreg extension {arg}", "pickle_extension"
    elif op not in _NO_PUSH:
        stack.push(None)  # POP as well: it uncovers what lies below, which is not followed
    return None
