"""Writes a layout as Rust, C/C++ or Python constants that compute its fingerprint again."""

from __future__ import annotations

from enum import StrEnum
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueup.reference.isv.layout import Layout


class Language(StrEnum):
    """What the constants are written in."""

    RUST = "rust"
    C = "c"
    PYTHON = "python"


# Lines hashed in one constant. clang gives up after a million steps of one constant, other C++
# compilers later; rustc warns after two million, and follows 128 constants from one to the next.
_STEP = {Language.RUST: 1024, Language.C: 64, Language.PYTHON: 1}
_TEMPLATES = {Language.RUST: "layout.rs", Language.C: "layout.h", Language.PYTHON: "layout.py"}


def emit(layout: Layout, language: Language, source: str) -> str:
    """The constants as text. `source` names the file they come from; only its last part is told."""
    from jinja2 import Environment, StrictUndefined

    from trueup.reference.isv.layout import fingerprint, hexadecimal, padded_offsets, to_lanes

    text = (resources.files("trueup") / "templates" / f"{_TEMPLATES[language]}.jinja").read_text(
        "utf-8"
    )
    template = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    ).from_string(text)  # names are held to their alphabets: nothing here needs to be escaped
    value = fingerprint(layout)
    offsets, padded = padded_offsets((t.numel for t in layout.tensors), layout.align_bytes)
    return template.render(
        layout=layout,
        slots=sorted(layout.slots),
        tensors=list(zip(layout.tensors, offsets, strict=True)),
        total=layout.total,
        parameters=sum(tensor.numel for tensor in layout.tensors),
        padded=padded,
        value=hexadecimal(value),
        lanes=[f"0x{lane:08x}" for lane in to_lanes(value)],
        source=_comment(PurePath(source).name),
        step=_STEP[language],
    )


def _comment(name: str) -> str:
    """A file name that cannot end a comment."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name) or "layout.toml"
