"""A layout's fingerprint, a difference of two layouts and a check of a checkpoint, printed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.text import Text

from trueup.cli.options import TableFormat
from trueup.reference.isv.layout import hexadecimal, padded_offsets, to_lanes
from trueup.render.console import console
from trueup.render.findings import finding_text

if TYPE_CHECKING:
    from trueup.gates.findings import Finding
    from trueup.gates.layout.diff import LayoutDiff
    from trueup.gates.layout.model import LayoutFile
    from trueup.gates.layout.stored import Stored

_LISTED = 40  # changes shown of each sort; --format json has them all


def show_fingerprint(file: LayoutFile, value: int, format: TableFormat) -> None:
    """Print the value first, then the two lanes with their place on the bus."""
    lanes = [f"0x{lane:08x}" for lane in to_lanes(value)]
    if format is TableFormat.JSON:
        offsets, padded = padded_offsets((t.numel for t in file.tensors), file.align_bytes)
        _json(
            {
                "fingerprint": hexadecimal(value),
                "lanes": lanes,
                "isv_total": file.total,
                "slots": len(file.slots),
                "tensors": len(file.tensors),
                "parameters": file.parameters,
                "padded_bytes": padded,
                "gradient_floats": file.parameters + file.tile_pad_floats,
                "align_bytes": file.align_bytes,
                "tile_pad_floats": file.tile_pad_floats,
                "offsets": {t.name: at for t, at in zip(file.tensors, offsets, strict=True)},
            }
        )
        return
    print(hexadecimal(value))
    for number, lane in enumerate(lanes):
        print(f"lane{number} {lane} at word {file.total - 2 + number}")


def show_diff(
    diff: LayoutDiff, values: tuple[int, int], findings: tuple[Finding, ...], format: TableFormat
) -> None:
    """Print what changed; then what of it breaks a rule."""
    before, after = (hexadecimal(value) for value in values)
    if format is TableFormat.JSON:
        found = [finding.to_dict() for finding in findings]
        _json({"before": before, "after": after, **diff.to_dict(), "findings": found})
        return
    if diff.empty:
        print(f"the same layout: {before}")
        return
    print(f"{before} -> {after}")
    for name, (was, now) in diff.sizes.items():
        print(f"  {name}: {was:,} -> {now:,}")
    _some("slots", [_slot(c.name, c.change, c.before, c.after) for c in diff.slots])
    _some("tensors", [_tensor(c.name, c.change, c.before, c.after) for c in diff.tensors])
    shifted = sum(1 for change in diff.tensors if change.shift)
    print(
        f"unchanged: {diff.same_slots} slots, {diff.same_tensors} tensors; "
        f"{shifted} tensors begin at another byte"
    )
    show_findings(findings)


def show_check(
    stored: Stored, value: int, findings: tuple[Finding, ...], format: TableFormat
) -> None:
    """Print whether a checkpoint has the layout."""
    held = None if stored.fingerprint is None else hexadecimal(stored.fingerprint)
    failed = any(finding.severity == "error" for finding in findings)
    if format is TableFormat.JSON:
        _json(
            {
                "verdict": "fail" if failed else "pass",
                "stored": held,
                "layout": hexadecimal(value),
                "form": stored.form,
                "findings": [finding.to_dict() for finding in findings],
            }
        )
        return
    show_findings(findings)
    if not failed:
        print(f"pass: {stored.name} ({stored.form}) has the layout {hexadecimal(value)}")


def show_registry(
    names: int, compared: int, findings: tuple[Finding, ...], format: TableFormat
) -> None:
    """Print whether every stateful name is registered, and reset as its category says."""
    failed = any(finding.severity == "error" for finding in findings)
    if format is TableFormat.JSON:
        _json(
            {
                "verdict": "fail" if failed else "pass",
                "names": names,
                "compared": compared,
                "findings": [finding.to_dict() for finding in findings],
            }
        )
        return
    show_findings(findings)
    over = f", {compared} compared over the boundary" if compared else ""
    print(f"{'fail' if failed else 'pass'}: {names} stateful names{over}")


def show_findings(findings: Iterable[Finding]) -> None:
    """Print findings in full."""
    out = console()
    for finding in findings:
        head, _, rest = finding_text(finding).partition("\n")
        out.print(Text(head, style="bold red"), soft_wrap=True)
        out.print(Text(rest), soft_wrap=True)


def _some(what: str, lines: list[str]) -> None:
    if lines:
        print(f"{what}:")
    for line in lines[:_LISTED]:
        print(f"  {line}")
    if len(lines) > _LISTED:
        print(f"  and {len(lines) - _LISTED} more; --format json has them all")


def _slot(
    name: str, change: str, before: tuple[int, int] | None, after: tuple[int, int] | None
) -> str:
    ranges = [f"[{at[0]}, {at[0] + at[1]})" for at in (before, after) if at is not None]
    return f"{change:<8} {name} {' -> '.join(ranges)}"


def _tensor(
    name: str, change: str, before: tuple[int, int, int] | None, after: tuple[int, int, int] | None
) -> str:
    told = [f"#{at[0]} {at[1]:,} elements at byte {at[2]:,}" for at in (before, after) if at]
    shift = f" ({after[2] - before[2]:+,} bytes)" if before and after else ""
    return f"{change:<8} {name} {' -> '.join(told)}{shift}"


def _json(data: dict[str, Any]) -> None:
    print(json.dumps(data, indent=2, allow_nan=False))
