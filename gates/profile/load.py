"""Loads a profile: a built-in one by name, or the user's own TOML of the same form."""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from trueup.gates.errors import ProfileError
from trueup.gates.plain_file import plain_bytes
from trueup.gates.profile.rules import ArtifactPattern, Profile, Rule, When
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.toml import plain_toml

_RESERVED = ("RDR", "GAT", "DOC", "CLO", "ACC")  # of the readers, the gate itself, closing
_MAX_BYTES = 1 << 20
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PARTS = "parts"  # the folder of rules that several profiles include


def built_in() -> list[str]:
    """The names of the profiles that ship with the package."""
    folder = resources.files("trueup.gates.profiles")
    names = (Path(entry.name) for entry in folder.iterdir())
    return sorted(name.stem for name in names if name.suffix == ".toml")


def parts() -> list[str]:
    """The names of the parts that a profile can include."""
    folder = resources.files("trueup.gates.profiles") / _PARTS
    names = (Path(entry.name) for entry in folder.iterdir())
    return sorted(name.stem for name in names if name.suffix == ".toml")


def load_profile(profile: str) -> Profile:
    """A profile by name or path, checked whole. Raises `ProfileError` with file and key."""
    if profile in built_in():
        name = f"{profile}.toml"
        return parse_profile(
            (resources.files("trueup.gates.profiles") / name).read_bytes(), profile
        )
    path = Path(profile)
    if path.suffix != ".toml" and not path.exists():
        raise ProfileError(
            "unknown profile", got=repr(profile),
            expected=f"one of {', '.join(built_in())}, or a path to a TOML file",
            fix=_closest(profile, built_in()),
        )  # fmt: skip
    return parse_profile(plain_bytes(path, profile, ProfileError, "a TOML file"), profile)


def parse_profile(raw: bytes, where: str) -> Profile:
    """A profile from its bytes."""
    data = _toml(raw, where)
    _against_schema(data, where)
    own = tuple(_rule(entry, index, where) for index, entry in enumerate(data.get("rule", [])))
    _unique([rule.id for rule in own], where)
    included = [_included(name, where) for name in data["profile"].get("include", [])]
    rules = _overridden([rule for part in included for rule in part.rules], own)
    artifacts = _merged(
        [pattern for part in included for pattern in part.artifacts],
        [
            ArtifactPattern(entry["kind"], tuple(entry["patterns"]), entry.get("required", False))
            for entry in data.get("artifact", [])
        ],
    )
    if not rules or not artifacts:
        raise ProfileError(
            "has no rules" if not rules else "has no artifacts", where=where,
            expected="[[rule]] and [[artifact]] tables, of its own or included",
        )  # fmt: skip
    table = data.get("table", {})
    for key in ("nullable", "timestamps"):
        for pattern in table.get(key, []):
            _compiles(pattern, where, f"table.{key}")
    return Profile(
        id=data["profile"]["id"],
        summary=data["profile"]["summary"],
        artifacts=artifacts,
        rules=rules,
        digest=hashlib.sha256(
            b"\0".join([raw, *(part.digest.encode() for part in included)])
        ).hexdigest(),
        step=table.get("step", "step"),
        config_step=table.get("config_step", -1),
        nullable=(*(key for part in included for key in part.nullable), *table.get("nullable", ())),
        timestamps=(
            *(key for part in included for key in part.timestamps),
            *table.get("timestamps", ()),
        ),
        nesting=_nesting(table, included),
        parts=tuple(data["profile"].get("include", ())),
    )


def _nesting(table: Mapping[str, Any], included: list[Profile]) -> Nesting:
    """As the profile says it, or as the first part that flattens does."""
    base = next((part.nesting for part in included if part.nesting.flatten), Nesting())
    return Nesting(
        flatten=table["nested"] == "flatten" if "nested" in table else base.flatten,
        separator=table.get("separator", base.separator),
        max_items=table.get("max_items", base.max_items),
    )


def _included(name: str, where: str) -> Profile:
    """A part that ships with the package, or a built-in profile."""
    folder = resources.files("trueup.gates.profiles")
    for entry in (folder / _PARTS / f"{name}.toml", folder / f"{name}.toml"):
        if _NAME.fullmatch(name) and entry.is_file():
            return parse_profile(entry.read_bytes(), name)
    known = [*parts(), *built_in()]
    raise ProfileError(
        "profile.include: unknown part", where=where, got=repr(name),
        expected=f"one of {', '.join(known)}", fix=_closest(name, known),
    )  # fmt: skip


def _overridden(included: list[Rule], own: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Included rules in order, each replaced where the profile has a rule of the same id."""
    by_id = {rule.id: rule for rule in [*included, *own]}
    return tuple(by_id.values())


def _merged(
    included: list[ArtifactPattern], own: list[ArtifactPattern]
) -> tuple[ArtifactPattern, ...]:
    """A profile that names patterns for a kind replaces the included ones of that kind."""
    replaced = {pattern.kind for pattern in own}
    return (*own, *(pattern for pattern in included if pattern.kind not in replaced))


def _toml(raw: bytes, where: str) -> dict[str, Any]:
    if len(raw) > _MAX_BYTES:
        raise ProfileError(
            "is too large", where=where, got=f"{len(raw)} bytes", expected=f"at most {_MAX_BYTES}"
        )
    try:
        return plain_toml(raw)
    except ValueError as error:
        raise ProfileError("is not TOML", where=where, got=str(error)) from None


@functools.cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    text = (resources.files("trueup.gates.profile") / "profile.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def _against_schema(data: dict[str, Any], where: str) -> None:
    errors = sorted(_validator().iter_errors(data), key=lambda error: list(map(str, error.path)))
    if not errors:
        return
    unknown_first = [error for error in errors if error.validator == "additionalProperties"]
    error = (unknown_first or errors)[0]
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.path).lstrip(".")
    known = (
        list(error.schema.get("properties", {}))
        if error.validator == "additionalProperties"
        else []
    )
    unknown = [key for key in error.instance if key not in known] if known else []
    raise ProfileError(
        f"{place or 'the profile'}: {_message(error, data)}", where=where,
        fix=_closest(unknown[0], known) if unknown else f"{len(errors)} problem(s) in this file",
    )  # fmt: skip


def _message(error: Any, data: dict[str, Any]) -> str:
    """The schema's message, in words where its own are a dump."""
    path = list(error.path)
    of = (
        f" (rule {data['rule'][path[1]].get('id', '?')})"
        if path[:1] == ["rule"] and path[1:]
        else ""
    )
    if error.validator == "oneOf":
        options = [option["required"][0] for option in error.validator_value]
        return f"needs exactly one of {' or '.join(options)}{of}"
    return f"{error.message[:200]}{of}"


def _rule(entry: dict[str, Any], index: int, where: str) -> Rule:
    place = f"rule[{index}] ({entry['id']})"
    on = entry.get("on", "telemetry")
    checks = _checks(on)
    if entry["id"].startswith(_RESERVED):
        raise ProfileError(
            f"{place}: the prefixes {' and '.join(_RESERVED)} belong to trueup itself", where=where
        )
    check = checks.get(entry["check"])
    if check is None:
        raise ProfileError(
            f"{place}.check: unknown check on {on}", where=where, got=repr(entry["check"]),
            expected=f"one of {', '.join(sorted(checks))}", fix=_closest(entry["check"], checks),
        )  # fmt: skip
    params = dict(entry.get("params", {}))
    _params(check, params, f"{place}.params", where)
    _target(check, entry, place, where)
    return Rule(
        **{k: entry[k] for k in ("id", "severity", "summary", "why", "expected", "fix", "check")},
        rows=entry.get("rows", "step"),
        keys=tuple(entry.get("keys", ())),
        pattern=entry.get("pattern"),
        absent=entry.get("absent", "fail"),
        when=_when(entry.get("when")),
        params=params,
        on=on,
        passes=entry.get("passes", ""),
        fails=entry.get("fails", ""),
    )


def _when(said: dict[str, Any] | list[dict[str, Any]] | None) -> When | None:
    """One condition, or several that must all hold."""
    if not said:
        return None
    first, *others = said if isinstance(said, list) else [said]
    also = tuple(When(one["key"], tuple(one.get("state", ())), one.get("equals")) for one in others)
    return When(first["key"], tuple(first.get("state", ())), first.get("equals"), also)


def _checks(on: str) -> Mapping[str, Any]:
    """The checks that a rule on artifacts of this kind may name."""
    if on == "telemetry":
        from trueup.gates.telemetry.registry import CHECKS

        return CHECKS
    from trueup.gates.documents.registry import checks_on

    return checks_on(on)


def _params(check: Any, params: dict[str, Any], place: str, where: str) -> None:
    for name in params:
        if name not in check.params:
            raise ProfileError(
                f"{place}.{name}: unknown parameter of {check.name}", where=where,
                expected=", ".join(check.params) or "no parameters",
                fix=_closest(name, check.params),
            )  # fmt: skip
    for name, kinds in check.params.items():
        if name not in params and name in check.optional:
            continue
        value = params.get(name)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            got = "nothing" if value is None else repr(value)
            words = " or ".join(kind.__name__ for kind in kinds)
            raise ProfileError(f"{place}.{name}", where=where, got=got, expected=words)
    problem = getattr(check, "problem", None)
    if problem is not None and (wrong := problem(params)):
        raise ProfileError(f"{place}: {wrong}", where=where)


def _target(check: Any, entry: dict[str, Any], place: str, where: str) -> None:
    pattern = entry.get("pattern")
    if check.target == "document":
        for key in ("keys", "pattern", "rows"):
            if key in entry:
                raise ProfileError(
                    f"{place}.{key}: belongs to rules on tables", where=where,
                    fix="a rule on documents says in `params` what it reads",
                )  # fmt: skip
    elif ("keys" in entry) == (pattern is not None):
        raise ProfileError(f"{place}: needs exactly one of keys or pattern", where=where)
    if pattern is not None:
        _compiles(pattern, where, f"{place}.pattern")
    if check.target == "record" and not _has_group(pattern, "field"):
        raise ProfileError(
            f"{place}.pattern: {entry['check']} compares the keys of one record", where=where,
            expected="a pattern whose last part is the group (?P<field>...)",
        )  # fmt: skip
    group = getattr(check, "group", "")
    if group and not _has_group(pattern, group):
        raise ProfileError(
            f"{place}.pattern: {entry['check']} tells columns apart by a group", where=where,
            expected=f"a pattern with the group (?P<{group}>...)",
        )  # fmt: skip


def _has_group(pattern: str | None, name: str) -> bool:
    return pattern is not None and name in re.compile(pattern).groupindex


def _compiles(pattern: str, where: str, place: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ProfileError(f"{place}: {error}", where=where, got=repr(pattern)) from None


def _unique(ids: list[str], where: str) -> None:
    for index, one in enumerate(ids):
        if one in ids[:index]:
            raise ProfileError(f"rule[{index}].id: used before", where=where, got=one)


def _closest(word: str, known: Any) -> str:
    """A suggestion, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=2)
    return f"did you mean {' or '.join(near)}?" if near else ""
