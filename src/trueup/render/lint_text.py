"""A lint's verdict as text: one line a finding, each rule's fix once, then what was read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from trueup.render.clean import one_line
from trueup.render.counts import plural
from trueup.render.paths import nearby

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict

_LISTED = 200  # findings shown of one rule; other formats have them all
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def show_lint(verdict: Verdict, out: Console) -> None:
    """Print `file:line:col: RULE got` for each finding, as compilers do."""
    shown: Counter[str] = Counter()
    for finding in verdict.findings:
        shown[finding.rule] += 1
        if shown[finding.rule] > _LISTED:
            continue
        place = f"{nearby(finding.artifact)}:{finding.where}".rstrip(":")
        line = f"{place}: {finding.rule} {finding.summary}: {finding.got}"
        out.print(Text(one_line(line), style=_STYLES.get(finding.severity, "")), soft_wrap=True)
    for rule, count in shown.items():
        if count > _LISTED:
            out.print(f"{rule}: {count - _LISTED} more", soft_wrap=True)
    fixes = {finding.rule: finding.fix for finding in verdict.findings}
    for rule, fix in fixes.items():
        out.print(Text(one_line(f"{rule}: {fix}")), soft_wrap=True)
    for use in verdict.waivers:
        said = f"waived {use.rule} at {use.place}: {use.reason} (until {use.expires})"
        out.print(Text(one_line(said)), soft_wrap=True)
    style = "green" if verdict.passed else "bold red"
    summary = (
        f"{verdict.verdict}: {plural(len(verdict.artifacts), 'file')}, "
        f"{plural(verdict.rows, 'line')}, {plural(len(verdict.findings), 'finding')}, "
        f"{len(verdict.waivers)} waived"
    )
    out.print(Text(one_line(summary), style=style), soft_wrap=True)
