"""The two plots of the reports: cases against their bound, and a metric over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from trueup.oracle.verdict import CaseScore
from trueup.render import svg
from trueup.render.counts import ratio_text
from trueup.render.series import Series

_WIDTH, _LABEL, _ROW, _TOP, _FOOT = 860, 190, 20, 8, 34
_BAND = 48  # for what has no place on a logarithmic axis: exactly 0, and beyond every bound
_LOW = 1e-4  # smaller ratios are drawn here: how far below the bound is then no longer news
_BOUND = "1 = bound"
_GUTTER, _TALL = 80, 150  # of a curve: room for its numbers, height


def strip_plot(scores: Sequence[CaseScore], title: str) -> Markup:
    """Draw each case's worst error over allowed: a row per input family, a line at 1."""
    families = list(dict.fromkeys(score.family for score in scores))
    if not families:
        return Markup("")
    bottom = _TOP + _ROW * len(families)
    finite = [score.ratio for score in scores if math.isfinite(score.ratio) and score.ratio > 0]
    place = _ratio_axis(finite)
    parts = _ratio_grid(place, bottom, max([*finite, 1.0]))
    for row, family in enumerate(families):
        y = _TOP + _ROW * (row + 0.5)
        parts.append(svg.text(_LABEL - 8, y + 4, family, "end", "label"))
        parts += [
            _mark(place(score.ratio), y + (turn % 3 - 1) * 3.5, score)
            for turn, score in enumerate(s for s in scores if s.family == family)
        ]
    return svg.drawing(parts, _WIDTH, bottom + _FOOT, title)


def _ratio_axis(finite: Sequence[float]) -> Callable[[float], float]:
    """Make the map from a ratio to x: logarithmic, with a band for 0 and one for no number."""
    low = math.log10(max(_LOW, min([*finite, 0.1])))
    high = math.log10(max([*finite, 1.0])) + 0.15
    left, right = _LABEL + _BAND, _WIDTH - _BAND

    def place(ratio: float) -> float:
        if not math.isfinite(ratio):
            return right + _BAND / 2
        if ratio <= 0:
            return _LABEL + _BAND / 2
        return left + (max(math.log10(ratio), low) - low) / (high - low) * (right - left)

    return place


def _ratio_grid(place: Callable[[float], float], bottom: float, largest: float) -> list[Markup]:
    """Draw the bound at 1, the names of the axis and its two bands, and the decades that fit."""
    one, exact, beyond = place(1.0), place(0.0), place(math.inf)
    # Beside its line, where it would else run into the name of a band.
    low, high = exact + _half("exact"), beyond - _half("beyond")
    bound = min(max(one, low + _half(_BOUND)), high - _half(_BOUND))
    parts = [
        svg.line((one, _TOP), (one, bottom), "bound"),
        svg.text(bound, bottom + 14, _BOUND, "middle", "tick strong"),
        svg.text(exact, bottom + 14, "exact", "middle", "tick"),
        svg.text(beyond, bottom + 14, "beyond", "middle", "tick"),
    ]
    taken = [
        (x, _half(name)) for x, name in ((bound, _BOUND), (exact, "exact"), (beyond, "beyond"))
    ]
    decades = range(int(math.log10(_LOW)), math.ceil(math.log10(largest)) + 1)
    every = max(1, len(decades) // 8)
    for power in decades:
        x, name = place(10.0**power), f"{10.0**power:g}"
        if power % every or power == 0 or not _LABEL + _BAND < x <= _WIDTH - _BAND:
            continue
        parts.append(svg.line((x, _TOP), (x, bottom), "grid"))
        if all(abs(x - other) >= half + _half(name) for other, half in taken):
            parts.append(svg.text(x, bottom + 14, name, "middle", "tick"))
            taken.append((x, _half(name)))
    middle = (_LABEL + _WIDTH) / 2
    name = "worst error / allowed error, per case"
    return [*parts, svg.text(middle, bottom + 30, name, "middle", "tick")]


def _half(words: str) -> float:
    """Half the room that words of the axis take, with a gap: what is nearer would run into them."""
    return 3.3 * len(words) + 4


def _mark(x: float, y: float, score: CaseScore) -> Markup:
    """Draw a case: a dot within its bound, a diamond beyond it, so that colour is not alone."""
    tip = f"{score.case}: {ratio_text(score.ratio)}"
    if score.quantiles:
        tip += f" (median {ratio_text(score.quantiles[len(score.quantiles) // 2])})"
    within = score.ratio <= 1  # NaN is not
    return svg.tipped(tip, svg.dot(x, y, "within") if within else svg.diamond(x, y, "beyond"))


def line_plot(series: Series) -> Markup:
    """Draw a metric over steps, with the steps that findings name marked."""
    if not series.buckets:
        return Markup("")
    lows, highs = [b[1] for b in series.buckets], [b[2] for b in series.buckets]
    ground, top = min(lows), max(highs)
    first = min([series.buckets[0][0], *series.marks])
    last = max([series.buckets[-1][0], *series.marks])
    across = _linear(first, last, _GUTTER, _WIDTH - 12)
    up = _linear(ground, top, _TOP + _TALL, _TOP)
    points = [
        (across(step), up(value))
        for step, low, high in series.buckets
        for value in ((low, high) if low != high else (low,))
    ]
    bottom = _TOP + _TALL
    parts = [
        svg.line((_GUTTER, bottom), (_WIDTH - 12, bottom), "grid"),
        svg.text(_GUTTER - 8, _TOP + 8, f"{top:.4g}", "end", "tick"),
        svg.text(_GUTTER - 8, bottom, f"{ground:.4g}", "end", "tick"),
        svg.text(_GUTTER, bottom + 14, f"step {first}", "start", "tick"),
        svg.text(_WIDTH - 12, bottom + 14, f"{last}", "end", "tick"),
        svg.curve(points, "curve"),
    ]
    for step in series.marks:
        x = across(step)
        shapes = (svg.line((x, _TOP), (x, bottom), "offence"), svg.diamond(x, bottom, "beyond"))
        parts.append(svg.tipped(f"step {step}", *shapes))
    return svg.drawing(parts, _WIDTH, bottom + 20, f"{series.key} over steps")


def _linear(low: float, high: float, start: float, stop: float) -> Callable[[float], float]:
    """Map low..high to start..stop; a range without extent, or one too wide for a float, to its
    middle."""
    extent = high - low
    if not 0 < extent < math.inf:
        return lambda value: (start + stop) / 2
    return lambda value: start + (value - low) / extent * (stop - start)
