"""Plots as inline SVG: plain shapes in the page's own colours, a tooltip on every mark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from markupsafe import Markup

from trueup.oracle.verdict import CaseScore
from trueup.render.clean import one_line
from trueup.render.counts import ratio_text

_WIDTH, _LABEL, _ROW, _TOP, _FOOT = 860, 190, 20, 8, 34
_BAND = 48  # for what has no place on a logarithmic axis: exactly 0, and beyond every bound
_LOW = 1e-4  # smaller ratios are drawn here: how far below the bound is then no longer news


def strip_plot(scores: Sequence[CaseScore], title: str) -> Markup:
    """Draw each case's worst error over allowed: a row per input family, a line at 1."""
    families = list(dict.fromkeys(score.family for score in scores))
    if not families:
        return Markup("")
    bottom = _TOP + _ROW * len(families)
    place = _axis([score.ratio for score in scores])
    parts = [
        _grid(place, bottom, max((s.ratio for s in scores if math.isfinite(s.ratio)), default=1))
    ]
    for row, family in enumerate(families):
        y = _TOP + _ROW * (row + 0.5)
        parts.append(_text(_LABEL - 8, y + 4, family, "end", "label"))
        parts += [
            _mark(place(score.ratio), y + (turn % 3 - 1) * 3.5, score)
            for turn, score in enumerate(s for s in scores if s.family == family)
        ]
    return _svg(parts, bottom + _FOOT, title)


def _axis(ratios: Sequence[float]) -> Callable[[float], float]:
    """Make the map from a ratio to x: logarithmic, with a band for 0 and one for no number."""
    finite = [ratio for ratio in ratios if math.isfinite(ratio) and ratio > 0]
    low = math.log10(max(_LOW, min([*finite, 0.1])))
    high = math.log10(max([*finite, 1.0])) + 0.15
    left, right = _LABEL + _BAND, _WIDTH - _BAND

    def place(ratio: float) -> float:
        if not math.isfinite(ratio):
            return right + _BAND / 2
        if ratio <= 0:
            return _LABEL + _BAND / 2
        share = (max(math.log10(ratio), low) - low) / (high - low)
        return left + share * (right - left)

    return place


def _grid(place: Callable[[float], float], bottom: float, largest: float) -> Markup:
    """Draw the decades, the bound at 1, and the names of the axis and its two bands."""
    parts = []
    for power in range(int(math.log10(_LOW)), math.ceil(math.log10(max(largest, 1.0))) + 1):
        x = place(10.0**power)
        if power != 0 and _LABEL + _BAND <= x <= _WIDTH - _BAND and x != place(10.0 ** (power - 1)):
            parts.append(_line(x, bottom, "grid"))
            parts.append(_text(x, bottom + 14, f"{10.0**power:g}", "middle", "tick"))
    parts.append(_line(place(1.0), bottom, "bound"))
    parts.append(_text(place(1.0), bottom + 14, "1 = bound", "middle", "tick strong"))
    parts.append(_text(place(0.0), bottom + 14, "exact", "middle", "tick"))
    parts.append(_text(place(math.inf), bottom + 14, "beyond", "middle", "tick"))
    middle = (_LABEL + _WIDTH) / 2
    parts.append(
        _text(middle, bottom + 30, "worst error / allowed error, per case", "middle", "tick")
    )
    return Markup("").join(parts)


def _mark(x: float, y: float, score: CaseScore) -> Markup:
    """Draw a case: a dot within its bound, a diamond beyond it, so that colour is not alone."""
    tip = f"{score.case}: {ratio_text(score.ratio)}"
    if score.quantiles:
        tip += f" (median {ratio_text(score.quantiles[len(score.quantiles) // 2])})"
    inside = score.ratio <= 1  # NaN is not
    shape = (
        f'<circle class="within" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        if inside
        else f'<path class="beyond" d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"/>'
    )
    return Markup(f"<g><title>{escape(one_line(tip))}</title>{shape}</g>")


def _line(x: float, bottom: float, kind: str) -> Markup:
    return Markup(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom:.1f}"/>')


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> Markup:
    safe = escape(one_line(text))
    return Markup(
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe}</text>'
    )


def _svg(parts: Sequence[Markup], height: float, title: str) -> Markup:
    name = escape(one_line(title))
    return Markup(
        f'<svg role="img" aria-label="{name}" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
