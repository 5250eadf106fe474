"""A gate's verdict as SARIF 2.1.0, for code scanning and for viewers: every finding, none folded.

A waived finding is there with its suppression. Artifacts are named from the root of the checkout
where they lie in it, for that is what viewers join them by.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from trueup import __version__
from trueup.render.clean import one_line, printable
from trueup.render.paths import is_url

if TYPE_CHECKING:
    from trueup.gates.catalogue.rules import Entry
    from trueup.gates.findings import Example, Finding, Verdict, WaiverUse, Where

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_FINGERPRINT = "trueup/v1"


def gate_sarif(
    judged: Iterable[tuple[str, Verdict | str]], entries: Mapping[str, Entry], exit_code: int
) -> str:
    """Write a log with one run for each path: its verdict, or why it could not be judged."""
    runs = [
        _refused(path, result) if isinstance(result, str) else _run(path, result, entries)
        for path, result in judged
    ]
    for run in runs:
        run["invocations"][0]["exitCode"] = exit_code
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": runs}
    return json.dumps(log, indent=2, ensure_ascii=True, allow_nan=False)


def _run(path: str, verdict: Verdict, entries: Mapping[str, Entry]) -> dict[str, Any]:
    waived = [(one, waiver) for waiver in verdict.waivers for one in waiver.findings]
    found: list[tuple[Finding, WaiverUse | None]] = [(one, None) for one in verdict.findings]
    found += waived
    outcomes = {rule.id: rule.summary for rule in verdict.rules}
    ids = list(dict.fromkeys([*outcomes, *(one.rule for one, _ in found)]))
    index = {rule: place for place, rule in enumerate(ids)}
    summaries = outcomes | {one.rule: one.summary for one, _ in found}
    return {
        "tool": _tool([_rule(rule, summaries.get(rule, ""), entries.get(rule)) for rule in ids]),
        "automationDetails": {"id": f"trueup-gate/{verdict.profile}/{_uri(path)}"},
        "invocations": [{"executionSuccessful": True}],
        "artifacts": [
            {
                "location": {"uri": _uri(info.path)},
                "length": info.bytes,
                "roles": ["analysisTarget"],
                "properties": {"kind": info.kind, "form": info.form, "rows": info.rows},
            }
            for info in verdict.artifacts
        ],
        "results": [_result(one, waiver, index) for one, waiver in found],
        "properties": {
            "verdict": verdict.verdict,
            "profile": verdict.profile,
            "rows": verdict.rows,
            "checks": verdict.checks,
            "waived": verdict.waived,
            "severityChanges": [change.to_dict() for change in verdict.severity_changes],
        },
    }


def _refused(path: str, message: str) -> dict[str, Any]:
    notification = {
        "level": "error",
        "message": {"text": printable(message)},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(path)}}}],
    }
    return {
        "tool": _tool([]),
        "invocations": [
            {"executionSuccessful": False, "toolExecutionNotifications": [notification]}
        ],
        "results": [],
    }


def _tool(rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {"driver": {"name": "trueup", "semanticVersion": __version__, "rules": rules}}


def _rule(rule: str, summary: str, entry: Entry | None) -> dict[str, Any]:
    out: dict[str, Any] = {"id": rule}
    if entry is None:
        return out | ({"shortDescription": {"text": one_line(summary)}} if summary else {})
    text = f"{entry.why}\n\nExpected: {entry.expected}\n\nFix: {entry.fix}"
    markdown = f"{entry.why}\n\n**Expected** {entry.expected}\n\n**Fix** {entry.fix}"
    for label, example in (("passes", entry.passes), ("fails", entry.fails)):
        if example:
            text += f"\n\nAn artifact that {label}:\n{example}"
            markdown += f"\n\nAn artifact that {label}:\n~~~~~\n{example}\n~~~~~"
    return out | {
        **({"name": _camel(entry.name)} if entry.name else {}),
        "shortDescription": {"text": one_line(entry.summary)},
        "fullDescription": {"text": one_line(entry.why)},
        "help": {"text": printable(text), "markdown": printable(markdown)},
        "defaultConfiguration": {"level": entry.severity},
    }


def _result(finding: Finding, waiver: WaiverUse | None, index: Mapping[str, int]) -> dict[str, Any]:
    steps = {"steps": list(finding.where.steps)} if finding.where.steps else {}
    out: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": finding.severity,
        "message": {"text": _message(finding)},
        "locations": [_location(finding.artifact, finding.where)],
        "occurrenceCount": finding.count,
        "partialFingerprints": {_FINGERPRINT: _fingerprint(finding)},
        "properties": {"expected": printable(finding.expected), **steps},
    }
    related = _related(finding.artifact, finding.examples[1:])
    if related:
        out["relatedLocations"] = related
    if finding.severity_was is not None:
        out["properties"]["severityByProfile"] = finding.severity_was
    if waiver is not None:
        out["suppressions"] = [_suppression(waiver)]
    return out


def _message(finding: Finding) -> str:
    place = f"{finding.where.key}: " if finding.where.key else ""
    return _text(f"{finding.summary}: {place}got {finding.got}, expected {finding.expected}")


def _text(text: str) -> str:
    """Text of a message, in which `[words](address)` would be a link."""
    return one_line(text).replace("](", "]\u200b(")


def _related(artifact: str, examples: Iterable[Example]) -> list[dict[str, Any]]:
    """Further places, each once: the format asks that they differ."""
    out: list[dict[str, Any]] = []
    for example in examples:
        place = _location(artifact, example.where)
        place["message"] = {"text": _text(f"{example.where}: {example.got}")}
        if place not in out:
            out.append(place)
    return out


def _location(artifact: str, where: Where) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(artifact)}}
    region: dict[str, int] = {}
    if where.line is not None:
        region["startLine"] = where.line
    if where.column is not None:
        region["startColumn"] = where.column
    if where.byte is not None:
        region |= {"byteOffset": where.byte, "byteLength": 0}
    if region:
        physical["region"] = region
    out: dict[str, Any] = {"physicalLocation": physical}
    if where.key:
        out["logicalLocations"] = [{"fullyQualifiedName": printable(where.key), "kind": "member"}]
    return out


def _suppression(waiver: WaiverUse) -> dict[str, Any]:
    said = {"expires": waiver.expires, "approvedBy": waiver.approved_by, "ticket": waiver.ticket}
    return {
        "kind": "external",
        "status": "accepted",
        "justification": printable(waiver.reason),
        "properties": {key: printable(value) for key, value in said.items() if value},
    }


def _fingerprint(finding: Finding) -> str:
    """The same in the next run: rule, artifact and key (in source what is there), no numbers."""
    told = finding.got if finding.where.column is not None else finding.where.key or ""
    parts = (finding.rule, _uri(finding.artifact), told)
    text = "\0".join(parts).encode("utf-8", "backslashreplace")
    return hashlib.sha256(text).hexdigest()


def _uri(path: str) -> str:
    """A path as a URI reference: relative to the checkout where it lies in it, else absolute."""
    if is_url(path):
        return quote(_bytes(path), safe=":/?#@!$&'()*+,;=%-._~")
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    relative = os.path.relpath(os.path.abspath(path), root)
    plain = relative if not relative.startswith("..") else os.path.abspath(path)
    return quote(_bytes(plain.replace(os.sep, "/")), safe="/-._~")


def _bytes(path: str) -> bytes:
    """The bytes of a file name, also of one that is not UTF-8."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "backslashreplace")


def _camel(name: str) -> str:
    """`DuplicateKey`: viewers expect names in this form."""
    return "".join(part.capitalize() for part in name.split("_"))
