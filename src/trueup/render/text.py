"""A verification as text: a table of lanes per contract, then every finding in full."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueup.oracle.verdict import (
    ContractVerdict,
    Finding,
    LaneVerdict,
    Outcome,
    Verification,
    Worst,
)
from trueup.render.clean import one_line
from trueup.render.console import print_block
from trueup.render.counts import (
    checked,
    contract_sum,
    counted,
    ratio_text,
    totals,
)
from trueup.render.findings import Origin, alike, finding_text

STYLES = {
    Outcome.PASS: "green",
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "bold yellow",
    Outcome.SKIPPED: "dim",
}


def show_verification(verification: Verification, out: Console, *, quiet: bool = False) -> None:
    """Print the whole verification; `quiet` leaves out the tables and the notes."""
    for contract in () if quiet else verification.contracts:
        _show_contract(contract, out)
        out.print()
    for text, style in _findings(verification):
        head, _, rest = text.partition("\n")
        out.print(Text(head, style=style), soft_wrap=True)
        out.print(Text(f"{rest}\n"), soft_wrap=True)
    if not quiet:
        for line in _remarks(verification):
            out.print(Text(line), soft_wrap=True)
    summary = summary_line(verification)
    out.print(Text(summary, style=STYLES[verification.verdict]), soft_wrap=True)


def summary_line(verification: Verification) -> str:
    """Write verdict, counts and what kind of evidence they are, in one line."""
    contracts = verification.contracts
    line = checked(
        len(contracts), *contract_sum(contracts), (contract.backend for contract in contracts)
    )
    failed = len(verification.errors)
    unjudged = f"; {failed} could not be judged" if failed else ""
    return f"{verification.verdict}: {line}{unjudged}"


def lane_findings(contract: ContractVerdict) -> Iterator[tuple[Finding, Origin | None, int]]:
    """Give the findings of a contract: what it takes to run each again, and how many are alike."""
    for lane in contract.lanes:
        origin = Origin(contract.path or contract.id, contract.backend, lane.lane)
        for finding, also in alike(lane.findings):
            yield finding, origin, also
    for finding in contract.findings:
        yield finding, None, 0


def _show_contract(contract: ContractVerdict, out: Console) -> None:
    """Print a heading with the totals, and a row per lane."""
    out.print(
        Text.assemble(
            Text(one_line(f"{contract.id} ({contract.reading}) on {contract.backend}"), "bold"),
            ": ",
            Text(str(contract.verdict), STYLES[contract.verdict]),
            f", {counted(*totals(contract.lanes))}",
        ),
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("  lane", overflow="fold", min_width=10)
    table.add_column("verdict", no_wrap=True, min_width=12)
    for name, width in (("cases", 6), ("elements", 11), ("launches", 8)):
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    table.add_column("error/allowed", justify="right", overflow="fold")
    table.add_column("nearest its bound", overflow="fold", min_width=12)
    for lane in contract.lanes:
        table.add_row(*_row(lane))
    print_block(out, table)


def _row(lane: LaneVerdict) -> tuple[Text | str, ...]:
    ratio, where = _worst(lane.worst)
    return (
        Text(f"  {one_line(lane.lane)}"),
        Text(str(lane.verdict), STYLES[lane.verdict]),
        f"{lane.cases:,}",
        f"{lane.elements:,}",
        f"{lane.launches:,}",
        ratio,
        Text(where or one_line(lane.reason or "")),
    )


def _worst(worst: Worst | None) -> tuple[str, str]:
    if worst is None:
        return "", ""
    return ratio_text(worst.ratio), one_line(f"{worst.where} in {worst.case}")


def _findings(verification: Verification) -> Iterator[tuple[str, str]]:
    for contract in verification.contracts:
        for finding, origin, also in lane_findings(contract):
            style = "yellow" if finding.severity == "warning" else "bold red"
            yield finding_text(finding, origin, also), style


def _remarks(verification: Verification) -> Iterator[str]:
    """Give the lines below the findings: why something was skipped or is inconclusive, notes."""
    lines: list[str] = []
    for contract in verification.contracts:
        for lane in contract.lanes:
            head = f"{contract.id}, {lane.lane}"
            if lane.reason:
                lines.append(f"{lane.verdict} {head}: {lane.reason}")
            lines += [f"note {head}: {note}" for note in lane.notes]
    for skip in verification.skipped:
        what = skip.contract if skip.lane is None else f"{skip.contract}, {skip.lane}"
        lines.append(f"SKIPPED {what}: {skip.reason}")
    yield from (one_line(line) for line in dict.fromkeys(lines))
    if lines:
        yield ""
