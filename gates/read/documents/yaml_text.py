"""Reads a YAML document from its events: nothing is constructed by the YAML library."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from trueup.gates.documents.model import Pointer, dotted
from trueup.gates.findings import show
from trueup.gates.read.documents.json_text import Parsed
from trueup.gates.read.documents.places import Lines, Node, Places
from trueup.gates.read.documents.source import Report, Text
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.numbers import fits_int64, flaw_of_float, is_too_long

# The YAML 1.2 core schema without octal and hexadecimal: a commit such as 0123456 and a
# fingerprint such as 0x00ff stay text, as in JSON.
_PLAIN = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+]?[0-9]+)?"
    r"|\.[0-9]+(?:[eE][-+]?[0-9]+)?|(?:0|[1-9][0-9]*)[eE][-+]?[0-9]+)"
)
_NON_FINITE = re.compile(r"([-+]?)\.(inf|Inf|INF|nan|NaN|NAN)")
_BLOCK = re.compile(r"[|>](?:[+-]?[1-9]?|[1-9][+-])(?: +#.*| *)")


@dataclass(slots=True)
class _Open:
    """A mapping or a sequence that is still open."""

    value: dict[str, Any] | list[Any]
    children: dict[str, Node] | list[Node]
    start: int
    key: str | None = None
    key_at: int = 0
    keys: dict[str, int] = field(default_factory=dict)  # where each key stands


class _Stop(Exception):
    """A fault after which nothing can be read."""


@dataclass(slots=True)
class _Composer:
    """Takes events, builds plain data."""

    text: str
    lines: Lines
    report: Report
    limits: Limits
    stack: list[_Open] = field(default_factory=list)
    members: int = 0
    documents: int = 0
    quoted: list[tuple[int, int]] = field(default_factory=list)  # texts in which a tab is a tab
    root: Any = None
    tree: Node = None

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
        at = min(at, len(self.text))
        key = dotted(self.pointer())
        self.report(Fault(kind, got, self.lines.line(at), self.lines.byte(at), key=key))

    def stop(self, kind: str, got: str, at: int) -> None:
        """Report, and read no further."""
        self.fault(kind, got, at)
        raise _Stop

    def take(self, event: Any) -> None:
        """One event."""
        import yaml

        at = event.start_mark.index
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                self.stop("document_trailing", "a second document", at)
            if event.version or event.tags:
                self.fault("yaml_tag", show(self.text[at:].split("---")[0].encode()), at)
        elif isinstance(event, yaml.AliasEvent):
            self.stop("yaml_reference", f"the alias *{event.anchor}", at)
        elif isinstance(event, yaml.NodeEvent):
            self.node(event, at)
        elif isinstance(event, yaml.CollectionEndEvent):
            level = self.stack.pop()
            shown = "{...}" if isinstance(level.value, dict) else "[...]"
            self.done(level.value, (level.start, level.children), level.start, shown)

    def node(self, event: Any, at: int) -> None:
        """A scalar, or the start of a mapping or a sequence."""
        import yaml

        end = event.end_mark.index
        self.members += 1
        if self.members > self.limits.max_nodes:
            self.stop("document_too_large", f"more than {self.limits.max_nodes} values", at)
        if event.anchor is not None:
            self.stop("yaml_reference", f"the anchor &{event.anchor}", at)
        if event.tag is not None:
            self.fault("yaml_tag", f"the tag {show(event.tag)}", at)
        level = self.stack[-1] if self.stack else None
        is_key = level is not None and isinstance(level.value, dict) and level.key is None
        if isinstance(event, yaml.ScalarEvent):
            if event.style in ("|", ">"):
                self.block(at, end)
            elif event.style:
                self.quoted.append((at, end))
            plain = event.implicit[0] and event.tag is None
            if is_key:
                self.take_key(event.value, plain, at)
            else:
                value = self.plain(event.value, at) if plain else event.value
                self.done(value, at, at, show(event.value))
            return
        if is_key:
            self.stop("yaml_key", "a mapping or a sequence as a key", at)
        if len(self.stack) >= self.limits.max_depth:
            self.stop("document_too_deep", f"more than {self.limits.max_depth} levels", at)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.stack.append(_Open({}, {}, at) if is_mapping else _Open([], [], at))

    def take_key(self, text: str, plain: bool, at: int) -> None:
        """A key, which may have been there before."""
        level = self.stack[-1]
        if plain and text == "<<":
            self.stop("yaml_reference", "a merge key <<", at)
        if plain and not isinstance(self.resolved(text), str):
            self.fault("yaml_key", show(text.encode() or b"an empty key"), at)
        elif plain:
            self.ambiguous(text, "text", at)
        level.key, level.key_at = text, at

    def block(self, at: int, end: int) -> None:
        """A block of text: its first line says how it is read, and nothing else."""
        line = self.text.find("\n", at)
        head = self.text[at:line].rstrip("\r")
        if "\t" not in head and not _BLOCK.fullmatch(head):
            self.fault("yaml_ambiguous", f"the block {show(head.encode())}", at)
        self.quoted.append((line, end))

    def tabs(self) -> None:
        """Report the first tab outside quotes and comments, which some readers refuse."""
        at = self.text.find("\t")
        while at >= 0:
            line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
            if not any(start <= at < end for start, end in self.quoted) and "#" not in line:
                self.fault("yaml_ambiguous", "a tab outside quotes", at)
                return
            at = self.text.find("\t", at + 1)

    def resolved(self, text: str) -> Any:
        """The value of a plain scalar, without any report."""
        if text in _PLAIN:
            return _PLAIN[text]
        if _INT.fullmatch(text):
            return 0 if is_too_long(text, self.limits.max_digits) else int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        found = _NON_FINITE.fullmatch(text)
        return float(found[1] + found[2]) if found else text

    def plain(self, text: str, at: int) -> Any:
        """The value of a plain scalar."""
        value = self.resolved(text)
        if isinstance(value, float):
            kind = flaw_of_float(text.lstrip("+"), value)
            if _NON_FINITE.fullmatch(text):
                kind = "non_finite"
            if kind is not None:
                self.fault(f"document_{kind}", text, at)
        elif type(value) is int:
            if is_too_long(text, self.limits.max_digits):
                self.fault("document_number_too_long", f"{len(text)} characters", at)
                return float("nan")
            if not fits_int64(value):
                self.fault("document_past_int64", text, at)
        self.ambiguous(text, _kind(value), at)
        return value

    def ambiguous(self, text: str, kind: str, at: int) -> None:
        """Report a plain scalar that YAML 1.1 reads as something else."""
        other = _in_yaml_1_1(text)
        if other != kind:
            got = f"{show(text.encode())} is {kind}, in YAML 1.1 {other}"
            self.fault("yaml_ambiguous", got, at)

    def done(self, value: Any, node: Node, at: int, shown: str) -> None:
        """A value is complete: put it where it belongs; its key may have a twin."""
        if not self.stack:
            self.root, self.tree = value, node
            return
        level = self.stack[-1]
        if isinstance(level.value, list) or isinstance(level.children, list):
            level.value.append(value)  # type: ignore[union-attr]
            level.children.append(node)  # type: ignore[union-attr]
            return
        key = level.key or ""
        if key in level.value:
            line = self.lines.line(level.keys[key])
            got = f"{show(level.value[key])} at line {line}, then {shown}"
            self.fault("document_duplicate_key", got, level.key_at)
        level.value[key], level.children[key] = value, node
        level.keys[key] = level.key_at
        level.key = None


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {str: "text", bool: "true or false"}.get(type(value), "number")


@cache
def _resolver() -> Any:
    import yaml

    return yaml.resolver.Resolver()


def _in_yaml_1_1(text: str) -> str:
    """What most libraries, which follow YAML 1.1, make of a plain scalar."""
    import yaml

    tag = _resolver().resolve(yaml.ScalarNode, text, (True, False)).rsplit(":", 1)[-1]
    named = {"bool": "true or false", "int": "number", "float": "number", "null": "null"}
    return named.get(tag, "text")


def parse_yaml(source: Text, report: Report, limits: Limits) -> Parsed:
    """The value of a YAML text that holds one document."""
    import yaml

    lines = Lines(source.text, source.shift)
    composer = _Composer(source.text, lines, report, limits)
    complete = True
    mark = source.text.find("\ufeff")
    if mark >= 0:
        composer.fault("document_bom", "a byte order mark inside the document", mark)
    try:
        for event in yaml.parse(source.text, Loader=yaml.CSafeLoader):
            composer.take(event)
    except _Stop:
        complete = False
    except yaml.MarkedYAMLError as error:
        complete = False
        _broken(composer, error)
    except yaml.reader.ReaderError as error:
        complete = False
        got = f"character U+{int(error.character):04X}"
        composer.fault("document_syntax", got, error.position)
        composer.members += 1  # the reader goes ahead of the parser: nothing was taken yet
    if complete:
        composer.tabs()
    return Parsed(composer.root, Places(composer.tree, lines), complete, composer.members)


def _broken(composer: _Composer, error: Any) -> None:
    mark = error.problem_mark or error.context_mark
    at = mark.index if mark is not None else len(composer.text)
    got = " ".join(part for part in (error.context, error.problem) if part)
    kind = "document_truncated" if at >= len(composer.text.rstrip()) else "document_syntax"
    if "nesting depth" in got:
        kind = "document_too_deep"
    elif composer.text[at : at + 1] == "\t":
        got = "a tab where spaces belong"
        kind = "document_syntax"
    composer.fault(kind, got, at)
