"""What the tests of the gates share."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

LayOut = Callable[[str, str], list[Path]]


def files_of(example: str, default: str) -> dict[str, bytes]:
    """File names and contents: `--- NAME` begins a file, `b'...'` stands for its bytes."""
    text = example.removeprefix("\n")
    if not text.startswith("--- "):
        return {default: _content(text)}
    out = {}
    for part in f"\n{text}".split("\n--- ")[1:]:
        name, _, body = part.partition("\n")
        out[name.strip()] = _content(body)
    return out


def _content(text: str) -> bytes:
    if text.startswith("b'"):
        value = ast.literal_eval(text.strip())
        assert isinstance(value, bytes)
        return value
    return text.encode()


@pytest.fixture
def lay_out(tmp_path: Path) -> LayOut:
    """Writes the files of a rule's or a kind's short example, and gives their paths."""

    def write(example: str, default: str) -> list[Path]:
        paths = []
        for name, content in files_of(example, default).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            paths.append(path)
        return paths

    return write
