"""Fill in which rules read each key of docs/telemetry.md, from the profiles.

    python docs/telemetry_keys.py     # after a rule on telemetry, or a row of the page, has changed

A table stands between `<!-- PROFILE -->` and `<!-- end PROFILE -->`. Its first column names keys in
backticks, with places in braces; its last column is written here. A test holds the page to it.
"""

from __future__ import annotations

import re
from pathlib import Path

from trueup.gates.profile.load import load_profile
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.registry import CHECKS

PAGE = Path(__file__).resolve().parent / "telemetry.md"
PROFILES = ("nl", "dqn")
_VALUES = ("values", "among", "is")  # parameters that hold what a key may say
_EVERYTHING = "^.*$"  # a rule on all columns says nothing of one of them
_PLACES = {"{L}": "0", "{level}": "cms_fast", "{name}": "tau", "{SLOT}": "A_SLOT", "[…]": "[0]"}


def rules_on(key: str, profile: str) -> list[str]:
    """The ids of the rules that read a key, by name or by pattern."""
    plain = key
    for place, value in _PLACES.items():
        plain = plain.replace(place, value)
    rules = load_profile(profile).rules_on("telemetry")
    return [rule.id for rule in rules if rule.pattern != _EVERYTHING and _reads(rule, key, plain)]


def _reads(rule: Rule, key: str, plain: str) -> bool:
    named = _named([value for name, value in rule.params.items() if name not in _VALUES])
    when = () if rule.when is None else (rule.when, *rule.when.also)
    if any(one.key == key for one in when) or {key, plain} & named:
        return True
    if rule.pattern is None:
        return plain in rule.keys
    found = re.fullmatch(rule.pattern, plain)
    if found is None or CHECKS[rule.check].target != "record":
        return found is not None
    field = found.group("field")
    return field.isdigit() or not named or field in named


def _named(params: object) -> set[str]:
    """Every text in the parameters, as key or value."""
    if isinstance(params, str):
        return {params}
    if isinstance(params, dict):
        return {name for pair in params.items() for one in pair for name in _named(one)}
    if isinstance(params, list):
        return {name for one in params for name in _named(one)}
    return set()


def filled(page: str) -> str:
    """Return the page with the last column of each table as the profiles have it now."""
    for profile in PROFILES:
        between = re.compile(rf"(<!-- {profile} -->\n)(.*?)(<!-- end {profile} -->)", re.DOTALL)
        found = between.search(page)
        if found is None:
            raise ValueError(f"the page has no place for the table {profile}")
        head, rule, *rows = found[2].strip("\n").split("\n")
        lines = [head, rule, *(_row(row, profile) for row in rows)]
        page = page[: found.start(2)] + "\n".join(lines) + "\n" + page[found.end(2) :]
    return page


def _row(line: str, profile: str) -> str:
    cells = line.strip("|").split("|")
    keys = re.findall(r"`([^`]+)`", cells[0])
    ids = sorted({one for key in keys for one in rules_on(key, profile)})
    return f"|{'|'.join(cells[:-1])}| {', '.join(ids)} |"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
