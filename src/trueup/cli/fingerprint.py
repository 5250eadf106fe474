"""`trueup fingerprint`: a layout's fingerprint, its constants, what moved, what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from trueup.cli.guard import NOT_PASSED, PASSED, Guarded
from trueup.cli.options import TableFormat
from trueup.emit.layout import Language

if TYPE_CHECKING:
    from trueup.gates.collector import Collector
    from trueup.gates.layout.model import LayoutFile
    from trueup.reference.isv.layout import Layout


class _ShowByDefault(TyperGroup):
    """`trueup fingerprint layout.toml` is `trueup fingerprint show layout.toml`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take a first word that is no command as the layout to show."""
        known = args and (args[0] in self.commands or args[0].startswith("-"))
        return super().resolve_command(ctx, args if known else ["show", *args])


fingerprint = typer.Typer(
    cls=_ShowByDefault,
    help="Print, emit, compare or check the structural fingerprint of a layout.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_LayoutFile = Annotated[Path, typer.Argument(metavar="LAYOUT", help="A layout.toml.")]
_As = Annotated[TableFormat, typer.Option("--format", help="How to print it.")]


@fingerprint.command(cls=Guarded)
def show(
    layout: _LayoutFile,
    format: _As = TableFormat.TEXT,
    emit: Annotated[
        Language | None,
        typer.Option("--emit", help="Write constants as source code instead.", show_default=False),
    ] = None,
) -> None:
    """Print the fingerprint and its two lanes, or constants that compute it again."""
    file, value = judged_layout(layout)
    if emit is not None:
        from trueup.emit.layout import emit as write

        print(write(_reference(file), emit, str(layout)), end="")
    else:
        from trueup.render.fingerprint import show_fingerprint

        show_fingerprint(file, value, format)


@fingerprint.command(cls=Guarded)
def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The layout that is in use.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The layout that is to follow.")],
    format: _As = TableFormat.TEXT,
) -> None:
    """Say what moved between two layouts, by name, offset and bytes; only appending passes."""
    from trueup.gates.collector import Collector
    from trueup.gates.layout.diff import diff_layouts, judge_diff
    from trueup.render.fingerprint import show_diff

    (old, old_value), (new, new_value) = judged_layout(before), judged_layout(after)
    change = diff_layouts(old, new)
    collector = Collector()
    judge_diff(change, new, collector)
    findings = collector.findings()
    show_diff(change, (old_value, new_value), findings, format)
    _exit(collector)


@fingerprint.command(cls=Guarded)
def check(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CKPT", help="A .safetensors file, a .json sidecar, or a raw dump of the bus."
        ),
    ],
    layout: Annotated[
        Path, typer.Option("--layout", metavar="LAYOUT", help="The layout it must have.")
    ],
    format: _As = TableFormat.TEXT,
) -> None:
    """Hold the fingerprint that is stored in a checkpoint to a layout."""
    from trueup.gates.collector import Collector
    from trueup.gates.layout.stored import read_stored
    from trueup.reference.isv.layout import hexadecimal
    from trueup.render.fingerprint import show_check

    file, value = judged_layout(layout)
    collector = Collector()
    stored = read_stored(checkpoint, str(checkpoint), file, collector)
    if stored.fingerprint is not None and stored.fingerprint != value:
        got = f"stored {hexadecimal(stored.fingerprint)}, layout {hexadecimal(value)}"
        collector.of_kind("fingerprint_differs", stored.name, stored.where, got)
    show_check(stored, value, collector.findings(), format)
    _exit(collector)


def judged_layout(path: Path) -> tuple[LayoutFile, int]:
    """The layout and its fingerprint; a layout that breaks a rule has none: the command ends."""
    from trueup.gates.collector import Collector
    from trueup.gates.layout.load import load_layout
    from trueup.gates.layout.rules import judge_layout
    from trueup.reference.isv import layout as isv

    file = load_layout(path)
    collector = Collector()
    judge_layout(file, collector)
    value = isv.fingerprint(_reference(file))
    declared = file.expect.get("fingerprint", isv.hexadecimal(value))
    if declared != isv.hexadecimal(value):
        from trueup.gates.findings import Where

        got = f"{isv.hexadecimal(value)}, declared {declared}"
        place = Where(key="expect.fingerprint")
        collector.of_kind("fingerprint_declared_differs", file.name, place, got)
    if collector.findings():
        from trueup.render.fingerprint import show_findings

        show_findings(collector.findings())
        raise typer.Exit(NOT_PASSED)
    return file, value


def _reference(file: LayoutFile) -> Layout:
    from trueup.reference.isv.layout import Layout, Slot, Tensor

    return Layout(
        tuple(Slot(slot.index, slot.length, slot.name) for slot in file.slots),
        tuple(Tensor(tensor.name, tensor.numel) for tensor in file.tensors),
        file.align_bytes,
        file.tile_pad_floats,
    )


def _exit(collector: Collector) -> None:
    failed = any(finding.severity == "error" for finding in collector.findings())
    raise typer.Exit(NOT_PASSED if failed else PASSED)
