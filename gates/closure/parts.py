"""The four parts that a plan must have, found in a comment however its headings are written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from trueup.gates.closure.repository import inner_path
from trueup.gates.closure.words import foreign, looks_like, placeholder

PARTS = ("oracle summary", "equation mapping", "exact files", "risks", "non-goals")
# What people call each part where the title says nothing else. Risks and non-goals may stand
# together or apart.
_NAMES: dict[str, tuple[str, ...]] = {
    "oracle summary": ("oracle summary", "oracle", "oracles", "summary of the oracle"),
    "equation mapping": ("equation mapping", "equations", "equation map", "mapping of equations",
                         "mapping to equations", "equation to code mapping"),
    "exact files": ("exact files", "files", "exact file list", "list of files", "files changed",
                    "files to change", "files touched", "exact files to change",
                    "exact list of files"),
    "risks": ("risks", "risk"),
    "non-goals": ("non goals", "nongoals", "non goal", "out of scope"),
}  # fmt: skip
_BOTH = ("risks and non goals", "risks non goals", "risks and nongoals", "risks nongoals",
         "non goals and risks", "risks and out of scope")  # fmt: skip
# A heading of several words is known by these.
_TELLING = {
    "oracle summary": "oracle summary", "equation mapping": "equation mapping",
    "exact files": "exact files", "risks": "risks", "non goals": "non-goals",
}  # fmt: skip
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LEAD = re.compile(r"^[\s>]*(?P<hash>#{1,6}\s+)?(?:[-*+]\s+)?(?:\(?\d{1,2}[.)]\s+)?[^\w`/.\n]*")
_MARK = re.compile(r"[*_]{0,3}\s*(?::|\s[-–—]\s|[–—])\s*[*_]{0,3}|[*_]{2,3}\s*$|$")
_ID = re.compile(r"(?<![\w./-])([^\W\d_][\w]*(?:\.[\w]+)+)(?![\w/]|\.\w)")
_WORD = r"[\w.@+*?\[\]{}-]+"
_PATH = re.compile(rf"`([^`\n]+)`|(?<![\w./`*-])((?:{_WORD}/)+|(?:{_WORD}/)*{_WORD})(?![\w`])")


@dataclass(frozen=True, slots=True)
class Part:
    """One part as it stands in a comment."""

    name: str
    text: str


def parts_of(body: str) -> dict[str, Part]:
    """The parts of a comment by name; the first of each name counts."""
    found: dict[str, list[str]] = {}
    current: tuple[str, ...] = ()
    for line, fenced in _lines(body):
        named = None if fenced else _heading(line)
        if named is not None:
            names, rest = named
            current = tuple(name for name in names if name not in found)
            for name in current:
                found[name] = [rest] if rest else []
        elif not fenced and re.match(r"^ {0,3}#{1,6}\s", line):
            current = ()  # a heading of something else
        else:
            for name in current:
                found[name].append(line)
    return {name: Part(name, "\n".join(lines).strip()) for name, lines in found.items()}


def _lines(body: str) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it stands in a code block. What HTML comments hold is not said."""
    fence = ""
    for line in _HTML_COMMENT.sub("", body.replace("\r\n", "\n")).split("\n"):
        match = _FENCE.match(line)
        if fence:
            closing = match is not None and match[1].startswith(fence)
            yield line, True
            fence = "" if closing else fence
        elif match is not None:
            fence = match[1]
            yield line, True
        else:
            yield line, False


def _heading(line: str) -> tuple[tuple[str, ...], str] | None:
    """The parts a line opens, and what it says of them at once."""
    lead = _LEAD.match(line)
    assert lead is not None  # it matches the empty text
    text = line[lead.end() :]
    mark = _MARK.search(text)
    if mark is None:
        return None
    names = _named(_plain(text[: mark.start()]))
    if names:
        return names, text[mark.end() :].strip(" \t*_")
    if lead["hash"] is None:
        return None
    words = f" {_plain(text)} "
    telling = tuple(name for said, name in _TELLING.items() if f" {said} " in words)
    return (telling, "") if telling else None


def _named(title: str) -> tuple[str, ...]:
    if title in _BOTH:
        return ("risks", "non-goals")
    return next(((name,) for name, said in _NAMES.items() if title in said), ())


def _plain(text: str) -> str:
    """Lower case words only: `Risks & non-goals` becomes `risks and non goals`."""
    return " ".join(re.sub(r"[^a-z]+", " ", text.casefold().replace("&", " and ")).split())


def is_empty(text: str) -> str | None:
    """Why a part says nothing, or None."""
    bare = re.sub(r"[\s`*_#>|~.\-–—:;,()\[\]]+", " ", text).strip()
    if not bare:
        return "nothing"
    if not any(char.isalpha() for char in bare):
        return text[:40]
    return placeholder(bare) if len(bare.split()) <= 4 else None


def equation_ids(text: str, known: Collection[str]) -> tuple[list[str], list[str]]:
    """The catalogue ids a text names, and what is written like one but is none."""
    programmes = {one.partition(".")[0] for one in known}
    good: list[str] = []
    bad: list[str] = []
    for word in dict.fromkeys(match[1] for match in _ID.finditer(text)):
        if word in known:
            good.append(word)
        elif (twin := looks_like(word, known)) is not None:
            bad.append(f"{word}: looks like {twin}, but holds {foreign(word)}")
        elif word.partition(".")[0] in programmes and not _is_file(word):
            bad.append(word)
    return good, bad


def _is_file(word: str) -> bool:
    return word.rpartition(".")[2] in ("py", "cu", "cuh", "toml", "json", "md", "yaml", "yml", "rs")


def paths_in(text: str) -> list[str]:
    """Every word of a text that is written like a path: in backticks, with a slash or a suffix."""
    found = []
    for match in _PATH.finditer(text):
        word = (match[1] or match[2]).strip().strip(",;:")
        quoted = match[1] is not None
        if " " in word or not word:
            continue
        looks = "/" in word or re.search(r"[\w\]*]\.[A-Za-z][A-Za-z0-9]{0,9}$", word) is not None
        if quoted or looks:
            found.append(word.rstrip(".") if not quoted else word)
    return list(dict.fromkeys(found))


def inexact(path: str) -> bool:
    """Whether a path stands for several files."""
    return any(char in path for char in "*?[{") or path.endswith("/")


def names_file(text: str, path: str) -> bool:
    """Whether a text names exactly this file."""
    pattern = rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)"
    return re.search(pattern, text) is not None


def clean_paths(paths: Iterable[str]) -> set[str]:
    """Listed paths in the form git gives them."""
    return {clean for path in paths if (clean := inner_path(path)) is not None}
