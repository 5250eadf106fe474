"""Judges the ticket's runs by its profile: the gate itself, not what the ticket says of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup.gates.artifacts import find_artifacts
from trueup.gates.closure.criteria import decide
from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.values import Values
from trueup.gates.collector import Collector
from trueup.gates.errors import GateError, Unreadable
from trueup.gates.findings import Verdict, Where, show
from trueup.gates.profile.load import built_in, load_profile
from trueup.gates.profile.rules import Profile
from trueup.gates.read.limits import Limits
from trueup.gates.settings.gate import judge_under
from trueup.gates.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Gate:
    """One judged run."""

    place: Place
    verdict: Verdict | None  # None: it could not be judged


@dataclass(slots=True)
class Judging:
    """The profile, and every verdict it gave."""

    ticket: Ticket
    files: Files
    docket: Docket
    settings: Settings
    profile_file: Place | None = None
    profile: Profile = field(init=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Load the profile. Raises `ProfileError`, or `ClosureError` where it leads out."""
        self.name = self.ticket.profile
        if self.name not in built_in():
            point = Point("profile", self.docket, self.ticket.name)
            found = self.files.find("ticket", self.name)
            if not isinstance(found, Place):
                raise ClosureError(
                    "ticket.profile: there is no such profile", where=self.ticket.name,
                    got=found[1], expected=f"one of {', '.join(built_in())}, or a TOML file",
                    fix="give a built-in profile, or a TOML file below the root",
                )  # fmt: skip
            self.profile_file = found
            self.name = str(found.path)
            self.files.digest(found, point, self.ticket.where("ticket", "profile"))
        self.profile = load_profile(self.name)

    @property
    def limits(self) -> Limits:
        """The limits of the settings, else the usual ones."""
        return self.settings.limits or Limits()

    def of_the_run(self) -> Gate | None:
        """Judge the run the ticket is closed on."""
        where = self.ticket.where("ticket", "run")
        point = self.docket.point("gate: the run passes")
        place = self._find(self.ticket.run, point, "run")
        if place is None:
            return None
        self.files.run = place
        return self._gate(place, point, where)

    def of_further_runs(self) -> list[Gate]:
        """Judge the ticket's further runs, and hold its criteria to each of them."""
        gates = []
        for index, relative in enumerate(self.ticket.runs):
            point = self.docket.point(f"gate: the run {relative} passes")
            where = self.ticket.where("ticket", "runs", index)
            place = self._find(relative, point, "runs", index)
            if place is None:
                continue
            gates.append(self._gate(place, point, where))
            missed = self._missed(place)
            if missed is not None:
                held = self.docket.point(f"criteria: the run {relative}")
                held.flaw("criterion_false", where, f"{place.shown}: {missed}")
        return gates

    def _find(self, relative: str, point: Point, *key: str | int) -> Place | None:
        where = self.ticket.where("ticket", *key)
        found = self.files.find("ticket", relative, folder=True)
        if isinstance(found, Place):
            return found
        kind = "path_leads_out" if found[0] == "path_leads_out" else "run_unreadable"
        if kind == "path_leads_out":
            point.flaw(kind, where, found[1])
        else:
            point.unknown(kind, where, found[1])
        return None

    def _gate(self, place: Place, point: Point, where: Where) -> Gate:
        """The gate's verdict; every file it judged becomes a subject."""
        self._watch(place)
        try:
            verdict = judge_under(self.settings, place.shown, self.name)
        except Unreadable as error:
            point.unknown("run_unreadable", where, f"{error.what}, {error.got}".rstrip(", "))
            return Gate(place, None)
        if not verdict.passed:
            errors = sum(one.severity == "error" for one in verdict.findings)
            first = next((one.rule for one in verdict.findings if one.severity == "error"), "")
            got = f"{place.shown}: {errors} finding{'s' * (errors != 1)}, the first of {first}"
            point.flaw("gate_failed", where, got)
        elif verdict.waived:
            got = f"{place.shown}: {verdict.waived} waived by {verdict.settings}"
            point.flaw("gate_waived", where, got)
        for artifact in verdict.artifacts:
            found = self.files.place_of(Path(artifact.path))
            if found is None:
                point.flaw("path_leads_out", where, show(artifact.path))
            else:
                self.files.digest(found, point, where)
        return Gate(place, verdict)

    def _watch(self, place: Place) -> None:
        """Size and times of what will be judged, before it is."""
        try:
            found = find_artifacts(place.path, place.shown, self.profile, Collector())
        except GateError:
            return
        for artifact in found:
            self.files.watch(Path(os.path.realpath(artifact.path)))

    def failed(self, place: Place) -> str | None:
        """Why another run did not pass: its gate, or a criterion. None if it did."""
        try:
            verdict = judge_under(self.settings, place.shown, self.name)
        except GateError as error:
            return f"cannot be judged: {error.what}"
        if not verdict.passed:
            rules = sorted({one.rule for one in verdict.findings if one.severity == "error"})
            return f"does not pass its gate ({', '.join(rules[:5])})"
        return self._missed(place)

    def _missed(self, place: Place) -> str | None:
        """The first criterion that another run does not meet, its files being named alike."""
        listed = {one.name: one for one in self.ticket.files}
        values = Values(place, listed, self.files, self.profile, self.limits)
        values.expect(self.ticket.criteria)
        for criterion in self.ticket.criteria:
            outcome = decide(criterion, values)
            if outcome.status != "holds":
                value = outcome.value or outcome.reason
                return (
                    f"criterion {criterion.id} {outcome.status}: {value}, asked {outcome.threshold}"
                )
        return None

    def configuration(self, verdicts: tuple[Verdict, ...]) -> list[dict[str, Any]]:
        """What was asked: ticket, profile and settings, as in-toto describes resources."""
        own = next(iter(self.files.subjects().items()))
        profile: dict[str, Any] = {
            "name": self.ticket.profile,
            "digest": {"sha256": self.profile.digest},
            "annotations": {"role": "profile"},
        }
        if self.profile_file is not None:
            profile["name"] = self.profile_file.name
        ticket = {
            "name": own[0],
            "digest": {"sha256": own[1]},
            "annotations": {"role": "ticket", "id": self.ticket.id},
        }
        settings = [
            {
                "name": os.path.basename(one.settings),
                "digest": {"sha256": one.settings_digest.removeprefix("sha256:")},
                "annotations": {"role": "settings"},
            }
            for one in verdicts[:1]
            if one.settings
        ]
        return [ticket, profile, *settings]
