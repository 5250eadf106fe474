"""Every example of the catalogue's own kinds is true: what fails is found, what passes is not."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from trueup.gates import judge
from trueup.gates.catalogue.kinds import Kind, families
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.rows.reader import Reader
from trueup.gates.settings.gate import judge_under
from trueup.gates.settings.load import load_settings

TABLES = [kind for kind in families()["reader"] if kind.id.startswith("RDR")]
OLD_TABLES = [kind for kind in TABLES if kind.id <= "RDR029"]
GATE = families()["gate"]
PROFILE = """
[profile]
id = "mine"
summary = "one rule"
[[artifact]]
kind = "telemetry"
patterns = ["telemetry*.json", "telemetry*.jsonl"]
[[artifact]]
kind = "metadata"
patterns = ["*.meta.json"]
required = true
[[rule]]
id = "OWN001"
severity = "error"
summary = "the loss is a number"
why = "because"
check = "number"
keys = ["loss"]
expected = "a number"
fix = "log one"
"""
TODAY = datetime.date(2026, 1, 15)


def raw(text: str) -> bytes:
    """The bytes of an example: an escape `\\xe9` stands for one byte."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())


def read(text: str, kind: Kind, folder: Path) -> tuple[list[Fault], int]:
    """What the reader of tables finds in an example, and how many rows it hands on."""
    (folder / "telemetry.json").write_bytes(raw(text))
    faults: list[Fault] = []
    limits = Limits(**kind.limits)
    reader = Reader(folder / "telemetry.json", report=faults.append, limits=limits)
    return faults, sum(batch.frame.height for batch in reader.batches())


@pytest.mark.parametrize("kind", OLD_TABLES, ids=lambda kind: kind.name)
def test_an_example_of_the_reader_is_true(kind: Kind, tmp_path: Path) -> None:
    passing, rows = read(kind.passes, kind, tmp_path)
    assert (passing, rows) == ([], 2)
    failing, handed_on = read(kind.fails, kind, tmp_path)
    assert failing[0].kind == kind.name
    # Both examples hold two rows: fewer are handed on where the fault hides one from the rules.
    assert kind.waivable is (handed_on == rows)


def lay_out(text: str, folder: Path) -> dict[str, str]:
    """Make the run directory of an example; returns the variables its command line sets."""
    words, *files = re.split(r"(?m)^== (.+) ==\n", text)
    for name, content in zip(files[::2], files[1::2], strict=True):
        path, _, target = name.partition(" -> ")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if target:
            (folder / path).symlink_to(target)
        else:
            (folder / path).write_bytes(raw(content))
    return dict(re.findall(r"(\w+)=(\S+) ", words))


def found(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The ids found in the run directory of an example, judged under its own settings."""
    run = folder / "run"
    run.mkdir(parents=True)
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "telemetry.jsonl").write_text('{"step": 0, "loss": 1.0}\n')
    (folder / "mine.toml").write_text(PROFILE)
    for name, value in lay_out(text, run).items():
        monkeypatch.setenv(name, value)
    profile = str(folder / "mine.toml")
    if not (run / "trueup.toml").exists():
        return {finding.rule for finding in judge(run, profile).findings}
    settings = load_settings(run / "trueup.toml")
    verdict = judge_under(settings, run, profile, today=TODAY)
    return {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize("kind", GATE, ids=lambda kind: kind.name)
def test_an_example_of_the_gate_is_true(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kind.id not in found(kind.passes, tmp_path / "passes", monkeypatch)
    assert kind.id in found(kind.fails, tmp_path / "fails", monkeypatch)
