"""Rules on results that were measured and say nothing: dead, copied, or not there at all."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.gates.documents.model import Answer, Flaw, Subject
from trueup.gates.evals.answers import answer, flaw, unsure
from trueup.gates.evals.numbers import Cell, decimals
from trueup.gates.evals.read import eval_of
from trueup.gates.evals.results import Eval, Score
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

TELLING = 6  # decimals from which two equal values are no coincidence
LEAST = 2
_MEASURED = 4
Signature = tuple[tuple[str, str, float], ...]


def eval_moved(subject: Subject, rule: Rule) -> Answer:
    """Memorisation changed something: not every delta is exactly zero.

    One value with many decimals that stays the same to the last bit is enough to say so; of
    accuracies, which are coarse, it takes `least`. Saturated accuracies cannot move up.
    """
    read = eval_of(subject)
    if read.memory.enabled is not True:
        return Answer(0, (), "memorisation was not on")
    moves = [(score, move) for score in read.scores if (move := _move(score)) is not None]
    still = [score for score, move in moves if move == 0]
    if not moves:
        return Answer(0, (), "no score has a baseline or a delta")
    if len(still) < len(moves):
        return Answer(len(moves))
    fine = [score for score in still if not score.is_accuracy]
    free = [score for score in still if not _is_full(score)]
    if not fine and not free:
        got = f"all {len(moves)} accuracies were full before: nothing could improve"
        return Answer(len(moves), (unsure(subject, read.memory.pointer, got),))
    if not fine and len(free) < int(rule.params.get("least", LEAST)):
        return Answer(0, (), "too few accuracies to tell")
    first = still[0].delta or still[0].memorized
    got = f"all {len(moves)} deltas are exactly 0, and memorisation was on"
    return Answer(len(moves), (flaw(subject, first.pointer if first else (), got),))


def _move(score: Score) -> float | None:
    """By how much memorisation changed a score."""
    if score.baseline is not None and score.memorized is not None:
        return score.memorized.value - score.baseline.value
    return None if score.delta is None else score.delta.value


def _is_full(score: Score) -> bool:
    return score.baseline is not None and score.baseline.value == 1


def eval_updates(subject: Subject, rule: Rule) -> Answer:
    """Where memorisation was on, some level was updated."""
    memory = eval_of(subject).memory
    counts = memory.events or memory.norms
    if memory.enabled is not True:
        return Answer(0, (), "memorisation was not on")
    if not counts:
        return Answer(0, (), "no update statistics are reported")
    if any(one.value != 0 for one in counts):
        return Answer(len(counts))
    names = ", ".join(str(one.pointer[-1]) for one in counts[:4])
    word = "update events" if memory.events else "updates"
    got = f"all {len(counts)} counts of {word} are 0 ({names})"
    return Answer(len(counts), (flaw(subject, counts[0], got),))


def eval_not_training(subject: Subject, rule: Rule) -> Answer:
    """No measured value is the least, largest or last of a training metric to the last bit."""
    columns: list[str] = rule.params["columns"]
    seen = {
        value: f"{name} of {table.name}"
        for table in subject.run.tables
        for name in columns
        if (column := table.columns.get(name)) is not None
        for value in (column.low, column.high, column.last)
        if isinstance(value, float)
    }
    if not seen:
        return Answer(0, (), f"no telemetry has {' or '.join(columns)}")
    read, flaws = 0, []
    for one in _measured(eval_of(subject)):
        if decimals(one.value) < TELLING:
            continue
        read += 1
        if one.value in seen:
            got = f"{show(one.value)}, which is the training metric {seen[one.value]}"
            flaws.append(flaw(subject, one, got))
    return answer(read, flaws, f"no value has {TELLING} decimals or more")


def _measured(read: Eval) -> Iterator[Cell]:
    """Losses and the like: what a training log could hold as well."""
    for score in read.scores:
        if not score.is_accuracy:
            yield from {one.pointer: one for one in score.values()}.values()


def eval_not_copied(subject: Subject, rule: Rule) -> Answer:
    """Two checkpoints do not have the same results to the last bit."""
    least = int(rule.params.get("least", _MEASURED))
    read = eval_of(subject)
    mine = _signature_of(subject, least)
    if mine is None:
        return Answer(0, (), "too few values to tell a copy from a coincidence")
    compared = 0
    for other in subject.run.subjects:
        if other is subject or other.kind != "eval":
            continue
        theirs = eval_of(other)
        if theirs.kind != read.kind or _same_checkpoint(read, theirs):
            continue
        compared += 1
        if other.name < subject.name and _signature_of(other, least) == mine:
            got = f"all {len(mine)} values are those of {other.name}"
            return Answer(compared, (flaw(subject, read.results, got),))
    return answer(compared, [], "no other checkpoint was measured in this way")


def _same_checkpoint(one: Eval, other: Eval) -> bool:
    digests = [tuple(named.sha256 for named in read.checkpoints) for read in (one, other)]
    return bool(digests[0]) and None not in digests[0] and digests[0] == digests[1]


def _signature_of(subject: Subject, least: int) -> Signature | None:
    """The signature of a result of the run, worked out once."""
    key = ("signature", subject.path, least)
    if key not in subject.run.memo:
        subject.run.memo[key] = _signature(eval_of(subject), least)
    found: Signature | None = subject.run.memo[key]
    return found


def _signature(read: Eval, least: int) -> Signature | None:
    """Name, metric and value of every score, if they are many or fine enough to tell."""
    own = {(str(named.path)) for named in read.checkpoints}
    found = []
    for score in read.scores:
        name = score.name
        for path in own:  # a script's continual results carry the path in the name
            name = name.removesuffix(f" of {path}")
        found += [(name, str(place), one.value) for place, one in enumerate(score.values())]
    is_fine = any(
        not score.is_accuracy and any(decimals(one.value) >= TELLING for one in score.values())
        for score in read.scores
    )
    return tuple(sorted(found)) if is_fine or len(found) >= least else None


def eval_kinds(subject: Subject, rule: Rule) -> Answer:
    """Every kind of evaluation that is asked for is there."""
    wanted: list[str] = rule.params["kinds"]
    evals = [one for one in subject.run.subjects if one.kind == "eval"]
    if subject is not evals[0]:
        return Answer(0, (), "the first evaluation answers for all")
    there = {eval_of(one).kind for one in evals}
    missing = [kind for kind in wanted if kind not in there]
    flaws: list[Flaw] = []
    if missing:
        flaws.append(flaw(subject, (), f"no result of the kind {', '.join(missing)}"))
    return answer(len(wanted), flaws, "")
