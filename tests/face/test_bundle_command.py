"""`trueup bundle`: what it prints, its exit codes, and what is left when it is killed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trueup.cli.app import app

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SMALL = FIXTURES / "runs" / "memory_small"
PROFILE = """
[profile]
id = "mine"
summary = "bundles of the small memory model"
include = ["bundle", "evals"]
[[artifact]]
kind = "metadata"
patterns = ["*.meta.json"]
[[artifact]]
kind = "weights"
patterns = ["*.safetensors"]
[[artifact]]
kind = "pickle"
patterns = ["*.part"]
[[rule]]
id = "BND010"
on = "manifest"
severity = "error"
summary = "both variants"
why = "because"
check = "bundle_variants"
params = { variants = ["no_teach", "teach"] }
expected = "both"
fix = "bundle both"
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE)
    return path


def bundle(*words: object) -> Result:
    return CliRunner().invoke(app, ["bundle", "--no-config", *(str(word) for word in words)])


def as_process(*words: object, **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trueup", "bundle", "--no-config", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes, **more)  # type: ignore[call-overload, no-any-return]


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_a_bundle_is_made_and_the_gate_it_names_passes_it(profile: Path, tmp_path: Path) -> None:
    out, archive = tmp_path / "out", tmp_path / "out.tar.zst"
    done = bundle(SMALL, "-o", out, "--profile", profile, "--archive", archive)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        f"made {out}: 22 files, 89,651 bytes",
        "variant no_teach: continual, niah, passkey, pg19, zeroshot",
        "variant teach: continual, niah, passkey, pg19, zeroshot",
        "left out 1 files that are no artifacts of the profile (--also)",
        f"judge it: trueup gate {out} --profile {profile}",
    ]
    assert lines[5].startswith(f"packed {archive}: sha256 ")
    _, *gate = lines[4].removeprefix("judge it: ").split()
    assert CliRunner().invoke(app, [*gate, "--no-config"]).exit_code == 0
    again = bundle(SMALL, "-o", out, "--profile", profile, "--archive", archive)
    assert again.exit_code == 0
    assert again.stdout.startswith(f"was there already {out}: 22 files")


def test_a_variant_without_results_is_named(profile: Path, tmp_path: Path) -> None:
    done = bundle(SMALL / "teach", "-o", tmp_path / "out", "--profile", profile)
    assert done.exit_code == 0
    assert "variant no_teach: no result; the profile asks for it" in done.stdout
    judged = CliRunner().invoke(app, ["gate", str(tmp_path / "out"), "--profile", str(profile)])
    assert judged.exit_code == 1
    assert "BND010" in judged.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param([SMALL], "Missing option", id="no-output"),
        pytest.param(["-o", "out"], "Missing argument", id="no-run"),
        pytest.param(["gone", "-o", "out"], "gone: does not exist", id="gone"),
        pytest.param([SMALL, "-o", "/proc/out"], "cannot be written", id="unwritable"),
        pytest.param([SMALL, "-o", SMALL / "out"], "lie in each other", id="inside"),
        pytest.param([SMALL, "-o", "out", "--profile", "nn"], "unknown profile", id="profile"),
        pytest.param([SMALL, "-o", "out", "--archive", "out.zip"], "no name of an arch", id="zip"),
    ],
)
def test_a_call_that_cannot_be_served_exits_with_2_and_one_message(
    words: list[object], message: str, profile: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    given = [] if "--profile" in words else ["--profile", profile]
    done = bundle(*words, *given)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (SMALL / "out").exists()


def large_run(root: Path, files: int, size: int) -> Path:
    """A run with much to copy."""
    shutil.copytree(SMALL, root)
    for number in range(files):
        (root / f"shard_{number:03d}.part").write_bytes(bytes([number]) * size)
    return root


def partial_of(out: Path) -> Path:
    return out.parent / f".{out.name}.partial"


def test_a_killed_run_leaves_no_bundle_and_is_continued(profile: Path, tmp_path: Path) -> None:
    """Killed at several moments of the copying, by the signal that cannot be caught."""
    run, out = large_run(tmp_path / "run", 40, 2 << 20), tmp_path / "out"
    words = (run, "-o", out, "--profile", profile)
    for wanted in (8, 20, 30):
        process = as_process(*words)
        while process.poll() is None and len(list(partial_of(out).rglob("*.part"))) < wanted:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not out.exists()
        assert not (partial_of(out) / "manifest.json").exists()
    done = bundle(*words)
    assert done.exit_code == 0, done.stderr
    kept = int(done.stdout.split(" of them from an interrupted run")[0].rsplit(" ", 1)[-1])
    assert kept >= 20
    assert not partial_of(out).exists()
    bundle(run, "-o", tmp_path / "anew", "--profile", profile)
    assert tree(out) == tree(tmp_path / "anew")


def test_a_full_disk_is_one_message_and_the_same_command_goes_on(
    profile: Path, tmp_path: Path
) -> None:
    """The kernel's limit on file sizes stands for the disk: the write itself fails."""
    run, out = large_run(tmp_path / "run", 2, 1 << 20), tmp_path / "out"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    process = as_process(run, "-o", out, "--profile", profile, preexec_fn=limited)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (2, "")
    message, fix = stderr.splitlines()
    assert "cannot be written: File too large" in message
    assert fix.strip() == "fix: free some space, then run the same command again: it continues"
    assert not out.exists()
    done = bundle(run, "-o", out, "--profile", profile)
    assert done.exit_code == 0
    assert "from an interrupted run" in done.stdout


def test_a_run_that_still_writes_is_refused(profile: Path, tmp_path: Path) -> None:
    run, out = large_run(tmp_path / "run", 30, 2 << 20), tmp_path / "out"
    process = as_process(run, "-o", out, "--profile", profile)
    while process.poll() is None and len(list(partial_of(out).rglob("*.part"))) < 5:
        time.sleep(0.001)
    with (run / "shard_000.part").open("ab") as file:
        file.write(b"one more row")
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (2, "")
    assert "shard_000.part: changed while it was copied" in stderr
    assert not out.exists()


def test_names_cannot_write_to_the_terminal(profile: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(SMALL, tmp_path / "run"))
    data = json.loads((run / "teach" / "eval" / "niah.json").read_text())
    data["variant"] = "\x1b[31mred"
    (run / "teach" / "eval" / "niah.json").write_text(json.dumps(data))
    done = bundle(run, "-o", tmp_path / "out", "--profile", profile)
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout


def test_the_partial_folder_of_another_is_not_entered(profile: Path, tmp_path: Path) -> None:
    """A link in the place of the working folder would lead every write elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", partial_of(tmp_path / "out"))
    done = bundle(SMALL, "-o", tmp_path / "out", "--profile", profile)
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []
