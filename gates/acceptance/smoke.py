"""The seven criteria of a multi-fold smoke run, each recomputed from what the run left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from trueup.gates.acceptance.cells import Cell, cells_of, numbers_by_seed
from trueup.gates.acceptance.config import Smoke
from trueup.gates.acceptance.exact import Number, from_text, parameter
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.model import Held, Measure
from trueup.gates.acceptance.paths import Hit
from trueup.gates.acceptance.session import Session, between
from trueup.gates.acceptance.smoke_evidence import judge_audit, judge_clamps, judge_flags
from trueup.gates.findings import Where

SEVEN = (
    "f0_retained", "monotone", "no_clamped_nan", "flags_zero", "folds_complete", "no_hard_stop",
    "audit_closed",
)  # fmt: skip
_BLOCK, _TIER = "smoke", 1

Folds = Mapping[str, tuple[Input, Hit, Number]]


def judge_smoke(session: Session, smoke: Smoke) -> None:
    """All seven criteria, for every seed; then what the run itself says of them."""
    seeds = numbers_by_seed(session, smoke.path, smoke.file)
    for of, folds in seeds.items():
        _Metric(session, smoke, of, folds).judge()
    if not seeds:
        for name in SEVEN[:2]:
            session.undetermined(f"smoke.{name}", _BLOCK, "no fold could be read", tier=_TIER)
    cells = cells_of(session, smoke.file)
    seen = judge_clamps(session, smoke)
    judge_flags(session, smoke, cells, seen)
    _complete(session, cells)
    _ended(session, smoke, cells)
    judge_audit(session, smoke, seen)
    if smoke.report:
        _report(session, smoke)


@dataclass(frozen=True, slots=True)
class _Metric:
    """The best metric of the folds of one seed, against the baseline and each other."""

    session: Session
    smoke: Smoke
    of: str  # [seed=7], or nothing
    folds: Folds

    def judge(self) -> None:
        first, second, third = (str(fold) for fold in self.smoke.folds)
        base = self.base(first)
        low = None if base is None else base - parameter(self.smoke.retain) * abs(base)
        self.at_least("f0_retained", first, low)
        if self.smoke.mono_mode in ("both", "baseline"):
            self.at_least("monotone", second, self.base(second))
            self.at_least("monotone", third, self.base(third))
        if self.smoke.mono_mode in ("both", "folds"):
            earlier = self.folds.get(second)
            self.at_least("monotone", third, earlier[2].exact if earlier else None, "fold 1")

    def base(self, fold: str) -> Fraction | None:
        """The baseline's number for a fold; None, and a finding, where it has not exactly one."""
        baseline = self.session.baseline(self.smoke.baseline)
        here = self.folds.get(fold)
        of = {**(here[1].of if here else {}), "fold": fold}
        found = baseline.matching(self.smoke.path, of, self.smoke.match)
        if len(found) == 1:
            return found[0].value.exact
        self.session.found.add(
            "baseline_unmatched", baseline.source.name, Where(key=self.smoke.path),
            f"{len(found)} numbers for fold {fold}{self.of}",
        )  # fmt: skip
        return None

    def at_least(self, name: str, fold: str, low: Fraction | None, than: str = "") -> None:
        """One fold's metric, which must not be below a number."""
        of = f"{self.of}[fold={fold}]" + (f"[against {than}]" if than else "")
        here = self.folds.get(fold)
        if low is None or here is None or here[2].exact is None:
            why = "no number to hold it against" if low is None else f"fold {fold} has no number"
            self.session.found.add(
                "smoke_not_held",
                _place(self.session, here),
                _where(here),
                f"smoke.{name}{of}: {why}",
            )
            self.session.undetermined(f"smoke.{name}", _BLOCK, why, of=of, tier=_TIER)
            return
        source, hit, value = here
        measure = Measure(value.exact, low, None)
        held: Held = "true" if measure.holds() else "false"
        if held == "false":
            self.session.found.add(
                "smoke_not_held", source.name, source.where(hit.pointer),
                f"smoke.{name}{of} = {value.text}", between(low, None),
            )  # fmt: skip
        self.session.answer(f"smoke.{name}", of, _BLOCK, held, value.text, between(low, None),
                            tier=_TIER, measure=measure)  # fmt: skip


def _place(session: Session, here: tuple[Input, Hit, Number] | None) -> str:
    return here[0].name if here else ", ".join(session.config.results.files)


def _where(here: tuple[Input, Hit, Number] | None) -> Where:
    return here[0].where(here[1].pointer) if here else Where()


def _complete(session: Session, cells: list[Cell]) -> None:
    """Every fold ran all its epochs and exited with 0."""
    wrong = 0
    unknown = not cells
    for cell in cells:
        asked, done, code = (cell.whole(k) for k in ("epochs", "epochs_completed", "exit_code"))
        if asked is None or done is None or code is None:
            unknown = True
            got = f"{cell.name}: epochs {asked}, completed {done}, exit code {code}"
        elif done != asked or code != 0:
            wrong += 1
            got = f"{cell.name}: {done} of {asked} epochs, exit code {code}"
        else:
            continue
        session.found.add("fold_unfinished", cell.source.name, cell.where(), got)
    _count(session, "folds_complete", wrong, unknown, f"{len(cells)} cells")


def _ended(session: Session, smoke: Smoke, cells: list[Cell]) -> None:
    """No fold was stopped by one of the hard stops; a fold that does not say how it ended fails."""
    wrong = 0
    unknown = not cells
    for cell in cells:
        reason = cell.reason
        if reason is None:
            unknown = True
        elif reason in smoke.hard_stops:
            wrong += 1
        else:
            continue
        session.found.add("hard_stopped", cell.source.name, cell.where("termination"),
                          f"{cell.name}: {reason or 'no termination reason'}")  # fmt: skip
    _count(session, "no_hard_stop", wrong, unknown, f"{len(cells)} cells")


def _count(session: Session, name: str, wrong: int, unknown: bool, of: str) -> None:
    held: Held = "false" if wrong else "undetermined" if unknown else "true"
    session.answer(f"smoke.{name}", "", _BLOCK, held, str(wrong), "0", tier=_TIER,
                   reason=f"of {of}")  # fmt: skip


def _report(session: Session, smoke: Smoke) -> None:
    """The run's own list: all seven, once each, and each as the evidence has it."""
    source = session.document(smoke.report, "smoke report")
    if source is None:
        session.undetermined("smoke.report", _BLOCK, "it cannot be read", tier=_TIER)
        return
    from trueup.gates.acceptance.load import check

    check(source, "smoke")
    entries = source.data["criteria"]
    names = [entry["criterion"] for entry in entries]
    sound = sorted(names) == sorted(SEVEN)
    if not sound:
        missing = [name for name in SEVEN if name not in names]
        other = [name for name in names if name not in SEVEN or names.count(name) > 1]
        got = f"{len(names)} criteria"
        got += f"; missing {', '.join(missing)}" if missing else ""
        got += f"; unknown or repeated {', '.join(dict.fromkeys(other))}" if other else ""
        session.found.add("smoke_incomplete", source.name, source.where(("criteria",)), got)
    for index, entry in enumerate(entries):
        sound = _claim(session, source, index, entry["criterion"]) and sound
    session.answer("smoke.report", "", _BLOCK, "true" if sound else "false",
                   f"{len(names)} criteria", "all seven, as the evidence has them",
                   tier=_TIER)  # fmt: skip


def _claim(session: Session, source: Input, index: int, name: str) -> bool:
    """Whether one entry says what the evidence says."""
    mine = [one for one in session.criteria if one.id == f"smoke.{name}"]
    if not mine:
        return False
    entry = source.data["criteria"][index]
    held = all(one.held == "true" for one in mine)
    where = source.where(("criteria", index))
    if (entry["verdict"] == "PASS") != held:
        session.found.add("smoke_claim", source.name, where, f"{name}: {entry['verdict']}",
                          "PASS" if held else "FAIL, by the evidence")  # fmt: skip
        return False
    said = source.number(("criteria", index, "value"))
    measure = mine[0].measure
    exact = measure.value if measure is not None else from_text(mine[0].value)
    if len(mine) == 1 and said.exact is not None and said.exact != exact:
        session.found.add("smoke_claim", source.name, where, f"{name}: value {said.text}",
                          f"{mine[0].value}, by the evidence")  # fmt: skip
        return False
    return True
