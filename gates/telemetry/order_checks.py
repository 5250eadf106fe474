"""Checks of rows against the rows before them: order, counters that accumulate, what goes along.

With `by`, rows are compared within a group (a run, a fold). With `resume`, a configuration row
that holds this key begins a new segment: the run was started again from a state that had done
that many steps, and what follows is compared with that and not with what stood before.
"""

from __future__ import annotations

import polars as pl

from trueup.gates.telemetry.params import (
    BY,
    RESUME,
    Number,
    asks,
    at_least,
    choice,
    listed,
    setting_number,
)
from trueup.gates.telemetry.past import Past
from trueup.gates.telemetry.probe import (
    Check,
    Probe,
    View,
    exact,
    number,
    where_present,
    wide,
)


def _increasing(view: View) -> list[Probe]:
    strict = view.rule.params.get("strict", True)
    numbers = (name for name in view.names if view.is_number(name))
    return [probe for name in numbers for probe in _rises(view, name, strict)]


def _rises(view: View, name: str, strict: bool) -> list[Probe]:
    step = view.rule.params.get("step", name)
    if not view.is_number(step):
        return []
    past = Past(view, [step] if step == name else [step, name])
    value, before = past.value(name), past.before(name)
    ok = pl.when(before.is_null()).then(True).otherwise(
        value > before if strict else value >= before
    )  # fmt: skip
    if past.resume is None or step != name:
        return [Probe(name, where_present([name], past.settle(ok)), (name,))]
    return _resumed(view, past, name, ok)


def _resumed(view: View, past: Past, name: str, ok: pl.Expr) -> list[Probe]:
    """A segment begins one step after the state it declares, which an earlier row has reached."""
    declared, interval = past.declared, setting_number(view, "interval")
    value = past.value(name)
    begins = past.before(name).is_null() & declared.is_not_null()
    right = value > declared
    if interval is not None:
        right &= value <= declared + interval
    in_order = pl.when(past.is_config).then(True).when(begins).then(right).otherwise(ok)
    reached = ~past.is_resume | (declared <= past.furthest).fill_null(True)
    settled = past.settle_all(where_present([name], in_order), reached)
    out = [Probe(name, settled[0], (name,))]
    if past.resumes and past.resume is not None:
        out.append(Probe(past.resume, settled[1], (past.resume,)))
    return out


def _constant(view: View) -> list[Probe]:
    out = []
    for name in (name for name in view.names if view.has(name)):
        past = Past(view, [name])
        ok = past.value(name) == past.first(name)
        out.append(Probe(name, where_present([name], past.settle(ok)), (name,)))
    return out


def _accumulates(view: View) -> list[Probe]:
    total, part, step = (view.param(name) for name in ("total", "part", "step"))
    if not all(view.is_number(name) for name in (total, part, step)):
        return []
    past = Past(view, [step, total])
    between = past.value(step) - past.before(step)
    grown = wide(view, total) - past.before(total)
    ok = pl.when(past.before(total).is_null()).then(
        (past.value(step) != 0) | (exact(view, total) == exact(view, part))
    ).when(between <= 0).then(True).otherwise(grown == wide(view, part) * between)  # fmt: skip
    if view.rule.params.get("uneven", False):
        ok = pl.when(between > 1).then(grown > 0).otherwise(ok)
    ok = pl.when(past.value(step).is_null()).then(True).otherwise(ok)
    ok = past.settle(ok)
    return [Probe(total, where_present([total, part, step], ok), (total, part, step))]


def _counts_every(view: View) -> list[Probe]:
    count, every, step = (view.param(name) for name in ("count", "every", "step"))
    if not all(view.is_number(name) for name in (count, every, step)):
        return []
    past = Past(view, [step, count, every])
    steps = past.value(step) - past.first(step)
    grown = number(count) - past.first(count)
    if view.rule.params.get("unit", "batch") == "update":
        ok = grown == steps
    else:
        ok = grown.is_between((steps / number(every)).floor(), (steps / number(every)).ceil())
    same = number(every) == past.first(every)  # with another factor the sum says nothing
    ok = pl.when(past.value(step).is_null() | (steps < 0) | ~same).then(True).otherwise(ok)
    ok = past.settle(ok)
    return [Probe(count, where_present([count, every, step], ok), (count, step, every))]


def _follows(view: View) -> list[Probe]:
    value, others = view.param("value"), list(view.param("with"))
    if not all(view.is_number(name) for name in (value, *others)):
        return []
    past = Past(view, [value, *others])
    none_falls = pl.all_horizontal(
        [(past.value(name) >= past.before(name)).fill_null(False) for name in others]
    )
    slack = float(view.rule.params.get("rel", 0.0)) * past.before(value).abs()
    ok = (
        past.value(value) <= past.before(value) + slack
        if view.rule.params.get("direction", "up") == "down"
        else past.value(value) >= past.before(value) - slack
    )
    ok = pl.when(past.before(value).is_null() | ~none_falls).then(True).otherwise(ok)
    shown = (value, *others)
    return [Probe(value, where_present(list(shown), past.settle(ok)), shown)]


_ROWS = (*BY, *RESUME)
_TEXT = (str,)
CHECKS = (
    Check(
        "increasing", "cells", "larger than in the row before, or (`strict = false`) not smaller",
        {"strict": (bool,), "interval": (int, str), "step": _TEXT, **BY, **RESUME},
        ("strict", "interval", "step", *_ROWS), build=_increasing,
        problem=asks(listed("by"), at_least(1, "interval")),
    ),
    Check(
        "constant", "cells", "the same as in the first row",
        BY, tuple(BY), build=_constant, problem=listed("by"),
    ),
    Check(
        "accumulates", "row", "`total` grows by `part` with each `step`, or (`uneven`) only grows "
        "where steps in between are not logged",
        {"total": _TEXT, "part": _TEXT, "step": _TEXT, "uneven": (bool,), **BY, **RESUME},
        ("uneven", *_ROWS), build=_accumulates, problem=listed("by"),
    ),
    Check(
        "counts_every", "row", "`count` grows by one every `every` steps (`unit = \"batch\"`), or "
        "with each (`\"update\"`)",
        {"count": _TEXT, "every": _TEXT, "step": _TEXT, "unit": _TEXT, **BY, **RESUME},
        ("unit", *_ROWS), build=_counts_every,
        problem=asks(listed("by"), choice("unit", "batch", "update")),
    ),
    Check(
        "follows", "row", "where no key of `with` falls, `value` does not fall, or (`direction = "
        "\"down\"`) does not rise",
        {"value": _TEXT, "with": (list,), "direction": _TEXT, "rel": Number, **BY},
        ("direction", "rel", *BY), build=_follows,
        problem=asks(listed("with", "by"), choice("direction", "up", "down"), at_least(0, "rel")),
    ),
)  # fmt: skip
