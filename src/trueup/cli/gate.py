"""`trueup gate`: judge the artifacts of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.guard import NOT_PASSED, PASSED
from trueup.cli.options import Format, PrintedAs

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict


def gate(
    path: Annotated[
        Path, typer.Argument(help="A run directory, or one telemetry file.", show_default=False)
    ],
    profile: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="The rules: a shipped profile or your own.")
    ] = "nl",
    format: PrintedAs = Format.TEXT,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write DIR/gate.html as well.", show_default=False),
    ] = None,
) -> None:
    """Judge a run's artifacts by the rules of a profile."""
    from trueup.cli.progress import gate_progress
    from trueup.gates import judge

    with gate_progress(str(path)) as progress:
        verdict = judge(path, profile=profile, progress=progress)
    try:
        _print(verdict, format)
        sys.stdout.flush()
    finally:  # printed first: a place that cannot be written must not cost the judgement
        if report is not None:
            from trueup.render.files import write_report
            from trueup.render.html import gate_page

            write_report(report, "gate.html", gate_page(verdict))
    raise typer.Exit(PASSED if verdict.verdict == "pass" else NOT_PASSED)


def _print(verdict: Verdict, format: Format) -> None:
    if format is Format.JSON:
        print(verdict.to_json())
    elif format is Format.JUNIT:
        from trueup.render.junit import gate_junit

        print(gate_junit(verdict))
    else:
        from trueup.render.console import console
        from trueup.render.gate_text import show_gate

        show_gate(verdict, console())
