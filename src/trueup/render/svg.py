"""The SVG shapes that plots are made of; every text is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from trueup.render.clean import one_line


def text(x: float, y: float, words: str, anchor: str, kind: str) -> Markup:
    """Write words; `kind` is a class of the page's style."""
    safe = escape(one_line(words))
    return Markup(
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe}</text>'
    )


def line(start: tuple[float, float], stop: tuple[float, float], kind: str) -> Markup:
    """Draw a straight line."""
    (x1, y1), (x2, y2) = start, stop
    return Markup(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')


def dot(x: float, y: float, kind: str) -> Markup:
    """Draw a small disc."""
    return Markup(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')


def diamond(x: float, y: float, kind: str) -> Markup:
    """Draw what is told from a disc without colour."""
    return Markup(f'<path class="{kind}" d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"/>')


def curve(points: Sequence[tuple[float, float]], kind: str) -> Markup:
    """Draw a line through points."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup(f'<polyline class="{kind}" fill="none" points="{path}"/>')


def tipped(tip: str, *shapes: Markup) -> Markup:
    """Group shapes under a tooltip."""
    return Markup(f"<g><title>{escape(one_line(tip))}</title>{''.join(shapes)}</g>")


def drawing(parts: Sequence[Markup], width: float, height: float, title: str) -> Markup:
    """Put shapes into one drawing that scales with the page and says what it shows."""
    return Markup(
        f'<svg role="img" aria-label="{escape(one_line(title))}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
