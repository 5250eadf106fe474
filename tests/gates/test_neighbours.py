"""Files that come close to being artifacts are told, not passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.gates import Verdict, judge

ROW = (Path(__file__).resolve().parents[2] / "fixtures/telemetry/passes_list").joinpath(
    "telemetry.json"
)


def unread(verdict: Verdict) -> list[str]:
    return [Path(f.artifact).name for f in verdict.findings if f.rule == "GAT011"]


@pytest.mark.parametrize(
    "name",
    [
        "telemetry.json.1",
        "telemetry.json.2026-11-30",
        "telemetry.json-20261130",
        "telemetry.json.2026-11-30T10.15.00",
        "telemetry.json.bz2",
        "telemetry.json.1.gz",
        "telemetry.json.tar.gz",
        "telemetry.json.tmp",
        "telemetry.json~",
        "telemetry.jsonl.part",
        "TELEMETRY.JSON.OLD",
        ".telemetry.json.swp",
        "manifest.json.bak",
        "step_000100.safetensors.partial",
        "telemetry.json (1)",
    ],
)
def test_names_that_come_close_are_told_and_change_no_verdict(name: str, tmp_path: Path) -> None:
    (tmp_path / "telemetry.json").write_bytes(ROW.read_bytes())
    (tmp_path / name).write_text("{}")
    verdict = judge(tmp_path)
    assert unread(verdict) == [name]
    assert verdict.passed


@pytest.mark.parametrize("name", ["notes.txt", "train.py", "README.md", "1", "data.bin.1", "x.tmp"])
def test_other_files_are_not_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "telemetry.json").write_bytes(ROW.read_bytes())
    (tmp_path / name).write_text("{}")
    assert unread(judge(tmp_path)) == []
