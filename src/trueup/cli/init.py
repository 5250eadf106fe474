"""`trueup init`: a settings file and a closure template to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trueup.cli.options import unknown


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Where to write them.", show_default=False)
    ] = Path(),
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="The shipped profile they are for.")
    ] = "nl",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
) -> None:
    """Write a commented trueup.toml and a closure template, ticket.toml."""
    from trueup.errors import FaceError
    from trueup.gates.profile.load import built_in
    from trueup.gates.settings.templates import templates
    from trueup.render.files import write_together

    if profile not in built_in():
        raise FaceError(unknown("shipped profile", profile, built_in()))
    written = write_together(folder, templates(profile), overwrite=force)
    for path in written:
        print(f"wrote {path}")
    print(
        "next: set `runs` in trueup.toml, then `trueup gate`; fill in ticket.toml to close a ticket"
    )
