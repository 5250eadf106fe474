"""Tier 3: the final metric over all cells, none averaged away, none left out."""

from __future__ import annotations

from fractions import Fraction

from trueup.gates.acceptance.cells import Cell
from trueup.gates.acceptance.config import Final
from trueup.gates.acceptance.exact import decimal_text, parameter
from trueup.gates.acceptance.model import Held, Measure
from trueup.gates.acceptance.session import Session, between
from trueup.gates.findings import Where

_BLOCK, _TIER = "final", 3


def judge_robustness(session: Session, final: Final, cells: list[Cell]) -> None:
    """Median, worst cell and spread of the metric, and no hard stop in any cell."""
    values = _values(session, final)
    wanted = final.n_seeds * final.n_folds
    if values is None or len(values) != wanted:
        got = "a cell has no number" if values is None else f"{len(values)} values"
        place = ", ".join(session.config.results.files)
        session.found.add("not_robust", place, Where(key=final.sharpe), got, f"{wanted} numbers")
        for name in ("median", "worst", "spread"):
            session.undetermined(f"final.{name}", _BLOCK, got, tier=_TIER)
    else:
        _statistics(session, final, sorted(values))
    _stops(session, final, cells)


def _values(session: Session, final: Final) -> list[Fraction] | None:
    found: list[Fraction] = []
    for source, hit, value in session.hits(final.sharpe):
        if value.exact is None:
            got = f"final.sharpe{hit.label} is {value.text} ({value.flaw})"
            session.found.add("metric_unusable", source.name, source.where(hit.pointer), got)
            return None
        found.append(value.exact)
    return found


def _statistics(session: Session, final: Final, values: list[Fraction]) -> None:
    middle = median(values)
    _judge(session, final, "median", Measure(middle, parameter(final.floor), None))
    _judge(session, final, "worst", Measure(values[0], parameter(final.worst) * middle, None))
    square = squared_spread(values, final.ddof)
    limit = parameter(final.spread) ** 2
    why = "" if square is not None else "the mean is not above 0"
    _judge(session, final, "spread", Measure(square, None, limit), why)


def _judge(session: Session, final: Final, name: str, measure: Measure, why: str = "") -> None:
    held: Held = "true" if measure.holds() else "false"
    value = "nothing" if measure.value is None else decimal_text(measure.value)
    threshold = between(measure.low, measure.high)
    if name == "spread":
        value, threshold = f"(std/mean)^2 {value}", f"{threshold}, the square of {final.spread}"
    if held == "false":
        place = ", ".join(session.config.results.files)
        session.found.add("not_robust", place, Where(key=final.sharpe),
                          f"{name}: {why or value}", threshold)  # fmt: skip
    session.answer(f"final.{name}", "", _BLOCK, held, value, threshold, tier=_TIER, reason=why,
                   measure=measure)  # fmt: skip


def median(ordered: list[Fraction]) -> Fraction:
    """The middle of sorted values; of two middles, their mean."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def squared_spread(values: list[Fraction], ddof: int) -> Fraction | None:
    """(std/mean)^2, which needs no root; None where the mean is not above 0."""
    mean = sum(values, Fraction(0)) / len(values)
    if mean <= 0 or len(values) <= ddof:
        return None
    variance = sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - ddof)
    return variance / mean**2


def _stops(session: Session, final: Final, cells: list[Cell]) -> None:
    stopped = [cell for cell in cells if cell.reason in final.hard_stops]
    silent = [cell for cell in cells if cell.reason is None]
    for cell in (*stopped, *silent):
        session.found.add("hard_stopped", cell.source.name, cell.where("termination"),
                          f"{cell.name}: {cell.reason or 'no termination reason'}")  # fmt: skip
    held: Held = "false" if stopped else "undetermined" if silent or not cells else "true"
    session.answer("final.no_hard_stop", "", _BLOCK, held, str(len(stopped)), "0", tier=_TIER,
                   reason=f"of {len(cells)} cells")  # fmt: skip
