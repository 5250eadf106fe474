"""Equations as a table, as one page each, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueup.render.console import print_block

if TYPE_CHECKING:
    from trueup.reference import Equation, Symbol
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
            _source(equation),
            _readings(equation),
            ", ".join(equation.wrong),
            "\n".join(_claimed(equation, claims)),
        )
        table.add_row(*(Text(cell) for cell in cells))
        table.add_section()
    print_block(out, table)


def show_equation(equation: Equation, claims: Sequence[Claim], out: Console) -> None:
    """Print everything the catalogue knows about one equation."""
    claimed = _claimed(equation, claims)
    sections = [
        ("source", [_source(equation), equation.grade]),
        ("formula", equation.formula.splitlines()),
        ("axes", [", ".join(equation.axes)]),
        ("inputs", [_symbol(symbol) for symbol in equation.inputs]),
        ("outputs", [_symbol(symbol) for symbol in equation.outputs]),
        ("readings (* default)", [_readings(equation)]),
        ("wrong forms, which the oracle names", list(equation.wrong)),
        ("input families of its own", [f"{f.name}: {f.why}" for f in equation.families]),
        ("notes", equation.notes.splitlines()),
        ("shipped kernels that claim it", claimed),
    ]
    out.print(Text(f"{equation.id}: {equation.title}", style="bold"), soft_wrap=True)
    for title, lines in sections:
        kept = [line.rstrip() for line in lines if line.strip()]
        if kept:
            out.print(Text(f"\n{title}", style="bold"), soft_wrap=True)
            out.print(Text("\n".join(f"  {line}" for line in kept)), soft_wrap=True)


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
        "families": [{"name": f.name, "why": f.why} for f in equation.families],
        "notes": equation.notes,
        "kernels": [
            {"id": claim.contract, "reading": claim.reading or equation.default_reading}
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
    return ", ".join(
        f"{name}*" if name == equation.default_reading else name for name in equation.readings
    )


def _claimed(equation: Equation, claims: Sequence[Claim]) -> list[str]:
    return [
        f"{claim.contract} ({claim.reading or equation.default_reading})"
        for claim in claims
        if claim.equation == equation.id
    ]
