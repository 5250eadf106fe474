"""The catalogue behind `trueup explain`: ids, names, and what is said of each rule."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import trueup.gates
from trueup.gates.catalogue.kinds import families, kinds
from trueup.gates.catalogue.rules import Entry, built_in_entries, entries, find
from trueup.gates.documents.registry import document_checks
from trueup.gates.errors import UnknownRule
from trueup.gates.profile.load import built_in, load_profile
from trueup.gates.telemetry.registry import CHECKS

GATES = Path(next(iter(trueup.gates.__path__)))
OWN = r"""
[profile]
id = "mine"
summary = "a profile that includes another"
include = ["nl"]
[[rule]]
id = "OWN001"
severity = "note"
summary = "x is finite"
why = "w"
check = "finite"
keys = ["x"]
rows = "all"
when = { key = "device", equals = "cuda" }
expected = "e"
fix = "f"
passes = '{"x": 1}'
fails = '{"x": NaN}'
[[rule]]
id = "TEL002"
severity = "warning"
summary = "another rule of this id"
why = "w"
check = "present"
keys = ["step"]
expected = "e"
fix = "f"
"""


def test_an_id_is_defined_once_over_everything() -> None:
    counts = Counter(entry.id for entry in built_in_entries())
    assert [id for id, count in counts.items() if count > 1] == []


def test_every_id_of_every_file_is_there() -> None:
    """Read from the files themselves, without the loaders."""
    known = {entry.id: entry for entry in built_in_entries()}
    found = 0
    files = [*GATES.glob("catalogue/*.toml"), *GATES.glob("profiles/**/*.toml")]
    assert len(files) > 4
    for path in files:
        data = tomllib.loads(path.read_text("utf-8"))
        for entry in (*data.get("kind", ()), *data.get("rule", ())):
            found += 1
            assert known[entry["id"]].summary == entry["summary"]
            assert (GATES.parent / known[entry["id"]].defined).name == path.name
    assert found == len(known)


def test_a_family_is_one_file() -> None:
    files: dict[str, set[str]] = {}
    for entry in built_in_entries():
        files.setdefault(entry.family, set()).add(entry.defined)
    assert [family for family, paths in files.items() if len(paths) > 1] == []


def test_a_name_means_one_thing() -> None:
    names = Counter(kind.name for each in families().values() for kind in each)
    assert max(names.values()) == 1
    assert names.keys().isdisjoint({*CHECKS, *document_checks()})
    assert not [name for name in names if re.fullmatch("[A-Z]{2,8}[0-9]{3}", name)]


@pytest.mark.parametrize("entry", built_in_entries(), ids=lambda entry: entry.id)
def test_an_entry_says_all_a_reader_needs(entry: Entry) -> None:
    for words in (entry.summary, entry.why, entry.expected, entry.fix, entry.defined):
        assert words
        assert words == words.strip()
        assert "\n" not in words
    assert re.fullmatch("[A-Z]{2,8}[0-9]{3}", entry.id)
    if entry.fixed:
        assert (entry.check, entry.profiles) == ("", ())
        assert kinds()[entry.name].id == entry.id
    else:
        assert entry.check
        assert entry.asks
        assert entry.reads
        assert entry.waivable


# What happens while files are read or engines run, and what two binary dumps show: no text of an
# artifact shows it.
EVENTS = {"DOC018", "ACC012", "LAY022", "LAY023"}
SHOWN = [entry for entry in built_in_entries() if entry.id not in EVENTS]


@pytest.mark.parametrize("entry", SHOWN, ids=lambda entry: entry.id)
def test_an_entry_has_an_example_that_passes_and_one_that_fails(entry: Entry) -> None:
    assert entry.passes.strip()
    assert entry.fails.strip()
    assert entry.passes != entry.fails


def test_every_rule_of_a_built_in_profile_says_where_it_is_held() -> None:
    held = {entry.id: entry.profiles for entry in built_in_entries() if not entry.fixed}
    for name in built_in():
        for rule in load_profile(name).rules:
            assert name in held[rule.id]


@pytest.mark.parametrize("word", ["RDR007", "rdr007", "duplicate_key"])
def test_a_kind_is_found_by_id_and_name(word: str) -> None:
    assert [entry.id for entry in find(word)] == ["RDR007"]


def test_a_check_finds_the_rules_that_use_it() -> None:
    assert "TEL006" in {entry.id for entry in find("finite")}
    assert {entry.check for entry in find("finite")} == {"finite"}


@pytest.mark.parametrize(
    ("word", "meant"),
    [("RDR0077", "RDR007"), ("duplicat_key", "duplicate_key"), ("finit", "finite")],
)
def test_an_unknown_word_names_what_it_may_have_meant(word: str, meant: str) -> None:
    with pytest.raises(UnknownRule, match=rf"did you mean.*{meant}"):
        find(word)
    with pytest.raises(UnknownRule, match="lists them all"):
        find("§§§")


def test_a_users_profile_adds_its_rules_and_keeps_those_it_includes(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN)
    (own,) = find("OWN001", str(path))
    assert own.to_dict() == {
        "id": "OWN001", "family": "mine", "defined": str(path), "severity": "note",
        "summary": "x is finite", "why": "w", "expected": "e", "fix": "f", "passes": '{"x": 1}',
        "fails": '{"x": NaN}', "waivable": True, "fixed": False, "on": "telemetry",
        "check": "finite", "asks": CHECKS["finite"].summary, "reads": "x, in all rows",
        "applies": "when device is 'cuda'",
    }  # fmt: skip
    (replaced,) = find("TEL002", str(path))
    assert (replaced.summary, replaced.defined) == ("another rule of this id", str(path))
    (kept,) = find("TEL003", str(path))
    assert kept.defined == "gates/profiles/nl.toml"
    assert len(entries(str(path))) == len(built_in_entries()) + 1
    assert find("TEL002")[0].summary != replaced.summary
