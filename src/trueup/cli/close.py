"""`trueup close`: hold a ticket to its evidence, and write the statement to attach to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.guard import NOT_PASSED, PASSED, complain
from trueup.cli.options import ConfigOption, GateFormat, NoConfigOption
from trueup.cli.settings import chosen_settings
from trueup.errors import FaceError

if TYPE_CHECKING:
    from trueup.gates.closure.outcome import Closure
    from trueup.gates.closure.verify import Recheck


def close(
    ticket: Annotated[
        Path | None,
        typer.Argument(metavar="[TICKET]", help="The ticket.toml.", show_default=False),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(
            "--verify",
            metavar="STATEMENT",
            help="Re-check a statement that was written before, instead of closing a ticket.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the statement goes; else beside the ticket, NAME.statement.json.",
            show_default=False,
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder that nothing may lead out of; else the repository around the ticket.",
            show_default=False,
        ),
    ] = None,
    repository: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A clone of the ticket's repository, in place of the one the ticket names.",
            show_default=False,
        ),
    ] = None,
    board: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The exported board, in place of the one the ticket names.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        GateFormat, typer.Option(help="How to print the judgement.")
    ] = GateFormat.TEXT,
    config: ConfigOption = None,
    no_config: NoConfigOption = False,
) -> None:
    """Hold a ticket to its evidence; if all of it holds, write a statement to attach.

    Judges the run, the criteria, the commands, the thread, the board and the kernels' evidence.
    """
    if (ticket is None) == (verify is None):
        raise typer.BadParameter("give a TICKET, or a statement with --verify")
    if verify is not None:
        _recheck(verify, root, repository, format, (output, board))
    assert ticket is not None
    closure = _closed(ticket, root, repository, board, chosen_settings(config, no_config))
    place = output or ticket.with_name(f"{ticket.stem}.statement.json")
    if closure.passed:
        _refuse_place(place, closure)
    try:
        _print_closure(closure, str(ticket), str(place), format)
        sys.stdout.flush()
    finally:  # printed first: a place that cannot be written must not cost the judgement
        if closure.statement:
            from trueup.render.files import write_report

            write_report(place.parent, place.name, closure.statement)
    if not closure.passed and os.path.lexists(place):
        complain(f"{place}: is the statement of an earlier closing; it was left as it is")
    raise typer.Exit(PASSED if closure.passed else NOT_PASSED)


def _closed(
    ticket: Path, root: Path | None, repository: Path | None, board: Path | None, settings: object
) -> Closure:
    from trueup.gates.closure.close import close as judge_ticket
    from trueup.gates.settings.model import Settings
    from trueup.reference import catalogue

    assert isinstance(settings, Settings)
    folder = os.path.realpath(ticket.parent)
    return judge_ticket(
        ticket,
        equations={equation.id for equation in catalogue()},
        root=root,
        repository=repository,
        board=None if board is None else os.path.relpath(os.path.realpath(board), folder),
        settings=settings,
    )


def _refuse_place(place: Path, closure: Closure) -> None:
    """A statement must not replace what it speaks of."""
    if os.path.realpath(place) in closure.read:
        raise FaceError(
            "the statement would replace a file it speaks of",
            where=str(place),
            fix="give another place with --output",
        )


def _print_closure(closure: Closure, path: str, statement: str, format: GateFormat) -> None:
    from trueup.render import close_machine

    if format is GateFormat.MARKDOWN:
        from trueup.render.close_markdown import closure_markdown

        print(closure_markdown(closure, statement))
    elif format is GateFormat.TEXT:
        from trueup.render.close_text import show_closure
        from trueup.render.console import console

        show_closure(closure, console(), statement)
    else:
        print(close_machine.printed(closure, path, format.value))


def _recheck(
    statement: Path,
    root: Path | None,
    repository: Path | None,
    format: GateFormat,
    others: tuple[Path | None, ...],
) -> None:
    """Print what became of a statement, and leave with its code."""
    from trueup.gates.closure.verify import verify_statement
    from trueup.render import close_machine

    if any(one is not None for one in others):
        raise typer.BadParameter("--output and --board are for closing a ticket, not for --verify")
    recheck: Recheck = verify_statement(statement, root=root, repository=repository)
    if format is GateFormat.MARKDOWN:
        from trueup.render.close_markdown import recheck_markdown

        print(recheck_markdown(recheck))
    elif format is GateFormat.TEXT:
        from trueup.render.close_text import show_recheck
        from trueup.render.console import console

        show_recheck(recheck, console())
    else:
        print(close_machine.printed(recheck, str(statement), format.value))
    raise typer.Exit(PASSED if recheck.passed else NOT_PASSED)
