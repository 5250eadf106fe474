"""`trueup verify`: exit codes, streams and hostile calls."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.oracle.errors import BackendUnavailable
from trueup.oracle.verdict import ContractVerdict, LaneVerdict, Outcome, Skip, Verification
from trueup.render.json import load_schema


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def _answer(monkeypatch: pytest.MonkeyPatch, answer: Verification | Exception) -> None:
    """Let the oracle come to a given answer, for what no real kernel shows on demand."""

    def verify(*_args: Any, **_options: Any) -> Verification:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("trueup.oracle.verify.verify", verify)


def test_a_right_kernel_passes_and_leaves_evidence(kernels: Path) -> None:
    result = _run("verify", kernels / "right.toml")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].startswith("PASS: 1 contract, ")
    assert result.stderr == ""
    evidence = json.loads(Path(".trueup/evidence.json").read_text())
    assert evidence["verdict"] == "PASS"


def test_a_wrong_kernel_fails_and_says_how_to_see_it_again(kernels: Path) -> None:
    result = _run("verify", kernels / "wrong.toml", "--lane", "numeric")
    assert result.exit_code == 1
    replay = re.search(r"replay +trueup (verify .*)$", result.stdout, re.MULTILINE)
    assert replay is not None
    again = _run(*replay[1].split())
    assert again.exit_code == 1
    assert "my.wrong" in again.stdout


def test_the_json_of_a_real_run_is_all_of_stdout_and_valid(kernels: Path) -> None:
    result = _run("verify", kernels, "--format", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    Draft202012Validator(load_schema("verify")).validate(document)
    verdicts = {contract["id"]: contract["verdict"] for contract in document["contracts"]}
    assert verdicts == {"my.right": "PASS", "my.wrong": "FAIL"}
    assert document["verdict"] == "FAIL"


def test_the_junit_of_a_real_run_is_well_formed(kernels: Path) -> None:
    result = _run("verify", kernels, "--format", "junit", "--lane", "numeric")
    suite = ET.fromstring(result.stdout.encode())[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")


def test_the_report_is_written_where_asked(kernels: Path) -> None:
    result = _run("verify", kernels / "right.toml", "--lane", "numeric", "--report", "out/deep")
    assert result.exit_code == 0
    assert "my.right" in Path("out/deep/verify.html").read_text()
    assert [path.name for path in Path("out/deep").iterdir()] == ["verify.html"]


def test_cases_are_listed_and_each_can_be_run_alone(kernels: Path) -> None:
    listed = _run("verify", kernels / "right.toml", "--list-cases", "--lane", "numeric")
    assert listed.exit_code == 0
    contract, lane, case = listed.stdout.splitlines()[0].split(maxsplit=2)
    assert (contract, lane) == ("my.right", "numeric")
    alone = _run("verify", kernels / "right.toml", "--lane", lane, "--case", case, "--seed", 3)
    assert alone.exit_code in (0, 1)
    assert ", 1 case, " in alone.stdout
    assert not re.search(r"\b1 (cases|elements|launches)\b", alone.stdout)


def test_one_malformed_contract_makes_the_whole_call_2_but_the_others_are_reported(
    kernels: Path,
) -> None:
    (kernels / "broken.toml").write_text("[contract]\nid = 'x'\nreferense = 'y'\n")
    result = _run("verify", kernels, "--format", "json", "--lane", "numeric")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    Draft202012Validator(load_schema("verify")).validate(document)
    assert len(document["contracts"]) == 2
    assert len(document["errors"]) == 1
    assert "referense" in result.stderr
    assert "did you mean `reference`" in result.stderr


def test_with_one_malformed_contract_nothing_is_a_pass(kernels: Path) -> None:
    broken = kernels / "broken.toml"
    broken.write_text("[contract]\n")
    result = _run("verify", kernels / "right.toml", broken, "--format", "json", "--lane", "numeric")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["verdict"] == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["nowhere.toml"], "no such file or directory", id="missing-path"),
        pytest.param(["."], "no contract in this directory", id="nothing-to-check"),
        pytest.param(["mine/ref.py"], "not valid TOML", id="not-toml"),
        pytest.param(["mine/other.toml"], "contract", id="toml-without-a-contract"),
        pytest.param(["--lane", "numric"], "did you mean numeric", id="unknown-lane"),
        pytest.param(["--lane", ""], "no lane is called ''", id="empty-lane"),
        pytest.param(["--backend", "gpu"], "cuda", id="unknown-backend"),
        pytest.param(["--format", "xml"], "junit", id="unknown-format"),
        pytest.param(["--seed", "-1"], "seed", id="negative-seed"),
        pytest.param(["--seed", "zero"], "seed", id="seed-that-is-no-number"),
        pytest.param(["--lanes"], "--lane", id="unknown-option"),
        pytest.param(["mine/right.toml", "--case", "n=x/unit"], "case", id="malformed-case"),
        pytest.param(["mine/right.toml", "--case", "n=3/nope"], "family", id="unknown-family"),
        pytest.param(["mine/right.toml", "--backend", "host"], "host", id="backend-not-allowed"),
    ],
)
def test_a_call_that_cannot_be_served_is_2_and_says_why_on_stderr(
    words: list[str], said: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if any(word.startswith("mine") for word in words):
        request.getfixturevalue("kernels")
    result = _run("verify", *words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_evidence_that_cannot_be_written_is_2(kernels: Path) -> None:
    Path("file").write_text("")
    words = ("verify", kernels / "right.toml", "--lane", "numeric")
    for option in (("--evidence", "file/e.json"), ("--report", "file/deep")):
        result = _run(*words, *option)
        assert result.exit_code == 2
        assert "cannot write" in result.stderr
        assert "Traceback" not in result.output
        assert "PASS: 1 contract, " in result.stdout, "the judgement is told all the same"


def test_evidence_that_cannot_be_written_does_not_cost_the_report(kernels: Path) -> None:
    Path("file").write_text("")
    result = _run(
        "verify", kernels / "wrong.toml", "--evidence", "file/e.json", "--report", "out",
        "--lane", "numeric",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "FAIL: 1 contract, " in result.stdout
    assert Path("out/verify.html").exists()


def test_a_contract_that_is_named_twice_is_verified_once(kernels: Path) -> None:
    right = kernels / "right.toml"
    other = kernels.parent / "link.toml"
    other.symlink_to(right)
    words = ("--lane", "numeric", "--format", "json")
    document = json.loads(_run("verify", right, other, kernels, right, *words).stdout)
    assert [contract["id"] for contract in document["contracts"]] == ["my.right", "my.wrong"]


def test_what_user_code_prints_leaves_stdout_to_the_format(kernels: Path) -> None:
    for name in ("ref.py", "kernels.py"):
        text = (kernels / name).read_text().replace("):\n", "):\n    print('noise within')\n", 1)
        (kernels / name).write_text(f"print('noise')\n{text}")
    words = ("verify", kernels / "right.toml", "--lane", "numeric", "--format")
    assert json.loads(_run(*words, "json").stdout)["verdict"] == "PASS"
    assert ET.fromstring(_run(*words, "junit").stdout.encode())[0].attrib["tests"] == "1"
    assert json.loads(_run(*words, "json", "--list-cases").stdout)["my.right"]["numeric"]


@pytest.mark.parametrize("code", [0, None, 1, "bye"])
def test_an_exit_by_foreign_code_is_2(
    code: int | str | None, kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(*_args: Any, **_options: Any) -> Verification:
        raise SystemExit(code)

    monkeypatch.setattr("trueup.oracle.verify.verify", verify)
    result = _run("verify", kernels / "right.toml")
    assert result.exit_code == 2
    assert f"SystemExit({code!r})" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Outcome.PASS, 0), (Outcome.FAIL, 1), (Outcome.INCONCLUSIVE, 1), (Outcome.SKIPPED, 2)],
)
def test_the_verdict_decides_the_exit_code(
    outcome: Outcome, code: int, kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = LaneVerdict("numeric", outcome, reason="so it is")
    contract = ContractVerdict("a", outcome, "r", "host", "d", (lane,))
    _answer(monkeypatch, Verification(outcome, "host", (contract,)))
    assert _run("verify", kernels / "right.toml").exit_code == code


def test_a_verification_of_nothing_is_2(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skipped = (Skip("a", None, "the contract does not run on host"),)
    _answer(monkeypatch, Verification(Outcome.INCONCLUSIVE, "host", (), skipped))
    result = _run("verify", kernels / "right.toml")
    assert result.exit_code == 2
    assert "nothing was checked" in result.stderr


def test_a_backend_that_is_not_here_is_2(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _answer(monkeypatch, BackendUnavailable("no compiler", fix="apt-get install g++"))
    result = _run("verify", kernels / "right.toml")
    assert result.exit_code == 2
    assert result.stderr == "trueup: no compiler\n  fix: apt-get install g++\n"


def test_our_own_crash_is_3_with_its_traceback(
    kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer(monkeypatch, ZeroDivisionError("ours"))
    result = _run("verify", kernels / "right.toml")
    assert result.exit_code == 3
    assert "Traceback" in result.stderr
    assert "ZeroDivisionError: ours" in result.stderr
    assert result.stdout == ""


def test_an_interrupt_is_130(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(*_args: Any, **_options: Any) -> Verification:
        raise KeyboardInterrupt

    monkeypatch.setattr("trueup.oracle.verify.verify", verify)
    result = _run("verify", kernels / "right.toml")
    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_a_kernel_that_never_gives_the_device_back_ends_the_process_after_the_report(
    kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    monkeypatch.setattr("os._exit", left.append)
    lane = LaneVerdict("numeric", Outcome.FAIL)
    contract = ContractVerdict("a", Outcome.FAIL, "r", "cuda", "d", (lane,))
    _answer(monkeypatch, Verification(Outcome.FAIL, "cuda", (contract,), hung=True))
    result = _run("verify", kernels / "right.toml")
    assert left == [1]
    assert "FAIL: 1 contract" in result.stdout
