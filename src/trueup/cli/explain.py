"""`trueup explain`: what a rule, a kind of finding, a check or an equation is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.options import ConfigOption, NoConfigOption, ProfileOption, TableFormat
from trueup.cli.settings import chosen_settings

if TYPE_CHECKING:
    from trueup.gates.catalogue.rules import Entry
    from trueup.gates.settings.model import Settings


def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="A rule's id, a finding's id or name, a check, or an equation; all if left out.",
            show_default=False,
        ),
    ] = None,
    profile: ProfileOption = None,
    format: Annotated[TableFormat, typer.Option(help="How to print it.")] = TableFormat.TEXT,
    config: ConfigOption = None,
    no_config: NoConfigOption = False,
) -> None:
    """Tell of a rule what it asks, why, what passes and fails, and how to fix it."""
    from trueup.gates.catalogue.rules import entries, find
    from trueup.gates.errors import UnknownRule
    from trueup.gates.settings.gate import profile_of

    settings = chosen_settings(config, no_config)
    chosen = profile_of(settings, profile)
    if word is None:
        _show(list(entries(chosen)), format, settings, listed=True)
        return
    try:
        found = find(word, chosen)
    except UnknownRule:
        _equation(word, format, chosen)
        return
    _show(list(found), format, settings, listed=len(found) > 1)


def _show(found: list[Entry], format: TableFormat, settings: Settings, *, listed: bool) -> None:
    if format is TableFormat.JSON:
        from trueup.render.json import dumps

        print(dumps([entry.to_dict() for entry in found]))
        return
    from trueup.render.console import console
    from trueup.render.explain import show_entries, show_entry

    if listed:
        show_entries(found, console())
    else:
        show_entry(found[0], settings, console())


def _equation(word: str, format: TableFormat, profile: str) -> None:
    """Show the equation of this id. Raises, naming what is close in any of the catalogues."""
    from trueup.cli.equations import equations
    from trueup.gates.catalogue.rules import entries
    from trueup.gates.errors import UnknownRule
    from trueup.gates.structure import closest
    from trueup.reference import catalogue

    ids = [equation.id for equation in catalogue()]
    if word in ids:
        equations(word, format)
        return
    names = {name for entry in entries(profile) for name in (entry.id, entry.name, entry.check)}
    known = sorted({*names, *ids} - {""})
    raise UnknownRule(
        "no rule, kind of finding, check or equation is called this", where=repr(word),
        expected="an id such as RDR007 or nl.delta_momentum, or a name such as duplicate_key",
        fix=_padded(word, known) or closest(word, known) or closest(word.upper(), known)
        or "`trueup explain` and `trueup equations` list them all",
    )  # fmt: skip


def _padded(word: str, known: list[str]) -> str:
    """RDR007 for rdr7: the number is what was meant."""
    parts = re.fullmatch(r"([A-Za-z]+)-?_?0*([0-9]{1,3})", word)
    meant = f"{parts[1].upper()}{int(parts[2]):03}" if parts else ""
    return f"did you mean {meant}?" if meant in known else ""
