"""`close`: a ticket in, a `Closure` out, with the statement to attach if it may be closed."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from trueup.gates.closure.artifacts import judge_listed, unlisted_evals, values_of
from trueup.gates.closure.attempts import judge_ledger
from trueup.gates.closure.board import judge_board
from trueup.gates.closure.commands import judge_commands
from trueup.gates.closure.criteria import decide, threshold
from trueup.gates.closure.deviations import judge_deviations
from trueup.gates.closure.docket import Docket
from trueup.gates.closure.evidence import judge_evidence
from trueup.gates.closure.files import Files, Place, root_of
from trueup.gates.closure.history import Work, open_repository, read_work
from trueup.gates.closure.model import Criterion, Deviation, Ticket
from trueup.gates.closure.outcome import Closure, CriterionOutcome
from trueup.gates.closure.protocol import judge_thread, read_export
from trueup.gates.closure.record import judge_record
from trueup.gates.closure.repository import Commit, GitFailed, Repository
from trueup.gates.closure.reruns import judge_reruns
from trueup.gates.closure.runs import Gate, Judging
from trueup.gates.closure.statement import build
from trueup.gates.closure.ticket import read_ticket
from trueup.gates.closure.words import hidden, placeholder
from trueup.gates.findings import Verdict, Where, show
from trueup.gates.settings.model import Settings

_WORDS = ("title", "text", "reason", "none")  # texts in which TBD is no name of a file


def close(
    ticket: str | os.PathLike[str],
    *,
    equations: Collection[str],
    root: str | os.PathLike[str] | None = None,
    repository: str | os.PathLike[str] | None = None,
    board: str | None = None,
    settings: Settings | None = None,
    now: datetime | None = None,
) -> Closure:
    """Hold a ticket to the files it names. `equations`: the ids of the catalogue.

    Nothing leaves `root`: by default the repository around the ticket, else the ticket's folder.
    `repository` and `board` stand for what the ticket says. Raises `ClosureError` if the ticket
    itself is not fit, and `ProfileError` or `SettingsError` as the gate does.
    """
    path = Path(ticket)
    read, sha256 = read_ticket(path, str(ticket))
    base = root_of(path, None if root is None else Path(root))
    docket = Docket(read.name)
    folder = Path(os.path.realpath(path.parent))
    files = Files(base, folder, str(path.parent), docket)
    own = Place(Path(os.path.realpath(path)), read.name, _name(path, base))
    files.note(own, sha256)
    given = None if repository is None else _given(Path(repository))
    return _Closing(read, files, docket, settings or Settings(), now or datetime.now(UTC)).run(
        equations, given, board
    )


def _name(path: Path, base: Path) -> str:
    return Path(os.path.realpath(path)).relative_to(base).as_posix()


def _given(folder: Path) -> Repository:
    return Repository(Path(os.path.realpath(folder)), str(folder))


class _Closing:
    """The steps of one closing, each of which notes what it finds in the docket."""

    def __init__(
        self, ticket: Ticket, files: Files, docket: Docket, settings: Settings, now: datetime
    ) -> None:
        self.ticket, self.files, self.docket, self.now = ticket, files, docket, now
        self.judging = Judging(ticket, files, docket, settings)

    def run(
        self, equations: Collection[str], given: Repository | None, board: str | None
    ) -> Closure:
        ticket, files, docket = self.ticket, self.files, self.docket
        _texts(ticket, docket)
        gate = self.judging.of_the_run()
        repository = open_repository(ticket, files, docket, given)
        commit, work = self._history(repository)
        judge_commands(ticket, files, repository, commit, docket, self.now)
        waived = judge_deviations(ticket, files, repository, equations, docket)
        export = read_export(ticket, files, docket)
        if export is not None:
            judge_thread(ticket, export, work, waived, equations, docket, self.now)
        judge_board(ticket, files, docket, board)
        judge_evidence(ticket, files, repository, waived, docket, self.now)
        criteria = self._criteria(gate, waived)
        gates = [gate, *self.judging.of_further_runs()]
        judge_reruns(ticket, files, self.judging.profile, self.judging.failed, docket)
        judge_ledger(ticket, files, docket)
        judge_record(ticket, criteria, files, docket)
        _steady(files, docket)
        return self._closure(criteria, [one for one in gates if one is not None])

    def _history(self, repository: Repository | None) -> tuple[Commit | None, Work | None]:
        if repository is None:
            return None, None
        work = read_work(self.ticket, repository, self.docket, self.now)
        try:
            return repository.commit(self.ticket.commit), work
        except GitFailed:
            return None, work

    def _criteria(self, gate: Gate | None, waived: list[Deviation]) -> tuple[CriterionOutcome, ...]:
        """Decide each, and let the waived ones go."""
        ticket, docket = self.ticket, self.docket
        unfit = judge_listed(ticket, self.files, gate, docket)
        unlisted_evals(ticket, self.files, gate, docket)
        values = values_of(ticket, self.files, self.judging, unfit)
        by_id = {one.target: one for one in waived if one.waives == "criterion"}
        outcomes = []
        for criterion in ticket.criteria:
            outcome = _undecided(criterion) if values is None else decide(criterion, values)
            outcomes.append(_noted(outcome, by_id.get(criterion.id), ticket, docket))
        return tuple(outcomes)

    def _closure(self, criteria: tuple[CriterionOutcome, ...], gates: list[Gate]) -> Closure:
        ticket, files, docket = self.ticket, self.files, self.docket
        findings = docket.collector.findings()
        stands = all(point.answer in ("holds", "not asked") for point in docket.points)
        failed = any(one.severity == "error" for one in findings)
        passed = stands and not failed and all(one.satisfied for one in criteria)
        closure = Closure(
            ticket=ticket.id,
            title=ticket.title,
            verdict="pass" if passed else "fail",
            criteria=criteria,
            points=tuple(docket.points),
            findings=findings,
            gates=tuple(one.verdict for one in gates if one.verdict is not None),
            subjects=files.subjects(),
            read=files.paths(),
        )
        if not passed:
            return closure
        warned = any(one.severity == "warning" for one in closure.all_findings)
        text = build(
            closure.subjects, ticket.commit, self.judging.configuration(closure.gates), criteria,
            closure.points, _rules(closure.gates), ticket.thread.url, warned,
        )  # fmt: skip
        return replace(closure, statement=text)


def _rules(gates: tuple[Verdict, ...]) -> list[str]:
    """The profile's rules that read something and held, on every run that they applied to."""
    seen: dict[str, set[str]] = {}
    for gate in gates:
        for rule in gate.rules:
            seen.setdefault(rule.id, set()).add(rule.status)
    return sorted(rule for rule, found in seen.items() if found - {"not_applied"} == {"true"})


def _texts(ticket: Ticket, docket: Docket) -> None:
    """Nothing is left open in the ticket's words, and nothing hides in them."""
    open_point = docket.point("ticket: nothing left open")
    hidden_point = docket.point("ticket: nothing hidden")
    for way, text in ticket.texts:
        if way[-1] == "line" and way[0] == "command":
            continue  # a shell reads it with rules of its own
        if (char := hidden(text)) is not None:
            hidden_point.flaw("hidden_character", ticket.where(*way), f"holds {char}")
        waiver = way[0] in ("deviation", "rerun") and way[-1] == "reason"  # judged there
        if way[-1] in _WORDS and not waiver and (word := placeholder(text)) is not None:
            open_point.flaw("placeholder_text", ticket.where(*way), show(word))


def _undecided(criterion: Criterion) -> CriterionOutcome:
    return CriterionOutcome(
        criterion.id, criterion.text, "cannot be determined", str(criterion.source), None,
        threshold(criterion), criterion.unit, "", Where(), "there is no run directory",
        criterion.blocker,
    )  # fmt: skip


def _noted(
    outcome: CriterionOutcome, deviation: Deviation | None, ticket: Ticket, docket: Docket
) -> CriterionOutcome:
    """Write a criterion's answer into the docket; a deviation lets it go, and is seen to."""
    where = Where(outcome.where.line, outcome.where.byte, outcome.where.row, outcome.where.step,
                  outcome.id)  # fmt: skip
    said = f"{outcome.value or 'no value'}, asked {outcome.threshold} {outcome.unit}"
    reason = f": {outcome.reason}" if outcome.reason else ""
    point = docket.point(f"criterion {outcome.id}", outcome.artifact or ticket.name)
    docket.points.remove(point)  # criteria are reported by themselves
    if deviation is not None:
        at = ticket.where(*deviation.at)
        if outcome.status == "holds":
            point.flaw("deviation_idle", at, f"{outcome.id} holds", ticket.name)
            return outcome
        got = f"{outcome.id}: {said}{reason}; {show(deviation.reason)}"
        point.flaw("criterion_waived", at, got, ticket.name)
        return replace(
            outcome, status="waived", measured=outcome.status, waived_by=deviation.reason
        )
    if outcome.status == "does not hold":
        point.flaw("criterion_false", where, f"{said}{reason}")
    elif outcome.status == "cannot be determined":
        point.unknown(
            "criterion_undetermined", where, f"{outcome.reason}; asked {outcome.threshold}"
        )
    return outcome


def _steady(files: Files, docket: Docket) -> None:
    """What was digested is what was judged: nobody wrote to it in between."""
    point = docket.point("files: none changed while they were judged")
    for place in files.unsteady():
        got = f"{place.shown}: size or times differ"
        point.flaw("file_changed", Where(), got, place.shown)
