"""The final run: announced before it started, all of its cells there, all three tiers, once."""

from __future__ import annotations

from collections import Counter

from trueup.gates.acceptance.attempts import judge_attempt
from trueup.gates.acceptance.cells import Cell, cells_of
from trueup.gates.acceptance.config import Final
from trueup.gates.acceptance.git import first_commit_of
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.model import Held
from trueup.gates.acceptance.robustness import judge_robustness
from trueup.gates.acceptance.session import Session
from trueup.gates.acceptance.termination import moment
from trueup.gates.findings import Where

_BLOCK = "final"
_TIERS = {1: "convergence", 2: "behaviour", 3: "robustness"}


def judge_final(session: Session, final: Final) -> None:
    """Everything about a final run; the tiers last, over all criteria that belong to them."""
    manifest = session.gate.document(final.manifest, "manifest")
    check(manifest, "manifest")
    _announced(session, final, manifest)
    _parameters(session, manifest)
    cells = cells_of(session)
    _one_run(session, manifest, cells)
    _cells(session, final, manifest, cells)
    judge_attempt(session, final, manifest)
    _committed(session, final, manifest)
    judge_robustness(session, final, cells)
    for tier in _TIERS:
        _tier(session, tier)


def _say(
    session: Session, name: str, wrong: list[str], value: str, threshold: str, *,
    kind: str, source: Input, where: Where, unknown: bool = False,
) -> None:  # fmt: skip
    """One criterion about the form of the run, with a finding for each thing wrong."""
    for got in wrong:
        session.found.add(kind, source.name, where, got, threshold)
    held: Held = "undetermined" if wrong and unknown else "false" if wrong else "true"
    session.answer(f"final.{name}", "", _BLOCK, held, value, threshold)


def _announced(session: Session, final: Final, manifest: Input) -> None:
    """N distinct seeds and K distinct folds."""
    wrong = []
    for key, count in (("seeds", final.n_seeds), ("folds", final.n_folds)):
        said = manifest.data[key]
        if len(said) != count or len(set(said)) != count:
            wrong.append(f"{len(said)} {key}, {len(set(said))} distinct")
    if moment(manifest.data["started_at"]) is None:
        wrong.append(f"started_at {manifest.data['started_at']} is no time with a zone")
    value = f"{len(manifest.data['seeds'])} seeds, {len(manifest.data['folds'])} folds"
    threshold = f"{final.n_seeds} seeds and {final.n_folds} folds, each once"
    _say(session, "manifest", wrong, value, threshold, kind="manifest_unfit", source=manifest,
         where=manifest.where(("seeds",)))  # fmt: skip


def _parameters(session: Session, manifest: Input) -> None:
    """The run is judged by the acceptance and the baselines that were announced."""
    said = manifest.data["gate_parameters"]
    wrong = []
    if said["acceptance_sha256"] != session.source.sha256:
        wrong.append(f"{session.source.name} is now {session.source.sha256}")
    for about in session.config.baseline:
        baseline = session.baseline(about.id)
        if baseline.source.sha256 not in said["baseline_sha256"]:
            wrong.append(f"{baseline.source.name} is now {baseline.source.sha256}")
    _say(session, "parameters", wrong, f"{len(wrong)} changed", "as the manifest has them",
         kind="parameters_changed", source=manifest,
         where=manifest.where(("gate_parameters",)))  # fmt: skip


def _one_run(session: Session, manifest: Input, cells: list[Cell]) -> None:
    """All results are of the announced run, and none is older than its manifest."""
    wrong, late = [], []
    said = manifest.data
    others = sorted({cell.run_id for cell in cells} - {said["run_id"]})
    if others:
        wrong.append(f"cells of {', '.join(others)}")
    start = moment(said["started_at"])
    for source in session.results():
        for key in ("git_commit", "config_sha256"):
            if source.data.get(key) != said[key]:
                wrong.append(f"{source.name}: {key} {source.data.get(key)}")
        times = [moment(source.data.get(key)) for key in ("started_at", "finished_at")]
        if start is None or times[0] is None or times[1] is None:
            late.append(f"{source.name}: no start and end with a zone")
        elif not start <= times[0] <= times[1]:
            late.append(
                f"{source.name}: {source.data['started_at']} to {source.data['finished_at']}, "
                f"manifest {said['started_at']}"
            )
    _say(session, "one_run", wrong or ([] if cells else ["no cell"]), f"{len(cells)} cells",
         f"all of {said['run_id']}, its commit and configuration", kind="results_mixed",
         source=manifest, where=manifest.where(("run_id",)))  # fmt: skip
    _say(session, "after_manifest", late, "started and ended", "after the manifest's started_at",
         kind="results_before_manifest", source=manifest,
         where=manifest.where(("started_at",)))  # fmt: skip


def _cells(session: Session, final: Final, manifest: Input, cells: list[Cell]) -> None:
    """Exactly the announced seeds by folds, each once."""
    wanted = {(seed, fold) for seed in manifest.data["seeds"] for fold in manifest.data["folds"]}
    counts = Counter(cell.key for cell in cells)
    by_key = {cell.key: cell for cell in cells}
    for key in sorted(wanted - counts.keys()):
        session.found.add("cell_missing", manifest.name, manifest.where(("seeds",)),
                          f"no cell for seed {key[0]}, fold {key[1]}")  # fmt: skip
    for key in sorted(counts.keys() - wanted):
        cell = by_key[key]
        session.found.add("cell_foreign", cell.source.name, cell.where(), cell.name)
    twice = sorted(key for key, count in counts.items() if count > 1)
    for key in twice:
        cell = by_key[key]
        session.found.add("cell_twice", cell.source.name, cell.where(),
                          f"{cell.name}: {counts[key]} times")  # fmt: skip
    number = final.n_seeds * final.n_folds
    sound = counts.keys() == wanted and not twice and len(cells) == number
    if sound is False and len(cells) != number and counts.keys() == wanted and not twice:
        session.found.add("cell_missing", manifest.name, manifest.where(("seeds",)),
                          f"{len(cells)} cells", f"{number} cells")  # fmt: skip
    session.answer("final.cells", "", _BLOCK, "true" if sound else "false", f"{len(cells)} cells",
                   f"{number} cells, each once")  # fmt: skip


def _committed(session: Session, final: Final, manifest: Input) -> None:
    """Git has the manifest, as it is, in a commit from before the start."""
    if not final.in_git:
        return
    committed = first_commit_of(manifest.path, manifest.sha256)
    start = moment(manifest.data["started_at"])
    wrong = []
    if committed is None:
        wrong.append("no commit holds the manifest as it is")
    elif start is not None and committed.at > start:
        wrong.append(f"first committed at {committed.at.isoformat()} in {committed.commit[:12]}")
    value = f"committed at {committed.at.isoformat()}" if committed else "never committed"
    _say(session, "committed", wrong, value, f"before {manifest.data['started_at']}",
         kind="manifest_late", source=manifest, where=manifest.where(("started_at",)))  # fmt: skip


def _tier(session: Session, tier: int) -> None:
    """A tier holds if each of its criteria does; one without criteria was never looked at."""
    members = [one for one in session.criteria if one.tier == tier and one.decides]
    name = f"final.tier{tier}"
    if not members:
        session.found.add("tier_empty", session.source.name, Where(key=f"tier = {tier}"),
                          f"tier {tier} ({_TIERS[tier]}) has no criterion")  # fmt: skip
        session.undetermined(name, _BLOCK, "it has no criterion")
        return
    failed = [one.name for one in members if one.held != "true"]
    value = f"{len(members) - len(failed)} of {len(members)} hold"
    session.answer(name, "", _BLOCK, "false" if failed else "true", value, "all hold",
                   reason=", ".join(failed)[:400])  # fmt: skip
