"""`ci/gate-job.sh`: the worse code decides, and a report of nothing is no pass."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "ci" / "gate-job.sh"

_STAND_IN = """#!/bin/sh
case $1 in
  verify) {verify} ;;
  gate) {gate} ;;
esac
"""


def _job(folder: Path, verify: str, gate: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a stand-in for `trueup` that does what is asked."""
    bin = folder / "bin"
    bin.mkdir()
    (bin / "trueup").write_text(_STAND_IN.format(verify=verify, gate=gate))
    (bin / "trueup").chmod(0o755)
    path = f"{bin}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPT), *words],
        cwd=folder,
        env={**os.environ, "PATH": path, "REPORT": "out"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("verify", "gate", "code"),
    [
        ("echo x; exit 0", "echo x; exit 0", 0),
        ("echo x; exit 1", "echo x; exit 0", 1),
        ("echo x; exit 0", "echo x; exit 1", 1),
        ("echo x; exit 1", "exit 3", 3),
        ("exit 0", "echo x; exit 0", 2),
        ("echo x; exit 0", "exit 0", 2),
        ("echo x; exit 0", "exit 1", 2),
    ],
)
def test_the_worse_code_decides(verify: str, gate: str, code: int, tmp_path: Path) -> None:
    result = _job(tmp_path, verify, gate, "run")
    assert result.returncode == code, result.stderr
    for name, does in (("verify", verify), ("gate", gate)):
        said = f"out/{name}.xml is empty: nothing was judged" in result.stderr
        assert said is ("echo" not in does)


def test_without_a_run_it_says_how_it_is_called(tmp_path: Path) -> None:
    result = _job(tmp_path, "exit 0", "exit 0")
    assert result.returncode == 2
    assert "usage" in result.stderr
