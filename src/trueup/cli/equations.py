"""`trueup equations`: what the references compute, in which readings, and who claims them."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.options import TableFormat


def equations(
    prefix: Annotated[
        str | None,
        typer.Argument(
            metavar="[PREFIX]",
            help="The beginning of ids, such as nl. ; a whole id shows everything about it.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[TableFormat, typer.Option(help="How to print them.")] = TableFormat.TEXT,
) -> None:
    """List the equations: sources, readings, and who claims them."""
    from trueup.reference import catalogue, get
    from trueup.render import equations as render
    from trueup.shipped import claims

    wanted = prefix or ""
    found = [equation for equation in catalogue() if equation.id.startswith(wanted)]
    if not found:
        found = [get(wanted)]  # raises, naming the closest ids
    whole = [equation for equation in found if equation.id == wanted]
    if format is TableFormat.JSON:
        from trueup.render.json import dumps

        print(dumps([render.equation_document(equation, claims()) for equation in whole or found]))
        return
    from trueup.render.console import console

    if whole:
        render.show_equation(whole[0], claims(), console())
    else:
        render.show_equations(found, claims(), console())
