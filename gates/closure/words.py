"""Words that stand where something should have been said, and characters that hide."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection

_BLANKS = re.compile(
    r"\b(?:TODO|TBD|FIXME|XXX|CHANGEME|CHANGE_ME|PLACEHOLDER|REPLACE_?ME)\b|\?\?\?", re.ASCII
)
_SAYS_NOTHING = {
    "", "tbd", "todo", "fixme", "xxx", "evaluate", "n/a", "na", "none yet", "to do",
    "to be determined", "to be done", "placeholder", "later", "wip", "lorem ipsum",
}  # fmt: skip
_ZERO = re.compile(r"(?P<one>.)(?P=one)*")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_TYPESET = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
}


def placeholder(text: str) -> str | None:
    """What in a text stands for something that was never filled in."""
    if text.strip(" \t\r\n-_.…*`'\"").casefold() in _SAYS_NOTHING:
        return text.strip() or "blank"
    found = _BLANKS.search(text)
    return found.group() if found else None


def is_dummy(digest: str) -> bool:
    """Whether a digest or commit is one character over and over."""
    return _ZERO.fullmatch(digest) is not None


def hidden(text: str, *, multiline: bool = True) -> str | None:
    """The first character that cannot be seen, by name. Tabs and line breaks are seen."""
    found = _HIDDEN.search(text)
    if found is None and not multiline and (at := re.search(r"[\r\n\t]", text)):
        found = at
    return named(found.group()) if found else None


def typeset(text: str) -> tuple[str, str] | None:
    """A quote or dash as a word processor writes it, and what a shell would need instead."""
    for char in text:
        if char in _TYPESET:
            return named(char), _TYPESET[char]
    return None


def named(char: str) -> str:
    """`U+0435 CYRILLIC SMALL LETTER IE`."""
    return f"U+{ord(char):04X} {unicodedata.name(char, 'control character')}"


def foreign(word: str) -> str | None:
    """The first character of a word that is not ASCII, by name."""
    return next((named(char) for char in word if ord(char) > 127), None)


def looks_like(word: str, known: Collection[str]) -> str | None:
    """The known id that a word with foreign letters may be taken for."""
    if word.isascii():
        return None
    plain = unicodedata.normalize("NFKC", word).casefold()
    near = difflib.get_close_matches(plain, known, n=1, cutoff=0.7)
    return near[0] if near else None
