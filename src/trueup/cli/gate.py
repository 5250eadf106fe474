"""`trueup gate`: judge the artifacts of runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.guard import CANNOT_JUDGE, NOT_PASSED, PASSED, complain
from trueup.cli.options import ConfigOption, GateFormat, NoConfigOption, ProfileOption
from trueup.cli.settings import chosen_settings
from trueup.errors import FaceError

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict
    from trueup.gates.settings.model import Settings


def gate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Run directories, artifacts or URLs; else the runs that trueup.toml names.",
            show_default=False,
        ),
    ] = None,
    profile: ProfileOption = None,
    format: Annotated[
        GateFormat, typer.Option(help="How to print the judgement.")
    ] = GateFormat.TEXT,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write DIR/gate.html as well.", show_default=False),
    ] = None,
    write: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMAT=FILE",
            help="Write the judgement in this format to a file as well. Repeatable.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    no_config: NoConfigOption = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="The run still writes: an unfinished last line is a warning."),
    ] = False,
) -> None:
    """Judge runs' artifacts by the rules of a profile.

    Waivers and severities are those of trueup.toml. Several runs are judged one after the other;
    the worst exit code decides.
    """
    from trueup.cli.judged import rendered, targets, write_rendered
    from trueup.gates.settings.gate import prepare, profile_of, runs_of

    files = targets(write or ())
    settings = chosen_settings(config, no_config)
    chosen = profile_of(settings, profile)
    prepare(settings, chosen)
    named = list(dict.fromkeys(paths or (runs_of(settings) if settings.path else _no_run())))
    if "" in named:
        raise FaceError("an empty path was given", fix="give a run directory or an artifact")
    several = not paths or len(named) > 1
    judged = [(path, _judged(path, settings, chosen, live)) for path in named]
    code = max(_code(result) for _, result in judged)
    try:
        if format is GateFormat.TEXT:
            from trueup.render.console import console
            from trueup.render.gate_text import show_gates

            show_gates(judged, console(), several=several)
        else:
            print(rendered(judged, format, chosen, code, several=several), end="")
        sys.stdout.flush()
    finally:  # printed first: a place that cannot be written must not cost the judgement
        write_rendered(files, judged, chosen, code, several=several)
        if report is not None:
            from trueup.cli.report import write_reports

            write_reports(report, judged, chosen)
    raise typer.Exit(code)


def _no_run() -> list[str]:
    raise FaceError(
        "no run was given, and there is no trueup.toml that names some",
        fix="trueup gate RUN_DIR; or write a trueup.toml with `trueup init`",
    )


def _judged(path: str, settings: Settings, profile: str, live: bool) -> Verdict | str:
    """Give the verdict, or say on stderr and in the result why there is none."""
    from trueup.cli.progress import gate_progress
    from trueup.gates.errors import Unreadable
    from trueup.gates.settings.gate import judge_under

    try:
        with gate_progress(path) as progress:
            return judge_under(settings, path, profile, progress=progress, live=live)
    except Unreadable as error:
        complain(str(error))
        return str(error)


def _code(result: Verdict | str) -> int:
    if isinstance(result, str):
        return CANNOT_JUDGE
    return PASSED if result.verdict == "pass" else NOT_PASSED
