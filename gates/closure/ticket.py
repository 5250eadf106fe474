"""Reads `ticket.toml` strictly and makes a `Ticket` of it; what is wrong with it is an error."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.exact import Exact, rational, read_exact
from trueup.gates.closure.model import (
    FILE_KINDS,
    Command,
    Criterion,
    Deviation,
    Evidence,
    Kernel,
    ListedFile,
    Rerun,
    Source,
    Thread,
    Ticket,
)
from trueup.gates.documents.model import Document, Pointer
from trueup.gates.errors import Unreadable
from trueup.gates.read.limits import Limits
from trueup.gates.structure import first_problem

_MAX_BYTES = 1 << 20
_STEP = re.compile(r"[^.\[\]]+|\[(\d+)\]")


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of `ticket.toml`."""
    text = (resources.files("trueup.gates.closure") / "ticket.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def read_ticket(path: Path, name: str | None = None) -> tuple[Ticket, str]:
    """The ticket and its SHA-256. Raises `ClosureError` with line and key."""
    shown = name or str(path)
    try:
        exact = read_exact(path, shown, "TOML", Limits(max_document=_MAX_BYTES, max_nodes=50_000))
    except Unreadable as error:
        raise ClosureError(
            error.what, where=error.where, got=error.got,
            expected=error.expected or "a ticket in TOML", fix=error.fix,
        ) from None  # fmt: skip
    _refuse_faults(exact, shown)
    _against_schema(exact.document, shown)
    ticket = _ticket(exact, shown)
    _refuse_repeats(ticket)
    for criterion in ticket.criteria:
        _refuse_criterion(criterion, ticket)
    return ticket, exact.sha256


def _refuse_faults(exact: Exact, shown: str) -> None:
    if not exact.faults:
        return
    fault = exact.faults[0]
    kind = kinds()[fault.kind]
    place = ":".join(str(p) for p in (shown, fault.line, fault.byte, fault.key) if p is not None)
    more = f" ({len(exact.faults)} faults in this file)" if len(exact.faults) > 1 else ""
    raise ClosureError(
        f"{kind.summary}{more}", where=place, got=fault.got, expected=kind.expected, fix=kind.fix
    )


def _against_schema(document: Document, shown: str) -> None:
    problem = first_problem(schema(), document.data)
    if problem is None:
        return
    where = document.where(*pointer_of(problem.place))
    place = f"{shown}:{where.line}" if where.line and problem.place else shown
    raise ClosureError(
        f"{problem.place or 'the ticket'} {problem.what}", where=place,
        fix=problem.fix or "docs/closing.md has a whole example and every key",
    )  # fmt: skip


def pointer_of(place: str) -> Pointer:
    """`criterion[0].value` as a pointer."""
    parts = _STEP.finditer(place)
    return tuple(int(part[1]) if part[1] is not None else part[0] for part in parts)


def _ticket(exact: Exact, shown: str) -> Ticket:
    plain, data = exact.document.data, exact.data
    head, thread, evidence = plain["ticket"], plain["thread"], plain["evidence"]
    return Ticket(
        name=shown,
        document=exact.document,
        **{key: head[key] for key in ("id", "title", "assignee", "run", "profile")},
        **{key: head[key] for key in ("base", "commit")},
        phase=head.get("phase"),
        ledger=head.get("ledger"),
        runs=tuple(head.get("runs", ())),
        repository=head.get("repository"),
        thread=Thread(**{key: thread.get(key) for key in ("export", "number", "url", "none")}),
        evidence=Evidence(
            **{k: evidence.get(k) for k in ("kernels", "sha256", "none", "closure", "previous")}
        ),
        board=plain["board"]["export"] if "board" in plain else None,
        kernels=tuple(
            Kernel(at, one["id"], one["contract"], one.get("repository"), one.get("commit"))
            for at, one in _each(plain, "kernel")
        ),
        commands=tuple(_command(at, one, data) for at, one in _each(plain, "command")),
        files=tuple(
            ListedFile(at, kind, one["name"], one["path"], one["sha256"])
            for kind in FILE_KINDS
            for at, one in _each(plain, kind)
        ),
        criteria=tuple(_criterion(at, one) for at, one in _each(data, "criterion")),
        deviations=tuple(_deviation(at, one) for at, one in _each(plain, "deviation")),
        reruns=tuple(
            Rerun(at, one["run"], one["reason"]) for at, one in _each(plain, "rerun")
        ),
        texts=tuple(_texts(plain)),
    )  # fmt: skip


def _each(data: dict[str, Any], key: str) -> Iterator[tuple[Pointer, Any]]:
    for index, one in enumerate(data.get(key, ())):
        yield (key, index), one


def _command(at: Pointer, one: dict[str, Any], data: dict[str, Any]) -> Command:
    keys = ("line", "directory", "exit_code", "started_at", "log", "sha256")
    duration = data["command"][at[1]]["duration_s"]
    return Command(at=at, env=one.get("env", {}), duration_s=duration, **{k: one[k] for k in keys})


def _source(one: dict[str, Any]) -> Source:
    return Source(one["artifact"], one.get("path"), one.get("column"), one.get("at"))


def _criterion(at: Pointer, one: dict[str, Any]) -> Criterion:
    baseline = one.get("baseline")
    return Criterion(
        at=at,
        source=_source(one),
        baseline=_source(baseline) if isinstance(baseline, dict) else baseline,
        unit_path=one.get("unit_path"),
        blocker=one.get("blocker", False),
        **{key: one[key] for key in ("id", "text", "comparison", "value", "unit")},
    )


def _deviation(at: Pointer, one: dict[str, Any]) -> Deviation:
    waives = next(key for key in ("criterion", "equation", "file") if key in one)
    keys = ("reason", "documented", "approved_by")
    return Deviation(at=at, waives=waives, target=one[waives], **{key: one[key] for key in keys})


def _texts(plain: Any) -> Iterator[tuple[Pointer, str]]:
    """Every text of the file with the way to it."""
    waiting: list[tuple[Pointer, Any]] = [((), plain)]
    while waiting:
        way, value = waiting.pop()
        if isinstance(value, str):
            yield way, value
        elif isinstance(value, dict):
            waiting.extend(((*way, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*way, index), inner) for index, inner in enumerate(value))


def _refuse_repeats(ticket: Ticket) -> None:
    """Names that criteria, deviations and reports refer to must mean one thing."""
    named: list[tuple[str, str, Pointer]] = [
        *(("artifact", one.name, (*one.at, "name")) for one in ticket.files),
        *(("criterion", one.id, (*one.at, "id")) for one in ticket.criteria),
        *(("kernel", one.id, (*one.at, "id")) for one in ticket.kernels),
        *(("deviation", f"{one.waives} {one.target}", one.at) for one in ticket.deviations),
    ]
    seen: set[tuple[str, str]] = set()
    for what, name, at in named:
        if (what, name.casefold()) in seen:
            raise ClosureError(
                f"{ticket.where(*at).key}: names the {what} a second time",
                where=place(ticket, at), got=name, fix="give each its own",
            )  # fmt: skip
        seen.add((what, name.casefold()))


def place(ticket: Ticket, at: Pointer) -> str:
    """`ticket.toml:12`, for errors."""
    line = ticket.where(*at).line
    return f"{ticket.name}:{line}" if line else ticket.name


def _refuse_criterion(one: Criterion, ticket: Ticket) -> None:
    """A criterion that could never be told is a mistake in the ticket, not of the run."""
    problem = _wrong_value(one) or _wrong_source(one.source, ticket)
    if problem is None and isinstance(one.baseline, Source):
        problem = _wrong_source(one.baseline, ticket)
    if problem is None and one.unit_path is not None and one.source.column is not None:
        problem = "unit_path is for documents, not for telemetry"
    if problem is not None:
        raise ClosureError(
            f"criterion {one.id}: {problem}", where=place(ticket, one.at),
            fix="docs/closing.md lists what each comparison takes",
        )  # fmt: skip


def _wrong_value(one: Criterion) -> str | None:
    """Whether the comparison has what it needs."""
    within = one.comparison.endswith("-within")
    if within != (one.baseline is not None):
        return f"{one.comparison} {'needs a' if within else 'takes no'} baseline"
    if one.comparison == "between":
        if not isinstance(one.value, list):
            return "between needs value = [low, high]"
        low, high = (rational(bound) for bound in one.value)
        if low is None or high is None or low > high:
            return "value = [low, high]: the first must not exceed the second"
        return None
    if isinstance(one.value, list):
        return f"{one.comparison} takes one value"
    if one.comparison in ("==", "!="):
        return None
    number = rational(one.value)
    if number is None:
        return f"{one.comparison} compares numbers"
    return "the allowed distance is negative" if within and number < 0 else None


def _wrong_source(source: Source, ticket: Ticket) -> str | None:
    """Whether it names an artifact of the ticket, in the way that artifact is read."""
    from trueup.gates.closure.pointer import parse_pointer
    from trueup.gates.structure import closest

    names = {one.name: one.kind for one in ticket.files}
    kind = names.get(source.artifact)
    if kind is None:
        hint = closest(source.artifact, names)
        known = f"known: {', '.join(names)}" if names else "the ticket lists no file"
        return f"no file of the ticket is called {source.artifact}; {hint or known}"
    if kind == "telemetry":
        if source.column is None or source.moment is None or source.path is not None:
            return f"{source.artifact} is telemetry: needs column and at, no path"
        return None
    if source.path is None or source.column is not None or source.moment is not None:
        return f"{source.artifact} is a document: needs path, no column and no at"
    parsed = parse_pointer(source.path)
    return f"path {parsed}" if isinstance(parsed, str) else None
