"""Headers of safetensors: our own reader against the library, which lets some things through."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates.documents.model import Document
from trueup.gates.errors import GateError
from trueup.gates.read.documents.read import load_document
from trueup.gates.read.documents.safetensors import BITS
from trueup.gates.read.limits import Fault, Limits


def build(header: Any, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def load(content: bytes, folder: Path) -> tuple[Document, list[Fault]]:
    path = folder / "a.safetensors"
    path.write_bytes(content)
    return load_document(path, kind="weights")


def kinds(content: bytes, folder: Path) -> set[str]:
    return {fault.kind for fault in load(content, folder)[1]}


def library_takes(content: bytes) -> bool:
    try:
        safetensors.deserialize(content)
    except Exception:  # the library's own error, and those of its parser
        return False
    return True


W = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_what_the_library_writes_is_read_without_a_fault(tmp_path: Path) -> None:
    tensors = {
        "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "scalar": np.array(1.5),
        "none": np.zeros((0, 4), np.float16),
        "mask": np.ones(3, np.bool_),
    }
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file(tensors, path, {"step": "100", "é": "ü"})
    document, faults = load_document(path, kind="weights")
    assert faults == []
    assert document.data["metadata"] == {"step": "100", "é": "ü"}
    assert {name: one["shape"] for name, one in document.data["tensors"].items()} == {
        "a.weight": [2, 3], "scalar": [], "none": [0, 4], "mask": [3],
    }  # fmt: skip
    assert document.data["data_bytes"] == 24 + 8 + 0 + 3


@pytest.mark.parametrize("dtype", sorted(BITS))
def test_the_width_of_a_dtype_is_the_librarys(dtype: str, tmp_path: Path) -> None:
    """Eight elements: a whole number of bytes at any width."""
    size = BITS[dtype]
    good = build({"w": {"dtype": dtype, "shape": [8], "data_offsets": [0, size]}}, bytes(size))
    assert library_takes(good)
    assert kinds(good, tmp_path) == set()


def test_elements_that_end_inside_a_byte_are_told(tmp_path: Path) -> None:
    bad = build({"w": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}, bytes(1))
    assert kinds(bad, tmp_path) == {"tensors_size"}


# The library takes each of these, in its version 0.8.0; the gate must not.
LETS_THROUGH = {
    "tensors_duplicate": b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
    b'"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
    "tensors_metadata_duplicate": b'{"__metadata__":{"a":"1","a":"2"},'
    b'"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
    "tensors_field": b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}',
    "tensors_header": b'  {"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
}


@pytest.mark.parametrize("kind", LETS_THROUGH)
def test_what_the_library_lets_through_is_told(kind: str, tmp_path: Path) -> None:
    content = build(LETS_THROUGH[kind], bytes(8))
    assert library_takes(content)
    assert kinds(content, tmp_path) == {kind}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shape", [2.0]), ("shape", [-2]), ("shape", [True]), ("shape", "2"), ("shape", [[2]]),
        ("shape", None), ("shape", [2**64]), ("shape", [1] * 65), ("data_offsets", [0]),
        ("data_offsets", [0, 8, 8]), ("data_offsets", ["0", "8"]), ("data_offsets", [0, -8]),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_told(field: str, value: Any, tmp_path: Path) -> None:
    found = kinds(build({"w": {**W, field: value}}, bytes(8)), tmp_path)
    # A fraction is no part of any header, wherever it stands.
    assert found == ({"tensors_header"} if value == [2.0] else {"tensors_field"})


@pytest.mark.parametrize("name", ["w", "dtype", "data_offsets"])
def test_a_tensor_may_have_any_name(name: str, tmp_path: Path) -> None:
    assert kinds(build({name: W}, bytes(8)), tmp_path) == set()


def test_the_fault_stands_at_the_tensors_name(tmp_path: Path) -> None:
    content = build({"a": W, "größe": {**W, "dtype": "F31"}}, bytes(8))
    _, (fault,) = load(content, tmp_path)
    assert fault.key == "größe"
    assert fault.byte is not None
    assert content[fault.byte :].startswith(b'"gr')


def test_no_tensor_is_loaded(tmp_path: Path) -> None:
    """A hundred gigabytes, of which the disk holds the header alone."""
    size = 100 << 30
    path = tmp_path / "a.safetensors"
    head = build({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
    document, faults = load_document(path, kind="weights")
    assert faults == []
    assert document.data["data_bytes"] == size


def test_a_header_past_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 1 << 30))
        file.truncate(1 << 31)
    _, faults = load_document(path, kind="weights")
    assert [fault.kind for fault in faults] == ["tensors_header_length"]


def test_a_hundred_thousand_tensors_take_seconds(tmp_path: Path) -> None:
    header = {
        f"layer{i}.weight": {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]}
        for i in range(100_000)
    }
    path = tmp_path / "a.safetensors"
    path.write_bytes(build(header, bytes(400_000)))
    start = time.perf_counter()
    document, faults = load_document(path, kind="weights")
    assert time.perf_counter() - start < 30  # about 0.6 s; the limit is for a busy machine
    assert faults == []
    assert len(document.data["tensors"]) == 100_000


B = {"dtype": "I8", "shape": [3], "data_offsets": [8, 11]}
SEED = build({"__metadata__": {"step": "1"}, "a": W, "b": B}, bytes(11))
TOKENS = [
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"0", b"9", b"-1", b"1.5", b"1e9", b"NaN", b"null",
    b"true", b"\\u0061", b" ", b"\n", b"\0", b"\xff", b'"a"', b'"dtype"', b"9" * 20,
]  # fmt: skip


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A good file with a few cuts, copies and insertions; in half, the length is put right."""
    data = bytearray(SEED[8:])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        match draw(st.sampled_from(["cut", "copy", "put", "flip"])):
            case "cut":
                del data[at:end]
            case "copy":
                data[at:at] = data[at:end]
            case "put":
                data[at:at] = draw(st.sampled_from(TOKENS))
            case _:
                if at < len(data):
                    data[at] ^= 1 << draw(st.integers(0, 7))
    length = SEED[:8]
    if draw(st.booleans()):
        length = struct.pack("<Q", max(0, len(data) - 11))
    return bytes(length) + bytes(data)


@settings(max_examples=600, deadline=None)
@given(content=mutants())
def test_no_mutant_passes_that_the_library_refuses(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        _, faults = load(content, folder)
    except GateError:
        return
    assert faults or library_takes(content)


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=200))
def test_no_bytes_are_too_odd(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        _, faults = load(content, tmp_path_factory.getbasetemp())
    except GateError:
        return
    assert faults or library_takes(content)


def test_limits_are_taken_from_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(build({"w": W}, bytes(8)))
    _, faults = load_document(path, kind="weights", limits=Limits(max_tensor_header=8))
    assert [fault.kind for fault in faults] == ["tensors_header_length"]
