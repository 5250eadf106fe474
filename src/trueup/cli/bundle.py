"""`trueup bundle`: copy the artifacts of runs into a directory that proves itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.options import ConfigOption, NoConfigOption, ProfileOption
from trueup.cli.settings import chosen_settings

if TYPE_CHECKING:
    from trueup.gates.bundle.make import Bundle


def bundle(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run directories. Of several, each becomes a folder under its own name.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Where the bundle goes.", show_default=False
        ),
    ],
    profile: ProfileOption = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Take other files as well, such as 'configs/*.yaml'. Repeatable.",
            show_default=False,
        ),
    ] = None,
    archive: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Pack the bundle into FILE.tar or FILE.tar.zst as well.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    no_config: NoConfigOption = False,
) -> None:
    """Bundle the artifacts of runs, with a manifest of their digests.

    The same files give the same bytes. A run that was interrupted is continued by the same
    command; nothing stands under the bundle's name before it is whole.
    """
    from trueup.cli.progress import gate_progress
    from trueup.gates.bundle.make import make_bundle
    from trueup.gates.settings.gate import profile_of

    chosen = profile_of(chosen_settings(config, no_config), profile)
    with gate_progress(str(output)) as progress:
        made = make_bundle(runs, output, chosen, also=also or (), progress=progress)
    _tell(made, output, chosen)
    if archive is not None:
        from trueup.gates.bundle.archive import write_archive
        from trueup.render.clean import one_line

        digest = write_archive(output, archive)
        print(f"packed {one_line(str(archive))}: sha256 {digest}")


def _tell(made: Bundle, output: Path, profile: str) -> None:
    """Say what was made, what is missing, and what comes next."""
    from trueup.render.clean import one_line

    word = "was there already" if made.was_there else "made"
    kept = f", {made.kept} of them from an interrupted run" if made.kept else ""
    kept = "" if made.was_there else kept
    print(f"{word} {one_line(str(output))}: {made.files} files{kept}, {made.bytes:,} bytes")
    for name, kinds in made.variants.items():
        print(f"variant {one_line(name)}: {', '.join(kinds)}")
    for name in made.missing:
        print(f"variant {one_line(name)}: no result; the profile asks for it")
    if made.left_out:
        print(f"left out {made.left_out} files that are no artifacts of the profile (--also)")
    print(f"judge it: trueup gate {one_line(str(output))} --profile {one_line(profile)}")
