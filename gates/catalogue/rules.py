"""Everything that a finding's id can stand for: the kinds of the catalogue, the rules of profiles.

`trueup explain`, `docs/rules/`, SARIF and the settings all read it here.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import PurePath
from typing import Any

from trueup.gates.catalogue.kinds import Kind, families
from trueup.gates.errors import UnknownRule
from trueup.gates.findings import Severity
from trueup.gates.profile.rules import Rule
from trueup.gates.structure import closest

_SCOPES = {"step": "in the rows of steps", "config": "in the rows of configuration",
           "all": "in all rows"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule or one kind of finding, with all that is said of it."""

    id: str
    name: str  # of a kind; a rule has none
    family: str  # the file that defines it: `reader`, `nl`, ...
    defined: str  # the path of that file
    severity: Severity
    summary: str
    why: str
    expected: str
    fix: str
    passes: str = ""
    fails: str = ""
    waivable: bool = True
    fixed: bool = False  # found whatever the profile says
    profiles: tuple[str, ...] = ()  # the built-in profiles that hold the rule
    on: str = ""
    check: str = ""
    asks: str = ""  # what the check asks for
    params: dict[str, Any] = field(default_factory=dict)
    reads: str = ""
    applies: str = ""
    limits: dict[str, int] = field(default_factory=dict)  # those its examples are read with

    def to_dict(self) -> dict[str, Any]:
        """As plain data; what does not concern the entry is left out."""
        said = {name: getattr(self, name) for name in self.__slots__}
        kept = {name: value for name, value in said.items() if value not in ("", (), {})}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in kept.items()}


@functools.cache
def built_in_entries() -> tuple[Entry, ...]:
    """Every kind and every rule that ships, in the order of their files."""
    kinds = [_of_kind(kind, family) for family, each in families().items() for kind in each]
    rules = [_of_rule(rule, family, path) for family, path, own in _files() for rule in own]
    held = _holders()
    return (*kinds, *(_held(entry, held) for entry in rules))


def entries(profile: str | None = None) -> tuple[Entry, ...]:
    """Everything that ships and, with a profile, its own rules in place of those they replace."""
    from trueup.gates.profile.load import built_in, load_profile

    known = {entry.id: entry for entry in built_in_entries()}
    if profile is not None and profile not in built_in():
        shipped = {rule.id: rule for _, _, own in _files() for rule in own}
        loaded = load_profile(profile)
        for rule in loaded.rules:
            if shipped.get(rule.id) != rule:
                known[rule.id] = _of_rule(rule, loaded.id, profile)
    return tuple(known.values())


def find(word: str, profile: str | None = None) -> tuple[Entry, ...]:
    """The entry of an id or a name, or all rules that use a check. Raises `UnknownRule`."""
    for family, each in families().items():  # no profile can hold these: none is loaded for them
        for kind in each:
            if word.upper() == kind.id or word == kind.name:
                return (_of_kind(kind, family),)
    every = entries(profile)
    for key in (word, word.upper()):
        found = tuple(entry for entry in every if key in (entry.id, entry.name))
        if word and found:
            return found
    using = tuple(entry for entry in every if entry.check == word)
    if word and using:
        return using
    raise UnknownRule(
        "no rule, kind of finding or check is called this", where=repr(word),
        expected="an id such as RDR007, a name such as duplicate_key, or a check such as finite",
        fix=closest_ids(word, every) or "`trueup explain` lists them all",
    )  # fmt: skip


def closest_ids(word: str, every: Iterable[Entry]) -> str:
    """What a word may have meant: ids, names, checks."""
    known = {word for entry in every for word in (entry.id, entry.name, entry.check) if word}
    return closest(word, sorted(known)) or closest(word.upper(), sorted(known))


def _files() -> list[tuple[str, str, tuple[Rule, ...]]]:
    """Name, path and own rules of each file of rules that ships."""
    from trueup.gates.profile.load import built_in, parse_profile, parts

    root = resources.files("trueup.gates.profiles")
    out = []
    for name, inner in [*((n, f"{n}.toml") for n in built_in()),
                        *((n, f"parts/{n}.toml") for n in parts())]:  # fmt: skip
        raw = root.joinpath(*PurePath(inner).parts).read_bytes()
        own = {entry["id"] for entry in tomllib.loads(raw.decode("utf-8")).get("rule", [])}
        rules = parse_profile(raw, name).rules
        path = f"gates/profiles/{inner}"
        out.append((name, path, tuple(rule for rule in rules if rule.id in own)))
    return out


@functools.cache
def _holders() -> dict[str, tuple[str, ...]]:
    """The built-in profiles that hold each rule, by its id."""
    from trueup.gates.profile.load import built_in, load_profile

    held: dict[str, tuple[str, ...]] = {}
    for name in built_in():
        for rule in load_profile(name).rules:
            held[rule.id] = (*held.get(rule.id, ()), name)
    return held


def _held(entry: Entry, held: dict[str, tuple[str, ...]]) -> Entry:
    return replace(entry, profiles=held.get(entry.id, ()))


def _of_kind(kind: Kind, family: str) -> Entry:
    return Entry(
        kind.id, kind.name, family, f"gates/catalogue/{family}.toml", kind.severity, kind.summary,
        kind.why, kind.expected, kind.fix, kind.passes, kind.fails, kind.waivable, fixed=True,
        limits=kind.limits,
    )  # fmt: skip


def _of_rule(rule: Rule, family: str, path: str) -> Entry:
    return Entry(
        rule.id, "", family, path, rule.severity, rule.summary, rule.why, rule.expected, rule.fix,
        rule.passes, rule.fails, on=rule.on, check=rule.check, asks=_asks(rule),
        params=dict(rule.params), reads=_reads(rule),
        applies=f"when {rule.when}" if rule.when is not None else "",
    )  # fmt: skip


def _asks(rule: Rule) -> str:
    if rule.on == "telemetry":
        from trueup.gates.telemetry.registry import CHECKS

        return CHECKS[rule.check].summary
    from trueup.gates.documents.registry import checks_on

    return checks_on(rule.on)[rule.check].summary


def _reads(rule: Rule) -> str:
    if rule.on != "telemetry":
        return f"artifacts of the kind {rule.on}"
    columns = f"columns that match {rule.pattern}" if rule.pattern else ", ".join(rule.keys)
    absent = "" if rule.absent == "fail" else "; skipped where there is none"
    return f"{columns}, {_SCOPES[rule.rows]}{absent}"
