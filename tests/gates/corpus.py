"""Inputs with one fault each in row 3 of four, and what must be said of them."""

from __future__ import annotations

from typing import NamedTuple

GOOD = [
    b'{"step": %d, "phase": "a:%d", "loss": 2.5, "n": %d}' % (number, number, number + 7)
    for number in range(1, 5)
]


class Input(NamedTuple):
    """A file's text; the kinds of fault it must lead to; whether row 3 is still delivered."""

    name: str
    text: bytes
    kinds: set[str]
    row_kept: bool = False
    by_tier_a: bool = False  # right to let through for the fast tier


def row(text: bytes, name: str, *kinds: str, kept: bool = False, tier_a: bool = False) -> Input:
    """Row 3 replaced."""
    lines = [*GOOD[:2], text, GOOD[3]]
    return Input(name, b"\n".join(lines) + b"\n", set(kinds), kept, tier_a)


def cell(value: bytes, name: str, *kinds: str, kept: bool = False, tier_a: bool = False) -> Input:
    """The loss of row 3 replaced."""
    text = b'{"step": 3, "phase": "a:3", "loss": %s, "n": 10}' % value
    return row(text, name, *kinds, kept=kept, tier_a=tier_a)


def count(value: bytes, name: str, *kinds: str, kept: bool = False) -> Input:
    """The integer of row 3 replaced."""
    return row(
        b'{"step": 3, "phase": "a:3", "loss": 2.5, "n": %s}' % value, name, *kinds, kept=kept
    )


def phase(value: bytes, name: str, *kinds: str, kept: bool = False) -> Input:
    """The string of row 3 replaced."""
    return row(b'{"step": 3, "phase": %s, "loss": 2.5, "n": 10}' % value, name, *kinds, kept=kept)


START, THIRD = b"\n".join(GOOD[:2]) + b"\n", GOOD[2]
CORPUS = [
    cell(b'2.5, "loss": 3.5', "duplicate key", "duplicate_key"),
    cell(b'2.5, "loss": 2.5', "duplicate key, equal", "duplicate_key"),
    phase(b'"a", "phase": "b"', "duplicate string key", "duplicate_key"),
    row(
        b'{"step": 3, "phase": "a", "step": 4, "loss": 1.5, "n": 1}',
        "duplicate step",
        "duplicate_key",
    ),
    row(b'{"step": 3, "phase": "a", "st\\u0065p": 4}', "duplicate by escape", "duplicate_key"),
    cell(b"NaN", "NaN", "non_finite_literal", kept=True),
    cell(b"-Infinity", "-Infinity", "non_finite_literal", kept=True),
    cell(b"nan", "nan", "non_finite_literal"),
    cell(b"inf", "inf", "non_finite_literal"),
    cell(b"1e999", "overflow", "overflow", kept=True),
    cell(b"-1e400", "negative overflow", "overflow", kept=True),
    cell(b"1e-999", "underflow", "underflow", kept=True),
    cell(b"0." + b"0" * 400 + b"1", "underflow by zeros", "underflow", kept=True),
    cell(b"0." + b"0" * 230 + b"1e-99", "underflow by both", "underflow", kept=True),
    count(b"9223372036854775808", "2^63", "int64", kept=True),
    count(b"18446744073709551616", "2^64", "int64", kept=True),
    count(b"-9223372036854775809", "-2^63 - 1", "int64", kept=True),
    count(b"170141183460469231731687303715884105727", "2^127 - 1", "int64", kept=True),
    count(b"170141183460469231731687303715884105728", "2^127", "int64"),
    cell(b"9007199254740993", "2^53 + 1 in a float column", "lost_digits"),
    count(b"9" * 5000, "5000 digits", "number_too_long"),
    count(b"3.0", "float in an int column", kept=True),
    count(b"1e3", "exponent in an int column", kept=True),
    cell(b"true", "boolean", "mistyped"),
    cell(b'"3.5"', "number as string", "mistyped"),
    cell(b'"NaN"', "NaN as string", "mistyped"),
    phase(b"7", "number in a string column", "mistyped"),
    phase(b"true", "boolean in a string column", "mistyped"),
    cell(b"[2.5]", "list", "nested"),
    cell(b'{"a": 2.5}', "object", "nested"),
    phase(b"[1]", "list in a string column", "nested"),
    phase(b'["a"]', "list of a string in a string column", "nested"),
    phase(b'["a:b"]', "list of a string with a colon", "nested"),
    phase(b'{"a": "b"}', "object in a string column", "nested"),
    phase(b"{}", "empty object in a string column", "nested"),
    phase(b"[]", "empty list in a string column", "nested"),
    cell(b"null", "null", "null", kept=True),
    Input("BOM", b"\xef\xbb\xbf" + b"\n".join(GOOD) + b"\n", {"bom"}, True, True),
    row(b"\xef\xbb\xbf" + THIRD, "BOM inside", "bom"),
    phase(b'"\xff\xfe"', "bad UTF-8", "encoding"),
    phase(b'"\\ud800"', "lone surrogate", "surrogate"),
    Input("truncated", START + THIRD[:-8], {"truncated"}),
    Input("NUL tail", b"\n".join(GOOD) + b"\n" + b"\0" * 64, {"nul"}, True, True),
    row(b"\0" + THIRD, "NUL inside", "nul"),
    Input("glued", START + THIRD + GOOD[3] + b"\n", {"glued"}),
    row(THIRD + b" 7", "junk after", "glued"),
    row(THIRD[:11] + b"\n" + THIRD[11:], "split", "split", "not_object", "glued"),
    row(b"", "blank line", "blank"),
    row(b"   ", "blanks", "blank"),
    row(b"{}", "empty object", "empty_row"),
    row(b"7", "bare number", "not_object"),
    row(b"[" + THIRD + b"]", "bare list", "not_object"),
    row(THIRD[:-1] + b",}", "trailing comma", "syntax"),
    cell(b"02.5", "leading zero", "syntax"),
    cell(b"+2.5", "plus sign", "syntax"),
    cell(b"2.", "no digits after the point", "syntax"),
    cell(b"0x1F", "hexadecimal", "syntax"),
    cell(b"np.float64(2.5)", "numpy repr", "python_literal"),
    cell(b"None", "None", "python_literal"),
    row(THIRD.replace(b'"', b"'"), "single quotes", "syntax"),
    row(THIRD.replace(b", ", b",\r", 1), "lone CR", "stray_cr"),
    phase(b'"a\tb"', "control character", "syntax"),
    cell(b"[" * 100_000, "very deep", "too_deep"),
    row(b'{"step": 3, "phase": "a:3", "loss": 2.5, "n": 10, "late": 1}', "late key", kept=True),
    row(b'{"step": 3, "phase": "a:3", "n": 10}', "missing key", kept=True, tier_a=True),
    row(b'{"step": 3, "phase": "a:3", "loss": 2.5, "n": 10, "": 1}', "empty key", "unusable_key"),
    row(
        b'{"step": 3, "phase": "a:3", "loss": 2.5, "n": 10, "*": 1}', "pattern key", "unusable_key"
    ),
    phase(b'"a\\"b\\n"', "escapes", kept=True),
    Input("CRLF", b"\r\n".join(GOOD) + b"\r\n", set(), True, True),
    Input("no newline", b"\n".join(GOOD), {"no_newline"}, True, True),
]
