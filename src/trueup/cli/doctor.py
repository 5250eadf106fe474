"""`trueup doctor`: what this machine can do, and what to install for the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.guard import CANNOT_JUDGE, PASSED
from trueup.cli.options import TableFormat


def doctor(
    format: Annotated[TableFormat, typer.Option(help="How to print it.")] = TableFormat.TEXT,
) -> None:
    """Say what this machine can do, and how to get the rest.

    Exits with 2 where no backend can run a compiled kernel.
    """
    from trueup.diagnosis import diagnose

    diagnosis = diagnose()
    if format is TableFormat.JSON:
        from trueup.render.json import dumps

        print(dumps(diagnosis.document()))
    else:
        from trueup.render.console import console
        from trueup.render.doctor import show_diagnosis

        show_diagnosis(diagnosis, console())
    raise typer.Exit(PASSED if diagnosis.able else CANNOT_JUDGE)
