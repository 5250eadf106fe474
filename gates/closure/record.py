"""A closure record: its own statements, recomputed, and held against the ticket and the files."""

from __future__ import annotations

from functools import partial

from trueup.gates.closure.docket import Docket
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.outcome import CriterionOutcome
from trueup.gates.closure.record_claims import (
    judge_belongs,
    judge_criteria,
    judge_tests,
    judge_verdict,
    judge_warnings,
)
from trueup.gates.closure.record_form import read_record
from trueup.gates.closure.record_traces import (
    judge_commands,
    judge_hashes,
    judge_retractions,
    judge_words,
)


def judge_record(
    ticket: Ticket,
    criteria: tuple[CriterionOutcome, ...],
    files: Files,
    docket: Docket,
) -> None:
    """Hold a closure record to everything it can be held to, if the ticket names one."""
    if ticket.evidence.closure is None:
        if ticket.evidence.previous is not None:
            point = docket.point("record")
            got = "previous without closure"
            point.flaw("record_malformed", ticket.where("evidence", "previous"), got)
        return
    record = read_record(ticket, files, docket, "closure")
    if record is None:
        return
    ask = partial(docket.point, artifact=record.shown)
    judge_belongs(record, ticket, ask("record: is the ticket's"))
    judge_verdict(record, criteria, ask("record: verdicts"))
    judge_criteria(record, ticket, criteria, ask("record: criteria"))
    judge_commands(record, ticket, ask("record: commands"))
    judge_hashes(record, ticket, files, ask("record: hashes"))
    previous = None
    if ticket.evidence.previous is not None:
        previous = read_record(ticket, files, docket, "previous")
    judge_tests(record, ticket, previous, ask("record: tests"))
    judge_warnings(record, ask("record: warnings"))
    judge_words(record, ask("record: nothing left open"))
    judge_retractions(record, ask("record: retractions"))
