"""Rules on single measured values: in range, and equal to what they claim to be."""

from __future__ import annotations

import math
from fractions import Fraction

from trueup.gates.documents.model import Answer, Flaw, Pointer, Subject
from trueup.gates.evals.answers import answer, flaw, least_decimals, unsure
from trueup.gates.evals.numbers import SINGLE, Cell, allowed, decimals, half_unit, say, total
from trueup.gates.evals.read import eval_of
from trueup.gates.evals.results import Eval
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule


def accuracies(read: Eval) -> dict[Pointer, Cell]:
    """Every share of correct answers, by its place."""
    found = [one for score in read.scores if score.is_accuracy for one in score.values()]
    found += [one for one in (read.mean, read.totals.get("accuracy")) if one is not None]
    if read.stages is not None and read.stages.better == "higher":
        found += [one for one in read.stages.initial if one is not None]
    return {one.pointer: one for one in found}


def eval_accuracy_range(subject: Subject, rule: Rule) -> Answer:
    """Accuracies lie in [0, 1]."""
    cells = accuracies(eval_of(subject))
    flaws = [
        flaw(subject, one, show(one.value)) for one in cells.values() if not 0 <= one.value <= 1
    ]
    return answer(len(cells), flaws, "holds no accuracy")


def eval_accuracy(subject: Subject, rule: Rule) -> Answer:
    """An accuracy is correct / n; without `correct`, some whole number of answers over n."""
    read, flaws = 0, []
    for score in eval_of(subject).scores:
        if not score.is_accuracy or score.n is None or score.n.value < 1:
            continue
        for one in {cell.pointer: cell for cell in score.values()}.values():
            if not 0 <= one.value <= 1:
                continue  # another rule's
            is_reported = score.value is not None and one.pointer == score.value.pointer
            stated = score.correct if is_reported else None
            found = _share(subject, one, score.n, stated, least_decimals(rule))
            read += found is not False
            flaws += [found] if isinstance(found, Flaw) else []
    return answer(read, flaws, "no accuracy stands beside the number of samples")


def _share(subject: Subject, one: Cell, n: Cell, correct: Cell | None, least: int) -> Flaw | bool:
    """A flaw; True where it holds; False where nothing can be said without `correct`."""
    places = max(least, decimals(one.value))
    rounding = half_unit(places) + SINGLE * one.exact
    half_step = Fraction(1, 2) / n.exact
    if correct is None:
        nearest = Fraction(round(one.exact * n.exact)) / n.exact
        if rounding >= half_step:
            return False
        if abs(one.exact - nearest) <= rounding:
            return True
        got = f"{show(one.value)}, which is no whole number of {show(n.value)} answers"
        return flaw(subject, one, got)
    share = correct.exact / n.exact
    text = f"{show(correct.value)} / {show(n.value)} is {say(share)}"
    if abs(one.exact - share) > rounding:
        return flaw(subject, one, f"{show(one.value)}, but {text}")
    if abs(one.exact - share) > SINGLE * share and rounding >= half_step:
        got = f"{show(one.value)}; {text}: too few decimals to tell one answer more or less"
        return unsure(subject, one, got)
    return True


def eval_stderr(subject: Subject, rule: Rule) -> Answer:
    """A standard error is that of n answers, by n or by n - 1."""
    read, flaws = 0, []
    for score in eval_of(subject).scores:
        n, value, stated = score.n, score.value, score.stderr
        if not score.is_accuracy or n is None or value is None or stated is None or n.value < 1:
            continue
        if not 0 <= value.value <= 1:
            continue
        read += 1
        share = value.value
        if score.correct is not None and 0 <= score.correct.value <= n.value:
            share = score.correct.value / n.value
        variance = share * (1 - share)
        wanted = [math.sqrt(variance / d) for d in (n.value, n.value - 1) if d > 0]
        places = max(least_decimals(rule), decimals(stated.value))
        rounding = float(half_unit(places) + SINGLE * max(stated.exact, Fraction(1)))
        if all(abs(stated.value - one) > rounding for one in wanted):
            said = " or ".join(say(one) for one in wanted)
            flaws.append(flaw(subject, stated, f"{show(stated.value)}, expected {said}"))
    return answer(read, flaws, "no standard error stands beside an accuracy and its n")


def eval_delta(subject: Subject, rule: Rule) -> Answer:
    """A delta is the improvement it claims, and the reported value is the memorized one."""
    read, flaws = 0, []
    for score in eval_of(subject).scores:
        if score.value is not None and score.memorized is not None:
            read += 1
            if score.value.value != score.memorized.value:
                got = f"{show(score.memorized.value)}, but {show(score.value.value)} is reported"
                flaws.append(flaw(subject, score.memorized, got))
        base, after, delta = score.baseline, score.memorized, score.delta
        if base is None or after is None or delta is None:
            continue
        read += 1
        sign = Fraction(1 if score.better == "higher" else -1)
        terms = [(sign, after.value), (-sign, base.value)]
        exact = total(terms)
        rounding = allowed(delta.value, terms, least_decimals(rule))
        if abs(delta.exact - exact) > rounding:
            opposite = abs(delta.exact + exact) <= rounding
            order = "memorized - baseline" if sign > 0 else "baseline - memorized"
            got = f"{show(delta.value)}, but {order} is {say(exact)}"
            got += ": the sign is turned" if opposite else ""
            flaws.append(flaw(subject, delta, got))
    return answer(read, flaws, "claims no difference")
