"""Atoms of a distributional head: their places, their probabilities, and what a support must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueup.reference.errors import BadInputs
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

SLACK = 2.0**-18
"""How far delta_z (n - 1) may be from v_max - v_min, relative to |v_max| + |v_min|.

The programme asks for 4 u (2^-22). That comparison, evaluated in float32, is itself wrong by up
to 4 u, so a float32 kernel cannot hold supports to it; 64 u is told apart from rounding.
"""

LEAST_STEP = 2.0**-126
"""The least delta_z, the smallest normal float32: the reciprocal of a lesser one overflows."""

SUPPORT = Domain("real", -2.0, 2.0)
POSITIONS = Symbol(
    "positions",
    ("n_atoms",),
    Domain("monotone"),
    "places of the atoms in [0, 1], from 0 to 1; evenly spaced if left out",
    optional=True,
)


def atoms(
    support: F64, n_atoms: int, positions: F64 | None = None, shift: F64 | None = None
) -> F64:
    """Place the atoms: v_min + i delta_z, or v_min + positions (v_max - v_min), then the shift.

    Shapes: support (..., 3), positions (n_atoms,), shift (...); returns (..., n_atoms). A shift of
    0 is skipped: adding +0 would change an atom at -0.
    """
    low, number = support[..., 0:1], np.arange(n_atoms)
    if positions is None:
        rise = number * support[..., 2:3]
    else:
        rise = positions * (support[..., 1:2] - low)
    z = np.where(number == 0, low, low + rise)  # atom 0 is v_min, whatever delta_z is
    if shift is None:
        return z
    moved = shift[..., np.newaxis]
    return np.where(moved == 0.0, z, z + moved)


def is_valid(support: F64, n_atoms: int, slack: float = SLACK) -> Any:
    """Tell which supports can be used: v_min < v_max, a delta_z that fits them, all finite."""
    low, high, step = support[..., 0], support[..., 1], support[..., 2]
    span = high - low
    usable = step >= LEAST_STEP
    off = np.abs(step * (n_atoms - 1) - span)
    # Whether a step fits is asked of usable ones alone: of others rounding might decide it.
    off = np.where(usable, off, 0.0)
    fits = off <= np.where(usable, slack * (np.abs(high) + np.abs(low)), 0.0)
    return (high > low) & usable & np.isfinite(span) & fits


def check_support(support: F64, n_atoms: int, slack: float = SLACK) -> None:
    """Refuse degenerate supports (shape (..., 3)); kernels flag them instead.

    Raises BadInputs naming the first one.
    """
    valid = np.asarray(is_valid(support, n_atoms, slack))
    if n_atoms < 2 or not valid.all():
        first = tuple(int(i) for i in np.argwhere(~valid)[0]) if not valid.all() else ()
        raise BadInputs(
            "a support is degenerate",
            where=f"support{list(first)}",
            got=f"{np.asarray(support)[first].tolist()} with {n_atoms} atoms",
            expected="v_min < v_max, delta_z = (v_max - v_min) / (n_atoms - 1), 2 atoms or more",
        )


def softmax(logits: F64) -> F64:
    """Give probabilities along the last axis, the largest logit subtracted first."""
    weight = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    share: F64 = weight / np.sum(weight, axis=-1, keepdims=True)
    return share


def log_softmax(logits: F64) -> F64:
    """Give log-probabilities along the last axis; never the log of a rounded probability."""
    below = logits - np.max(logits, axis=-1, keepdims=True)
    out: F64 = below - np.log(np.sum(np.exp(below), axis=-1, keepdims=True))
    return out


BROKEN = {"reversed": -np.inf, "stretched": np.inf, "unknown": np.nan}
"""Marks a family may leave in delta_z: what `prepared_support` then makes of the row."""


def prepared_support(drawn: F64, n_atoms: int) -> F64:
    """Make supports of any drawn numbers: ordered, wide enough, delta_z as float32 gives it.

    The range is at least a twentieth of the middle. Rows marked by `BROKEN` become degenerate.
    """
    drawn = np.asarray(drawn, dtype=np.float64)
    mark = drawn[..., 2]
    middle = 0.5 * (drawn[..., 0] + drawn[..., 1])
    half = 0.5 * np.abs(drawn[..., 1] - drawn[..., 0])
    half = np.maximum(half, np.maximum(0.05 * np.abs(middle), 1e-3))
    ends = np.stack([middle - half, middle + half]).astype(np.float32)
    backwards = np.isneginf(mark)
    low, high = np.where(backwards, ends[::-1], ends)
    step = (high - low) / np.float32(max(n_atoms - 1, 1))
    step = np.where(np.isposinf(mark), 2.0 * step, np.where(np.isnan(mark), np.nan, step))
    return np.stack([low, high, step], axis=-1).astype(np.float64)


def prepared_positions(drawn: F64) -> F64:
    """Make positions of any drawn numbers: increasing from exactly 0 to exactly 1.

    Numbers that are such positions already are kept.
    """
    drawn = np.asarray(drawn, dtype=np.float64)
    rises = np.diff(drawn)
    if drawn[0] == 0.0 and drawn[-1] == 1.0 and bool((rises > 0.0).all()):
        return drawn
    steps = 0.05 + np.abs(rises)
    places = np.concatenate([[0.0], np.cumsum(steps / steps.sum())])
    places[-1] = 1.0
    return places


def mark_supports(
    name: str, rng: np.random.Generator, sizes: Mapping[str, int], values: Values
) -> Values:
    """Mark some rows of the input `name` as each kind of degenerate support, the first surely."""
    support = np.array(values[name], dtype=np.float64)
    rows = support.reshape(-1, 3)
    kinds = list(BROKEN.values())
    rows[0, 2] = kinds[int(rng.integers(len(kinds)))]
    for row in range(1, len(rows)):
        if rng.random() < 0.4:
            rows[row, 2] = kinds[row % len(kinds)]
    return values | {name: rows.reshape(support.shape)}


def _degenerate(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return mark_supports("support", rng, sizes, values)


def _far(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"support": 10.0 + np.asarray(values["support"])}


def _peaked(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"logits": 20.0 * np.asarray(values["logits"])}


DEGENERATE = Family(
    "degenerate", "supports that are none: flagged, all mass on atom 0", _degenerate
)
FAR = Family("far_support", "v_min far above the range: atoms are sums that cancel", _far)
PEAKED = Family("peaked", "probabilities near 0: log(p + eps) and lost masses show", _peaked)
