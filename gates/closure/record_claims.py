"""What a closure record claims, recomputed from its own numbers and held to the ticket's."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from trueup.gates.closure.docket import Point
from trueup.gates.closure.exact import printed, rational
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.outcome import CriterionOutcome
from trueup.gates.closure.record_form import Record
from trueup.gates.documents.model import Pointer
from trueup.gates.findings import show

_ORDER = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def judge_belongs(record: Record, ticket: Ticket, point: Point) -> None:
    """It closes this ticket, on this commit."""
    for key, wanted in (("item", ticket.id), ("commit", ticket.commit)):
        if record.data[key] != wanted:
            got = f"{key} {show(record.data[key])}, the ticket says {show(wanted)}"
            point.flaw("record_other", record.where(key), got)


def _recomputed(one: dict[str, Any]) -> str | None:
    """PASS or FAIL by the numbers as they are printed; None where it cannot be told."""
    value, wanted = one.get("value"), one["threshold"]
    if isinstance(value, bool | str) or isinstance(wanted, bool | str):
        if type(value) is not type(wanted) or one["comparator"] not in ("==", "!="):
            return None
        return "PASS" if (value == wanted) == (one["comparator"] == "==") else "FAIL"
    number, bound = rational(value), rational(wanted)
    if number is None or bound is None:
        return None
    return "PASS" if _ORDER[one["comparator"]](number, bound) else "FAIL"


def judge_verdict(record: Record, measured: tuple[CriterionOutcome, ...], point: Point) -> None:
    """Each verdict follows from its numbers, and the whole from each. Unknown is no pass."""
    waived = {one.id for one in measured if one.status == "waived"}
    stated, failed = [], []
    for at, one in record.each("acceptance"):
        stated.append(one["verdict"])
        failed += [one["criterion_id"]] if one["verdict"] == "FAIL" else []
        real = _recomputed(one)
        claim = f"{one['criterion_id']}: {printed(one.get('value'))} {one['comparator']}"
        claim = f"{claim} {printed(one['threshold'])}"
        if real is None and one["verdict"] == "PASS":
            point.unknown("record_acceptance", record.where(*at), f"{claim} is said to be PASS")
        elif real is not None and one["verdict"] != real:
            got = f"{claim} is {real}, said to be {one['verdict']}"
            point.flaw("record_acceptance", record.where(*at), got)
    whole = "PASS" if all(one == "PASS" for one in stated) else "FAIL"
    if record.data["verdict"] != whole:
        got = (
            f"{record.data['verdict']}, but all of its {len(stated)} verdicts together are {whole}"
        )
        point.flaw("record_verdict", record.where("verdict"), got)
    elif not set(failed) <= waived:
        point.flaw("record_verdict", record.where("verdict"), f"FAIL: {', '.join(failed)}")


def judge_criteria(
    record: Record, ticket: Ticket, measured: tuple[CriterionOutcome, ...], point: Point
) -> None:
    """Every criterion of the ticket is there once, with the value that was measured here."""
    listed: dict[str, list[tuple[Pointer, dict[str, Any]]]] = {}
    for at, one in record.each("acceptance"):
        listed.setdefault(one["criterion_id"], []).append((at, one))
    known = {one.id: one for one in measured}
    for criterion in ticket.criteria:
        found = listed.get(criterion.id, [])
        if len(found) != 1:
            got = f"{criterion.id} stands in it {len(found)} times"
            point.flaw("record_criterion", record.where("acceptance"), got)
            continue
        at, one = found[0]
        value = known[criterion.id].value
        if value is not None and printed(one.get("value")) != value and not _same(one, value):
            got = f"{criterion.id}: {printed(one.get('value'))}, the artifact says {value}"
            point.flaw("record_criterion", record.where(*at, "value"), got)
    for name, found in listed.items():
        if name not in known:
            got = f"{show(name)} is no criterion of the ticket"
            point.flaw("record_criterion", record.where(*found[0][0]), got)


def _same(one: dict[str, Any], value: str) -> bool:
    """Whether two spellings are one number: 0.5 and 0.50."""
    try:
        other = rational(json.loads(value, parse_float=Decimal))
    except ValueError:
        return False
    return other is not None and rational(one.get("value")) == other


def judge_tests(record: Record, ticket: Ticket, previous: Record | None, point: Point) -> None:
    """All tests passed, and none of those of the record before is gone."""
    tests = record.data["tests"]
    where = record.where("tests")
    if tests["passed"] != tests["total"] or tests["total"] < 1:
        point.flaw("record_tests", where, f"{tests['passed']} of {tests['total']} passed")
    if not str(tests["device"]).strip():
        point.flaw("record_tests", where, "no device named")
    if previous is not None:
        before = previous.data["tests"]["total"]
        if tests["total"] < before:
            point.flaw("record_tests", where, f"{tests['total']} tests, {before} before")
    elif ticket.evidence.previous is None:
        point.flaw(
            "record_first", where, f"{tests['total']} tests, no record before to compare with"
        )


def judge_warnings(record: Record, point: Point) -> None:
    """There are no more of them than there were."""
    found = record.data["warnings"]
    if found["count"] > found["baseline"]:
        got = f"{found['count']} warnings, {found['baseline']} at the baseline"
        point.flaw("record_warnings", record.where("warnings"), got)
