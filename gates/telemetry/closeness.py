"""Equal within a relative difference, where infinity is near nothing but itself."""

from __future__ import annotations

import polars as pl


def close(one: pl.Expr, two: pl.Expr, rel: float) -> pl.Expr:
    """|one - two| <= rel * the larger of both.

    Written with care: 0 times infinity is NaN, and the engine takes NaN for the largest number.
    """
    apart = (one - two).abs()
    near = apart <= rel * pl.max_horizontal(one.abs(), two.abs())
    return (one == two) | (apart.is_finite() & near)
