"""What was found in files and over them, less what is waived, as a `Verdict`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trueup.gates.catalogue.kinds import families, kinds
from trueup.gates.findings import (
    ArtifactInfo,
    Example,
    Finding,
    RuleOutcome,
    Status,
    Verdict,
    WaiverUse,
    Where,
)
from trueup.gates.source.config import Config
from trueup.gates.source.waivers import Inline

_READ_IN = {
    "atomic_used": ("cuda",), "monitor_writes": ("rust",),
    "source_partly_parsed": ("cuda", "rust"),
}  # fmt: skip
_READ_ANYWHERE = ("placeholder_marker", "waiver_unusable", "waiver_unused", "source_unreadable")
_CODE = ("cuda", "rust", "python")
_DECLARED = {
    "flag_undeclared": "flags", "retired_name": "names", "kernel_sets_differ": "kernels",
    "documented_value_differs": "documented", "audit_undecided": "audit",
    "audit_miscounted": "audit", "buffer_unregistered": "registry",
    "mechanism_unmonitored": "monitors", "reset_called_elsewhere": "registry",
    "metric_ambiguous": "metrics",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Located:
    """Something found, at a place that a person can go to."""

    kind: str
    line: int | None
    column: int | None
    got: str


@dataclass(frozen=True, slots=True)
class Waiver:
    """An inline waiver, and where it stands."""

    inline: Inline
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class FileResult:
    """What one file gave. `relative` is its path from the folder of the settings."""

    name: str
    relative: str
    language: str
    size: int
    lines: int
    found: tuple[Located, ...] = ()
    waivers: tuple[Waiver, ...] = ()


def verdict_of(
    results: Sequence[FileResult], over: Iterable[FileResult], config: Config
) -> Verdict:
    """The verdict on files. `over`: what rules over several files found, in the files they name."""
    judged = {result.relative: result for result in results}
    findings: list[Finding] = []
    uses: list[WaiverUse] = []
    used: set[tuple[str, Inline]] = set()
    for result in (*results, *over):
        name = judged[result.relative].name if result.relative in judged else result.name
        for one in result.found:
            waiver = next((w for w in result.waivers if _allows(w, one)), None)
            if waiver is None:
                findings.append(_finding(name, one))
            else:
                used.add((result.relative, waiver.inline))
                uses.append(_use(name, one, waiver))
    findings += _idle(results, used)
    return _verdict(results, findings, uses, config)


def _allows(waiver: Waiver, one: Located) -> bool:
    """A finding about a whole file has no line: a waiver anywhere in it is meant for it."""
    kind = kinds()[one.kind]
    rule = kind.id if kind.waivable else ""
    line = waiver.line if one.line is None else one.line
    return waiver.inline.allows(rule, line)


def _idle(results: Iterable[FileResult], used: set[tuple[str, Inline]]) -> Iterable[Finding]:
    for result in results:
        for one in result.waivers:
            if (result.relative, one.inline) not in used:
                got = f"{', '.join(one.inline.ids)}: {one.inline.reason}"[:80]
                yield _finding(result.name, Located("waiver_unused", one.line, one.column, got))


def _finding(name: str, one: Located) -> Finding:
    """One finding for each place: findings in source are told one by one."""
    kind = kinds()[one.kind]
    where = Where(line=one.line, column=one.column)
    return Finding(
        kind.id, kind.severity, name, where, one.got, kind.expected, kind.fix, kind.summary, 1,
        (Example(where, one.got),),
    )  # fmt: skip


def _use(name: str, one: Located, waiver: Waiver) -> WaiverUse:
    return WaiverUse(
        kinds()[one.kind].id, waiver.inline.reason, waiver.inline.until or "never", "used",
        f"{name}:{waiver.line}", name, findings=(_finding(name, one),),
    )  # fmt: skip


def _verdict(
    results: Sequence[FileResult],
    findings: Sequence[Finding],
    uses: Sequence[WaiverUse],
    config: Config,
) -> Verdict:
    rules = _outcomes(results, {finding.rule for finding in findings}, config)
    failed = any(finding.severity == "error" for finding in findings)
    return Verdict(
        verdict="fail" if failed else "pass",
        profile="source",
        rows=sum(one.lines for one in results),
        checks=sum(rule.columns for rule in rules),
        findings=tuple(findings),
        artifacts=tuple(
            ArtifactInfo(one.name, "source", one.language, one.size, one.lines, 0)
            for one in results
        ),
        bytes=sum(one.size for one in results),
        rules=rules,
        engines=_engines(),
        waivers=tuple(uses),
    )


def _outcomes(
    results: Sequence[FileResult], broken: set[str], config: Config
) -> tuple[RuleOutcome, ...]:
    """Of each kind of source finding, how many files it was asked of."""
    out = []
    for kind in families()["source"]:
        table = _DECLARED.get(kind.name)
        if table is None:
            asked = _READ_IN.get(kind.name, _CODE)
            everywhere = kind.name in _READ_ANYWHERE
            read = sum(everywhere or result.language in asked for result in results)
            reason = "" if read else "no file of a language it reads"
        else:
            read = int(table in config.data)
            reason = "" if read else f"no [{table}] in {config.name or 'lint.toml'}"
        status: Status = "false" if kind.id in broken else "true" if read else "not_applied"
        out.append(RuleOutcome(kind.id, status, read, 0, reason, kind.summary))
    return tuple(out)


def _engines() -> dict[str, str]:
    from importlib.metadata import version

    names = ("tree-sitter", "tree-sitter-cuda", "tree-sitter-rust")
    return {name: version(name) for name in names}
