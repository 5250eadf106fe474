"""Rules on what a run was asked to do: stated, the same everywhere, and seen in its telemetry."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trueup.gates.checkpoint.files import config_of
from trueup.gates.checkpoint.form_checks import on_sidecars
from trueup.gates.checkpoint.telemetry import columns_like, highest
from trueup.gates.documents.model import Answer, CheckDocument, DocumentCheck, Pointer, Subject
from trueup.gates.documents.paths import get, parse_path, select
from trueup.gates.errors import ProfileError
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

Feature = Mapping[str, Any]  # key of the sidecar, way into the configuration, key of config rows


def stated(subject: Subject, feature: Feature) -> list[tuple[str, Pointer, Any]]:
    """Each place that states a feature: its name, the way in the sidecar, the value."""
    found: list[tuple[str, Pointer, Any]] = []
    key = str(feature["key"])
    own = get(subject.document.data, key)
    if own is not None:
        found.append(("the sidecar", (key,), own))
    config = config_of(subject) if feature.get("config") else None
    if config is not None:
        where = config.file.name if config.file is not None else "`config`"
        for way in _several(feature["config"]):
            for _, value in select(config.data, parse_path(way)):
                if value is not None:
                    found.append((where, (key,) if own is not None else (), value))
    rows = subject.run.config_rows()
    for name in _several(feature.get("row", [])):
        if rows.get(name) is not None:
            found.append(("the telemetry's configuration row", (), rows[name]))
    return found


def _several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def features_stated(subject: Subject, rule: Rule) -> Answer:
    """Each feature is stated by the sidecar or its configuration; telemetry alone is not enough."""
    flaws = []
    for feature in rule.params["features"]:
        alone = {name: value for name, value in feature.items() if name != "row"}
        if not stated(subject, alone):
            flaws.append(subject.flaw("absent", feature["key"]))
    return Answer(len(rule.params["features"]), tuple(flaws))


def features_agree(subject: Subject, rule: Rule) -> Answer:
    """All places that state a feature state the same."""
    read, flaws = 0, []
    for feature in rule.params["features"]:
        places = stated(subject, feature)
        if len(places) < 2:
            continue
        read += 1
        first, pointer, value = places[0]
        for where, _, other in places[1:]:
            if type(other) is not type(value) or other != value:
                got = f"{show(value)} in {first}, but {show(other)} in {where}"
                flaws.append(subject.flaw(got, *(pointer or (feature["key"],))))
    return Answer(read, tuple(flaws), "no feature is stated in two places")


def features_show(subject: Subject, rule: Rule) -> Answer:
    """What is switched on leaves its trace in the telemetry, and what is off leaves none."""
    least = rule.params["min_rows"]
    rows = sum(table.rows for table in subject.run.tables)
    if rows < least:
        return Answer(0, reason=f"telemetry of {rows} rows; at least {least} are needed")
    read, flaws = 0, []
    for sign in rule.params["signs"]:
        places = stated(subject, sign)
        value = places[0][2] if places else None
        if type(value) is not type(sign["is"]) or value != sign["is"]:
            continue
        read += 1
        got = _sign(subject, sign)
        if got is not None:
            said = f"{show(value)} ({places[0][0]}), but {got}"
            flaws.append(subject.flaw(said, sign["key"]))
    return Answer(read, tuple(flaws), "no feature of the kind is on")


def _sign(subject: Subject, sign: Feature) -> str | None:
    """What is wrong with the telemetry's columns, if something is."""
    columns = columns_like(subject.run, sign["columns"])
    if sign.get("none", False):
        seen = [
            name for name, column in columns
            if "above" not in sign
            or (isinstance(column.high, int | float) and column.high > sign["above"])
        ]  # fmt: skip
        more = f" above {sign['above']}" if "above" in sign else ""
        return (
            f"telemetry has {len(seen)} of its columns{more}: {', '.join(seen[:3])}"
            if seen
            else None
        )
    if not columns:
        return f"no column of the telemetry matches {sign['columns']}"
    if "above" not in sign:
        return None
    high = highest(columns)
    if high is None or not high > sign["above"]:
        return f"none of its {len(columns)} columns is ever above {sign['above']}"
    return None


def fingerprints_agree(subject: Subject, rule: Rule) -> Answer:
    """The layout fingerprint is that of the telemetry."""
    own = get(subject.document.data, rule.params["key"])
    if own is None:
        return Answer(0, reason=f"states no {rule.params['key']}")
    logged = logged_texts(subject, rule.params["key"])
    flaws = tuple(
        subject.flaw(f"{show(own)}, but {where} says {show(value)}", rule.params["key"])
        for where, value in logged
        if value != own
    )
    return Answer(len(logged), flaws, f"telemetry has no {rule.params['key']}")


def logged_texts(subject: Subject, key: str) -> list[tuple[str, Any]]:
    """What telemetry logged under a key: in its configuration rows, and in all others."""
    found: list[tuple[str, Any]] = []
    for table in subject.run.tables:
        if table.config.get(key) is not None:
            found.append((f"the configuration row of {table.name}", table.config[key]))
        column = table.columns.get(key)
        if column is not None and column.texts is not None:
            found += [(f"a row of {table.name}", one) for one in dict.fromkeys(column.texts)]
    return found


_TEXT_OR_LIST = (str, list)


def _problem(name: str, needed: Mapping[str, tuple[type, ...]], more: Mapping[str, Any]) -> Any:
    """A check of a parameter that is a list of tables with certain keys."""

    def problem(params: Mapping[str, Any]) -> str | None:
        for index, one in enumerate(params[name]):
            place = f"{name}[{index}]"
            if not isinstance(one, dict):
                return f"{place} is {one!r}, expected a table"
            for key in one:
                if key not in needed and key not in more:
                    return f"{place}.{key}: unknown, expected {', '.join((*needed, *more))}"
            for key, kinds in {**needed, **more}.items():
                if key in one and not isinstance(one[key], kinds):
                    return f"{place}.{key} is {one[key]!r}"
                if key in needed and key not in one:
                    return f"{place} lacks {key}"
            bad = _unreadable(one)
            if bad is not None:
                return f"{place}: {bad}"
        return None if params[name] else f"{name} is empty"

    return problem


def _unreadable(one: Mapping[str, Any]) -> str | None:
    try:
        re.compile(one.get("columns", ""))
        for way in _several(one.get("config", [])):
            parse_path(way)
    except re.error as error:
        return str(error)
    except ProfileError as error:
        return error.what
    return None


_FEATURE = {"config": _TEXT_OR_LIST, "row": _TEXT_OR_LIST}
_SIGN = {"key": (str,), "is": (str, int, float, bool), "columns": (str,)}
_SIGNS = {**_FEATURE, "above": (int, float), "none": (bool,)}


def _check(
    name: str, summary: str, run: CheckDocument, problem: Callable[..., Any] | None, **params: Any
) -> DocumentCheck:
    return DocumentCheck(name, ("metadata",), summary, on_sidecars(run), params, problem=problem)


CHECKS: tuple[DocumentCheck, ...] = (
    _check("features_stated", "each of `features` (`key` of the sidecar, `config`: a way into the "
           "configuration) is stated", features_stated,
           _problem("features", {"key": (str,)}, _FEATURE), features=(list,)),
    _check("features_agree", "each of `features` is the same in the sidecar, at the way `config` "
           "into the configuration, and under `row` in the telemetry's configuration rows",
           features_agree,
           _problem("features", {"key": (str,)}, _FEATURE), features=(list,)),
    _check("features_show", "where a feature of `signs` has the value `is`, some of the `columns` "
           "hold values (`above` a bound), or `none` of them does", features_show,
           _problem("signs", _SIGN, _SIGNS), signs=(list,), min_rows=(int,)),
    _check("fingerprints_agree", "the fingerprint at `key` is the one that telemetry logs",
           fingerprints_agree, None, key=(str,)),
)  # fmt: skip
