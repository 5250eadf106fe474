"""A live file: only an unfinished last line passes, as a warning; everything else stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trueup.gates import judge
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.rows.scanner import Flaw
from trueup.gates.read.rows.unfinished import unfinished
from trueup.gates.read.tables import open_table

PROFILE = str(Path(__file__).resolve().parents[2] / "fixtures/tables/profile.toml")
GOOD = b'{"step": 1, "loss": 1.5}\n{"step": 2, "loss": 2.5}\n'
ROW = '{"step": -3, "loss": 3.5e-1, "phase": "a\\u00e9é\\n", "on": true, "off": null}'.encode()
CSV = b"step,loss,phase\n1,1.5,a\n2,2.5,b\n"
CSV_ROW = '3,-3.5e-1,"a ""é"", b"'.encode()


def read(path: Path, **more: Any) -> tuple[list[dict[str, Any]], list[Fault]]:
    faults: list[Fault] = []
    table = open_table(path, report=faults.append, **more)
    return [row for batch in table.batches() for row in batch.frame.to_dicts()], faults


@pytest.mark.parametrize("cut", range(1, len(ROW)))
def test_a_row_cut_anywhere_is_unfinished_when_live_and_an_error_when_not(
    cut: int, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(GOOD + ROW[:cut])
    rows, faults = read(path, live=True)
    assert [row["step"] for row in rows] == [1, 2]
    assert [(fault.kind, fault.line) for fault in faults] == [("unfinished", 3)]
    _, faults = read(path)
    assert [(fault.kind, fault.line) for fault in faults] == [("truncated", 3)]


@pytest.mark.parametrize("cut", range(1, len(CSV_ROW) + 1))
def test_a_csv_row_cut_anywhere_is_unfinished_when_live(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(CSV + CSV_ROW[:cut])
    rows, faults = read(path, live=True)
    assert [row["step"] for row in rows] == [1, 2]
    assert [(fault.kind, fault.line) for fault in faults] == [("unfinished", 4)]
    kinds = {fault.kind for fault in read(path)[1]}
    assert kinds <= {"truncated", "no_newline", "encoding", "stray_quote"}
    assert len(kinds) == 1


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        pytest.param(GOOD + ROW[:20] + b"\n" + GOOD, "split", id="earlier"),
        pytest.param(GOOD + ROW[:20] + b"\n", "split", id="ended-by-a-newline"),
        pytest.param(GOOD + b"\0" * 9, "nul", id="nul-tail"),
        pytest.param(GOOD + b'{"step": 3, "step": 4, "lo', "duplicate_key", id="duplicate"),
        pytest.param(GOOD + b'{"step": NaN, "lo', "non_finite_literal", id="nan"),
        pytest.param(GOOD + b'{"step": 3,, "lo', "syntax", id="syntax"),
        pytest.param(GOOD + b'{"step": 3} x', "glued", id="glued"),
        pytest.param(GOOD + b'{"step": 03, "lo', "syntax", id="leading-zero"),
        pytest.param(GOOD + b'{"p": "\xff\xff", "lo', "encoding", id="encoding"),
        pytest.param(b"[" + GOOD.replace(b"\n", b",", 1)[:-9], "truncated", id="list"),
    ],
)
def test_what_no_missing_end_explains_stays_an_error(
    content: bytes, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / ("x.json" if content.startswith(b"[") else "x.jsonl")
    path.write_bytes(content)
    assert kind in {fault.kind for fault in read(path, live=True)[1]}


def test_a_complete_row_without_its_newline_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(GOOD + ROW.replace(b"null", b"0"))
    rows, faults = read(path, live=True)
    assert len(rows) == 3
    assert [fault.kind for fault in faults] == ["no_newline"]


def test_only_the_flaws_of_the_missing_end_become_one() -> None:
    row = b'{"a": 1, "a": 2, "b": tr'
    flaws = [Flaw("duplicate_key", "1, then 2", 14, "a"), Flaw("syntax", "tr", 22)]
    kept = unfinished(row, flaws)
    assert [flaw.kind for flaw in kept] == ["duplicate_key", "unfinished"]
    assert kept[1].at == len(row)
    early = [Flaw("syntax", "x", 2)]
    assert unfinished(row, early) == early


def test_a_live_verdict_passes_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "telemetry.jsonl").write_bytes(GOOD + ROW[:25])
    live, done = judge(tmp_path, PROFILE, live=True), judge(tmp_path, PROFILE)
    assert [(f.rule, f.severity) for f in live.findings] == [("RDR030", "warning")]
    assert (live.verdict, done.verdict) == ("pass", "fail")
    assert [finding.rule for finding in done.findings] == ["RDR003"]


def test_a_file_that_grows_is_fine_when_live_and_one_that_shrinks_never(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    small = Limits(first_piece=30, piece=30)

    def kinds(after: bytes, live: bool) -> list[str]:
        path.write_bytes(GOOD * 40)
        faults: list[Fault] = []
        table = open_table(path, report=faults.append, limits=small, live=live)
        batches = table.batches()
        next(batches)
        path.write_bytes(after)
        list(batches)
        return [fault.kind for fault in faults if fault.kind in ("changed", "unfinished")]

    assert kinds(GOOD * 50, live=True) == []
    assert kinds(GOOD * 50, live=False) == ["changed"]
    assert kinds(GOOD * 39, live=True) == ["changed"]
    assert kinds(GOOD * 40, live=False) == ["changed"]  # rewritten: its times differ
