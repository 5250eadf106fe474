"""Rules on numbers that follow from each other: counts, means, perplexity, transfer, the grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, product
from typing import Any

from trueup.gates.documents.model import Answer, Flaw, Subject
from trueup.gates.evals.answers import answer, flaw, least_decimals
from trueup.gates.evals.numbers import Cell, allowed, decimals, half_unit, is_number, say, total
from trueup.gates.evals.read import eval_of
from trueup.gates.evals.results import Perplexity, Score, Stages
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

RTOL = 1e-5
_MOST_MISSING = 10
Terms = list[tuple[Fraction, int | float]]


def eval_counts(subject: Subject, rule: Rule) -> Answer:
    """Counts fit: correct is at most n, and totals are the sums of the entries."""
    read = eval_of(subject)
    counts = {one.pointer: one for score in read.scores for one in (score.n, score.correct) if one}
    seen, flaws = len(counts), []
    for one in counts.values():
        is_n = one.pointer[-1] != "correct"
        if one.value < is_n or one.exact.denominator != 1:
            flaws.append(flaw(subject, one, f"{show(one.value)} is no count of samples"))
    for score in read.scores:
        if (
            score.n is not None
            and score.correct is not None
            and score.correct.value > score.n.value
        ):
            got = f"{show(score.correct.value)} correct of {show(score.n.value)}"
            flaws.append(flaw(subject, score.correct, got))
    for name in ("n", "correct"):
        claimed = read.totals.get(name)
        parts = [getattr(score, name) for score in read.scores]
        if claimed is None or not parts or any(part is None for part in parts):
            continue
        seen += 1
        exact = sum(part.value for part in parts)
        if claimed.value != exact:
            got = f"{show(claimed.value)}, but the {len(parts)} entries add up to {show(exact)}"
            flaws.append(flaw(subject, claimed, got))
    return answer(seen, flaws, "holds no counts")


def eval_mean(subject: Subject, rule: Rule) -> Answer:
    """A mean accuracy is the mean of the entries, weighted as it says."""
    read = eval_of(subject)
    claims = []
    if read.mean is not None:
        claims.append((read.mean, read.weighting))
    if "accuracy" in read.totals:
        claims.append((read.totals["accuracy"], "sample"))
    seen, flaws = 0, []
    for claimed, weighting in claims:
        terms = _weighted(read.scores, weighting)
        if not terms:
            continue
        seen += 1
        exact = total(terms)
        if abs(claimed.exact - exact) > allowed(claimed.value, terms, least_decimals(rule)):
            got = f"{show(claimed.value)}, but by {weighting} the mean is {say(exact)}"
            flaws.append(flaw(subject, claimed, got))
    return answer(seen, flaws, "claims no mean")


def _weighted(scores: tuple[Score, ...], weighting: str) -> Terms:
    """Each entry's accuracy with its share; exact counts where they are known."""
    if any(score.value is None for score in scores) or not scores:
        return []
    if weighting != "sample":
        return [(Fraction(1, len(scores)), score.value.value) for score in scores if score.value]
    if any(score.n is None or score.n.value < 1 for score in scores):
        return []
    count = sum((score.n.exact for score in scores if score.n), Fraction())
    if all(score.correct is not None for score in scores):
        return [(1 / count, score.correct.value) for score in scores if score.correct]
    return [(s.n.exact / count, s.value.value) for s in scores if s.n and s.value]


def eval_perplexity(subject: Subject, rule: Rule) -> Answer:
    """Perplexity, bits and total loss follow from the loss in nats a token."""
    rtol = float(rule.params.get("rtol", RTOL))
    seen, flaws = 0, []
    for one in eval_of(subject).perplexities:
        for cell, wanted, said, slack in _follows(one, least_decimals(rule)):
            seen += 1
            grace = rtol + slack
            size = max(abs(wanted), 1e-300)
            if not math.isfinite(wanted) or abs(cell.value - wanted) > grace * size:
                got = f"{show(cell.value)}, but {said} is {say(wanted)}"
                flaws.append(flaw(subject, cell, got))
    return answer(seen, flaws, "no perplexity stands beside a loss")


def _follows(one: Perplexity, least: int) -> Iterator[tuple[Cell, float, str, float]]:
    """Each stated value, what it must be, that in words, and the relative rounding of print."""
    if one.loss is None:
        return
    loss = float(one.loss.value)
    printed = float(half_unit(max(least, decimals(one.loss.value))))  # of the loss, absolute
    of_loss = printed / loss if loss > 0 else 0.0

    def own(cell: Cell) -> float:
        return float(half_unit(max(least, decimals(cell.value)))) / max(abs(cell.value), 1e-300)

    if one.ppl is not None:
        wanted = math.exp(loss) if loss < 700 else math.inf
        yield one.ppl, wanted, "exp(loss)", printed + own(one.ppl)
    if one.bits_per_token is not None:
        yield (
            one.bits_per_token,
            loss / math.log(2),
            "loss / ln 2",
            of_loss + own(one.bits_per_token),
        )
    if one.tokens is None:
        return
    whole = loss * float(one.tokens.value)
    if one.nll is not None:
        yield one.nll, whole, "loss * tokens", of_loss + own(one.nll)
    if one.bytes is not None and one.bytes.value > 0 and one.bits_per_byte is not None:
        wanted = whole / math.log(2) / float(one.bytes.value)
        yield (
            one.bits_per_byte,
            wanted,
            "loss * tokens / (ln 2 * bytes)",
            of_loss + own(one.bits_per_byte),
        )


def eval_transfer(subject: Subject, rule: Rule) -> Answer:
    """Average, forgetting and transfer are those of the matrix; the matrix fits its tasks."""
    stages = eval_of(subject).stages
    if stages is None:
        return Answer(0, (), "holds no matrix of stages and tasks")
    flaws = list(_shape(subject, stages))
    seen = 1
    if flaws:
        return answer(seen, flaws, "")
    for name, claimed in stages.claims.items():
        seen += 1
        terms = _terms(name, stages)
        if isinstance(terms, str):
            flaws.append(flaw(subject, claimed, f"{show(claimed.value)}, but {terms}"))
            continue
        exact = total(terms)
        if abs(claimed.exact - exact) > allowed(claimed.value, terms, least_decimals(rule)):
            got = f"{show(claimed.value)}, but the matrix gives {say(exact)}"
            flaws.append(flaw(subject, claimed, got))
    return answer(seen, flaws, "")


def _shape(subject: Subject, stages: Stages) -> Iterator[Flaw]:
    count = len(stages.tasks)
    for index, row in enumerate(stages.matrix):
        if len(row) != count:
            at = (*stages.pointer, "matrix", index)
            yield flaw(subject, at, f"{len(row)} values for {count} tasks")
    if len(stages.matrix) > count:
        at = (*stages.pointer, "matrix")
        yield flaw(subject, at, f"{len(stages.matrix)} stages for {count} tasks")


def _terms(name: str, stages: Stages) -> Terms | str:
    """The weighted sum that a claim stands for, or why there is none."""
    last = len(stages.matrix) - 1
    sign = Fraction(1 if stages.better == "higher" else -1)
    if name == "average":
        cells: list[tuple[Fraction, Cell | None]] = [
            (Fraction(1), stages.matrix[last][j]) for j in range(len(stages.tasks))
        ]
        return _mean_of(cells, len(stages.tasks))
    if last < 1:
        return "there is one stage only"
    if name == "forward_transfer":
        if len(stages.initial) != len(stages.tasks):
            return "`initial` does not give the values before the first stage"
        later = range(1, last + 1)
        return _mean_of(
            [(sign, stages.matrix[j - 1][j]) for j in later]
            + [(-sign, stages.initial[j]) for j in later], last,
        )  # fmt: skip
    earlier = range(last)
    final = [stages.matrix[last][j] for j in earlier]
    if name == "backward_transfer":
        then = [stages.matrix[j][j] for j in earlier]
        return _mean_of([(sign, c) for c in final] + [(-sign, c) for c in then], last)
    best = [_best(stages, j, last) for j in earlier]
    return _mean_of([(sign, c) for c in best] + [(-sign, c) for c in final], last)


def _best(stages: Stages, j: int, last: int) -> Cell | None:
    """The best value of a task before the last stage; each from its own stage on must be there."""
    column = [stages.matrix[i][j] for i in range(last)]
    known = [cell for cell in column if cell is not None]
    if any(cell is None for cell in column[j:]) or not known:
        return None
    pick = max if stages.better == "higher" else min
    return pick(known, key=lambda cell: cell.value)


def _mean_of(cells: list[tuple[Fraction, Cell | None]], count: int) -> Terms | str:
    if any(cell is None for _, cell in cells):
        return "not every value it needs was measured"
    return [(sign / count, cell.value) for sign, cell in cells if cell is not None]


def eval_distinct(subject: Subject, rule: Rule) -> Answer:
    """Nothing is measured twice under one name, also not where only case or dashes differ."""
    read = eval_of(subject)
    tasks = read.stages.tasks if read.stages is not None else None
    pairs = (
        [(name, (*read.results, "tasks", j)) for j, name in enumerate(tasks)]
        if tasks is not None
        else [(score.name, score.pointer) for score in read.scores]
    )
    first: dict[str, str] = {}
    flaws = []
    for name, pointer in pairs:
        plain = "".join(char for char in name.casefold() if char not in "-_ ")
        if plain in first:
            flaws.append(flaw(subject, pointer, f"{show(name)}, after {show(first[plain])}"))
        first.setdefault(plain, name)
    return answer(len(pairs), flaws, "names nothing")


def eval_grid(subject: Subject, rule: Rule) -> Answer:
    """Every context length is measured at every depth."""
    read = eval_of(subject)
    if read.kind != "niah" or read.form == "script":
        return Answer(0, (), "is no needle in a haystack by depth")
    there = _places(subject.document.data["results"])
    contexts, depths = sorted({c for c, _ in there}), sorted({d for _, d in there})
    missing = (pair for pair in product(contexts, depths) if pair not in there)
    flaws = [
        flaw(
            subject, (*read.results, "cells"),
            f"context {show(context)} is not measured at depth {show(depth)}",
        )
        for context, depth in islice(missing, _MOST_MISSING)
    ]  # fmt: skip
    return answer(len(there), flaws, "holds no cell with a context and a depth")


def _places(results: dict[str, Any]) -> set[tuple[float, float]]:
    cells = results.get("cells")
    entries = [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []
    pairs = [(entry.get("context"), entry.get("depth")) for entry in entries]
    return {(c, d) for c, d in pairs if is_number(c) and is_number(d)}
