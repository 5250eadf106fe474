"""Reads a JSON document: its value, where each part stands, and every fault of its text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from trueup.gates.documents.model import Pointer, dotted
from trueup.gates.findings import show
from trueup.gates.read.documents.places import Lines, Node, Places
from trueup.gates.read.documents.source import Report, Text
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.numbers import fits_int64, flaw_of_float, is_too_long
from trueup.gates.read.rows.scanner import NON_FINITE, TOKEN

_REST = re.compile(rb"[^\s,\]}:]{1,60}")
_BODY = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_PYTHON = {b"True": True, b"False": False, b"None": None}
_FLOATS = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf")}
_PLAIN = {b"true": True, b"false": False, b"null": None}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What became of a text. `complete`: its value could be built; `members`: values it held."""

    data: Any
    places: Places
    complete: bool
    members: int


@dataclass(slots=True)
class _Open:
    """An object or a list that is still open."""

    value: dict[str, Any] | list[Any]
    children: dict[str, Node] | list[Node]
    start: int
    key: str | None = None


@dataclass(slots=True)
class _Parser:
    """States: value, first (value or close), key, key0 (key or close), colon, comma, end."""

    raw: bytes
    lines: Lines
    report: Report
    limits: Limits
    stack: list[_Open] = field(default_factory=list)
    state: str = "value"
    members: int = 0
    root: Any = None
    tree: Node = None

    def run(self) -> bool:
        """Read to the end; False at a fault after which tokens have no meaning."""
        pos, end = 0, len(self.raw)
        match_at = TOKEN.match
        while pos < end:
            match = match_at(self.raw, pos)
            if match is None:
                self.unknown(pos)
                return False
            kind = match.lastgroup or ""
            if kind != "ws" and not self.token(kind, match.group(), pos):
                return False
            pos = match.end()
        if self.state != "end":
            self.fault("document_truncated", f"ends after {show(self.raw[-24:])}", end)
            return False
        return True

    def pointer(self) -> Pointer:
        """The way to the value that is being read."""
        way: list[str | int] = []
        for level in self.stack:
            if isinstance(level.value, list):
                way.append(len(level.value))
            elif level.key is not None:
                way.append(level.key)
        return tuple(way)

    def fault(self, kind: str, got: str, at: int) -> None:
        """Report at the innermost key."""
        key = dotted(self.pointer())
        self.report(Fault(kind, got, self.lines.line(at), self.lines.byte(at), key=key))

    def unknown(self, pos: int) -> None:
        """Name what stands where no token fits."""
        rest = self.raw[pos : pos + 80]
        found = _REST.match(rest)
        word = show(found.group() if found else rest[:8])
        if self.state == "end":
            self.fault("document_trailing", f"{word} after the document", pos)
        elif rest[:1] == b'"':
            self.bad_string(pos)
        else:
            self.fault("document_syntax", word, pos)

    def bad_string(self, pos: int) -> None:
        """Tell an unterminated string from a control character or a bad escape."""
        body = _BODY.match(self.raw, pos)
        stop = body.end() if body else pos + 1
        if stop >= len(self.raw):
            shown = show(self.raw[pos : pos + 24])
            self.fault("document_truncated", f"a string that does not end: {shown}", pos)
        elif self.raw[stop] < 0x20:
            got = f"control character 0x{self.raw[stop]:02x} in a string"
            self.fault("document_syntax", got, stop)
        else:
            self.fault("document_syntax", f"escape {show(self.raw[stop : stop + 6])}", stop)

    def token(self, kind: str, text: bytes, pos: int) -> bool:
        """Take one token; False when nothing after it can be read."""
        if self.state == "end":
            self.fault("document_trailing", f"{show(text)} after the document", pos)
            return False
        if kind == "p":
            return self.punctuation(text, pos)
        if self.state in ("key", "key0"):
            return self.take_key(kind, text, pos)
        if self.state not in ("value", "first"):
            self.fault("document_syntax", f"{show(text)} where {self.state} belongs", pos)
            return False
        if kind in ("word", "call") and not self.word_is_known(kind, text):
            self.fault("document_syntax", f"the bare word {show(text)}", pos)
            return False
        return self.done(self.scalar(kind, text, pos), pos, pos, show(text))

    def take_key(self, kind: str, text: bytes, pos: int) -> bool:
        """A key, which may have been there before."""
        if kind != "str":
            self.fault("document_syntax", f"{show(text)} where a key belongs", pos)
            return False
        self.stack[-1].key = self.string(text, pos)
        self.state = "colon"
        return True

    def string(self, text: bytes, pos: int) -> str:
        """Decode a string token."""
        if b"\\" not in text:
            return text[1:-1].decode()
        value: str = json.loads(text)
        if any("\ud800" <= char <= "\udfff" for char in value):
            self.fault("document_surrogate", show(text), pos)
            value = value.encode("utf-8", "backslashreplace").decode()
        return value

    @staticmethod
    def word_is_known(kind: str, text: bytes) -> bool:
        """Whether a bare word has a meaning, if only for Python."""
        if kind == "call" or text in _PLAIN or text in _PYTHON:
            return True
        return text.decode().lstrip("+-").lower() in NON_FINITE

    def scalar(self, kind: str, text: bytes, pos: int) -> Any:
        """The value of one token."""
        if kind == "str":
            return self.string(text, pos)
        if kind == "num":
            return self.number(text, pos)
        if text in _PLAIN:
            return _PLAIN[text]
        word = text.decode()
        if kind == "call" or text in _PYTHON:
            self.fault("document_python_literal", show(text), pos)
            return _PYTHON.get(text, word)
        self.fault("document_non_finite", word, pos)
        value = _FLOATS[word.lstrip("+-").lower()]
        return -value if word.startswith("-") else value

    def number(self, text: bytes, pos: int) -> int | float:
        """The value of a number that has the right form; an integer stays exact."""
        if any(char in text for char in b".eE"):
            value = float(text)
            kind = flaw_of_float(text.decode(), value)
            if kind is not None:
                self.fault(f"document_{kind}", show(text), pos)
            return value
        if is_too_long(text.decode(), self.limits.max_digits):
            self.fault("document_number_too_long", f"{len(text)} characters", pos)
            return float("nan")
        whole = int(text)
        if not fits_int64(whole):
            self.fault("document_past_int64", show(text), pos)
        return whole

    def done(self, value: Any, node: Node, pos: int, shown: str) -> bool:
        """A value is complete: put it where it belongs; its key may have a twin."""
        self.members += 1
        if self.members > self.limits.max_nodes:
            self.fault("document_too_large", f"more than {self.limits.max_nodes} values", pos)
            return False
        self.state = "comma"
        if not self.stack:
            self.root, self.tree, self.state = value, node, "end"
            return True
        level = self.stack[-1]
        if isinstance(level.value, list) or isinstance(level.children, list):
            level.value.append(value)  # type: ignore[union-attr]
            level.children.append(node)  # type: ignore[union-attr]
            return True
        key = level.key or ""
        if key in level.value:
            before = level.children[key]
            at = before[0] if isinstance(before, tuple) else before
            got = f"{self.shown(at)} at line {self.lines.line(at)}, then {shown}"
            self.fault("document_duplicate_key", got, pos)
        level.value[key], level.children[key] = value, node
        level.key = None
        return True

    def shown(self, at: int) -> str:
        """The token at an offset, as messages show it."""
        match = TOKEN.match(self.raw, at)
        text = match.group() if match else b""
        return {b"{": "{...}", b"[": "[...]"}.get(text, show(text))

    def punctuation(self, text: bytes, pos: int) -> bool:
        """Brackets, colons and commas."""
        if text in b"{[" and self.state in ("value", "first"):
            if len(self.stack) >= self.limits.max_depth:
                got = f"more than {self.limits.max_depth} levels"
                self.fault("document_too_deep", got, pos)
                return False
            is_object = text == b"{"
            self.stack.append(_Open({}, {}, pos) if is_object else _Open([], [], pos))
            self.state = "key0" if is_object else "first"
            return True
        if text in b"}]" and self.closes(text):
            level = self.stack.pop()
            shown = "{...}" if text == b"}" else "[...]"
            return self.done(level.value, (level.start, level.children), level.start, shown)
        if text == b":" and self.state == "colon":
            self.state = "value"
            return True
        if text == b"," and self.state == "comma":
            self.state = "key" if isinstance(self.stack[-1].value, dict) else "value"
            return True
        self.fault("document_syntax", f"{show(text)} where {self.state.rstrip('0')} belongs", pos)
        return False

    def closes(self, text: bytes) -> bool:
        """Whether this bracket closes what is open, in a state that allows it."""
        if not self.stack or isinstance(self.stack[-1].value, dict) != (text == b"}"):
            return False
        return self.state in ("comma", "key0", "first")


def parse_json(source: Text, report: Report, limits: Limits) -> Parsed:
    """The value of a JSON text, of any type."""
    lines = Lines(source.raw, source.shift)
    parser = _Parser(source.raw, lines, report, limits)
    complete = parser.run()
    return Parsed(parser.root, Places(parser.tree, lines), complete, parser.members)
