"""Judgements in the formats that are told apart by machines, on stdout or in files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.cli.options import GateFormat, unknown
from trueup.errors import FaceError

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict

# A path with its verdict, or with the reason why it could not be judged.
Judged = Sequence[tuple[str, "Verdict | str"]]


def rendered(judged: Judged, format: GateFormat, profile: str, code: int, *, several: bool) -> str:
    """The whole text of a format, with its last line break; JSON of nothing judged is empty."""
    if format is GateFormat.JSON:
        from trueup.render.gate_json import gate_json

        return gate_json(judged, several=several)
    if format is GateFormat.JUNIT:
        from trueup.render.junit import gate_junit

        return f"{gate_junit(judged)}\n"
    if format is GateFormat.SARIF:
        from trueup.gates.catalogue.rules import entries
        from trueup.render.sarif import gate_sarif

        known = {entry.id: entry for entry in entries(profile)}
        return f"{gate_sarif(judged, known, code)}\n"
    if format is GateFormat.GITHUB:
        from trueup.render.github import gate_annotations

        return "".join(f"{line}\n" for line in gate_annotations(judged))
    if format is GateFormat.MARKDOWN:
        from trueup.render.markdown import gate_markdown

        return "\n".join(f"{gate_markdown(path, result)}\n" for path, result in judged)
    from trueup.render.console import console
    from trueup.render.gate_text import show_gates

    stream = io.StringIO()
    show_gates(judged, console(stream), several=several)
    return stream.getvalue()


def targets(wanted: Iterable[str]) -> list[tuple[GateFormat, Path]]:
    """Formats and files from `FORMAT=FILE`. Raises `FaceError` where one is not of that form."""
    found = []
    for one in wanted:
        name, equals, path = one.partition("=")
        known = [format.value for format in GateFormat]
        if not equals or not path:
            raise FaceError(
                f"--write {one}: is no FORMAT=FILE", fix="for example --write sarif=gate.sarif"
            )
        if name not in known:
            raise FaceError(f"--write {one}: {unknown('format', name, known)}")
        found.append((GateFormat(name), Path(path)))
    return found


def write_rendered(
    files: Iterable[tuple[GateFormat, Path]],
    judged: Judged,
    profile: str,
    code: int,
    *,
    several: bool,
) -> None:
    """Write each file in one step; one that cannot be written does not cost the others."""
    from trueup.render.files import write_report

    failed: FaceError | None = None
    for format, path in files:
        try:
            text = rendered(judged, format, profile, code, several=several)
            write_report(path.parent, path.name, text)
        except FaceError as error:
            failed = failed or error
    if failed is not None:
        raise failed
