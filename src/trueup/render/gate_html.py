"""One self-contained HTML page per judgement of a gate, and an index over several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trueup.render.gate_text import gate_summary, rule_lines
from trueup.render.groups import grouped
from trueup.render.html import environment
from trueup.render.plots import line_plot
from trueup.render.series import read_series

if TYPE_CHECKING:
    from trueup.gates.catalogue.rules import Entry
    from trueup.gates.findings import Verdict
    from trueup.gates.profile.rules import Profile

# A rule's status in the words that the verdict over all rules uses; what is broken first.
_OUTCOMES = {
    "false": "fail",
    "undetermined": "undetermined",
    "true": "pass",
    "not_applied": "not applied",
}
_WAIVERS = {"used": "warning", "unused": "warning", "expired": "error", "elsewhere": "note"}
_PLACES = 12  # of a rule that are open; the others are folded away


def gate_page(
    verdict: Verdict, entries: Mapping[str, Entry], profile: Profile | None = None
) -> str:
    """Write the page of a verdict: findings by rule, what was waived, what was read, all rules."""
    curves = [
        (path, [(one.key, line_plot(one)) for one in series])
        for path, series in read_series(verdict, profile)
    ]
    order = list(_OUTCOMES)
    rules = sorted(verdict.rules, key=lambda rule: order.index(rule.status))
    used = [waiver for waiver in verdict.waivers if waiver.findings]
    waived = Counter(one.rule for waiver in used for one in waiver.findings)
    return (
        environment()
        .get_template("gate.html")
        .render(
            verdict=verdict,
            summary=gate_summary(verdict),
            remarks=list(rule_lines(verdict)),
            groups=grouped(verdict.findings),
            waived_groups=[(one, grouped(one.findings)) for one in used],
            waived_rules=waived,
            waiver_class=_WAIVERS,
            tables=[one for one in verdict.artifacts if not one.document],
            documents=[one for one in verdict.artifacts if one.document],
            curves=curves,
            outcomes=_OUTCOMES,
            applied=[one for one in rules if one.status != "not_applied"],
            skipped=[one for one in rules if one.status == "not_applied"],
            entries=entries,
            shown=_PLACES,
        )
    )


def index_page(runs: Sequence[tuple[str, Verdict | str, str]]) -> str:
    """Write the page over several runs: path, verdict or refusal, and the name of its own page."""
    rows = [
        (path, "refused", result, "")
        if isinstance(result, str)
        else (path, result.verdict, gate_summary(result), page)
        for path, result, page in runs
    ]
    words = [word for _, word, _, _ in rows]
    worst = next((word for word in ("refused", "fail") if word in words), "pass")
    return environment().get_template("gates.html").render(runs=rows, worst=worst)
