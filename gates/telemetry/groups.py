"""The group of a row (`by`: a run, a fold), in words."""

from __future__ import annotations

import polars as pl

from trueup.gates.telemetry.probe import View


def in_words(view: View) -> pl.Expr:
    """`run_id a, fold 2`; empty where the rule names no groups."""
    names = [name for name in view.rule.params.get("by", ()) if view.has(name)]
    if not names:
        return pl.lit("")
    words = [pl.format(f"{name} {{}}", pl.col(name).cast(pl.String)) for name in names]
    return pl.concat_str(words, separator=", ", ignore_nulls=True)
