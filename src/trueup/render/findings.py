"""One finding as text: what, where, got, expected, fix, and the command that shows it again.

The command line, the pytest plugin and the reports all print a finding through here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from trueup.render.clean import one_line, printable
from trueup.render.counts import plural
from trueup.render.paths import nearby


class FindingLike(Protocol):
    """What a finding of the oracle and a finding of the gates have in common."""

    @property
    def rule(self) -> str: ...  # noqa: D102
    @property
    def severity(self) -> str: ...  # noqa: D102
    @property
    def artifact(self) -> str: ...  # noqa: D102
    @property
    def where(self) -> object: ...  # noqa: D102
    @property
    def got(self) -> str: ...  # noqa: D102
    @property
    def expected(self) -> str: ...  # noqa: D102
    @property
    def fix(self) -> str: ...  # noqa: D102


AnyFinding = TypeVar("AnyFinding", bound=FindingLike)


@dataclass(frozen=True)
class Origin:
    """Where a lane ran, which is what it takes to run it again."""

    path: str
    backend: str
    lane: str

    def replay(self, case: str | None, seed: int | None) -> str:
        """Write the command that runs this lane, and this case of it, again."""
        words = [
            "trueup",
            "verify",
            nearby(self.path),
            "--backend",
            self.backend,
            "--lane",
            self.lane,
        ]
        if case is not None:
            words += ["--case", case]
        if seed is not None:
            words += ["--seed", str(seed)]
        return shlex.join(words)


def headline_place(finding: FindingLike) -> str:
    """Say artifact and place; in a file they read `file:line:byte:key`, for editors."""
    artifact, where = one_line(finding.artifact), one_line(finding.where)
    if where.startswith("::"):  # neither a line nor a byte is known, only the key
        return f"{artifact}: {where[2:]}"
    return artifact + ("" if not where else f": {where}" if _is_text(finding) else f":{where}")


def headline(finding: FindingLike) -> str:
    """Say artifact, place and rule."""
    place = headline_place(finding)
    return f"{place}: {one_line(finding.rule)}" if place else one_line(finding.rule)


def _is_text(finding: FindingLike) -> bool:
    return isinstance(finding.where, str)


def details(
    finding: FindingLike, origin: Origin | None = None, also: int = 0
) -> list[tuple[str, str]]:
    """List the labelled lines below the headline, each only where there is something to say.

    `also` counts further cases in which exactly the same was found.
    """
    count = getattr(finding, "count", None)
    case, seed = getattr(finding, "case", None), getattr(finding, "seed", None)
    rows = [
        ("what", getattr(finding, "summary", "")),
        ("got", finding.got),
        ("expected", finding.expected),
        ("times", f"{count:,}" if isinstance(count, int) and count > 1 else ""),
        ("fix", finding.fix),
        ("also in", plural(also, "more case") if also else ""),
        ("case", "" if case is None else f"{case}" + ("" if seed is None else f", seed {seed}")),
        ("replay", "" if origin is None else origin.replay(case, seed)),
    ]
    return [(label, printable(text)) for label, text in rows if text]


def alike(findings: Iterable[AnyFinding]) -> list[tuple[AnyFinding, int]]:
    """Keep the first of findings that differ in their case alone, with the count of the others."""
    kept: dict[tuple[str, ...], tuple[AnyFinding, int]] = {}
    for finding in findings:
        parts = (finding.rule, finding.artifact, finding.where, finding.got, finding.expected)
        key = tuple(str(part) for part in (*parts, finding.fix))
        first, count = kept.get(key, (finding, -1))
        kept[key] = (first, count + 1)
    return list(kept.values())


def finding_text(finding: FindingLike, origin: Origin | None = None, also: int = 0) -> str:
    """Write the whole finding, with further lines of a value aligned under its first."""
    lines = [headline(finding)]
    for label, text in details(finding, origin, also):
        first, *rest = text.splitlines() or [""]
        lines.append(f"  {label:<9} {first}")
        lines += [f"  {'':<9} {line}" for line in rest]
    return "\n".join(lines)
