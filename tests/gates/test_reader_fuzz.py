"""Mutants of good files, against a slow strict reader made of the standard library alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates import Unreadable
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.rows.reader import Reader

ROWS = [
    b'{"step": 1, "phase": "a:1", "loss": 2.5, "n": 7}',
    b'{"step": 2, "loss": -0.125e2, "n": 8, "phase": "}, {"}',
    b'{"n": 9, "step": 3, "loss": 0.0}',
    b'{"step": 4, "phase": "x", "loss": 1e-3, "n": 10, "flag": true}',
]
KINDS = {"step": int, "phase": str, "loss": float, "n": int, "flag": bool}
TOKENS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"\t",
    b" ",
    b"NaN",
    b"null",
    b"true",
    b"1e999",
    b"-",
    b"0",
    b'"loss": 3, ',
    b"1e-999",
    b"\xff",
    b"\\u0000",
    b"\\ud800",
    b"}{",
    b"}\n{",
    b"}, {",
    b"9007199254740993",
    b"\xef\xbb\xbf",
    b"'",
    b"#",
    b"9223372036854775808",
]


class Refused(Exception):
    """The strict reader does not take this line."""


def strict(line: bytes) -> dict[str, Any]:
    """One flat object with unique keys and finite exact values of the right type, or `Refused`."""

    def no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise Refused
        return dict(pairs)

    def refuse(text: str) -> float:
        raise Refused(text)

    def exact(text: str) -> float:
        value = float(text)
        mantissa = text.lower().split("e")[0]
        if math.isinf(value) or (value == 0 and mantissa.strip("-0.")):
            raise Refused
        return value

    if b"\r" in line:
        raise Refused
    try:
        row = json.loads(
            line.decode(), object_pairs_hook=no_twins, parse_constant=refuse, parse_float=exact
        )
    except (ValueError, RecursionError):
        raise Refused from None
    if not isinstance(row, dict) or not row or any(_unusable(key) for key in row):
        raise Refused
    for key, value in row.items():
        _fits(key, value)
    return row


def _unusable(key: str) -> bool:
    return key in ("", "*") or "\0" in key or _surrogate(key)


def _surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _fits(key: str, value: Any) -> None:
    kind = KINDS.get(key)
    if isinstance(value, dict | list) or value is None:
        raise Refused
    if isinstance(value, str) and _surrogate(value):
        raise Refused
    if kind is float and type(value) is int and int(float(value)) != value:
        raise Refused
    if kind is not None and type(value) not in ({int, float} if kind in (int, float) else {kind}):
        raise Refused
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise Refused


@st.composite
def mutants(draw: st.DrawFn, separator: bytes = b"\n") -> bytes:
    """Good rows; then a few cuts, copies and insertions anywhere."""
    text = separator.join(ROWS) + separator
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        action = draw(st.integers(0, 2))
        if action == 0:
            text = text[:at] + draw(st.sampled_from(TOKENS)) + text[at:]
        elif action == 1:
            text = text[:at] + text[at + draw(st.integers(1, 12)) :]
        else:
            span = text[at : at + draw(st.integers(1, 40))]
            to = draw(st.integers(0, len(text)))
            text = text[:to] + span + text[to:]
    return text


# The first, unhurt rows teach the reader its columns, so that a mutant meets settled types.
LEARN = b"\n".join(ROWS) + b"\n"
SMALL = Limits(first_piece=len(LEARN), piece=1 << 16, late_after=10**6)
QUICK = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(path: Path, limits: Limits) -> tuple[list[tuple[int, dict[str, Any]]], list[Fault]]:
    faults: list[Fault] = []
    reader = Reader(path, report=faults.append, limits=limits)
    rows = []
    for batch in reader.batches():
        for number, row in zip(batch.rows.tolist(), batch.frame.to_dicts(), strict=True):
            rows.append((number, {k: v for k, v in row.items() if v is not None}))
    return rows, faults


def torn(rows: dict[int, dict[str, Any]]) -> set[int]:
    """Rows with a key that no good row has, and that holds numbers here and strings there.

    Which of them is at fault depends on what the reader saw first.
    """
    kinds: dict[str, set[str]] = {}
    for row in rows.values():
        for key, value in row.items():
            kinds.setdefault(key, set()).add(
                "number" if type(value) in (int, float) else str(type(value))
            )
    mixed = {key for key, found in kinds.items() if len(found) > 1 and key not in KINDS}
    return {number for number, row in rows.items() if mixed & set(row)}


@QUICK
@given(mutant=mutants())
def test_lines_are_accepted_exactly_where_a_strict_reader_accepts_them(
    mutant: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LEARN + mutant)
    rows, faults = read(path, SMALL)
    body = (LEARN + mutant).rstrip(b"\0")
    want: dict[int, dict[str, Any]] = {}
    bad: set[int] = set()
    lines = body.split(b"\n")
    for number, line in enumerate(lines[:-1] if body.endswith(b"\n") else lines, 1):
        try:
            want[number] = strict(line.removesuffix(b"\r"))
        except Refused:
            bad.add(number)
    flagged = {fault.line for fault in faults if fault.kind not in ("no_newline", "late_key")}
    assert bad - torn(want) == flagged - {None} - torn(want)
    for number, row in rows:
        if number in want:
            assert row == want[number]
    assert set(want) <= {number for number, _ in rows}


@QUICK
@given(mutant=mutants(b", "), size=st.sampled_from([64, 300, 1 << 16]))
def test_lists_never_crash_and_never_change_a_row(mutant: bytes, size: int, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    text = b"[" + b", ".join(ROWS) + b", " + mutant.rstrip(b", ") + b"]"
    path.write_bytes(text)
    rows, faults = read(path, Limits(first_piece=size, piece=size, late_after=10**6))
    good = [json.loads(row) for row in ROWS]
    assert [row for _, row in rows[:4]] == good
    if not faults:
        assert [row for _, row in rows] == [
            {key: value for key, value in row.items()} for row in json.loads(text)
        ]


@settings(max_examples=150, deadline=None)
@given(text=st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(
    text: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "x.json"
    path.write_bytes(text)
    faults: list[Fault] = []
    try:
        list(Reader(path, report=faults.append).batches())
    except Unreadable:
        return


@pytest.mark.parametrize("size", [1, 2, 7, 40, 64, 101, 1000])
@pytest.mark.parametrize("form", ["lines", "list", "indented"])
def test_pieces_may_be_cut_anywhere(size: int, form: str, tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 1.5 * i, "m": "}, {" * (i % 3), "n": i} for i in range(60)]
    text = {
        "lines": "".join(json.dumps(row) + "\n" for row in rows),
        "list": json.dumps(rows),
        "indented": json.dumps(rows, indent=2),
    }[form]
    path = tmp_path / "x"
    path.write_text(text)
    got, faults = read(path, Limits(first_piece=size, piece=size))
    assert faults == []
    assert [row for _, row in got] == rows
    assert [number for number, _ in got] == list(range(1, 61))


@pytest.mark.parametrize("form", ["list", "indented"])
def test_rows_of_a_list_have_their_line(form: str, tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 0.5} for i in range(50)]
    text = json.dumps(rows, indent=2 if form == "indented" else None)
    path = tmp_path / "x.json"
    path.write_text(text)
    reader = Reader(path, report=lambda fault: None, limits=Limits(first_piece=60, piece=200))
    lines = [line for batch in reader.batches() for line in batch.lines.tolist()]
    where = [number for number, line in enumerate(text.split("\n"), 1) if "{" in line]
    assert lines == (where if form == "indented" else [1] * 50)


def test_key_that_appears_at_row_30001_is_kept_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("w") as file:
        for i in range(40_000):
            extra = ', "layer1.cms.cms_slow.grad_norm": 0.25' if i >= 30_000 else ""
            file.write(f'{{"step": {i}, "loss": {1 + i / 7}{extra}}}\n')
    faults: list[Fault] = []
    reader = Reader(path, report=faults.append)
    seen = 0
    for batch in reader.batches():
        if "layer1.cms.cms_slow.grad_norm" in batch.frame.columns:
            seen += batch.frame["layer1.cms.cms_slow.grad_norm"].count()
    assert seen == 10_000
    (fault,) = faults
    assert (fault.kind, fault.line, fault.row) == ("late_key", 30_001, 30_001)
    assert reader.engine.table.late == 1
