"""Counts of tests as evidence: all passed, none fewer, no more warnings, and on which device."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.gates.acceptance.config import Tests
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.session import Session
from trueup.gates.findings import show

_BLOCK = "tests"


@dataclass(frozen=True, slots=True)
class _Counts:
    """One suite now and before."""

    session: Session
    asked: Tests
    source: Input

    def answer(self, name: str, of: str, held: bool, value: str, threshold: str) -> None:
        """One criterion."""
        self.session.answer(f"{self.asked.id}.{name}", of, _BLOCK, "true" if held else "false",
                            value, threshold)  # fmt: skip

    def found(self, kind: str, got: str, expected: str, *pointer: str | int) -> None:
        """One finding."""
        self.session.found.add(kind, self.source.name, self.source.where(pointer),
                               f"{self.asked.id}: {got}", expected)  # fmt: skip


def judge_tests(session: Session) -> None:
    """Every [[tests]] of the acceptance."""
    for asked in session.config.tests:
        now = session.document(asked.file, "test counts")
        if now is None:
            session.undetermined(f"{asked.id}.passed", _BLOCK, "it cannot be read")
            continue
        before = session.gate.document(asked.previous, "test counts before")
        check(now, "tests")
        check(before, "tests")
        counts = _Counts(session, asked, now)
        _suites(counts, before)
        _sums(counts, before)
        _device(counts)


def _suites(counts: _Counts, before: Input) -> None:
    known = {suite["name"]: suite for suite in before.data["suites"]}
    names: list[str] = []
    for index, suite in enumerate(counts.source.data["suites"]):
        name, passed, total = suite["name"], suite["passed"], suite["total"]
        names.append(name)
        errors = suite.get("errors", 0)
        passes = passed == total and total > 0 and not errors
        if not passes:
            got = f"{name} {passed}/{total}, {errors} errors"
            counts.found("tests_failed", got, "all of one or more", "suites", index)
        counts.answer("passed", f"[{name}]", passes, f"{passed}/{total}, {errors} errors",
                      "all of one or more, 0 errors")  # fmt: skip
        least = known.get(name, {}).get("total", 0)
        if total < least:
            counts.found("tests_fewer", f"{name} {total}", f">= {least}", "suites", index)
        counts.answer("total", f"[{name}]", total >= least, str(total), f">= {least}")
    for name in known:
        if name not in names:
            counts.found("tests_fewer", f"{name} is gone", "every suite of before", "suites")
            counts.answer("total", f"[{name}]", False, "nothing", f">= {known[name]['total']}")
    if len(set(names)) != len(names):
        counts.found("tests_fewer", "a suite is listed twice", "each suite once", "suites")
        counts.answer("total", "", False, f"{len(names)} suites", "each once")


def _sums(counts: _Counts, before: Input) -> None:
    """Warnings of all suites, and of the document itself; not counting them is no count of 0."""
    now, limit = _warnings(counts.source), _warnings(before)
    held = now is not None and limit is not None and now <= limit
    words = ["no count" if count is None else f"{count} warnings" for count in (now, limit)]
    if not held:
        counts.found("warnings_more", words[0], f"at most {words[1]}, as before", "warnings")
    counts.answer("warnings", "", held, words[0], f"at most {words[1]}")
    errors = counts.source.data.get("errors", 0)
    if errors:
        counts.found("tests_failed", f"{errors} errors", "0 errors", "errors")
        counts.answer("errors", "", False, str(errors), "0")


def _warnings(source: Input) -> int | None:
    holders = (source.data, *source.data["suites"])
    found = [holder["warnings"] for holder in holders if "warnings" in holder]
    return sum(found) if found else None


def _device(counts: _Counts) -> None:
    device = counts.source.data.get("device", "").strip()
    wanted = counts.asked.device
    held = bool(device) and wanted.casefold() in device.casefold()
    if not held:
        counts.found("device_unnamed", show(device), wanted or "the name of a device", "device")
    counts.answer("device", "", held, device or "nothing", wanted or "named")
