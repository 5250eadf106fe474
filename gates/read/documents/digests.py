"""Reads a list of SHA-256 digests in the forms that `sha256sum` and BSD's `sha256` write."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trueup.gates.documents.model import Document
from trueup.gates.errors import Unreadable
from trueup.gates.findings import show
from trueup.gates.read.documents.places import Lines, Node, Places
from trueup.gates.read.documents.source import Report, Text
from trueup.gates.read.limits import Fault, Limits

DIGITS = 64
_OTHER = {32: "MD5", 40: "SHA-1", 56: "SHA-224", 96: "SHA-384", 128: "SHA-512"}
_GNU = re.compile(r"(\\?)([0-9A-Fa-f]+) ([ *])(.+)", re.DOTALL)
_BSD = re.compile(r"(\\?)([A-Za-z0-9/-]+) \((.+)\) = ([0-9A-Fa-f]+)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPED = {"\\": "\\", "n": "\n", "r": "\r"}


def parse_digests(source: Text, name: str, report: Report, limits: Limits) -> Document:
    """The entries of a list: `{"entries": [{"name": ..., "sha256": ..., "form": ...}]}`.

    Comment lines (`#`) are passed over, as `sha256sum --check` does.
    """
    lines = Lines(source.text, source.shift)
    entries: list[dict[str, Any]] = []
    nodes: list[Node] = []
    seen: dict[str, tuple[str, int]] = {}
    faults: list[Fault] = []
    at = 0
    for line in source.text.split("\n"):
        start, at = at, at + len(line) + 1

        def note(kind: str, got: str, key: str | None = None, start: int = start) -> None:
            faults.append(Fault(kind, got, lines.line(start), lines.byte(start), key=key))

        if not line.strip("\r") or line.startswith("#"):
            continue
        if len(entries) >= limits.max_members:
            note("document_too_large", f"more than {limits.max_members} entries")
            break
        entry = _entry(line, note)
        if entry is None:
            continue
        before = seen.get(entry["name"])
        if before is not None:
            got = f"{before[0]} at line {lines.line(before[1])}, then {entry['sha256']}"
            note("digest_duplicate", got, entry["name"])
        seen[entry["name"]] = (entry["sha256"], start)
        entries.append(entry)
        nodes.append((start, {key: start for key in entry}))
    if not entries and not any(fault.kind == "digest_length" for fault in faults):
        raise _no_list(name, faults)
    for fault in faults:
        report(fault)
    places = Places((0, {"entries": (0, nodes)}), lines)
    return Document({"entries": entries}, "digest list", source.size, places)


def _no_list(name: str, faults: list[Fault]) -> Unreadable:
    return Unreadable(
        "is no list of digests", where=name,
        got=faults[0].got if faults else "only comments",
        expected="lines of 64 hexadecimal digits, two blanks and a file name",
        fix="write it with sha256sum",
    )  # fmt: skip


def _entry(line: str, note: Callable[..., None]) -> dict[str, Any] | None:
    """One line, or None if it is none."""
    if line.endswith("\r"):
        note("digest_crlf", "a carriage return before the line end")
        line = line[:-1]
    gnu, bsd = _GNU.fullmatch(line), _BSD.fullmatch(line)
    if gnu is not None:
        escaped, digest, mark, name = gnu.groups()
        form = "binary" if mark == "*" else "text"
    elif bsd is not None:
        escaped, algorithm, name, digest = bsd.groups()
        form = "BSD"
        if algorithm != "SHA256":
            note("digest_length", f"a digest of the kind {algorithm}", name)
            return None
    else:
        note("digest_line", show(line))
        return None
    if escaped:
        unescaped = _unescaped(name)
        if unescaped is None:
            note("digest_line", f"an escape that is none: {show(name)}")
            return None
        name = unescaped
    if len(digest) != DIGITS:
        like = f" (as of {_OTHER[len(digest)]})" if len(digest) in _OTHER else ""
        note("digest_length", f"{len(digest)} digits{like}", name)
        return None
    if digest != digest.lower():
        note("digest_uppercase", digest, name)
    return {"name": name, "sha256": digest.lower(), "form": form}


def _unescaped(name: str) -> str | None:
    """A name without its escapes: a backslash, a line feed or a carriage return each."""
    if any(found not in _ESCAPED for found in _ESCAPE.findall(name)):
        return None
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], name)
