"""`judge_acceptance`: an acceptance file in, a `Judgement` out."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trueup.gates.acceptance.ablations import judge_ablations
from trueup.gates.acceptance.bands import judge_bands
from trueup.gates.acceptance.behaviour import judge_behaviour
from trueup.gates.acceptance.counts import judge_tests
from trueup.gates.acceptance.docs import publish, site
from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.expectations import Told, ask, require_engine
from trueup.gates.acceptance.final import judge_final
from trueup.gates.acceptance.found import Found
from trueup.gates.acceptance.inputs import Folder
from trueup.gates.acceptance.load import load_acceptance
from trueup.gates.acceptance.model import Judgement
from trueup.gates.acceptance.profile import judge_profile
from trueup.gates.acceptance.session import Session
from trueup.gates.acceptance.smoke import judge_smoke
from trueup.gates.acceptance.termination import judge_hard_stop
from trueup.gates.findings import Where
from trueup.gates.read.limits import Limits

ACCEPTANCE = "acceptance.toml"


def judge_acceptance(
    path: str | Path, run: str | Path | None = None, *, docs: Path | None = None,
    show: Callable[[Judgement], None] | None = None, limits: Limits | None = None,
) -> Judgement:  # fmt: skip
    """Judge a run by an acceptance file (or a folder that holds `acceptance.toml`).

    `run` is the folder of what the run left; without it, the folder of the acceptance. With `docs`,
    a site of Data Docs is written there, whole or not at all; `show` gets the judgement before
    that, so that a place that cannot be written does not cost it. Raises `GateError` if there is
    nothing that could be judged.
    """
    with site(docs) as building:
        session, file = _open(Path(path), run, limits or Limits())
        _judge(session)
        if session.refused and len(session.refused) >= _asked(session):
            raise session.refused[0]
        told = _second_judge(session, building)
        judgement = _judgement(session, told)
        if show is not None:
            show(judgement)
        if docs is not None and building is not None:
            if told is None:
                raise AcceptanceError(
                    "has no numbers, so there are no Data Docs", where=str(file),
                    fix="leave out --docs, or ask for a [[band]] or a [[limit]]",
                )  # fmt: skip
            publish(building, docs, judgement)
    return judgement


def _open(path: Path, run: str | Path | None, limits: Limits) -> tuple[Session, Path]:
    file = path / ACCEPTANCE if path.is_dir() else path
    config, source = load_acceptance(file, str(file))
    found = Found()
    gate = Folder(file.parent, _shown(file.parent), found.fault, limits)
    place = file.parent if run is None else Path(run)
    if not place.is_dir():
        raise AcceptanceError("is no folder", where=str(place), expected="the folder of a run")
    left = gate if run is None else Folder(place, _shown(place), found.fault, limits)
    return Session(config, source, gate, left, found), file


def _shown(folder: Path) -> str:
    return "" if str(folder) == "." else str(folder)


def _judge(session: Session) -> None:
    """Every block that the acceptance has; the final one last, since its tiers gather the rest."""
    config = session.config
    if config.band or config.limit or config.smoke or config.final:
        _results_are_named(session)
    judge_bands(session)
    judge_behaviour(session)
    if config.smoke is not None:
        judge_smoke(session, config.smoke)
    if config.hard_stop is not None:
        judge_hard_stop(session, config.hard_stop)
    if config.profile is not None:
        judge_profile(session, config.profile)
    judge_ablations(session)
    judge_tests(session)
    if config.final is not None:
        judge_final(session, config.final)


def _results_are_named(session: Session) -> None:
    """Read the results first: a run that left none is said to have left none."""
    for file in session.config.results.files:
        session.document(file, "results")


def _asked(session: Session) -> int:
    """How many files of the run were asked for: those opened, and those refused."""
    opened = [name for name, info in session.run.opened.items() if info.kind in _OF_RUN]
    return len(opened) + len(session.refused)


_OF_RUN = ("results", "log", "health", "audit", "series", "termination", "smoke report",
           "kernel profile", "ablation", "test counts")  # fmt: skip


def _second_judge(session: Session, building: Path | None) -> Told | None:
    """Great Expectations over every number; what it says otherwise is found."""
    if not any(one.measure is not None for one in session.criteria):
        return None
    require_engine()
    told = ask(session.criteria, session.config.acceptance.id, building)
    for kind, pairs in (("engine_failed", told.errors), ("engines_disagree", told.disagreements)):
        for criterion, got in pairs:
            session.found.add(kind, session.source.name, Where(key=criterion.name), got)
    return told


def _judgement(session: Session, told: Told | None) -> Judgement:
    if not any(one.decides for one in session.criteria):
        session.found.add("nothing_judged", session.source.name, Where(),
                          f"{len(session.criteria)} criteria that decide")  # fmt: skip
    opened = {**session.gate.opened, **session.run.opened}
    engines = {"trueup": importlib.metadata.version("trueup")}
    if told is not None:
        engines["great_expectations"] = told.version
    return Judgement(
        id=session.config.acceptance.id,
        criteria=tuple(session.criteria),
        findings=session.found.findings(),
        artifacts=tuple(replace(info, document=True) for info in opened.values()),
        expectations=told.expectations if told else (),
        engines=engines,
        digest=f"sha256:{session.source.sha256}",
    )
