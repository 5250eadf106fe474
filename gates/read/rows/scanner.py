"""A tokenizer of one row that names every flaw with its byte and key: exact, slow, used last."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from trueup.gates.findings import show
from trueup.gates.read.limits import Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.numbers import flaw_of_float, is_too_long

TOKEN = re.compile(
    rb"""(?P<ws>[ \t\r\n]++)
    |(?P<str>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<num>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.+-]))
    |(?P<call>[A-Za-z_][\w.]*+\([^()\n]*+\))
    |(?P<word>[-+]?[A-Za-z_]\w*+)
    |(?P<p>[{}\[\]:,])""",
    re.VERBOSE,
)
_REST = re.compile(rb"[^\s,\]}:]{1,60}")
_LONE_CR = re.compile(rb"\r(?!\n)")
_BOM = b"\xef\xbb\xbf"
NON_FINITE = frozenset({"nan", "inf", "infinity"})
_PYTHON = frozenset({"True", "False", "None"})


@dataclass(frozen=True, slots=True)
class Flaw:
    """A fault inside one row: `at` is a byte offset from the start of the row."""

    kind: str
    got: str
    at: int | None = None
    key: str | None = None


@dataclass(slots=True)
class Scan:
    """What a scan found: flaws, and where the value of each key stands, by its column's name."""

    flaws: list[Flaw] = field(default_factory=list)
    values: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    """An object or list that is still open."""

    is_object: bool
    at: int
    seen: dict[str, tuple[int, str]] = field(default_factory=dict)  # key -> value's place, text
    key: str | None = None
    index: int = 0


class _Scanner:
    """States: value, first (value or close), key, key0 (key or close), colon, comma, end."""

    def __init__(self, row: bytes, limits: Limits, nesting: Nesting) -> None:
        self.row, self.limits, self.nesting = row, limits, nesting
        self.out = Scan()
        self.stack: list[_Open] = []
        self.state = "value"

    def run(self) -> Scan:
        """Scan to the end, or to the first flaw after which tokens have no meaning."""
        pos, end = 0, len(self.row)
        try:
            self.row.decode("utf-8")
        except UnicodeDecodeError as error:
            bad = self.row[error.start : error.start + 4]
            self.flaw("encoding", f"bytes {bad.hex(' ')}", error.start)
            return self.out
        while pos < end:
            match = TOKEN.match(self.row, pos)
            if match is None:
                self.unknown(pos)
                return self.out
            kind, text = match.lastgroup, match.group()
            if kind == "ws":
                if _LONE_CR.search(self.row, pos, min(match.end() + 1, end)):
                    self.flaw("stray_cr", "\\r without \\n", pos)
            elif not self.token(kind or "", text, pos):
                return self.out
            pos = match.end()
        if self.state != "end":
            self.flaw("cut", f"the row ends after {show(self.row[-24:])}", end)
        return self.out

    def flaw(self, kind: str, got: str, at: int) -> None:
        """Note a flaw at the innermost key."""
        self.out.flaws.append(Flaw(kind, got, at, self.name()))

    def name(self) -> str | None:
        """The name of the column at this place."""
        name: str | None = None
        for level in self.stack:
            if not level.is_object:
                name = self.nesting.item(name, level.index)
            elif level.key is not None:
                name = self.nesting.member(name, level.key)
        return name

    def unknown(self, pos: int) -> None:
        """Name what stands where no token fits."""
        rest = self.row[pos:]
        found = _REST.match(rest)
        word = show(found.group() if found else rest[:8])
        if rest[:1] == b"\0":
            self.flaw("nul", f"NUL byte (and {rest.count(0) - 1} more)", pos)
        elif rest.startswith(_BOM):
            self.flaw("bom", "a byte order mark inside the file", pos)
        elif rest[:1] == b'"':
            self.bad_string(rest, pos)
        elif self.state == "end":
            self.flaw("glued", f"{word} after the row", pos)
        else:
            self.flaw("syntax", word, pos)

    def bad_string(self, rest: bytes, pos: int) -> None:
        """Tell an unterminated string from a control character or a bad escape."""
        body = re.match(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+', rest)
        stop = body.end() if body else 1
        if stop >= len(rest):
            self.flaw("cut", f"a string that does not end: {show(rest[:24])}", pos)
        elif rest[stop] == 0:
            self.flaw("nul", "NUL byte inside a string", pos + stop)
        elif rest[stop] < 0x20:
            self.flaw("syntax", f"control character 0x{rest[stop]:02x} in a string", pos + stop)
        else:
            self.flaw("syntax", f"escape {show(rest[stop : stop + 6])}", pos + stop)

    def token(self, kind: str, text: bytes, pos: int) -> bool:
        """Take one token; False when nothing after it can be read."""
        if self.state == "end":
            self.flaw("glued", f"{show(text)} after the row", pos)
            return False
        if kind == "p":
            return self.punctuation(text, pos)
        if self.state in ("key", "key0"):
            return self.take_key(kind, text, pos)
        if self.state not in ("value", "first"):
            self.flaw("syntax", f"{show(text)} where {self.state} belongs", pos)
            return False
        known = self.scalar(kind, text, pos)
        self.value_done(pos, text)
        return known

    def take_key(self, kind: str, text: bytes, pos: int) -> bool:
        """A key, which may have been there before."""
        if kind != "str":
            self.flaw("syntax", f"{show(text)} where a key belongs", pos)
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
            self.flaw("surrogate", show(text), pos)
            value = value.encode("utf-8", "backslashreplace").decode()
        return value

    def scalar(self, kind: str, text: bytes, pos: int) -> bool:
        """Judge a value that is one token."""
        if kind == "num":
            self.number(text, pos)
        elif kind == "str":
            self.string(text, pos)
        elif kind == "call":
            self.flaw("python_literal", show(text), pos)
        elif text not in (b"true", b"false", b"null"):
            word = text.decode()
            if word.lstrip("+-").lower() in NON_FINITE:
                self.flaw("non_finite_literal", word, pos)
            elif word in _PYTHON:
                self.flaw("python_literal", word, pos)
            else:
                self.flaw("syntax", f"the bare word {show(text)}", pos)
                return False
        return True

    def number(self, text: bytes, pos: int) -> None:
        """Judge a number token that has the right form."""
        if any(char in text for char in b".eE"):
            kind = flaw_of_float(text.decode(), float(text))
            if kind is not None:
                self.flaw(kind, show(text), pos)
        elif is_too_long(text.decode(), self.limits.max_digits):
            self.flaw("number_too_long", f"{len(text)} characters", pos)

    def value_done(self, pos: int, text: bytes) -> None:
        """A value is complete: check its key for a twin, and wait for a comma."""
        if not self.stack:
            self.flaw("not_object", show(text), pos)
            self.state = "end"
            return
        level = self.stack[-1]
        if level.is_object and level.key is not None:
            shown = show(text)
            if level.key in level.seen:
                first, before = level.seen[level.key]
                got = f"{before} at byte {first} of the row, then {shown}"
                self.flaw("duplicate_key", got, pos)
            else:
                level.seen[level.key] = (pos, shown)
        if len(self.stack) == 1 or self.nesting.flatten:
            self.out.values.setdefault(self.name() or "", (pos, pos + len(text)))
        level.key = None
        self.state = "comma"

    def punctuation(self, text: bytes, pos: int) -> bool:
        """Brackets, colons and commas."""
        if text in b"{[" and self.state in ("value", "first"):
            if len(self.stack) >= self.limits.max_depth:
                self.flaw("too_deep", f"more than {self.limits.max_depth} levels", pos)
                return False
            self.stack.append(_Open(text == b"{", pos))
            self.state = "key0" if text == b"{" else "first"
            return True
        if text in b"}]" and self.closes(text):
            done = self.stack.pop()
            if self.stack:
                self.value_done(done.at, b"{...}" if done.is_object else b"[...]")
                self.state = "comma"
            else:
                self.state = "end"
                if not done.is_object:
                    self.flaw("not_object", "a list", 0)
            return True
        if text == b":" and self.state == "colon":
            self.state = "value"
            return True
        if text == b"," and self.state == "comma":
            self.stack[-1].index += 1
            self.state = "key" if self.stack[-1].is_object else "value"
            return True
        self.flaw("syntax", f"{show(text)} where {self.state.rstrip('0')} belongs", pos)
        return False

    def closes(self, text: bytes) -> bool:
        """Whether this bracket closes what is open, in a state that allows it."""
        if not self.stack or self.stack[-1].is_object != (text == b"}"):
            return False
        return self.state in ("comma", "key0", "first")


def scan(row: bytes, limits: Limits, nesting: Nesting) -> Scan:
    """Every flaw of one row."""
    return _Scanner(row, limits, nesting).run()
