"""Reads the header of a safetensors file: exact about every field, and no tensor is loaded."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trueup.gates.documents.model import Document
from trueup.gates.findings import show
from trueup.gates.read.documents.source import Report, opened
from trueup.gates.read.limits import Fault, Limits

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
    "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
_FIELDS = ("dtype", "shape", "data_offsets")
_METADATA = "__metadata__"
_LENGTH = 8  # bytes of the header's length
_MAX = 1 << 63


class _Refused(Exception):
    """A literal that no header holds."""


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, so that a key that stands twice is seen."""


def _refuse(text: str) -> NoReturn:
    raise _Refused(text[:40])


@dataclass(slots=True)
class _Header:
    """The bytes of a header, and how its faults are reported."""

    raw: bytes
    report: Report

    def fault(self, kind: str, got: str, name: str | None = None) -> None:
        """Report at the place of a tensor's name."""
        at = -1 if name is None else self.raw.find(json.dumps(name).encode())
        if at < 0 and name is not None:
            at = self.raw.find(json.dumps(name, ensure_ascii=False).encode("utf-8", "replace"))
        self.report(Fault(kind, got, byte=_LENGTH + max(at, 0), key=name))


def read_safetensors(path: Path, name: str, report: Report, limits: Limits) -> Document:
    """`{"tensors": {name: {dtype, shape, data_offsets}}, "metadata": {...} | None}`."""
    with opened(path, name, report) as (file, size):
        head = file.read(_LENGTH)
        length = int.from_bytes(head, "little")
        most = min(size - _LENGTH, limits.max_tensor_header)
        if len(head) < _LENGTH or not 2 <= length <= most:
            got = f"{show(head)}, {size} bytes in all" if len(head) < _LENGTH else f"{length} bytes"
            report(Fault("tensors_header_length", f"{got} of {size}", byte=0))
            return Document(None, "safetensors", size)
        header = _Header(file.read(length), report)
    pairs = _parsed(header)
    if pairs is None:
        return Document(None, "safetensors", size)
    metadata, tensors = _entries(header, pairs)
    data_bytes = size - _LENGTH - length
    named = {key for key, _ in pairs if key != _METADATA}
    if len(tensors) == len(named):  # else the bytes of a tensor that was refused would be a hole
        _spans(header, tensors, data_bytes)
    data = {
        "tensors": tensors, "metadata": metadata, "header_bytes": length, "data_bytes": data_bytes,
        "refused": len(named) - len(tensors),
    }  # fmt: skip
    return Document(data, "safetensors", size, {(): (1, 0)})


def _parsed(header: _Header) -> _Pairs | None:
    """The header as pairs of names and fields."""
    raw = header.raw
    if raw[:1] != b"{":
        header.fault("tensors_header", f"begins with {show(raw[:12])}")
        return None
    if raw.rstrip(b" ")[-1:] != b"}":
        header.fault("tensors_header", f"ends with {show(raw[-12:])}")
        return None
    try:
        pairs = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_Pairs,
            parse_float=_refuse, parse_constant=_refuse,
        )  # fmt: skip
    except _Refused as error:
        header.fault("tensors_header", f"the literal {error}")
    except RecursionError:
        header.fault("tensors_header", "nested too deep")
    except UnicodeDecodeError as error:
        header.fault("tensors_header", f"bytes that are not UTF-8 at {_LENGTH + error.start}")
    except ValueError as error:  # JSON's own errors, and integers of thousands of digits
        header.fault("tensors_header", str(error).split(";")[0])
    else:
        if isinstance(pairs, _Pairs):
            return pairs
        header.fault("tensors_header", "no object")
    return None


def _entries(
    header: _Header, pairs: _Pairs
) -> tuple[dict[str, str] | None, dict[str, dict[str, Any]]]:
    """The metadata and the tensors whose fields are right."""
    metadata: dict[str, str] | None = None
    tensors: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for name, fields in pairs:
        if name in seen:
            what = "tensors_metadata_duplicate" if name == _METADATA else "tensors_duplicate"
            header.fault(what, f"{show(name)} stands twice", name)
        seen.add(name)
        if name == _METADATA:
            metadata = _metadata(header, fields)
            continue
        tensor = _tensor(header, name, fields)
        if tensor is not None:
            tensors.setdefault(name, tensor)
    return metadata, tensors


def _metadata(header: _Header, fields: Any) -> dict[str, str]:
    """Names to texts; what is no text is left out."""
    found: dict[str, str] = {}
    if not isinstance(fields, _Pairs):
        header.fault("tensors_metadata", f"{_METADATA} is {_shown(fields)}", _METADATA)
        return found
    for key, value in fields:
        if not isinstance(value, str):
            header.fault("tensors_metadata", f"{show(key)} is {_shown(value)}", _METADATA)
        elif key in found:
            got = f"{show(key)} is {show(found[key])}, then {show(value)}"
            header.fault("tensors_metadata_duplicate", got, _METADATA)
        else:
            found[key] = value
    return found


def _shown(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "an object"
    return "a list" if isinstance(value, list) else show(value)


def _tensor(header: _Header, name: str, fields: Any) -> dict[str, Any] | None:
    """One tensor, or None if its fields are not exactly the three."""
    if not isinstance(fields, _Pairs):
        header.fault("tensors_field", f"{show(name)} is {_shown(fields)}", name)
        return None
    keys = [key for key, _ in fields]
    if sorted(keys) != sorted(_FIELDS):
        header.fault("tensors_field", f"the fields {', '.join(map(show, keys)) or 'none'}", name)
        return None
    tensor = dict(fields)
    dtype, shape, offsets = (tensor[key] for key in _FIELDS)
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        bad = "data_offsets" if _are_counts(shape) else "shape"
        header.fault("tensors_field", f"{bad} is {show(_plain(tensor[bad]))}", name)
        return None
    if not isinstance(dtype, str) or dtype not in BITS:
        header.fault("tensors_dtype", show(_plain(dtype)), name)
        return None
    begin, end = offsets
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8 or end - begin != bits // 8:
        wanted = f"{bits // 8} bytes" if not bits % 8 else f"{bits} bits"
        header.fault(
            "tensors_size", f"{end - begin} bytes for {dtype} {_plain(shape)} of {wanted}", name
        )
        return None
    return tensor


def _plain(value: Any) -> str:
    return str(value)[:60] if isinstance(value, list) else show(value)


def _are_counts(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) <= 64
        and all(type(one) is int and 0 <= one < _MAX for one in value)
    )


def _spans(header: _Header, tensors: dict[str, dict[str, Any]], data_bytes: int) -> None:
    """The tensors' bytes follow each other from the first to the end of the file."""
    at, before = 0, "the header"
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = tensor["data_offsets"]
        if begin > at:
            got = f"{begin - at} bytes between {show(before)} and {show(name)}"
            header.fault("tensors_hole", got, name)
        elif begin < at:
            got = f"{show(name)} begins {at - begin} bytes before the end of {show(before)}"
            header.fault("tensors_overlap", got, name)
        if end > data_bytes:
            header.fault("tensors_outside", f"ends at {end} of {data_bytes} bytes of data", name)
        at, before = max(at, end), name
    if at < data_bytes:
        got = f"{data_bytes - at} bytes after {show(before)}"
        header.fault("tensors_trailing", got)
