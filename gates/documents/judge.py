"""Judges the documents of a run: each is read strictly, then held to the rules on its kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from trueup.gates.artifacts import Found
from trueup.gates.collector import Collector
from trueup.gates.documents.model import Answer, Document, Subject
from trueup.gates.documents.registry import document_checks
from trueup.gates.documents.run import Run
from trueup.gates.errors import Unreadable
from trueup.gates.findings import ArtifactInfo, Example, RuleOutcome, Status
from trueup.gates.profile.rules import Rule
from trueup.gates.read.documents.read import read_document
from trueup.gates.read.limits import Limits


def read_all(
    found: Iterable[Found], run: Run, collector: Collector, limits: Limits
) -> tuple[list[ArtifactInfo], list[tuple[Found, Unreadable]]]:
    """Read every document into `run.subjects`; give what was read, and what could not be."""
    infos: list[ArtifactInfo] = []
    refused: list[tuple[Found, Unreadable]] = []
    for artifact in found:
        try:
            document = read_document(
                artifact.path, artifact.name, artifact.kind,
                report=partial(collector.of_fault, artifact.name),
                limits=limits,
            )  # fmt: skip
        except Unreadable as error:
            refused.append((artifact, error))
            continue
        infos.append(_info(artifact, document))
        if document.data is not None:
            run.subjects.append(Subject(artifact.name, artifact.kind, artifact.path, document, run))
    return infos, refused


def _info(artifact: Found, document: Document) -> ArtifactInfo:
    return ArtifactInfo(
        artifact.name, artifact.kind, document.form, document.size, 0, 0, document=True
    )


def judge_rules(run: Run, collector: Collector) -> list[RuleOutcome]:
    """Hold every subject to every rule on its kind: one outcome for each rule."""
    rules = [rule for rule in run.profile.rules if rule.on != "telemetry"]
    return [_judge_rule(rule, run, collector) for rule in rules]


def _judge_rule(rule: Rule, run: Run, collector: Collector) -> RuleOutcome:
    subjects = [subject for subject in run.subjects if subject.kind == rule.on]
    if rule.when is not None and not rule.when.holds(run.config_rows()):
        reason = f"applies when {rule.when}"
        return RuleOutcome(rule.id, "not_applied", 0, 0, reason, rule.summary)
    check = document_checks()[rule.check]
    read, reason = 0, ""
    statuses: set[Status] = set()
    for subject in subjects:
        answer: Answer = check.run(subject, rule)
        read += answer.read
        reason = reason or answer.reason
        if answer.read or answer.flaws:
            statuses.add("true")
        for flaw in answer.flaws:
            statuses.add(flaw.status)
            got = f"undetermined: {flaw.got}" if flaw.status == "undetermined" else flaw.got
            collector.of_rule(rule, subject.name, [Example(flaw.where, got)])
    order: tuple[Status, ...] = ("false", "undetermined", "true", "not_applied")
    worst: Status = min(statuses, key=order.index, default="not_applied")
    said = "" if statuses else (reason if subjects else f"no artifact of the kind {rule.on}")
    return RuleOutcome(rule.id, worst, len(subjects), read, said, rule.summary)
