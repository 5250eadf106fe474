"""The statement to attach to a ticket: an in-toto Statement with a test-result predicate.

It names everything that was judged by its SHA-256, and what was asked. Its bytes depend on nothing
else: closing the same ticket again gives the same statement.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection
from importlib import resources
from typing import Any

from trueup.gates.closure.docket import Point
from trueup.gates.closure.outcome import CriterionOutcome

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
REPOSITORY = "repository"  # the subject that is a commit


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a statement."""
    text = (resources.files("trueup.gates.closure") / "statement.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def build(
    subjects: dict[str, str],
    commit: str,
    configuration: list[dict[str, Any]],
    criteria: tuple[CriterionOutcome, ...],
    points: tuple[Point, ...],
    rules: Collection[str],
    url: str | None,
    warned: bool,
) -> str:
    """The text of the statement of a ticket that may be closed.

    `rules` are those of the profile that held on every run; `warned`: a gate warned of something.
    """
    passed = [f"criterion: {one.id}" for one in criteria if one.status == "holds"]
    passed += [one.name for one in points if one.passed and not one.warned]
    passed += [f"rule: {rule}" for rule in rules]
    warnings = [f"criterion: {one.id}" for one in criteria if one.status == "waived"]
    warnings += [one.name for one in points if one.passed and one.warned]
    listed: list[dict[str, Any]] = [
        {"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(subjects.items())
    ]
    listed.append({"name": REPOSITORY, "digest": {"gitCommit": commit}})
    predicate: dict[str, Any] = {
        "result": "WARNED" if warnings or warned else "PASSED",
        "configuration": configuration,
        "passedTests": sorted(passed),
        "warnedTests": sorted(warnings),
        "failedTests": [],
    }
    if url is not None:
        predicate["url"] = url
    document = {
        "_type": STATEMENT_TYPE,
        "subject": listed,
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
