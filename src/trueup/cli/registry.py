"""`trueup registry`: every stateful name registered, and state after a boundary as it must be."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.guard import NOT_PASSED, PASSED
from trueup.cli.options import TableFormat
from trueup.errors import FaceError

if TYPE_CHECKING:
    from trueup.gates.collector import Collector
    from trueup.gates.layout.model import LayoutFile
    from trueup.gates.layout.registry import Registry


class Boundary(StrEnum):
    """Which boundary lies between two dumps of state."""

    FOLD = "fold"
    EPOCH = "epoch"
    BOTH = "both"


def registry(
    path: Annotated[Path, typer.Argument(metavar="REGISTRY", help="A registry.toml.")],
    layout: Annotated[Path, typer.Option("--layout", metavar="LAYOUT", help="The bus's layout.")],
    before: Annotated[
        Path | None,
        typer.Option("--before", metavar="DUMP", help="State before a boundary (.safetensors)."),
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option("--after", metavar="DUMP", help="State after it (.safetensors)."),
    ] = None,
    boundary: Annotated[
        Boundary, typer.Option("--boundary", help="Which boundary it is.")
    ] = Boundary.FOLD,
    format: Annotated[
        TableFormat, typer.Option("--format", help="How to print it.")
    ] = TableFormat.TEXT,
) -> None:
    """Hold the reset registry to the layout, and the state after a boundary to both."""
    from trueup.cli.fingerprint import judged_layout
    from trueup.gates.collector import Collector
    from trueup.gates.layout.registry import judge_registry, load_registry, stateful_names
    from trueup.render.fingerprint import show_registry

    if (before is None) != (after is None):
        raise FaceError("one dump alone says nothing", fix="give both --before and --after")
    file, value = judged_layout(layout)
    loaded = load_registry(path)
    collector = Collector()
    judge_registry(loaded, file, collector)
    compared = 0
    if before is not None and after is not None:
        compared = _boundary(loaded, file, value, (before, after), boundary, collector)
    names = len(stateful_names(loaded, file))
    show_registry(names, compared, collector.findings(), format)
    failed = any(finding.severity == "error" for finding in collector.findings())
    raise typer.Exit(NOT_PASSED if failed else PASSED)


def _boundary(
    loaded: Registry,
    file: LayoutFile,
    value: int,
    dumps: tuple[Path, Path],
    boundary: Boundary,
    collector: Collector,
) -> int:
    from trueup.gates.layout.boundary import judge_boundary
    from trueup.gates.layout.state import load_state
    from trueup.reference.isv.layout import to_lanes

    old, new = (load_state(path, file) for path in dumps)
    return judge_boundary(loaded, file, old, new, boundary.value, to_lanes(value), collector)
