"""A gate's verdict as text: findings by rule, what was waived, what was read and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from trueup.render.clean import one_line
from trueup.render.counts import plural
from trueup.render.groups import Group, Place, grouped, shape

if TYPE_CHECKING:
    from trueup.gates.findings import ArtifactInfo, Verdict, WaiverUse

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
PLACES = 12  # of one rule; the rest is counted
_ARTIFACTS = 12  # told one by one; more of them by kind


def show_gates(judged: Sequence[tuple[str, Verdict | str]], out: Console, *, several: bool) -> None:
    """Print each verdict; over several, a heading for each and a last line for all."""
    for path, result in judged:
        if several:
            out.print(Text(one_line(f"== {path}"), style="bold"), soft_wrap=True)
        if isinstance(result, str):  # said on stderr already, in full
            if several:
                out.print(Text("not judged\n", style="bold red"))
            continue
        show_gate(result, out)
        if several:
            out.print()
    if several:
        counts = Counter("not judged" if isinstance(r, str) else r.verdict for _, r in judged)
        said = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        style = "green" if set(counts) == {"pass"} else "bold red"
        out.print(Text(f"{plural(len(judged), 'run')}: {said}", style=style), soft_wrap=True)


def show_gate(verdict: Verdict, out: Console) -> None:
    """Print the verdict."""
    groups = grouped(verdict.findings)
    for group in groups:
        out.print(Text(group.title(), style=STYLES.get(group.severity, "")), soft_wrap=True)
        for line in group_lines(group):
            out.print(Text(line), soft_wrap=True)
        out.print()
    for line in waived_lines(verdict):
        out.print(Text(line, style="" if line.startswith(" ") else "magenta"), soft_wrap=True)
    for line in (*change_lines(verdict), *read_lines(verdict), *rule_lines(verdict)):
        out.print(Text(line), soft_wrap=True)
    if groups:
        hint = "`trueup explain ID` tells of a rule why it exists, with examples"
        out.print(Text(hint), soft_wrap=True)
    style = "green" if verdict.verdict == "pass" else "bold red"
    out.print(Text(gate_summary(verdict), style=style), soft_wrap=True)


def group_lines(group: Group) -> Iterator[str]:
    """The lines below a group's title: its places, then what was expected and what to do."""
    for place in group.places[:PLACES]:
        yield from _place(place)
    left = group.places[PLACES:]
    if left:
        times = sum(place.count for place in left)
        yield f"  … and {plural(len(left), 'more place')}, {times:,} times; --format json has all"
    for label, text in (("expected", group.expected), ("fix", group.fix)):
        if text:
            yield f"  {label:<9} {one_line(text)}"


def _place(place: Place) -> Iterator[str]:
    yield f"  {place.where()}: got {one_line(place.first.got)}"
    extent, further = place.extent(), place.further()
    if extent:
        yield f"      {extent}"
    for line in further:
        yield f"      next {line}"


def waived_lines(verdict: Verdict) -> Iterator[str]:
    """Each waiver that was used: what it says, and the findings that it covers."""
    for waiver in verdict.waivers:
        if not waiver.findings:
            continue
        yield one_line(waiver_title(waiver))
        for group in grouped(waiver.findings):
            for place in group.places[:PLACES]:
                extent = place.extent()
                more = f" ({extent})" if extent else ""
                yield f"  {place.where()}: got {one_line(place.first.got)}{more}"
            if group.places[PLACES:]:
                yield f"  … and {plural(len(group.places) - PLACES, 'more place')}"
        yield ""


def waiver_title(waiver: WaiverUse) -> str:
    """Rule, count, date, reason, and who stands for it."""
    stands = ", ".join(
        text
        for text in (
            f"approved by {waiver.approved_by}" if waiver.approved_by else "",
            waiver.ticket,
            waiver.place,
        )
        if text
    )
    found = len(waiver.findings)
    times = f", {waiver.count:,} times" if waiver.count > found else ""
    return (
        f"{waiver.rule} waived until {waiver.expires}: {plural(found, 'finding')}{times}: "
        f"{waiver.reason} ({stands})"
    )


def change_lines(verdict: Verdict) -> Iterator[str]:
    """Each severity that the settings changed."""
    for one in verdict.severity_changes:
        reason = f": {one.reason}" if one.reason else ""
        yield one_line(
            f"{one.rule} is a {one.after} instead of {_a(one.before)}: "
            f"{plural(one.findings, 'finding')} ({one.place}){reason}"
        )
    if verdict.settings:
        yield one_line(f"settings {verdict.settings}")


def _a(severity: str) -> str:
    return f"an {severity}" if severity == "error" else f"a {severity}"


def read_lines(verdict: Verdict) -> Iterator[str]:
    """What was read, one by one or, where there is much, by kind."""
    if len(verdict.artifacts) <= _ARTIFACTS:
        yield from (one_line(f"read {info.path}: {_size(info)}") for info in verdict.artifacts)
        return
    alike: dict[tuple[str, str, str], list[ArtifactInfo]] = {}
    for info in verdict.artifacts:
        alike.setdefault((info.kind, info.form, shape(info.path)), []).append(info)
    for (kind, form, pattern), infos in alike.items():
        if len(infos) == 1:
            yield one_line(f"read {infos[0].path}: {_size(infos[0])}")
            continue
        size = sum(info.bytes for info in infos)
        yield one_line(
            f"read {plural(len(infos), 'file')} like {pattern}: {kind}, {form}, "
            f"{plural(size, 'byte')}"
        )


def _size(info: ArtifactInfo) -> str:
    table = f"{plural(info.rows, 'row')}, {plural(info.columns, 'column')}, "
    return f"{info.kind}, {info.form}, {'' if info.document else table}{plural(info.bytes, 'byte')}"


def rule_lines(verdict: Verdict) -> Iterator[str]:
    """How the rules of the profile ended."""
    counts: Counter[str] = Counter(rule.status for rule in verdict.rules)
    words = {"true": "held", "false": "did not hold", "undetermined": "could not be decided",
             "not_applied": "did not apply"}  # fmt: skip
    said = [f"{counts[status]} {word}" for status, word in words.items() if counts[status]]
    if said:
        yield f"{plural(len(verdict.rules), 'rule')}: {', '.join(said)}"


def gate_summary(verdict: Verdict) -> str:
    """Write verdict, profile and counts in one line."""
    parts = [f"{verdict.verdict}: profile {verdict.profile}", plural(verdict.rows, "row")]
    if verdict.documents:
        parts.append(plural(verdict.documents, "document"))
    findings, rules = len(verdict.findings), len({one.rule for one in verdict.findings})
    of = f" of {plural(rules, 'rule')}" if findings > rules else ""
    parts += [plural(verdict.checks, "check"), f"{plural(findings, 'finding')}{of}"]
    if verdict.waived:
        parts.append(f"{verdict.waived:,} waived")
    if verdict.severity_changes:
        parts.append(plural(len(verdict.severity_changes), "severity change"))
    return one_line(", ".join(parts))
