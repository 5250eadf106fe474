"""Every kind of bad input: named by the reader, and never let through by the fast tier alone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.rows.proof import counts, tier_a, tier_b, typed_with_nulls
from trueup.gates.read.rows.reader import Reader
from trueup.gates.read.rows.shape import Node
from trueup.gates.read.rows.typed import TypedRows


def _load() -> ModuleType:
    path = Path(__file__).with_name("corpus.py")
    spec = importlib.util.spec_from_file_location("gate_corpus", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gate_corpus"] = module
    spec.loader.exec_module(module)
    return module


corpus = _load()
SCHEMA = {"step": pl.Int64, "phase": pl.String, "loss": pl.Float64, "n": pl.Int64}
INPUTS = [pytest.param(one, id=one.name) for one in corpus.CORPUS]


def read(path: Path, limits: Limits | None = None) -> tuple[list[dict[str, Any]], list[Fault]]:
    faults: list[Fault] = []
    reader = Reader(path, report=faults.append, limits=limits)
    rows = [row for batch in reader.batches() for row in batch.frame.to_dicts()]
    return rows, faults


def test_corpus_has_all_kinds() -> None:
    assert len(corpus.CORPUS) >= 54


@pytest.mark.parametrize("one", INPUTS)
def test_reader_names_the_fault_and_keeps_the_other_rows(one: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(one.text)
    rows, faults = read(path)
    assert {fault.kind for fault in faults} == one.kinds
    steps = [row["step"] for row in rows]
    assert steps[:2] == [1, 2]
    assert (3 in steps) == one.row_kept
    if one.name not in ("truncated", "glued"):
        assert steps[-1] == 4


@pytest.mark.parametrize("one", INPUTS)
def test_reader_says_the_same_of_a_late_piece(one: Any, tmp_path: Path) -> None:
    """Rows enough before the fault that the fast tier has long taken over."""
    if one.name in ("BOM", "CRLF"):
        pytest.skip("a matter of the whole file")
    before = b"".join(corpus.GOOD[0].replace(b"1", b"0") + b"\n" for _ in range(200))
    path = tmp_path / "x.jsonl"
    path.write_bytes(before + one.text)
    rows, faults = read(path, Limits(first_piece=4_000, piece=4_000, late_after=10**6))
    assert {fault.kind for fault in faults} == one.kinds
    assert all(fault.line is None or fault.line > 200 for fault in faults)
    assert ([row["step"] for row in rows if row["step"]].count(3) == 1) == one.row_kept


@pytest.mark.parametrize("one", INPUTS)
def test_fast_tier_alone_lets_nothing_through(one: Any) -> None:
    """Pins what this version of polars refuses, and that the sums close the rest."""
    text = one.text.removeprefix(b"\xef\xbb\xbf").rstrip(b"\0").replace(b"\r\n", b"\n")
    text = text if text.endswith(b"\n") else text + b"\n"
    if one.by_tier_a:
        assert tier_a(text, SCHEMA) is not None
    else:
        assert tier_a(text, SCHEMA) is None


@pytest.mark.parametrize("one", INPUTS)
def test_second_tier_alone_gives_the_rows_or_nothing(one: Any) -> None:
    """What it lets through is type faults only: those are found when the columns are typed."""
    rows = tier_b(one.text)
    allowed = {
        "int64", "lost_digits", "mistyped", "null", "unusable_key", "late_key", "empty_row"
    }  # fmt: skip
    if rows is not None:
        assert one.kinds <= allowed
        assert len(rows) == 4


@pytest.mark.parametrize("one", INPUTS)
def test_tier_for_nulls_alone_gives_the_rows_or_nothing(one: Any) -> None:
    """Every key may be null here; a missing key, and with CRLF the whole text, is as for tier A."""
    text = one.text.removeprefix(b"\xef\xbb\xbf").rstrip(b"\0").replace(b"\r\n", b"\n")
    text = text if text.endswith(b"\n") else text + b"\n"
    root = Node("", kind="object", members={name: Node(name, kind="value") for name in SCHEMA})
    found = typed_with_nulls(text, counts(text), TypedRows(root, SCHEMA), SCHEMA)
    if one.by_tier_a or one.name in ("null", "escapes"):
        assert found is not None
        assert found.nulls == ({"loss"} if one.name == "null" else set())
        assert [row["step"] for row in found.frame.to_dicts()] == [1, 2, 3, 4]
    else:
        assert found is None


def test_fault_has_line_byte_key_and_step(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    text = b"\n".join([*corpus.GOOD[:2], b'{"step": 3, "loss": 1.0, "loss": 2.0}']) + b"\n"
    path.write_bytes(text)
    _, (fault,) = read(path)
    assert (fault.line, fault.key, fault.step, fault.row) == (3, "loss", 3, 3)
    assert fault.byte == text.rindex(b"2.0")
    assert fault.got == "1.0 at byte 20 of the row, then 2.0"
