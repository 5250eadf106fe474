"""A gate's verdict as GitHub's workflow commands: annotations at the lines of artifacts.

GitHub shows ten annotations of a kind for each step and drops the rest without a word: the rest is
printed as plain lines here, and counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trueup.render.clean import one_line
from trueup.render.counts import plural
from trueup.render.gate_text import gate_summary, waiver_title
from trueup.render.groups import Group, Place, grouped
from trueup.render.paths import is_url, nearby

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict

SHOWN = 10  # annotations of a kind that GitHub shows for a step
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def gate_annotations(judged: Iterable[tuple[str, Verdict | str]]) -> Iterator[str]:
    """Write the lines for each path that was judged, counting annotations over all of them."""
    out = Annotations()
    for path, result in judged:
        if isinstance(result, str):
            yield out.one("error", f"cannot judge {path}", result)
        else:
            yield from out.verdict(path, result)


class Annotations:
    """Writes commands, and counts them over all that one step prints."""

    def __init__(self) -> None:
        """Nothing is annotated yet."""
        self._used = dict.fromkeys(_COMMANDS.values(), 0)

    def verdict(self, path: str, verdict: Verdict) -> Iterator[str]:
        """The lines of one verdict; the last one sums it up."""
        left = 0
        for group in grouped(verdict.findings):
            for place in group.places:
                line = self._annotated(group, place)
                left += not line.startswith("::")
                yield line
        for waiver in verdict.waivers:
            if waiver.findings:
                yield self.one("note", f"waived {waiver.rule}", waiver_title(waiver))
        for change in verdict.severity_changes:
            yield plain(
                f"severity of {change.rule}: {change.after} instead of {change.before} "
                f"({change.place}) {change.reason}"
            )
        if left:
            yield plain(f"{plural(left, 'line')} above without an annotation: {SHOWN} are shown")
        yield plain(f"{path}: {gate_summary(verdict)}")

    def one(self, severity: str, title: str, message: str, where: str = "") -> str:
        """A command, or a plain line where GitHub would not show one more of its kind."""
        command = _COMMANDS[severity]
        if self._used[command] >= SHOWN:
            return plain(f"{severity}: {title}: {message}")
        self._used[command] += 1
        properties = ",".join(part for part in (where, f"title={_property(title)}") if part)
        return f"::{command} {properties}::{_data(message)}"

    def _annotated(self, group: Group, place: Place) -> str:
        first = place.first
        extent = place.extent()
        message = "\n".join(
            line
            for line in (
                f"{place.where()}: got {one_line(first.got)}",
                extent,
                f"expected {one_line(group.expected)}" if group.expected else "",
                f"fix: {one_line(group.fix)}" if group.fix else "",
            )
            if line
        )
        where = []
        if first.artifact and not is_url(first.artifact):  # what lies elsewhere has no place here
            where.append(f"file={_property(_file(first.artifact))}")
            if first.where.line is not None:
                where.append(f"line={first.where.line}")
        return self.one(group.severity, group.title(), message, ",".join(where))


def plain(text: str) -> str:
    """A line that is no command, whatever it holds."""
    line = one_line(text)
    return f"· {line}" if line.startswith("::") else line


def _file(artifact: str) -> str:
    """The path from the root of the checkout, where the artifact lies in it."""
    root = os.environ.get("GITHUB_WORKSPACE")
    if root:
        relative = os.path.relpath(os.path.abspath(artifact), root)
        if not relative.startswith(".."):
            return relative
    return nearby(artifact)


def _data(text: str) -> str:
    """The message of a command: what would end it, or begin another, is escaped."""
    lines = (one_line(line) for line in text.split("\n"))
    return "%0A".join(line.replace("%", "%25") for line in lines)


def _property(text: str) -> str:
    """A property of a command, in which colons and commas have a meaning too."""
    return one_line(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
