"""`trueup gate`: exit codes, streams, formats and hostile names."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from markupsafe import escape
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.render.json import load_schema
from trueup.render.plots import line_plot
from trueup.render.series import Series

Rows = list[dict[str, Any]]
_SCRIPT = "<script>alert(1)</script>\x1b[31m"


def _run(*words: object) -> Result:
    return CliRunner().invoke(app, ["gate", *(str(word) for word in words)])


@pytest.fixture
def rows() -> Rows:
    """A configuration row and 40 steps that break nothing, by construction of the format."""
    config: dict[str, Any] = {"step": -1, "device": "cpu", "train.online_updates": True}
    steps: Rows = []
    for step in range(40):
        loss = 4 * math.exp(-step / 20)
        row: dict[str, Any] = {"step": step, "loss": loss, "ppl": math.exp(loss)}
        row["teach_signal_norm"] = 0.1 + 0.01 * math.cos(step)
        record = {"grad_norm": 1 + 0.1 * math.sin(step), "chunk_tokens": 8, "gate_hit": 2}
        record |= {"surprise_value": 0.2 + 0.01 * math.sin(step)}
        row |= {f"layer0.cms.cms_fast.{key}": value for key, value in record.items()}
        steps.append(row)
    return [config, *steps]


@pytest.fixture
def log(tmp_path: Path, rows: Rows) -> Path:
    return _write(tmp_path / "telemetry.json", rows)


@pytest.fixture
def broken(tmp_path: Path, rows: Rows) -> Path:
    rows[21]["loss"] = math.nan
    rows[31]["ppl"] = 9.0
    rows[11][_SCRIPT] = 1.5
    rows[12]["teach_signal_norm"] = _SCRIPT
    return _write(tmp_path / "broken.json", rows)


def _write(path: Path, rows: Rows) -> Path:
    path.write_text(json.dumps(rows))
    return path


def test_a_sound_log_passes(log: Path) -> None:
    result = _run(log)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].startswith("pass: profile nl, 41 rows, ")
    assert result.stderr == ""


def test_a_broken_log_fails_with_each_place_in_the_file(broken: Path) -> None:
    result = _run(broken)
    assert result.exit_code == 1
    assert f"{broken}:1:" in result.stdout
    assert "loss (step 20)" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("name", ["log", "broken"])
def test_the_json_is_all_of_stdout_and_valid(name: str, request: pytest.FixtureRequest) -> None:
    result = _run(request.getfixturevalue(name), "--format", "json")
    document = json.loads(result.stdout)
    schema = load_schema("gate")
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    assert {"verdict", "profile", "rows", "checks", "findings"} <= set(document)
    assert (document["verdict"] == "pass") is (result.exit_code == 0)


def test_the_junit_has_a_case_per_rule(broken: Path) -> None:
    suite = ET.fromstring(_run(broken, "--format", "junit").stdout.encode())[0]
    names = [case.attrib["name"] for case in suite]
    assert len(names) == len(set(names)) == int(suite.attrib["tests"])
    assert int(suite.attrib["failures"]) >= 2


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_the_report_shows_findings_and_curves_and_runs_nothing(
    broken: Path, tmp_path: Path
) -> None:
    assert _run(broken, "--report", tmp_path / "out").exit_code == 1
    page = (tmp_path / "out" / "gate.html").read_text("utf-8")
    parser = _Tags()
    parser.feed(page)
    assert "script" not in parser.tags
    assert "\x1b" not in page
    assert parser.tags.count("polyline") >= 2
    assert "<title>step 20</title>" in page


def test_the_report_of_a_sound_log_draws_its_loss(log: Path, tmp_path: Path) -> None:
    assert _run(log, "--report", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "gate.html").read_text("utf-8")
    assert page.count("<polyline") == 1
    assert "<p>None.</p>" in page
    for rule in json.loads(_run(log, "--format", "json").stdout)["rules"]:
        assert rule["summary"], rule["id"]
        assert f"<td>{escape(rule['summary'])}<" in page
    assert '<span class="verdict true">pass</span>' in page


def test_a_report_that_cannot_be_written_is_2_after_the_judgement(
    broken: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = _run(broken, "--report", tmp_path / "file" / "deep")
    assert result.exit_code == 2
    assert "cannot write" in result.stderr
    assert result.stdout.splitlines()[-1].startswith("fail: profile nl, ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, (), id="missing"),
        pytest.param(b"", (), id="empty"),
        pytest.param(b"\xff\xfe[\x00", (), id="utf-16"),
        pytest.param(b"hello", (), id="not-json"),
        pytest.param(b"[{}]", ("--profile", "nope"), id="unknown-profile"),
        pytest.param(b"[{}]", ("--format", "xml"), id="unknown-format"),
    ],
)
def test_what_cannot_be_judged_is_2_and_says_why_on_stderr(
    content: bytes | None, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "telemetry.json"
    if content is not None:
        path.write_bytes(content)
    result = _run(path, *words)
    assert result.exit_code == 2, result.output
    assert result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_directory_without_artifacts_is_2(tmp_path: Path) -> None:
    result = _run(tmp_path)
    assert result.exit_code == 2
    assert str(tmp_path) in result.stderr


def test_a_series_of_any_length_keeps_its_extremes_in_bounded_memory() -> None:
    series = Series("loss", ())
    for step in range(50_000):
        series.add(step, 1e9 if step == 31_337 else float(step % 7))
    series.close()
    assert len(series.buckets) <= 3001
    assert max(high for _, _, high in series.buckets) == 1e9
    assert series.buckets[0][0] == 0
    assert [b[0] for b in series.buckets] == sorted(b[0] for b in series.buckets)


@pytest.mark.parametrize(
    "values",
    [[1.0], [2.0, 2.0], [-1e308, 1e308], [0.0, 1e-300]],
    ids=["one", "constant", "wider-than-a-float", "tiny"],
)
def test_a_curve_stays_inside_its_drawing(values: list[float]) -> None:
    series = Series("<k>", (0, 99))
    for step, value in enumerate(values):
        series.add(step, value)
    root = ET.fromstring(line_plot(series))
    points = root.find("{http://www.w3.org/2000/svg}polyline")
    assert points is not None
    for point in points.attrib["points"].split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= 860
        assert 0 <= y <= 180
