"""`trueup identify`: which form of its equation a kernel follows, in words and as data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.reference import get
from trueup.render.json import load_schema

ROOT = Path(__file__).resolve().parents[2]
WRONG = ROOT / "tests" / "wrong_kernels"

_REFERENCE = """
from trueup.reference import Domain, Symbol, equation

real = Domain("real", -2.0, 2.0)

@equation("my.scale", title="Scale", source="mine", axes=("n",),
    inputs=(Symbol("x", ("n",), real, "x"), Symbol("a", (), Domain("positive", 0.1, 0.9), "a")),
    outputs=(Symbol("y", ("n",), real, "y"),),
    readings=("plain", "shifted"), wrong=("squared", "halved"), register=False)
def scale(x, a, *, reading="plain"):
    if reading == "shifted":
        return a * x + 1.0
    if reading == "squared":
        return a * x * x
    if reading == "halved":
        return a * x / 2
    return a * x
"""


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def contract(kernels: Path) -> Path:
    """The right kernel's contract, its reference with readings and wrong variants."""
    (kernels / "ref.py").write_text(_REFERENCE)
    return kernels / "right.toml"


def _body(contract: Path, value: str) -> None:
    (contract.parent / "kernels.py").write_text(
        f"import numpy as np\n\ndef right(x, a):\n    a = np.float32(a)\n    return {value}\n"
    )


def _run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_kernel_that_follows_its_reading_is_0_and_ranks_every_form(contract: Path) -> None:
    result = _run("identify", contract)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "the kernel follows `plain`, the reading its contract declares (" in result.stdout
    assert re.search(r"^plain \* +reading +0(\.\d+)? +(\d+) of \2 ", result.stdout, re.MULTILINE)
    for form in ("shifted", "squared", "halved"):
        assert re.search(rf"^{form} ", result.stdout, re.MULTILINE)


def test_another_reading_is_1_and_says_how_to_declare_it(contract: Path) -> None:
    _body(contract, "a * x + np.float32(1)")
    result = _run("identify", contract, "--quiet")
    assert result.exit_code == 1
    first, fix = result.stdout.splitlines()
    assert first.startswith("the kernel follows `shifted`, its contract declares `plain` (")
    assert fix == (
        '  fix: correct the kernel, or declare reading = "shifted" if that is what is meant'
    )


def test_a_wrong_variant_is_never_advised_as_a_reading(contract: Path) -> None:
    _body(contract, "a * x * x")
    result = _run("identify", contract, "-q")
    assert result.exit_code == 1
    assert "correct the kernel: `squared` is known to be wrong" in result.stdout
    assert "reading =" not in result.stdout


def test_no_known_form_is_1_and_names_the_nearest(contract: Path) -> None:
    _body(contract, "a * x + np.float32(3)")
    result = _run("identify", contract, "-q")
    assert result.exit_code == 1
    assert "no known form of ref.py:scale explains the kernel" in result.stdout
    assert re.search(r"nearest: `\w+`, \S+ times the allowed error, explains 0 of", result.stdout)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(
            "np.where((x == 0).any(), np.float32(9), a * x)",
            "the kernel follows `plain`, as its contract declares, in ",
            id="declared",
        ),
        pytest.param(
            "np.where((x == 0).any(), np.float32(9), a * x * x)",
            "the kernel follows `squared`, declared is `plain`, in ",
            id="wrong-variant",
        ),
    ],
)
def test_a_form_in_most_cases_is_1_and_says_where_it_ends(
    contract: Path, value: str, said: str
) -> None:
    _body(contract, value)
    result = _run("identify", contract, "-q")
    assert result.exit_code == 1
    assert result.stdout.startswith(said)
    assert " cases but not in the others (" in result.stdout
    assert re.search(r"furthest off in n=\d+/\w+: ", result.stdout)


def test_forms_that_cannot_be_told_apart_are_said_to_be(contract: Path) -> None:
    text = _REFERENCE.replace('real = Domain("real", -2.0, 2.0)', 'real = Domain("mask")')
    (contract.parent / "ref.py").write_text(text)
    result = _run("identify", contract, "-q")
    assert result.exit_code == 0
    assert "on these inputs it cannot be told apart from `squared`" in result.stdout
    document = json.loads(_run("identify", contract, "--format", "json").stdout)
    assert document["fits"] == ["plain", "squared"]
    assert document["best"] == "plain"
    declared = text.replace('("plain", "shifted")', '("shifted", "plain")')
    (contract.parent / "ref.py").write_text(
        declared.replace('reading="plain"', 'reading="shifted"')
    )
    result = _run("identify", contract, "-q")
    assert result.exit_code == 1
    assert "follows `plain` or `squared`, its contract declares `shifted`" in result.stdout
    assert "`plain` and `squared` cannot be told apart on these inputs" in result.stdout


def test_the_json_is_all_of_stdout_and_valid(contract: Path) -> None:
    result = _run("identify", contract, "--format", "json", "--seed", 4)
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    Draft202012Validator(load_schema("identify")).validate(document)
    assert document["best"] == document["ranking"][0]["form"] == "plain"
    assert document["follows_declared"] is True
    assert {fit["form"] for fit in document["ranking"]} == {"plain", "shifted", "squared", "halved"}
    assert document["ranking"][0]["ratio"] <= 1 < document["ranking"][1]["ratio"]


def test_one_case_is_taken_as_verify_takes_it(contract: Path) -> None:
    listed = _run("verify", contract, "--list-cases", "--lane", "numeric").stdout.splitlines()
    case = listed[0].split(maxsplit=2)[2]
    document = json.loads(_run("identify", contract, "--case", case, "--format", "json").stdout)
    assert document["cases"] == [case]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["nowhere.toml"], "nowhere.toml", id="no-file"),
        pytest.param(["mine"], "2 contracts, of which one is to be named", id="several"),
        pytest.param(["mine/other.toml"], "other.toml", id="no-contract"),
        pytest.param(["mine/right.toml", "--case", "n=5/nosuch"], "input family", id="case"),
        pytest.param(
            ["mine/right.toml", "--backend", "cuda"], "does not run on cuda", id="backend"
        ),
        pytest.param([], "CONTRACT", id="nothing"),
        pytest.param(["mine/right.toml", "--format", "xml"], "xml", id="format"),
    ],
)
def test_what_cannot_be_judged_is_2_without_a_traceback(
    contract: Path, words: list[str], message: str
) -> None:
    result = _run("identify", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_kernel_that_crashes_everywhere_is_2(contract: Path) -> None:
    _body(contract, "a / {}")
    result = _run("identify", contract)
    assert result.exit_code == 2
    assert "no run ended without a fault" in result.stderr


def test_what_a_kernel_prints_does_not_break_the_json(contract: Path) -> None:
    _body(contract, "print('hello') or a * x")
    result = _run("identify", contract, "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["best"] == "plain"


@pytest.mark.parametrize(
    ("kernel", "best"),
    [
        ("descent_literal", "literal"),
        ("momentum_p_transposed", "p_transposed"),
    ],
)
def test_a_wrong_kernel_in_cuda_is_recognised_on_the_host(kernel: str, best: str) -> None:
    path = WRONG / kernel / "contract.toml"
    result = _run("identify", path, "--backend", "host", "--format", "json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert document["best"] == best
    assert document["fits"] == [best]
    assert document["backend"] == "host"
    entry = get(document["equation"])
    assert {fit["form"] for fit in document["ranking"]} == set(entry.known())


def test_verify_carries_the_match_in_every_format(contract: Path) -> None:
    """The text of the finding, the JSON, the JUnit and the HTML name the form that explains it."""
    _body(contract, "a * x * x")
    match = "the kernel matches `squared`, the contract declares `plain`"
    lane = ("--lane", "numeric", "--report", "out")
    assert match in _run("verify", contract, *lane).stdout
    document = json.loads(_run("verify", contract, *lane, "--format", "json").stdout)
    (judged,) = document["contracts"][0]["lanes"]
    assert judged["matches"] == ["squared"]
    assert match in judged["findings"][0]["fix"]
    suite = ET.fromstring(_run("verify", contract, *lane, "--format", "junit").stdout.encode())[0]
    assert match in "".join(suite.itertext())
    assert match in Path("out/verify.html").read_text()
