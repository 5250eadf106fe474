"""Equations as a table, as one page each, and as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueup.reference.errata import SEVERITIES
from trueup.render.console import print_block
from trueup.render.paths import nearby

if TYPE_CHECKING:
    from trueup.reference import Equation, Erratum, Symbol
    from trueup.shipped import Claim

_WIDEST = 48  # lists of forms are long, and nobody reads a line of 400 characters


def show_equations(equations: Sequence[Equation], claims: Sequence[Claim], out: Console) -> None:
    """Print one row per equation."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("equation", "source", "readings (* default)", "wrong forms", "shipped kernels"):
        table.add_column(name, overflow="fold", max_width=_WIDEST)
    for equation in equations:
        cells = (
            equation.id,
            f"{_source(equation)}\n({equation.grade})" if equation.grade else _source(equation),
            _readings(equation),
            ", ".join(equation.wrong),
            "\n".join(_claimed(equation, claims)),
        )
        table.add_row(*(Text(cell) for cell in cells))
        table.add_section()
    print_block(out, table)


def show_equation(equation: Equation, claims: Sequence[Claim], out: Console) -> None:
    """Print everything the catalogue knows about one equation."""
    sections = [
        ("source", [_source(equation), f"grade: {equation.grade}" if equation.grade else ""]),
        ("formula", equation.formula.splitlines()),
        ("reference", (inspect.getdoc(equation.function) or "").splitlines()),
        ("errata of the source", [_erratum(entry) for entry in equation.errata]),
        ("readings (* default)", _forms(equation, equation.readings)),
        ("wrong forms, which the oracle names", _forms(equation, equation.wrong)),
        ("where forms coincide, so that no test there tells them apart", _coincide(equation)),
        ("which of them a kernel follows", _identify(equation, claims)),
        ("axes", [", ".join(equation.axes)]),
        ("inputs", [_symbol(symbol) for symbol in equation.inputs]),
        ("outputs", [_symbol(symbol) for symbol in equation.outputs]),
        ("input families of its own", [f"{f.name}: {f.why}" for f in equation.families]),
        ("notes", equation.notes.splitlines()),
        ("shipped kernels that claim it", _claimed(equation, claims, paths=True)),
    ]
    out.print(Text(f"{equation.id}: {equation.title}", style="bold"), soft_wrap=True)
    for title, lines in sections:
        kept = [line.rstrip() for line in lines]
        if any(kept):
            out.print(Text(f"\n{title}", style="bold"), soft_wrap=True)
            shown = "\n".join(f"  {line}".rstrip() for line in kept).rstrip()
            out.print(Text(shown), soft_wrap=True)


def _erratum(entry: Erratum) -> str:
    return f"{entry.id}, severity {entry.severity} ({SEVERITIES[entry.severity]}): {entry.text}"


def _forms(equation: Equation, names: Sequence[str]) -> list[str]:
    """List forms with what they compute, or in one line where no formula is told."""
    if not any(name in equation.formulas for name in names):
        return [_readings(equation) if names == equation.readings else ", ".join(names)]
    starred = {name: _starred(equation, name) for name in names}
    width = max(len(shown) for shown in starred.values())
    return [
        f"{shown:<{width}}  {equation.formulas.get(name, '')}" for name, shown in starred.items()
    ]


def _coincide(equation: Equation) -> list[str]:
    return [
        f"{' = '.join(told.forms)}: {told.where}"
        + (f" (input family {told.family})" if told.family else "")
        for told in equation.coincide
    ]


def _identify(equation: Equation, claims: Sequence[Claim]) -> list[str]:
    """Say how to find out what a kernel computes, where there is something to find out."""
    if len(equation.known()) < 2:
        return []
    paths = [nearby(claim.path) for claim in claims if claim.equation == equation.id]
    named = paths[0] if paths else "CONTRACT"
    return [
        f"trueup identify {named}  ranks all {len(equation.known())} forms by how they explain it",
        'a contract claims one of the readings by `reading = "..."`; without it, '
        f"`{equation.default_reading}`",
    ]


def equation_document(equation: Equation, claims: Sequence[Claim]) -> dict[str, Any]:
    """Lay one equation out as JSON data."""
    return {
        "id": equation.id,
        "title": equation.title,
        "source": equation.source,
        "numbers": list(equation.numbers),
        "grade": equation.grade,
        "formula": equation.formula,
        "axes": list(equation.axes),
        "inputs": [_symbol_document(symbol) for symbol in equation.inputs],
        "outputs": [_symbol_document(symbol) for symbol in equation.outputs],
        "readings": list(equation.readings),
        "default_reading": equation.default_reading,
        "wrong": list(equation.wrong),
        "formulas": dict(equation.formulas),
        "errata": [asdict(entry) for entry in equation.errata],
        "coincide": [
            {"forms": list(told.forms), "where": told.where, "family": told.family}
            for told in equation.coincide
        ],
        "families": [{"name": f.name, "why": f.why} for f in equation.families],
        "notes": equation.notes,
        "kernels": [
            {
                "id": claim.contract,
                "reading": claim.reading or equation.default_reading,
                "contract": nearby(claim.path),
            }
            for claim in claims
            if claim.equation == equation.id
        ],
    }


def _symbol_document(symbol: Symbol) -> dict[str, Any]:
    return {
        "name": symbol.name,
        "shape": list(symbol.shape),
        "domain": str(symbol.domain),
        "meaning": symbol.meaning,
        "optional": symbol.optional,
    }


def _symbol(symbol: Symbol) -> str:
    shape = f" ({', '.join(symbol.shape)})" if symbol.shape else ""
    optional = ", optional" if symbol.optional else ""
    return f"{symbol.name}{shape}: {symbol.meaning} [{symbol.domain}{optional}]"


def _source(equation: Equation) -> str:
    # Numbers without a word are equation numbers; others say themselves what they number.
    if not equation.numbers:
        return equation.source
    return f"{equation.source}, Eq. {', '.join(equation.numbers)}"


def _readings(equation: Equation) -> str:
    return ", ".join(_starred(equation, name) for name in equation.readings)


def _starred(equation: Equation, name: str) -> str:
    return f"{name}*" if name == equation.default_reading else name


def _claimed(equation: Equation, claims: Sequence[Claim], *, paths: bool = False) -> list[str]:
    return [
        f"{claim.contract} ({claim.reading or equation.default_reading})"
        + (f": {nearby(claim.path)}" if paths and claim.path else "")
        for claim in claims
        if claim.equation == equation.id
    ]
