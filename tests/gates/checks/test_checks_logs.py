"""Lines of a log that hold a marker: counted once each, placed, whatever the blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.gates import judge
from trueup.gates.errors import ProfileError
from trueup.gates.findings import Finding
from trueup.gates.profile.load import parse_profile
from trueup.gates.telemetry import log_checks

PROFILE = """
[profile]
id = "own"
summary = "one rule"
[[artifact]]
kind = "log"
patterns = ["*.log"]
[[rule]]
id = "OWN001"
on = "log"
severity = "error"
summary = "s"
why = "w"
expected = "e"
fix = "f"
check = "lines_at_most"
params = { marker = "BAD", max = MAX }
"""


def found(tmp_path: Path, log: bytes, most: int = 0) -> list[Finding]:
    (tmp_path / "own.toml").write_text(PROFILE.replace("MAX", str(most)))
    run = tmp_path / "run"
    run.mkdir(exist_ok=True)
    (run / "train.log").write_bytes(log)
    return list(judge(run, str(tmp_path / "own.toml")).findings)


def places(findings: list[Finding]) -> list[tuple[int | None, int | None]]:
    return [(e.where.line, e.where.byte) for f in findings for e in f.examples]


@pytest.mark.parametrize("block", [1, 2, 3, 4, 7, 1 << 20])
@pytest.mark.parametrize(
    ("log", "lines"),
    [
        pytest.param(b"a\nb\n", [], id="none"),
        pytest.param(b"BAD\n", [(1, 0)], id="first"),
        pytest.param(b"a\nxBAD\n", [(2, 3)], id="second"),
        pytest.param(b"a\nBADBAD BAD\nb\n", [(2, 2)], id="several-in-a-line"),
        pytest.param(b"BAD\nBAD\nBAD", [(1, 0), (2, 4), (3, 8)], id="no-newline"),
        pytest.param(b"BA\nD\nBABAD\n", [(3, 7)], id="over-lines"),
        pytest.param(b"\xff\xfe\x00 BAD\xff\n", [(1, 4)], id="bytes"),
        pytest.param(b"\n\n\nBAD\n", [(4, 3)], id="blank-lines"),
    ],
)
def test_marked_lines(
    block: int, log: bytes, lines: list[tuple[int, int]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(log_checks, "_BLOCK", block)
    assert places(found(tmp_path, log)) == lines


def test_so_many_lines_may_be_allowed(tmp_path: Path) -> None:
    assert found(tmp_path, b"BAD\nBAD\n", most=2) == []
    (finding,) = found(tmp_path, b"BAD\nBAD\nBAD\n", most=2)
    assert finding.count == 3


def test_an_empty_log_is_not_at_fault(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(PROFILE.replace("MAX", "0"))
    (tmp_path / "train.log").write_bytes(b"")
    (tmp_path / "other.log").write_bytes(b"fine\n")
    verdict = judge(tmp_path, str(tmp_path / "own.toml"))
    assert verdict.findings == ()
    (outcome,) = verdict.rules
    assert (outcome.status, outcome.rows) == ("true", 1)


def test_many_lines_are_counted_and_not_all_named(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, b"BAD\n" * 5_000)
    assert finding.count == 1_001  # a thousand places, and the rest in words
    assert places([finding]) == [(line, 4 * (line - 1)) for line in range(1, 6)]


@pytest.mark.parametrize(
    ("marker", "most", "message"),
    [("", "0", "marker is ''"), (r"a\nb", "0", "text of one line"), ("BAD", "-1", "0 or more")],
)
def test_parameters_are_checked(marker: str, most: str, message: str) -> None:
    text = PROFILE.replace('"BAD"', f'"{marker}"').replace("MAX", most)
    with pytest.raises(ProfileError, match=message):
        parse_profile(text.encode(), "own.toml")
