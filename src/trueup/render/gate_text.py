"""A gate's verdict as text: every finding in full, then what was read and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from trueup.render.clean import one_line
from trueup.render.counts import plural
from trueup.render.findings import finding_text

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def show_gate(verdict: Verdict, out: Console) -> None:
    """Print the verdict."""
    for finding in verdict.findings:
        head, _, rest = finding_text(finding).partition("\n")
        out.print(Text(head, style=_STYLES.get(finding.severity, "")), soft_wrap=True)
        out.print(Text(rest), soft_wrap=True)
        out.print()
    for artifact in verdict.artifacts:
        read = (
            f"read {artifact.path}: {artifact.kind}, {plural(artifact.rows, 'row')}, "
            f"{plural(artifact.columns, 'column')}, {plural(artifact.bytes, 'byte')}"
        )
        out.print(Text(one_line(read)), soft_wrap=True)
    style = "green" if verdict.verdict == "pass" else "bold red"
    out.print(Text(gate_summary(verdict), style=style), soft_wrap=True)


def gate_summary(verdict: Verdict) -> str:
    """Write verdict, profile and counts in one line."""
    return one_line(
        f"{verdict.verdict}: profile {verdict.profile}, {plural(verdict.rows, 'row')}, "
        f"{plural(verdict.checks, 'check')}, {plural(len(verdict.findings), 'finding')}"
    )
