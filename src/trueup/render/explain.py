"""Rules and kinds of findings as text: one in full, or all of them in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueup.render.clean import one_line, printable
from trueup.render.console import print_block
from trueup.render.gate_text import STYLES

if TYPE_CHECKING:
    from trueup.gates.catalogue.rules import Entry
    from trueup.gates.settings.model import Settings


def show_entries(found: Iterable[Entry], out: Console) -> None:
    """Print a table of entries, by the file that defines them."""
    by_file: dict[str, list[Entry]] = {}
    for entry in found:
        by_file.setdefault(entry.defined, []).append(entry)
    for path, entries in by_file.items():
        out.print(Text(one_line(path), style="bold"), soft_wrap=True)
        table = Table(box=box.SIMPLE, show_header=False, show_edge=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold", ratio=1)
        for entry in entries:
            name = f" ({entry.name})" if entry.name else ""
            table.add_row(
                Text(f"  {one_line(entry.id)}"),
                Text(entry.severity, style=STYLES.get(entry.severity, "")),
                Text(one_line(entry.summary + name)),
            )
        print_block(out, table)
        out.print()
    out.print(Text("`trueup explain ID` tells one of them in full"), soft_wrap=True)


def show_entry(entry: Entry, settings: Settings, out: Console) -> None:
    """Print everything that is known of one entry, and what the settings make of it."""
    name = f" ({entry.name})" if entry.name else ""
    title = f"{entry.id}{name} {entry.severity}: {entry.summary}"
    out.print(Text(one_line(title), style="bold"), soft_wrap=True)
    for label, text in (*_rows(entry), *_here(entry, settings)):
        out.print(Text(f"  {label:<9} {one_line(text)}"), soft_wrap=True)
    for label, example in (("passes", entry.passes), ("fails", entry.fails)):
        if example:
            out.print(Text(f"\n  an artifact that {label}"), soft_wrap=True)
            lines = printable(example).rstrip("\n").split("\n")
            out.print(Text("\n".join(f"    {line}" for line in lines)), soft_wrap=True)


def _rows(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "why", entry.why
    yield "expected", entry.expected
    yield "fix", entry.fix
    if entry.check:
        params = ", ".join(f"{name} = {value}" for name, value in entry.params.items())
        yield "check", f"{entry.check}: {entry.asks}" + (f"; {params}" if params else "")
        yield "on", f"artifacts of the kind {entry.on}"
    if entry.reads and entry.on == "telemetry":
        yield "reads", entry.reads
    if entry.applies:
        yield "applies", entry.applies
    held = f", in the profiles {', '.join(entry.profiles)}" if entry.profiles else ""
    yield "defined", f"{entry.defined}{held}"
    yield "settings", settings_of(entry)
    if entry.limits:
        limits = ", ".join(f"{name} = {value}" for name, value in entry.limits.items())
        yield "examples", f"are read with {limits}"


def _here(entry: Entry, settings: Settings) -> Iterator[tuple[str, str]]:
    """What the settings file in force says about it."""
    for one in settings.severities:
        if one.rule == entry.id:
            where = f" in {one.artifact}" if one.artifact else ""
            yield "here", f"{one.severity}{where} ({settings.path}, {one.place})"
    for waiver in settings.waivers:
        if waiver.rule == entry.id:
            place = f"{settings.path}, {waiver.place}"
            yield "here", f"waived until {waiver.expires}: {waiver.reason} ({place})"


def settings_of(entry: Entry) -> str:
    """Say what `trueup.toml` may do with it."""
    if not entry.waivable:
        return "cannot be waived or made milder: it says that something was not read or not judged"
    switched = "; no profile switches it off" if entry.fixed else ""
    return f"can be waived, and given another severity{switched}"
