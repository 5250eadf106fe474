"""`trueup lint`: structural rules on source code and audit documents."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.guard import NOT_PASSED, PASSED
from trueup.cli.options import GateFormat

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict


def lint(
    paths: Annotated[list[str], typer.Argument(metavar="SRC", help="Files or folders of source.")],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings; else the nearest lint.toml upwards.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        GateFormat, typer.Option(help="How to print the judgement.")
    ] = GateFormat.TEXT,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=0, help="Processes; 0 for as many as cores.")
    ] = 0,
) -> None:
    """Judge source code by structural rules: .cu, .cuh, .rs, .py and .md."""
    from trueup.cli.progress import lint_progress
    from trueup.gates.source.config import Config, find_config, load_config
    from trueup.gates.source.judge import lint as judge

    found = config or find_config(Path(paths[0]))
    settings = Config(Path(os.path.realpath(paths[0]))) if found is None else load_config(found)
    with lint_progress() as progress:
        verdict = judge(paths, settings, progress=progress, jobs=jobs)
    code = PASSED if verdict.passed else NOT_PASSED
    _print(verdict, paths, format, code)
    sys.stdout.flush()
    raise typer.Exit(code)


def _print(verdict: Verdict, paths: list[str], format: GateFormat, code: int) -> None:
    judged = [(" ".join(paths), verdict)]
    if format is GateFormat.TEXT:
        from trueup.render.console import console
        from trueup.render.lint_text import show_lint

        show_lint(verdict, console())
    elif format is GateFormat.SARIF:
        from trueup.gates.catalogue.rules import built_in_entries
        from trueup.render.sarif import gate_sarif

        print(gate_sarif(judged, {entry.id: entry for entry in built_in_entries()}, code))
    else:
        from trueup.cli.judged import rendered

        print(rendered(judged, format, "nl", code, several=False), end="")
