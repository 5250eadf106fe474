"""README's `trueup --help` is the real one, and the calls that are told exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
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


def _commands() -> list[list[str]]:
    """Every call of trueup in the README and docs/, as words."""
    pages = [README, *sorted((README.parent / "docs").glob("*.md"))]
    lines = [line for page in pages for line in page.read_text("utf-8").splitlines()]
    calls = [line.removeprefix("$ ") for line in lines if line.startswith("$ trueup ")]
    return [shlex.split(call, comments=True)[1:] for call in calls]


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_every_call_that_is_told_has_options_that_exist(words: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    context: Any = command.make_context("trueup", [], resilient_parsing=True)
    while getattr(command, "commands", None) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    known = {flag for option in command.get_params(context) for flag in option.opts}
    if getattr(command, "commands", None):  # `accept` and `fingerprint` have one that may be unsaid
        known |= {
            flag
            for inner in command.commands.values()
            for option in inner.get_params(context)
            for flag in option.opts
        }
    used = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert used <= known | {"-h", "--help", "--version"}


def test_there_are_many_calls() -> None:
    assert len(_commands()) > 20
