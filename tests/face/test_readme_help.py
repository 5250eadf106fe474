"""README's `trueup --help` is the real one."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from trueup.cli.app import app

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_help_in_the_readme_is_the_real_one() -> None:
    block = re.search(
        r"^```\w*\n\$ trueup --help\n(.*?)^```$",
        README.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert block is not None, "README.md has no fenced block that begins with `$ trueup --help`"
    real = CliRunner().invoke(app, ["--help"], prog_name="trueup", terminal_width=80).stdout
    assert _lines(block[1]) == _lines(real)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]
