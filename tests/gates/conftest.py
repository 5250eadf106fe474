"""What the tests of the gates share."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

LayOut = Callable[..., list[Path]]


def as_bytes(text: str) -> bytes:
    """The bytes of an example: an escape `\\xe9` stands for one byte."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())


def write_example(text: str, folder: Path, default: str) -> list[Path]:
    """Write the files of an example, and give their paths.

    `== path ==` begins a file, `== path -> target ==` is a link, `== a.pt!b/c ==` an entry of the
    archive a.pt (`b/c (deflated)`: a compressed one); words before the first are for the reader.
    Without any, it is the file `default`.
    """
    _, *parts = re.split(r"(?m)^== (.+) ==\n", text)
    if not parts:
        parts = [default, text]
    written = []
    for name, content in zip(parts[::2], parts[1::2], strict=True):
        path, _, target = name.partition(" -> ")
        path, _, entry = path.partition("!")
        entry, _, how = entry.partition(" (")
        whole = folder / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        if entry:
            add_entry(whole, entry, as_bytes(content.removesuffix("\n")), how.rstrip(")"))
        elif target:
            whole.symlink_to(target)
        else:
            whole.write_bytes(as_bytes(content))
        if whole not in written:
            written.append(whole)
    return written


def add_entry(path: Path, name: str, content: bytes, how: str = "") -> None:
    """Put an entry into an archive: `deflated`, or marked as `encrypted`."""
    kind = zipfile.ZIP_DEFLATED if how == "deflated" else zipfile.ZIP_STORED
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a", kind) as archive:
        warnings.simplefilter("ignore")  # of a name that stands twice
        archive.writestr(zipfile.ZipInfo(name), content, kind)
        start = archive.infolist()[-1].header_offset
    if how == "encrypted":
        data = bytearray(path.read_bytes())
        data[start + 6] |= 1
        data[data.rfind(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(data)


@pytest.fixture
def lay_out(tmp_path: Path) -> LayOut:
    """Writes a short example of a rule or a kind below the test's folder."""

    def write(text: str, default: str, below: str = ".") -> list[Path]:
        return write_example(text, tmp_path / below, default)

    return write
