"""Checks that hold several named keys of one row against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import Any

import polars as pl

from trueup.gates.telemetry.closeness import close
from trueup.gates.telemetry.params import Number, asks, at_least, has_value, listed, setting_number
from trueup.gates.telemetry.probe import (
    Check,
    Probe,
    View,
    exact,
    number,
    where_present,
    wide,
)


def _all_numbers(view: View, names: list[str]) -> bool:
    return all(view.is_number(name) for name in names)


def _exp_of(view: View) -> list[Probe]:
    value, exponent = view.param("value"), view.param("exponent")
    if not _all_numbers(view, [value, exponent]):
        return []
    rel, clamp = float(view.param("rel")), float(view.param("clamp"))
    ratio = number(value) / number(exponent).exp()
    clamped = number(exponent) >= math.log(clamp)
    ok = pl.when(clamped).then(number(value) >= clamp * (1 - rel)).otherwise(
        (ratio - 1).abs() <= rel
    )  # fmt: skip
    return [Probe(value, where_present([value, exponent], ok), (value, exponent))]


def _product_of(view: View) -> list[Probe]:
    value, factors = view.param("value"), list(view.param("factors"))
    names = [value, *factors]
    if not _all_numbers(view, names):
        return []
    product = reduce(lambda left, right: left * right, (wide(view, name) for name in factors))
    ok = where_present(names, exact(view, value) == product)
    return [Probe(value, ok, tuple(names))]


def _sum_of(view: View) -> list[Probe]:
    value, terms = view.param("value"), list(view.param("terms"))
    optional = [n for n in view.rule.params.get("optional_terms", ()) if view.is_number(n)]
    names = [value, *terms]
    if not _all_numbers(view, names):
        return []
    parts = [wide(view, n) for n in terms] + [wide(view, n).fill_null(0) for n in optional]
    total = reduce(lambda left, right: left + right, parts)
    ok = where_present(names, exact(view, value) == total)
    return [Probe(value, ok, (*names, *optional))]


def _iff(view: View) -> list[Probe]:
    left, right = view.param("left"), view.param("right")
    if not (view.has(left) and view.has(right)):
        return []
    is_left = has_value(view, left, view.param("left_is"))
    is_right = has_value(view, right, view.param("right_is"))
    return [Probe(left, where_present([left, right], is_left == is_right), (left, right))]


def _equals(view: View) -> list[Probe]:
    value, other = view.param("value"), view.param("other")
    if not _all_numbers(view, [value, other]):
        return []
    ok = close(number(value), number(other), float(view.param("rel")))
    return [Probe(value, where_present([value, other], ok), (value, other))]


def _pairs_equal(view: View) -> list[Probe]:
    """Each column against the one it must repeat; a pair of which one is not logged is passed."""
    rel = float(view.param("rel"))
    out = []
    for value, other in view.param("pairs").items():
        if _all_numbers(view, [value, other]):
            ok = close(number(value), number(other), rel)
            out.append(Probe(value, where_present([value, other], ok), (value, other)))
    return out


def _equals_where(view: View) -> list[Probe]:
    """The key of the condition stands in the row; else in the configuration rows, as `config`."""
    key = view.param("key")
    if view.has(key):
        chosen = has_value(view, key, view.param("is"))
    elif (config := view.rule.params.get("config")) is not None and config in view.config:
        chosen = pl.lit(bool(view.config[config] == view.param("is")))
    else:
        view.state["reason"] = f"{key} is not recorded"
        return []
    if not view.frame.select(chosen.any()).item() and "chosen" not in view.state:
        view.state["reason"] = f"{key} is never {view.param('is')!r}"
        return []
    view.state["chosen"] = True
    return [
        Probe(probe.key, pl.when(chosen).then(probe.ok).otherwise(True), probe.shown)
        for probe in _equals(view)
    ]


def _ends_at(view: View) -> list[Probe]:
    value, index, total = view.param("value"), view.param("index"), view.param("total")
    names = [value, index, total]
    if not _all_numbers(view, names):
        return []
    there = close(number(value), pl.lit(float(view.param("end"))), float(view.param("rel")))
    ok = (number(index) != number(total) - 1) | there
    return [Probe(value, where_present(names, ok), tuple(names))]


def _requires(view: View) -> list[Probe]:
    """Where a key has a value, other keys are there."""
    key = view.param("key")
    if not view.has(key):
        return []
    asked = has_value(view, key, view.param("is"))
    if not view.frame.select(asked.any()).item() and "asked" not in view.state:
        view.state["reason"] = f"{key} is never {view.param('is')!r}"
        return []
    view.state["asked"] = True
    out = []
    for name in view.param("then"):
        there = pl.col(name).is_not_null() if view.has(name) else pl.lit(False)
        out.append(Probe(name, ~asked | there, (key, name) if view.has(name) else (key,)))
    return out


def _entropy_of(view: View) -> list[Probe]:
    """The entropy of a choice among `classes` lies between 0 and their logarithm, in nats."""
    classes = setting_number(view, "classes")
    if classes is None or classes < 1:
        return []
    slack, high = float(view.param("abs")), math.log(classes)
    return [
        Probe(name, where_present([name], number(name).is_between(-slack, high + slack)), (name,))
        for name in view.names
        if view.is_number(name)
    ]


def _names_in_pairs(params: Mapping[str, Any]) -> str:
    pairs = params["pairs"]
    if pairs and all(isinstance(other, str) and other for other in pairs.values()):
        return ""
    return f"pairs is {pairs!r}, expected a table of names"


_KEYS = {"value": (str,)}
CHECKS = (
    Check(
        "exp_of", "row", "`value` is exp of `exponent`, within `rel`, or clamped at `clamp`",
        {**_KEYS, "exponent": (str,), "rel": (int, float), "clamp": (int, float)}, build=_exp_of,
    ),
    Check(
        "product_of", "row", "`value` is the product of `factors`",
        {**_KEYS, "factors": (list,)}, build=_product_of,
    ),
    Check(
        "sum_of", "row", "`value` is the sum of `terms` and of the `optional_terms` that are there",
        {**_KEYS, "terms": (list,), "optional_terms": (list,)}, ("optional_terms",), build=_sum_of,
    ),
    Check(
        "iff", "row", "`left` is `left_is` exactly when `right` is `right_is`",
        {"left": (str,), "right": (str,), "left_is": (str, bool), "right_is": (str, bool)},
        build=_iff,
    ),
    Check(
        "pairs_equal", "row", "each key of the table `pairs` has the value of the key it names, "
        "within `rel`",
        {"pairs": (dict,), "rel": Number}, build=_pairs_equal,
        problem=asks(_names_in_pairs, at_least(0, "rel")),
    ),
    Check(
        "equals_where", "row", "`value` equals `other`, within `rel`, in rows where `key` is `is`; "
        "where rows have no such key, if the configuration says so under `config`",
        {**_KEYS, "other": (str,), "key": (str,), "is": (str, bool), "config": (str,),
         "rel": Number}, ("config",), build=_equals_where, problem=at_least(0, "rel"),
    ),
    Check(
        "ends_at", "row", "where `index` is the last of `total`, `value` is `end`, within `rel`",
        {**_KEYS, "index": (str,), "total": (str,), "end": Number, "rel": Number}, build=_ends_at,
        problem=at_least(0, "rel"),
    ),
    Check(
        "requires", "row", "where `key` is `is`, all keys of `then` are there",
        {"key": (str,), "is": (str, bool), "then": (list,)}, build=_requires,
        problem=listed("then"),
    ),
    Check(
        "entropy_of", "cells", "an entropy in nats of a choice among `classes` (a number, or the "
        "key that holds it), within `abs`",
        {"classes": (int, str), "abs": Number}, build=_entropy_of,
        problem=asks(at_least(1, "classes"), at_least(0, "abs")),
    ),
)  # fmt: skip
