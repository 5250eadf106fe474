"""Pickles are scanned, never loaded: what they name is told, and what hides it."""

from __future__ import annotations

import collections
import contextlib
import io
import pickle
import pickletools
import struct
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates.documents.model import Document
from trueup.gates.errors import GateError
from trueup.gates.read.documents.read import load_document
from trueup.gates.read.limits import Fault, Limits


class Calls:
    """Pickled, it is a call of posix.system that never runs here."""

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, ("exit 3",)


def load(
    content: bytes, folder: Path, limits: Limits | None = None
) -> tuple[Document, list[Fault]]:
    path = folder / "a.pt"
    path.write_bytes(content)
    return load_document(path, kind="pickle", limits=limits)


def named(content: bytes, folder: Path) -> set[str]:
    document, faults = load(content, folder)
    assert faults == []
    return set(document.data["globals"])


def kinds(content: bytes, folder: Path, limits: Limits | None = None) -> list[str]:
    return [fault.kind for fault in load(content, folder, limits)[1]]


def archive(*entries: tuple[str, bytes], deflate: bool = False) -> bytes:
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind) as file:
        for name, content in entries:
            file.writestr(zipfile.ZipInfo(name), content, kind)
    return out.getvalue()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_globals_are_resolved_in_every_protocol(protocol: int, tmp_path: Path) -> None:
    value = [collections.OrderedDict(a=1), Calls(), Fraction(1, 2), collections.OrderedDict()]
    found = named(pickle.dumps(value, protocol), tmp_path)
    assert {"collections.OrderedDict", "posix.system", "fractions.Fraction"} <= found


def test_what_torch_writes_is_read_without_a_fault(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = {"w": torch.zeros(640, 2), "b": torch.nn.Parameter(torch.ones(3)), "step": 5}
    for new in (True, False):
        path = tmp_path / f"{new}.pt"
        torch.save(state, path, _use_new_zipfile_serialization=new)
        document, faults = load_document(path, kind="pickle")
        assert faults == [], new
        assert set(document.data["globals"]) == {
            "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter",
            "torch.FloatStorage", "collections.OrderedDict",
        }  # fmt: skip


def test_every_pickle_of_a_stream_is_scanned(tmp_path: Path) -> None:
    first = pickle.dumps({"step": 1}, 4)
    content = first + pickle.dumps(Calls(), 4)
    # `genops` alone stops at the first STOP, and sees nothing.
    assert not [op for op, _, _ in pickletools.genops(content) if "GLOBAL" in op.name]
    document, faults = load(content, tmp_path)
    assert faults == []
    assert document.data["globals"]["posix.system"]["byte"] > len(first)


def test_a_pickle_after_torchs_old_form_is_found(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.pt"
    torch.save({"n": 1}, path, _use_new_zipfile_serialization=False)
    content = path.read_bytes() + pickle.dumps(Calls(), 2)
    assert "posix.system" in named(content, tmp_path)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (b"\x8c\x05posix\x8c\x06systemN0\x93", "a name that is dropped and uncovered again"),
        (b"\x8c\x05posix\x8c\x06system(1\x93", "a mark that is dropped again"),
        (b"\x8c\x05posix\x8c\x06system2 0\x93".replace(b" ", b""), "a copy that is dropped again"),
        (b"\x8c\x06system\x93", "one text on the stack"),
        (b"h\x07h\x08\x93", "memories that were never filled"),
        (b"C\x05posixC\x06system\x93", "bytes instead of texts"),
        (b"K\x01K\x02\x93", "numbers"),
        (b"\x8c\x00\x8c\x00\x93", "empty names"),
    ],
)
def test_names_that_are_computed_are_told(code: bytes, why: str, tmp_path: Path) -> None:
    content = b"\x80\x04" + code + b"."
    assert kinds(content, tmp_path) == ["pickle_unknown_global"], why


def test_a_memo_is_numbered_as_the_loader_numbers_it(tmp_path: Path) -> None:
    """MEMOIZE takes the number of entries, not one more than the largest: checked by loading."""
    content = (
        b"\x80\x04\x8c\x0bcollections\x8c\x07Counterr\x64\x00\x00\x00"  # entry 100, so one entry
        b"\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94h\x01h\x02\x93."  # entries 1 and 2
    )
    assert pickle.loads(content) is collections.OrderedDict
    assert named(content, tmp_path) == {"collections.OrderedDict"}


def test_the_old_text_form_with_a_blank_in_a_name_is_told(tmp_path: Path) -> None:
    assert kinds(b"cposix system\nx\n.", tmp_path) == ["pickle_unknown_global"]


def test_extensions_are_told(tmp_path: Path) -> None:
    for code in (b"\x82\x01", b"\x83\x01\x01", b"\x84\x01\x01\x01\x01"):
        assert kinds(b"\x80\x02" + code + b".", tmp_path) == ["pickle_extension"]


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",  # a frame without end
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",  # bytes without end
        b"\x80\x02\x8b\xff\xff\xff\x7f.",  # an integer without end
        b"I" + b"9" * 5000 + b"\n.",
        b"F1e\n.",
        b"V\\ud8\n.",
        b"S'a\n.",
        b"\xff\xff",
        b"hello\n",
        b"\x80",
    ],
)
def test_a_pickle_that_cannot_be_followed_is_told(content: bytes, tmp_path: Path) -> None:
    document, faults = load(content, tmp_path)
    assert [fault.kind for fault in faults] == ["pickle_broken"]
    assert document.data is None


GOOD = pickle.dumps(collections.OrderedDict(), 2)


def test_a_name_that_the_directory_hides_is_told(tmp_path: Path) -> None:
    """The entry itself has another name than the directory: readers pick one of them."""
    content = archive(("a/data.pkl", GOOD))
    assert kinds(content.replace(b"a/data.pkl", b"a/data.txt", 1), tmp_path) == ["archive_damaged"]


def test_a_size_that_lies_is_not_believed(tmp_path: Path) -> None:
    content = bytearray(archive(("a/data.pkl", bytes(1 << 16)), deflate=True))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 100)  # the size after decompression
    found = kinds(bytes(content), tmp_path)
    assert found[-1] in ("archive_damaged", "archive_bomb", "pickle_broken")


def test_entries_that_share_bytes_are_told(tmp_path: Path) -> None:
    """Two entries of the directory point at one: the way of the bombs that need no compression."""
    content = bytearray(archive(("a/data.pkl", GOOD), ("a/datb.pkl", GOOD)))
    at = content.rindex(b"PK\x01\x02")
    content[at + 42 : at + 46] = struct.pack("<I", 0)
    assert "archive_damaged" in kinds(bytes(content), tmp_path)


def test_a_directory_without_end_is_not_read(tmp_path: Path) -> None:
    content = bytearray(archive(("a/data.pkl", GOOD)))
    at = content.rindex(b"PK\x05\x06")
    content[at + 12 : at + 16] = struct.pack("<I", 0xFFFFFFF0)
    assert kinds(bytes(content), tmp_path) == ["archive_bomb"]


def test_the_number_of_entries_is_limited(tmp_path: Path) -> None:
    content = archive(*((f"a/{i}", b"") for i in range(20)))
    assert kinds(content, tmp_path, Limits(max_members=10)) == ["archive_bomb"]


def test_the_bytes_of_pickles_are_limited_together(tmp_path: Path) -> None:
    big = pickle.dumps("x" * 400, 2)
    content = archive(("a/data.pkl", big), ("a/b.pkl", big), ("a/c.pkl", big))
    assert kinds(content, tmp_path, Limits(max_pickle=1000)) == ["archive_bomb"]


def test_a_plain_pickle_past_the_limit_is_told(tmp_path: Path) -> None:
    content = pickle.dumps("x" * 4000, 2)
    found = kinds(content, tmp_path, Limits(max_pickle=1000))
    assert found == ["pickle_broken", "archive_bomb"]


def test_raw_tensors_are_no_pickles_and_are_not_read(tmp_path: Path) -> None:
    """A storage may begin with any bytes, those of a pickle among them."""
    content = archive(("a/data.pkl", GOOD), ("a/data/0", b"\x80\x02" + bytes(30)))
    assert named(content, tmp_path) == {"collections.OrderedDict"}


def test_a_comment_of_the_archive_is_told(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(zipfile.ZipInfo("a/data.pkl"), GOOD)
        file.comment = pickle.dumps(Calls(), 2)
    assert kinds(out.getvalue(), tmp_path) == ["archive_damaged"]


SEEDS = [
    pickle.dumps([collections.OrderedDict(a=1), Calls(), {"x": (1, 2.5, "é", b"z")}], protocol)
    for protocol in range(6)
]
SEEDS.append(archive(("a/data.pkl", SEEDS[2]), ("a/data/0", bytes(8)), ("a/version", b"3\n")))
SEEDS.append(archive(("a/data.pkl", SEEDS[4] * 3), deflate=True))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_no_mutant_of_a_call_is_harmless(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever still loads far enough to name posix.system is told: by name, or as unknown."""
    content = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content)))
        end = min(len(content), at + data.draw(st.integers(0, 8)))
        match data.draw(st.sampled_from(["cut", "copy", "put", "flip"])):
            case "cut":
                del content[at:end]
            case "copy":
                content[at:at] = content[at:end]
            case "put":
                content[at:at] = data.draw(st.binary(min_size=1, max_size=4))
            case _:
                if at < len(content):
                    content[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        document, faults = load(bytes(content), tmp_path_factory.getbasetemp())
    except GateError:
        return
    told = set(document.data["globals"]) if document.data else set()
    for name in Watched.names(bytes(content)):
        assert faults or name in told


class Watched(pickle._Unpickler):  # type: ignore[misc]
    """Python's own loader, in Python, which imports nothing and notes what it would import."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.found: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.found.add(f"{module}.{name}")
        return lambda *args, **keys: None

    def get_extension(self, code: int) -> None:
        self.found.add(f"extension {code}")
        raise pickle.UnpicklingError

    @classmethod
    def names(cls, content: bytes) -> set[str]:
        """What loading the first pickle of a plain stream would import."""
        if content[:4] == b"PK\x03\x04" or len(content) > 5000:
            return set()
        loader = cls(content)
        with contextlib.suppress(Exception):  # the mutants are no pickles any more
            loader.load()
        # Other names may be translated from those of Python 2 before they are looked up.
        return {name for name in loader.found if name.startswith("posix.")}
