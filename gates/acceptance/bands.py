"""Metrics near their baseline, and metrics on the right side of fixed numbers.

Every bound is inclusive and every comparison exact. A metric that is missing, NaN or no number
never holds, and what the baseline has must be in the run: a fold left out is not a fold passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from trueup.gates.acceptance.baseline import Locked
from trueup.gates.acceptance.config import Asked, Band, Limit
from trueup.gates.acceptance.exact import MISSING, Number, decimal_text, parameter
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.model import Held, Measure
from trueup.gates.acceptance.paths import Hit, parse_path
from trueup.gates.acceptance.session import Session, between


def judge_bands(session: Session) -> None:
    """Every [[band]] and [[limit]] of the acceptance."""
    for band in session.config.band:
        judge_band(session, band)
    for limit in session.config.limit:
        judge_limit(session, limit)


def judge_band(session: Session, band: Band) -> None:
    """One criterion for each value of the metric, and one for each base without a value."""
    baseline = session.baseline(band.baseline)
    used: set[str] = set()
    hits = list(session.hits(band.path, band.file))
    for source, hit, value in hits:
        bases = baseline.matching(band.path, hit.of, band.match or tuple(hit.of))
        if len(bases) == 1:
            used.add(bases[0].name)
            judge_number(session, band, "bands", source, hit, value, bounds(band, bases[0]),
                         f"base {bases[0].value.text}")  # fmt: skip
        elif not hit.found:
            judge_number(session, band, "bands", source, hit, value, (None, None))
        else:
            _unmatched(session, band, source, hit, len(bases))
    for base in baseline.of_path(band.path):
        if base.name not in used and _asked_for(band.path, base):
            _left_out(session, band, base)
    if not hits and not used and not baseline.of_path(band.path):
        session.undetermined(band.id, "bands", "no results could be read", weight=band.weight,
                             tier=band.tier)  # fmt: skip


def _unmatched(session: Session, band: Band, source: Input, hit: Hit, count: int) -> None:
    """A value of the run for which the baseline does not say one number."""
    got = f"{count} numbers" if count else "no number"
    session.found.add("baseline_unmatched", source.name, source.where(hit.pointer),
                      f"{got} for {band.id}{hit.label} in the baseline",
                      mild=band.weight == "warn")  # fmt: skip
    session.undetermined(band.id, "bands", f"the baseline has {got} for it", of=hit.label,
                         weight=band.weight, tier=band.tier)  # fmt: skip


def _asked_for(path: str, base: Locked) -> bool:
    """Whether the path's own `[fold=0]` selects this number."""
    tests = (step.test for step in parse_path(path) if step.test)
    return all(base.of.get(key) == value for test in tests for key, value in test.items())


def _left_out(session: Session, band: Band, base: Locked) -> None:
    place = ", ".join(source.name for source in session.results(band.file)) or "the results"
    where = session.baseline(band.baseline).source.where(base.pointer)
    session.found.add("baseline_left_out", place, where, f"no value for {base.name}",
                      f"a value near {base.value.text}", mild=band.weight == "warn")  # fmt: skip
    of = base.name[len(base.path) :]
    session.undetermined(band.id, "bands", "the run has no value for it", of=of,
                         threshold=between(*bounds(band, base)), weight=band.weight,
                         tier=band.tier)  # fmt: skip


def bounds(band: Band, base: Locked) -> tuple[Fraction | None, Fraction | None]:
    """The least and the largest value a band allows around a base."""
    center = base.value.exact if base.value.exact is not None else Fraction(0)
    if band.relative is not None and (center != 0 or band.absolute is None):
        allowed = parameter(band.relative) * abs(center)  # 0 where the base is 0
    else:
        allowed = parameter(band.absolute if band.absolute is not None else 0)
    low = None if band.side == "upper" else center - allowed
    return low, None if band.side == "lower" else center + allowed


def judge_limit(session: Session, limit: Limit) -> None:
    """One criterion for each value of the metric."""
    low = None if limit.at_least is None else parameter(limit.at_least)
    high = None if limit.at_most is None else parameter(limit.at_most)
    values = list(_values(session, limit))
    for source, hit, value in values:
        judge_number(session, limit, "limits", source, hit, value, (low, high))
    if not values:
        session.undetermined(limit.id, "limits", "no results could be read",
                             threshold=between(low, high), weight=limit.weight,
                             tier=limit.tier)  # fmt: skip


def _values(session: Session, limit: Limit) -> Iterable[tuple[Input, Hit, Number]]:
    if not limit.ratio:
        yield from session.hits(limit.path, limit.file)
        return
    below = {
        (source.name, hit.label): value
        for source, hit, value in session.hits(limit.ratio[1], limit.file)
    }
    for source, hit, part in session.hits(limit.ratio[0], limit.file):
        whole = below.get((source.name, hit.label), MISSING)
        yield source, hit, _ratio(part, whole)


def _ratio(part: Number, whole: Number) -> Number:
    """A share of two counts; of an empty set it is no number."""
    for one in (part, whole):
        if one.exact is None:
            return one
    if part.exact is None or not whole.exact:
        return Number(None, f"{part.text}/{whole.text}", "missing")
    share = part.exact / whole.exact
    return Number(share, f"{part.text}/{whole.text} = {decimal_text(share)}")


def judge_number(
    session: Session, asked: Asked, block: str, source: Input, hit: Hit, value: Number,
    bound: tuple[Fraction | None, Fraction | None], about: str = "",
) -> None:  # fmt: skip
    """A number against its bounds: one criterion, and a finding if it does not hold."""
    measure = Measure(value.exact, *bound)
    threshold = between(*bound) + (f" ({about})" if about else "")
    name, where, mild = f"{asked.id}{hit.label}", source.where(hit.pointer), asked.weight == "warn"
    held: Held = "true" if measure.holds() else "false"
    reason = ""
    if value.exact is None:
        held = "false" if value.flaw == "not finite" else "undetermined"
        reason = f"it is {value.flaw}"
        kind = "blocker_unusable" if asked.weight == "blocker" else "metric_unusable"
        session.found.add(kind, source.name, where, f"{name} is {value.text} ({value.flaw})",
                          f"a finite number, {threshold}", mild=mild)  # fmt: skip
    elif held == "false":
        kind = "out_of_band" if block == "bands" else "limit_missed"
        kind = "blocker_failed" if asked.weight == "blocker" else kind
        session.found.add(kind, source.name, where, f"{name} = {value.text}", threshold, mild=mild)
    session.answer(asked.id, hit.label, block, held, value.text, threshold, weight=asked.weight,
                   tier=asked.tier, reason=reason, measure=measure)  # fmt: skip
