"""`trueup lint` as it is called: places, formats, settings, exit codes, hooks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from trueup.cli.app import app

ROOT = Path(__file__).resolve().parents[2]


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["lint", *map(str, args)])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "lint.toml").write_text("exclude = ['gen/**']\n")
    (tmp_path / "k.cu").write_text("__global__ void k(float* p) {\n  atomicAdd(p, 1.f);\n}\n")
    (tmp_path / "a.rs").write_text(
        "fn f() { todo!() }\nfn g() { todo!() } // trueup: allow SRC008: its ticket is open\n"
    )
    (tmp_path / "gen").mkdir()
    (tmp_path / "gen" / "b.rs").write_text("fn h() { todo!() }\n")
    return tmp_path


def test_findings_read_as_those_of_compilers(source: Path) -> None:
    result = run(source)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    told = "k.cu:2:3: SRC001 an atomic operation in a kernel: atomicAdd("
    assert any(line.endswith(told) for line in lines)
    assert any("a.rs:1:10: SRC008" in line for line in lines)
    assert any("waived SRC008" in line and "its ticket is open" in line for line in lines)
    assert lines[-1] == "fail: 2 files, 5 lines, 2 findings, 1 waived"


def test_clean_source_passes(source: Path) -> None:
    (source / "k.cu").write_text("__global__ void k(float* p) { *p = 1.f; }\n")
    (source / "a.rs").write_text("fn f() { g() }\n")
    assert run(source).exit_code == 0


def test_sarif_has_line_column_and_suppression(source: Path) -> None:
    result = run(source, "--format", "sarif")
    (log,) = json.loads(result.stdout)["runs"]
    regions = [
        one["locations"][0]["physicalLocation"]["region"] for one in log["results"]
        if "suppressions" not in one
    ]  # fmt: skip
    assert {(r["startLine"], r["startColumn"]) for r in regions} == {(2, 3), (1, 10)}
    assert sum("suppressions" in one for one in log["results"]) == 1
    prints = [one["partialFingerprints"]["trueup/v1"] for one in log["results"]]
    assert len(set(prints)) >= 2


@pytest.mark.parametrize("format", ["json", "junit", "github", "markdown"])
def test_other_formats_tell_the_findings(format: str, source: Path) -> None:
    result = run(source, "--format", format)
    assert result.exit_code == 1
    assert "SRC001" in result.stdout
    assert "k.cu" in result.stdout


def test_json_says_what_was_asked_and_what_was_not(source: Path) -> None:
    rules = {one["id"]: one for one in json.loads(run(source, "--format", "json").stdout)["rules"]}
    assert rules["SRC001"]["status"] == "false"
    assert rules["SRC002"]["status"] == "true"
    assert rules["SRC011"]["status"] == "not_applied"
    assert "[kernels]" in rules["SRC011"]["reason"]


def test_settings_are_found_upwards_or_given(source: Path, tmp_path: Path) -> None:
    assert run(source / "gen" / "b.rs").exit_code == 2  # excluded: nothing to judge
    other = tmp_path / "other.toml"
    other.write_text("[indices]\nnames = ['p']\n")
    assert run(source / "gen" / "b.rs", "--config", other).exit_code == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["no/such"], "does not exist"),
        ([".", "--config", "no.toml"], "no.toml"),
        ([], "SRC"),
        ([""], "an empty path"),
    ],
)
def test_a_call_that_cannot_be_served_exits_with_2(
    args: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


def test_hooks_name_commands_that_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        program, *words = hook["entry"].split()
        assert program == "trueup"
        assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0


def test_this_repository_keeps_its_own_rules() -> None:
    folders = [ROOT / name for name in ("kernels", "oracle", "reference", "src")]
    result = run(*folders)
    assert result.exit_code == 0, result.stdout
