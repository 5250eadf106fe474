"""What a policy does: shares of its choices that have not collapsed, monitors that observe."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from trueup.gates.acceptance.config import Asked, Mix, Wired
from trueup.gates.acceptance.exact import decimal_text, parameter
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.model import Held, Measure
from trueup.gates.acceptance.paths import Hit, follow, parse_path
from trueup.gates.acceptance.session import Session, between
from trueup.gates.findings import show

_BLOCK = "behaviour"
_DIGITS = Context(prec=60)
_EQUAL = Decimal("1e-50")  # far below what sixty digits leave open: this near, both are equal


def judge_behaviour(session: Session) -> None:
    """Every [[mix]] and [[wired]] of the acceptance."""
    for mix in session.config.mix:
        for source, hit in _lists(session, mix):
            _mix(session, mix, source, hit)
    for wired in session.config.wired:
        for source, hit in _lists(session, wired):
            _wired(session, wired, source, hit)


def _lists(session: Session, asked: Asked) -> list[tuple[Input, Hit]]:
    steps = parse_path(asked.path)
    found = [(s, hit) for s in session.results(asked.file) for hit in follow(s.data, steps)]
    if not found:
        session.undetermined(asked.id, _BLOCK, "no results could be read", weight=asked.weight,
                             tier=asked.tier)  # fmt: skip
    return found


def _mix(session: Session, mix: Mix, source: Input, hit: Hit) -> None:
    """The shares are whole, no choice has nearly all of them, and their entropy is not small."""
    shares, why = _shares(source, hit, mix)
    threshold = f"entropy >= {mix.min_entropy} ln(classes), no share > {mix.max_share}"
    if shares is None:
        _not_held(session, mix, source, hit, "undetermined", why, threshold)
        return
    top = max(shares)
    entropy = _entropy(shares)
    least = _DIGITS.multiply(mix.min_entropy, _DIGITS.ln(Decimal(len(shares))))
    measure = Measure(top, None, parameter(mix.max_share))
    shown = f"entropy {entropy:.6f}, largest share {decimal_text(top)}"
    low = entropy < least and abs(entropy - least) > _EQUAL
    if low or not measure.holds():
        _not_held(session, mix, source, hit, "false", shown,
                  f"entropy >= {least:.6f}, share {between(None, measure.high)}")  # fmt: skip
        return
    session.answer(mix.id, hit.label, _BLOCK, "true", shown, threshold, weight=mix.weight,
                   tier=mix.tier)  # fmt: skip


def _shares(source: Input, hit: Hit, mix: Mix) -> tuple[list[Fraction] | None, str]:
    """The shares of a total of 1; None, and why, if they are none."""
    if not hit.found or not isinstance(hit.value, list):
        return None, "no list of shares" if hit.found else "missing"
    if len(hit.value) < 2 or (mix.classes is not None and len(hit.value) != mix.classes):
        return None, f"{len(hit.value)} shares instead of {mix.classes or 'two or more'}"
    numbers = [source.number((*hit.pointer, index)) for index in range(len(hit.value))]
    exact = [one.exact for one in numbers if one.exact is not None and one.exact >= 0]
    if len(exact) != len(numbers):
        return None, f"a share that is no number from 0 on: {show(hit.value)}"
    total = sum(exact, Fraction(0))
    whole = parameter(mix.total)
    if abs(total - whole) > parameter(mix.sum_tolerance) * whole:
        return None, f"the shares add up to {decimal_text(total)}, not to {mix.total}"
    return [share / total for share in exact], ""


def _entropy(shares: list[Fraction]) -> Decimal:
    """In nats, to sixty digits."""
    total = Decimal(0)
    for share in shares:
        if share:
            value = _DIGITS.divide(Decimal(share.numerator), Decimal(share.denominator))
            total = _DIGITS.subtract(total, _DIGITS.multiply(value, _DIGITS.ln(value)))
    return total


def _wired(session: Session, wired: Wired, source: Input, hit: Hit) -> None:
    """Every monitor is there, and has observed something."""
    monitors: dict[str, Any] = hit.value if isinstance(hit.value, dict) else {}
    absent = [name for name in wired.names if not isinstance(monitors.get(name), dict)]
    counts = {name: monitors[name].get("n_obs") for name in wired.names if name not in absent}
    dead = [
        f"{name} (n_obs {show(count)})" for name, count in counts.items()
        if type(count) is not int or count < wired.min_observations
    ]  # fmt: skip
    threshold = f"{len(wired.names)} monitors, n_obs >= {wired.min_observations}"
    if not absent and not dead:
        session.answer(wired.id, hit.label, _BLOCK, "true", f"{len(counts)} monitors", threshold,
                       weight=wired.weight, tier=wired.tier)  # fmt: skip
        return
    got = "; ".join(filter(None, (
        f"absent: {', '.join(absent)}" if absent else "",
        f"never observed: {', '.join(dead)}" if dead else "",
    )))  # fmt: skip
    held: Held = "undetermined" if not dead else "false"
    _not_held(session, wired, source, hit, held, got, threshold)


def _not_held(
    session: Session, asked: Asked, source: Input, hit: Hit, held: Held, got: str, expected: str
) -> None:
    kind = "mix_collapsed" if isinstance(asked, Mix) else "monitor_unwired"
    if isinstance(asked, Mix) and held == "undetermined":
        kind = "mix_unfit"
    name, where = f"{asked.id}{hit.label}", source.where(hit.pointer)
    mild = asked.weight == "warn"
    session.found.add(kind, source.name, where, f"{name}: {got}", expected, mild=mild)
    session.answer(asked.id, hit.label, _BLOCK, held, got, expected, weight=asked.weight,
                   tier=asked.tier, reason=got if held == "undetermined" else "")  # fmt: skip
