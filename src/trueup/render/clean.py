"""Makes strings of unknown origin safe to print: a name in a file must not drive a terminal."""

from __future__ import annotations

import re

# C0 and C1 controls except tab and newline, DEL, lone surrogates, bidirectional overrides, and the
# two code points that no XML document may hold.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def printable(text: object) -> str:
    """Replace what would move a cursor, reorder text or break an encoding by its escape.

    `##[`, wherever it stands in a line, begins a command to the log of some CI systems.
    """
    return _UNSAFE.sub(_escape, str(text)).replace("##[", "#\\x23[")


# The log of a CI system takes a line that begins so, after any blanks, for a command of its own.
_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)


def no_command(text: str) -> str:
    """Escape what begins a line of output and would be obeyed instead of shown."""
    return _COMMAND.sub(r"\1\\x3a:", text)


def one_line(text: object) -> str:
    """Make `text` printable, with line breaks and tabs shown as spaces."""
    return " ".join(printable(text).split())
