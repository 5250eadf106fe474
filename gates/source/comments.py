"""Comments of a file: where each begins, and its text."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator

from trueup.gates.source.unit import Unit

_QUERIES = {"cuda": "(comment) @c", "rust": "[(line_comment) (block_comment)] @c"}


def comments(unit: Unit) -> Iterator[tuple[int, bytes]]:
    """Start (in bytes) and text of each comment; in Markdown those of HTML."""
    if unit.kind == "python":
        yield from _python(unit)
    elif unit.kind == "markdown":
        yield from _html(unit.raw)
    elif unit.kind in _QUERIES:
        for at, found in unit.matches(_QUERIES[unit.kind]):
            yield at, found["c"].text


def _python(unit: Unit) -> Iterator[tuple[int, bytes]]:
    if b"#" not in unit.raw:
        return
    text = io.StringIO(unit.raw.decode("utf-8"), newline="")
    try:
        for token in tokenize.generate_tokens(text.readline):
            if token.type == tokenize.COMMENT:
                before = token.line[: token.start[1]].encode()
                yield unit.offset(token.start[0], len(before)), token.string.encode()
    except (tokenize.TokenError, SyntaxError, ValueError):
        return  # reported with the file itself


def _html(raw: bytes) -> Iterator[tuple[int, bytes]]:
    at = raw.find(b"<!--")
    while at >= 0:
        end = raw.find(b"-->", at)
        end = len(raw) if end < 0 else end + 3
        yield at, raw[at:end]
        at = raw.find(b"<!--", end)
