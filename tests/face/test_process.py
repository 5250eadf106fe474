"""The command as a process: start-up, streams, exit codes of the interpreter itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trueup
from trueup.cli.guard import told


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def _trueup(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trueup", *words],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env={**os.environ, **environment},
    )


HEAVY = ("numpy", "polars", "pandera", "jsonschema", "jinja2", "rich", "torch", "pytest")
STARTED = tuple(name for name in HEAVY if name != "rich")  # rich prints the help


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        pytest.param("import trueup.main, trueup.cli.app", HEAVY, id="the-command-line"),
        pytest.param(
            "import trueup.plugin", ("numpy", "rich", "polars", "jinja2"), id="the-plugin"
        ),
        pytest.param(
            "import trueup.oracle.verify, trueup.fidelity, trueup.render.html",
            ("polars", "pandera", "great_expectations", "torch"),
            id="what-verify-needs",
        ),
    ],
)
def test_importing(code: str, absent: tuple[str, ...]) -> None:
    result = _python(f"{code}\nimport sys\nprint(*[m for m in {absent!r} if m in sys.modules])")
    assert result.stderr == ""
    assert result.stdout.split() == []


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_starting_up_imports_nothing_heavy(word: str) -> None:
    code = (
        "import sys\n"
        "from trueup.main import main\n"
        f"sys.argv = ['trueup', {word!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print([m for m in {STARTED!r} if m in sys.modules])\n"
    )
    result = _python(code)
    assert result.stdout.splitlines()[-1] == "[]", result.stdout + result.stderr


def test_a_verify_imports_neither_polars_nor_pandera(kernels: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from trueup.cli.app import app\n"
        f"app(['verify', {str(kernels / 'right.toml')!r}, '--lane', 'numeric', '--quiet', "
        f"'--report', {str(tmp_path)!r}, '--evidence', {str(tmp_path / 'e.json')!r}], "
        "standalone_mode=False)\n"
        "print([m for m in ('polars', 'pandera', 'torch') if m in sys.modules])\n"
    )
    result = _python(code)
    assert result.stdout.splitlines()[-1] == "[]", result.stdout + result.stderr


def test_no_escape_codes_where_nothing_is_a_terminal(kernels: Path, tmp_path: Path) -> None:
    result = _trueup("verify", str(kernels / "wrong.toml"), "--lane", "numeric", cwd=tmp_path)
    assert result.returncode == 1
    assert "\x1b" not in result.stdout + result.stderr
    assert result.stderr == ""


def test_a_locale_without_symbols_is_no_crash(kernels: Path, tmp_path: Path) -> None:
    result = _trueup(
        "verify",
        str(kernels / "wrong.toml"),
        "--lane",
        "numeric",
        cwd=tmp_path,
        PYTHONIOENCODING="ascii",
    )
    assert result.returncode == 1
    assert result.stdout.isascii()


def test_a_reader_that_leaves_is_met_quietly(tmp_path: Path) -> None:
    command = f"{sys.executable} -m trueup equations; echo code $? >&2"
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        ["sh", "-c", command], stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    os.close(write)
    assert result.stderr == "code 141\n"


def test_a_fault_in_our_own_start_is_3(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['trueup.cli.app'] = None\n"  # makes the import fail
        "sys.argv = ['trueup', '--version']\n"
        "from trueup.main import main\n"
        "main()\n"
    )
    result = _python(code)
    assert result.returncode == 3
    assert "Traceback" in result.stderr
    assert "fault of trueup itself" in result.stderr


# `--help` is printed by the parser, `equations` by us: both meet the same streams.
@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param("--help > /dev/full", 2, id="help-on-a-full-disk"),
        pytest.param("fingerprint --help > /dev/full", 2, id="help-of-a-group-on-a-full-disk"),
        pytest.param("equations > /dev/full", 2, id="output-on-a-full-disk"),
        pytest.param("equations >&-", 0, id="closed-output"),
        pytest.param("equations 2>&- >/dev/null", 0, id="closed-errors"),
        pytest.param("gate no_such_run 2> /dev/full", 2, id="errors-on-a-full-disk"),
        pytest.param("equations > /dev/full 2>&1", 2, id="both-on-a-full-disk"),
    ],
)
def test_streams_that_take_nothing_are_no_fault(command: str, code: int, tmp_path: Path) -> None:
    result = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m trueup {command}"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    if code == 2 and "2>" not in command:
        assert "No space left on device\n  fix: " in result.stderr


def test_help_whose_reader_left_is_no_failed_judgement(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "trueup", "--help"], stdout=write, stderr=subprocess.PIPE,
        cwd=tmp_path, timeout=60,
    )  # fmt: skip
    os.close(write)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(PermissionError(13, "Permission denied", "runs/a"), 2,
                     "trueup: runs/a: Permission denied\n  fix: check", id="a-file-of-the-users"),
        pytest.param(OSError(28, "No space left on device"), 2, "trueup: cannot go on: No space",
                     id="a-stream"),
        pytest.param(MemoryError(), 2, "trueup: there is not enough memory", id="memory"),
        pytest.param(KeyboardInterrupt(), 130, "interrupted", id="interrupted"),
        pytest.param(FileNotFoundError(2, "No such file", f"{trueup.__path__[0]}/schemas/x"), 3,
                     "fault of trueup itself", id="a-file-of-ours"),
        pytest.param(KeyError("x"), 3, "fault of trueup itself", id="a-mistake"),
    ],
)  # fmt: skip
def test_each_error_has_its_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(error) == code
    out = capsys.readouterr()
    assert said in out.err
    assert out.out == ""
    assert ("fault of trueup" in out.err) == (code == 3)
