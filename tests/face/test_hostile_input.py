"""Names and files made to be met badly: one clear message, the code 2, and no command to a CI."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.errors import FaceError
from trueup.render.files import write_report

ROOT = Path(__file__).resolve().parents[2]
LAYOUT = str(ROOT / "fixtures" / "layouts" / "passes_l0" / "layout.toml")

Make = Callable[[Path], object]


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


# Each names `x`, which is nothing that can be read.
CALLS = {
    "gate": ["gate", "x"],
    "lint": ["lint", "x"],
    "lint-settings": ["lint", ".", "--config", "x"],
    "fingerprint": ["fingerprint", "show", "x"],
    "check": ["fingerprint", "check", "x", "--layout", LAYOUT],
    "registry": ["registry", "x", "--layout", LAYOUT],
    "close": ["close", "x"],
    "statement": ["close", "--verify", "x"],
    "accept": ["accept", "x"],
    "lock": ["accept", "--lock", "x", "-o", "b.toml"],
    "ledger": ["accept", "ledger", "check", "x"],
    "bundle": ["bundle", "x", "-o", "out"],
    "settings": ["gate", ".", "--config", "x"],
    "profile": ["gate", ".", "--no-config", "--profile", "./x"],
}
THINGS: dict[str, Make] = {
    "a-pipe": os.mkfifo,
    "a-loop": lambda path: path.symlink_to(path.name),
    "a-device": lambda path: path.symlink_to("/dev/zero"),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_file_is_refused(
    call: str, thing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    THINGS[thing](tmp_path / "x")
    before = sorted(os.listdir(tmp_path))
    result = run(*CALLS[call])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("trueup: ")
    assert "x" in result.stderr.splitlines()[0]
    assert "Traceback" not in result.output
    assert "fault of trueup" not in result.output
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("call", CALLS)
def test_a_name_no_file_can_have_is_refused(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    name = "x" * 5_000
    result = run(*(word.replace("x", name) if word.endswith("x") else word for word in CALLS[call]))
    assert result.exit_code == 2, result.output[-500:]
    assert "fault of trueup" not in result.output


def test_a_folder_that_is_closed_is_no_folder_that_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be looked into may hold what fails."""
    (tmp_path / "telemetry.jsonl").write_text('{"step": 0, "loss": 1.5}\n')
    (tmp_path / "evals").mkdir()
    scandir = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("evals"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    result = run("gate", str(tmp_path), "--no-config")
    assert result.exit_code == 1
    assert "GAT007 error: a folder that was not searched" in result.stdout
    assert "evals: got Permission denied" in result.stdout
    refused = run("bundle", str(tmp_path), "-o", str(tmp_path / "out"))
    assert refused.exit_code == 2
    assert "evals" in refused.stderr
    assert not (tmp_path / "out").exists()


# GitHub obeys a line that begins with two colons after any blanks; `stop-commands` hides the rest.
ORDER = "::stop-commands::x"


@pytest.mark.parametrize("form", ["text", "markdown", "junit"])
@pytest.mark.parametrize("name", [f"{ORDER} telemetry.jsonl", f"a\n{ORDER} telemetry.jsonl"])
def test_no_name_gives_an_order_to_a_log(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text('{"step": 0, "loss": NaN}\n{"step": 1, "loss": 1.5}\n')
    (tmp_path / f"{ORDER}.py").write_text("def f():\n    raise NotImplementedError\n")
    for call in (["gate", name], ["lint", f"{ORDER}.py"]):
        result = run(*call, "--format", form)
        assert result.exit_code == 1
        assert "stop-commands" in result.output
        assert not [line for line in result.output.splitlines() if line.strip().startswith("::")]


def test_a_name_that_is_not_there_gives_no_order_either() -> None:
    result = run("gate", f"a\n{ORDER}")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"trueup: a\\n{ORDER}: does not exist")
    assert not [line for line in result.stderr.splitlines() if line.startswith("::")]


def test_a_report_never_takes_the_place_of_a_pipe(tmp_path: Path) -> None:
    """`--write sarif=/dev/stdout` writes to it; with leave to, a rename would remove it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FaceError, match="cannot write it: No such device or address"):
        write_report(tmp_path, "pipe", "x")  # nobody reads, and nobody waits
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert write_report(tmp_path, "pipe", "text\n") == pipe
    assert os.read(reader, 100) == b"text\n"
    os.close(reader)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_report_that_cannot_be_written_names_its_place_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "gate.html").mkdir()
    with pytest.raises(FaceError) as caught:
        write_report(tmp_path, "gate.html", "x")
    assert caught.value.where == str(tmp_path / "gate.html")
    assert os.listdir(tmp_path) == ["gate.html"]
