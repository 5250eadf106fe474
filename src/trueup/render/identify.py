"""What form a kernel follows: as a table with a verdict in words, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueup import __version__
from trueup.oracle.identify import FormFit, Identification
from trueup.render.clean import one_line
from trueup.render.console import print_block
from trueup.render.counts import plural, ratio_text
from trueup.render.json import FORMAT, jsonable


def show_identification(found: Identification, out: Console, *, quiet: bool = False) -> None:
    """Print the ranking and what it says; `quiet` leaves out the ranking and the notes."""
    head = f"{found.contract} on {found.backend}: {found.equation}, declared `{found.declared}`"
    if not quiet:
        out.print(Text(one_line(head), "bold"), soft_wrap=True)
        print_block(out, _table(found))
        out.print()
        for note in found.notes:
            out.print(Text(f"note {one_line(note)}"), soft_wrap=True)
    first, *rest = verdict_lines(found)
    style = "green" if found.declared_fits else "bold red"
    out.print(Text(one_line(first), style=style), soft_wrap=True)
    for line in rest:
        out.print(Text(f"  {one_line(line)}"), soft_wrap=True)


def verdict_lines(found: Identification) -> Iterator[str]:
    """Say which form the kernel follows, and what to do about it."""
    cases = plural(len(found.cases), "case")
    elements = plural(found.elements, "element")
    others = [form for form in found.fitting if form != found.declared]
    if found.declared_fits:
        yield (
            f"the kernel follows `{found.declared}`, the reading its contract declares "
            f"({cases}, {elements})"
        )
        if others:
            yield f"on these inputs it cannot be told apart from {_listed(others)}"
    elif others:
        yield (
            f"the kernel follows {_listed(others, ' or ')}, its contract declares "
            f"`{found.declared}` ({cases}, {elements})"
        )
        if len(others) > 1:
            yield f"{_listed(others)} cannot be told apart on these inputs"
        yield f"fix: {_remedy(found, others)}"
    else:
        yield from _unexplained(found)


def _unexplained(found: Identification) -> Iterator[str]:
    """Say what is nearest where no form explains every case."""
    nearest, total = found.ranking[0], len(found.cases)
    ran = f"{plural(total, 'case')}, {plural(found.elements, 'element')}"
    if 2 * nearest.explained > total:
        declared = nearest.form == found.declared
        whose = "as its contract declares" if declared else f"declared is `{found.declared}`"
        yield (
            f"the kernel follows `{nearest.form}`, {whose}, in {nearest.explained} of {total} "
            f"cases but not in the others ({ran})"
        )
        yield f"furthest off in {nearest.case}: {_times(nearest)}"
    else:
        yield f"no known form of {found.equation} explains the kernel ({ran})"
        yield (
            f"nearest: `{nearest.form}`, {_times(nearest)}, "
            f"explains {nearest.explained} of {nearest.cases} cases"
        )
    yield "fix: run `trueup verify` for the elements that differ, and correct the kernel"


def _times(fit: FormFit) -> str:
    if not math.isfinite(fit.ratio):
        return "beyond every bound"
    return f"{ratio_text(fit.ratio)} times the allowed error"


def _remedy(found: Identification, others: Sequence[str]) -> str:
    readings = [fit.form for fit in found.ranking if fit.kind == "reading" and fit.form in others]
    if not readings:
        return f"correct the kernel: {_listed(others)} is known to be wrong"
    meant = " or ".join(f'reading = "{name}"' for name in readings)
    return f"correct the kernel, or declare {meant} if that is what is meant"


def _listed(names: Sequence[str], last: str = " and ") -> str:
    quoted = [f"`{name}`" for name in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return ", ".join(quoted[:-1]) + last + quoted[-1]


def _table(found: Identification) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("  form (* declared)", overflow="fold")
    table.add_column("kind", overflow="fold")
    table.add_column("error/allowed", justify="right", no_wrap=True)
    table.add_column("explains", justify="right", no_wrap=True)
    table.add_column("furthest off in", overflow="fold")
    for fit in found.ranking:
        table.add_row(*(Text(one_line(cell)) for cell in _row(fit, found)))
    return table


def _row(fit: FormFit, found: Identification) -> tuple[str, ...]:
    star = " *" if fit.form == found.declared else ""
    ratio = ratio_text(fit.ratio) if fit.cases else "no meaning"
    explains = f"{fit.explained} of {fit.cases}"
    return (f"  {fit.form}{star}", fit.kind, ratio, explains, fit.case)


def identification_document(found: Identification) -> dict[str, Any]:
    """Lay an identification out as JSON data."""
    return {
        "contract": found.contract,
        "path": found.path,
        "equation": found.equation,
        "declared": found.declared,
        "best": found.best,
        "fits": list(found.fitting),
        "follows_declared": found.declared_fits,
        "ranking": [_fit_document(fit) for fit in found.ranking],
        "cases": list(found.cases),
        "elements": found.elements,
        "backend": found.backend,
        "device": found.device,
        "notes": list(found.notes),
        "trueup": __version__,
        "format": FORMAT,
    }


def _fit_document(fit: FormFit) -> dict[str, Any]:
    return {
        "form": fit.form,
        "kind": fit.kind,
        "ratio": jsonable(fit.ratio),
        "beyond": bool(fit.cases) and not math.isfinite(fit.ratio),
        "case": fit.case,
        "explained": fit.explained,
        "cases": fit.cases,
    }
