"""Totals over lanes, and the words for numbers that every renderer shares."""

from __future__ import annotations

import math
from collections.abc import Iterable

from trueup.oracle.verdict import ContractVerdict, LaneVerdict, Worst


def totals(lanes: Iterable[LaneVerdict]) -> tuple[int, int, int]:
    """Sum cases, elements and launches."""
    lanes = tuple(lanes)
    return (
        sum(lane.cases for lane in lanes),
        sum(lane.elements for lane in lanes),
        sum(lane.launches for lane in lanes),
    )


def nearest(lanes: Iterable[LaneVerdict]) -> Worst | None:
    """Give the worst element over all lanes; a NaN ratio is worse than any number."""
    found = [lane.worst for lane in lanes if lane.worst is not None]
    return max(found, key=lambda worst: order(worst.ratio), default=None)


def order(ratio: float) -> float:
    """Rank a ratio so that NaN counts as beyond every bound."""
    return math.inf if math.isnan(ratio) else ratio


def ratio_text(ratio: float) -> str:
    """Write error over allowed with three digits; `beyond` where no number says it."""
    if not math.isfinite(ratio):
        return "beyond"
    return f"{ratio:.3g}" if ratio == 0 or 0.001 <= ratio < 1e6 else f"{ratio:.2e}"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def counted(cases: int, elements: int, launches: int) -> str:
    """Say how much ran."""
    counts = ((cases, "case"), (elements, "element"), (launches, "launch"))
    return ", ".join(plural(count, noun) for count, noun in counts)


def checked(
    contracts: int, cases: int, elements: int, launches: int, backends: Iterable[str]
) -> str:
    """Say in one line how much was checked, where, and what no reader should take it for."""
    names = sorted(set(backends))
    line = f"{plural(contracts, 'contract')}, {counted(cases, elements, launches)}"
    line += f" on {', '.join(names)}" if names else ""
    return f"{line}; host evidence is not GPU evidence" if "host" in names else line


def contract_sum(contracts: Iterable[ContractVerdict]) -> tuple[int, int, int]:
    """Sum cases, elements and launches over contracts."""
    return totals(lane for contract in contracts for lane in contract.lanes)
