"""Ablations: paired seeds, every pair counted, and a decision that the outcome table gives."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trueup.gates.acceptance.config import Ablation, Effect
from trueup.gates.acceptance.exact import MISSING, Number, decimal_text, parameter
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.model import Held
from trueup.gates.acceptance.paths import follow, parse_path
from trueup.gates.acceptance.session import Session

_BLOCK = "ablation"
VOCABULARY = ("DELETE", "KEEP", "KEEP-as-safety-net", "INCONCLUSIVE", "DELETE-because-inseparable")
_DELETES = ("DELETE", "DELETE-because-inseparable")
_ARMS = ("control", "ablated")


@dataclass(frozen=True, slots=True)
class _Pair:
    """One metric of one seed (and fold, where a path goes through them) in both arms."""

    of: str
    control: Number
    ablated: Number

    @property
    def difference(self) -> Fraction | None:
        """Ablated minus control; None where one of them is no number."""
        if self.control.exact is None or self.ablated.exact is None:
            return None
        return self.ablated.exact - self.control.exact


def judge_ablations(session: Session) -> None:
    """Every [[ablation]]: its seeds, and its decision."""
    for asked in session.config.ablation:
        source = session.document(asked.file, "ablation")
        if source is None:
            for name in ("paired", "decision"):
                session.undetermined(f"{asked.id}.{name}", _BLOCK, "it cannot be read")
            continue
        check(source, "ablation")
        if _paired(session, asked, source):
            _decision(session, asked, source)
        else:
            session.undetermined(f"{asked.id}.decision", _BLOCK, "the arms are not paired")


def _paired(session: Session, asked: Ablation, source: Input) -> bool:
    """Enough distinct seeds, the same in both arms."""
    seeds = {arm: [run["seed"] for run in source.data["arms"][arm]] for arm in _ARMS}
    wrong: list[tuple[str, str, str]] = []
    for arm, found in seeds.items():
        if len(set(found)) != len(found):
            wrong.append(("ablation_seeds", f"{arm}: {_list(found)}", "each seed once in an arm"))
        if len(set(found)) < asked.min_seeds:
            wrong.append(("ablation_seeds", f"{arm}: {len(set(found))} distinct seeds",
                          f"at least {asked.min_seeds}"))  # fmt: skip
    if set(seeds["control"]) != set(seeds["ablated"]):
        got = f"control {_list(seeds['control'])}; ablated {_list(seeds['ablated'])}"
        wrong.append(("ablation_unpaired", got, "the same seeds in both arms"))
    for kind, got, expected in wrong:
        session.found.add(
            kind, source.name, source.where(("arms",)), f"{asked.id}: {got}", expected
        )
    session.answer(f"{asked.id}.paired", "", _BLOCK, "false" if wrong else "true",
                   f"{len(set(seeds['control']))} seeds",
                   f"{asked.min_seeds} or more, the same in both arms")  # fmt: skip
    return not wrong


def _list(seeds: list[int]) -> str:
    return ", ".join(map(str, sorted(seeds)))


def _decision(session: Session, asked: Ablation, source: Input) -> None:
    """The recorded decision is the one that the measurements lead to."""
    wanted, why = decide(asked, source)
    said = source.data["decision"]
    where = source.where(("decision",))
    wrong = ""
    if said not in VOCABULARY:
        wrong = "decision_unknown"
        session.found.add(wrong, source.name, where, f"{asked.id}: {said}", ", ".join(VOCABULARY))
    elif not _allowed(said, wanted, source.data):
        wrong = "decision_differs"
        session.found.add(wrong, source.name, where, f"{asked.id}: {said}", f"{wanted}: {why}")
    if said in _DELETES and "approval" not in source.data:
        wrong = "delete_unapproved"
        session.found.add(wrong, source.name, where, f"{asked.id}: {said} without an approval")
    held: Held = "false" if wrong else "true"
    if held == "true" and said == "INCONCLUSIVE" and not asked.accept_inconclusive:
        held = "undetermined"
        session.found.add("ablation_inconclusive", source.name, where, f"{asked.id}: {why}")
    session.answer(f"{asked.id}.decision", "", _BLOCK, held, str(said), wanted, reason=why)


def _allowed(said: str, wanted: str, data: dict[str, Any]) -> bool:
    """The decision itself, or a more careful one than DELETE that says why."""
    if said == wanted:
        return said != "DELETE-because-inseparable" or bool(data.get("inseparable_from"))
    if wanted != "DELETE":
        return False
    if said == "DELETE-because-inseparable":
        return bool(data.get("inseparable_from"))
    return said in ("KEEP", "KEEP-as-safety-net") and bool(data.get("reason", "").strip())


def decide(asked: Ablation, source: Input) -> tuple[str, str]:
    """What the measurements lead to, and why. NaN in any seed comes before everything else."""
    pairs = {effect.name: _pairs(effect, source) for effect in asked.metric}
    broken = {arm: _nan(source, pairs, arm) for arm in _ARMS}
    if broken["control"]:
        return "INCONCLUSIVE", f"NaN in the control arm: {broken['control']}"
    if broken["ablated"]:
        return _row(asked, {"nan": "appears"}, f"NaN in {broken['ablated']}")
    effects: dict[str, str] = {}
    for effect in asked.metric:
        several = pairs[effect.name]
        unusable = [p.of for p in several if p.difference is None]
        if unusable or not several:
            return "INCONCLUSIVE", f"{effect.name} has no number for {', '.join(unusable)}"
        effects[effect.name] = told = _effect(effect, several, asked)
        if told == "mixed":
            signs = ", ".join(decimal_text(p.difference or Fraction(0)) for p in several)
            return "INCONCLUSIVE", f"{effect.name} has differences of both signs: {signs}"
    return _row(asked, effects, ", ".join(f"{name} {told}" for name, told in effects.items()))


def _pairs(effect: Effect, source: Input) -> list[_Pair]:
    """The metric of every seed; no seed is dropped, none is averaged away."""
    values: dict[str, dict[str, Number]] = {arm: {} for arm in _ARMS}
    for arm in _ARMS:
        for index, run in enumerate(source.data["arms"][arm]):
            for hit in follow(run["metrics"], parse_path(effect.path)):
                pointer = ("arms", arm, index, "metrics", *hit.pointer)
                values[arm][f"seed {run['seed']}{hit.label}"] = source.number(pointer)
    control, ablated = values["control"], values["ablated"]
    return [
        _Pair(of, control.get(of, MISSING), ablated.get(of, MISSING))
        for of in sorted(control.keys() | ablated.keys())
    ]


def _nan(source: Input, pairs: dict[str, list[_Pair]], arm: str) -> str:
    """The first place in an arm where a metric is NaN or null, or a run says NaN."""
    for run in source.data["arms"][arm]:
        if run.get("nan"):
            return f"seed {run['seed']}"
    for name, several in pairs.items():
        for pair in several:
            value = pair.control if arm == "control" else pair.ablated
            if value.flaw in ("null", "not finite") or value.text.strip('"').lower() == "nan":
                return f"{name} of {pair.of}"
    return ""


def _effect(effect: Effect, pairs: list[_Pair], asked: Ablation) -> str:
    """`regresses`, `holds`, or `mixed` where the differences have both signs."""
    better = 1 if effect.better == "higher" else -1
    gains = [better * (pair.difference or Fraction(0)) for pair in pairs]
    both = any(gain > 0 for gain in gains) and any(gain < 0 for gain in gains)
    if both and asked.mixed_sign == "inconclusive":
        return "mixed"
    limit = parameter(effect.threshold)
    base = sum((abs(pair.control.exact or Fraction(0)) for pair in pairs), Fraction(0))
    return "regresses" if sum(gains, Fraction(0)) < -limit * base else "holds"


def _row(asked: Ablation, effects: dict[str, str], why: str) -> tuple[str, str]:
    """The first row of the table that fits."""
    for row in asked.outcome:
        if all(effects.get(name) == state for name, state in row.when.items()):
            return row.decision, why
    return "INCONCLUSIVE", f"no row of the outcome table fits: {why}"
