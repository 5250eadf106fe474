"""One self-contained HTML page per verification: inline style and SVG, nothing fetched."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trueup import __version__
from trueup.oracle.verdict import ContractVerdict, LaneVerdict, Verification
from trueup.render.clean import printable
from trueup.render.counts import nearest, order, plural, ratio_text, totals
from trueup.render.findings import details, headline
from trueup.render.paths import nearby
from trueup.render.plots import strip_plot
from trueup.render.text import lane_findings, summary_line


def verify_page(verification: Verification) -> str:
    """Write the page of a verification."""
    lanes = dict.fromkeys(
        lane.lane for contract in verification.contracts for lane in contract.lanes
    )
    return (
        environment()
        .get_template("verify.html")
        .render(
            verification=verification,
            summary=summary_line(verification),
            lanes=list(lanes),
            contracts=[_contract(contract) for contract in verification.contracts],
            environment=_flat(verification.environment),
        )
    )


@cache
def environment() -> Environment:
    """Give the templates' environment: everything is escaped, and cleaned of controls."""
    made = Environment(
        loader=PackageLoader("trueup", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_safe,
    )
    made.globals["version"] = __version__
    made.filters |= {"details": details, "headline": headline, "ratio": ratio_text}
    return made


def _safe(value: Any) -> Any:
    """Clean whatever a template prints, except markup that was built here."""
    return value if isinstance(value, Markup) else printable(value)


def _contract(contract: ContractVerdict) -> dict[str, Any]:
    """Gather what the page shows of one contract."""
    scored = [lane for lane in contract.lanes if lane.scores]
    return {
        "it": contract,
        "path": nearby(contract.path) if contract.path else None,
        "by_lane": {lane.lane: lane for lane in contract.lanes},
        "totals": totals(contract.lanes),
        "worst": nearest(contract.lanes),
        "plots": [
            (lane.lane, strip_plot(lane.scores, _plot_title(contract, lane))) for lane in scored
        ],
        "hardest": [(lane.lane, _hardest(lane)) for lane in scored],
        "findings": list(lane_findings(contract)),
        "notes": [(lane.lane, note) for lane in contract.lanes for note in lane.notes],
    }


def _plot_title(contract: ContractVerdict, lane: LaneVerdict) -> str:
    worst = max((order(score.ratio) for score in lane.scores), default=math.nan)
    return (
        f"{contract.id}, {lane.lane}: error over allowed for "
        f"{plural(len(lane.scores), 'case')}, worst {ratio_text(worst)}"
    )


def _hardest(lane: LaneVerdict) -> list[Any]:
    """Give the ten cases nearest to, or furthest beyond, their bound."""
    return sorted(lane.scores, key=lambda score: order(score.ratio), reverse=True)[:10]


def _flat(data: Any, prefix: str = "") -> list[tuple[str, str]]:
    """List nested data as dotted keys and values."""
    if hasattr(data, "items"):
        return [row for key, item in data.items() for row in _flat(item, f"{prefix}{key}.")]
    if isinstance(data, list | tuple):
        return [(prefix.rstrip("."), ", ".join(map(str, data)))]
    return [(prefix.rstrip("."), str(data))]
