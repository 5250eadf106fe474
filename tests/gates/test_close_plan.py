"""The plan: its parts however they are headed, the equations and the files it names, anchors."""

from __future__ import annotations

import pytest

from trueup.gates.closure.board import major
from trueup.gates.closure.deviations import anchors_of
from trueup.gates.closure.parts import (
    PARTS,
    equation_ids,
    inexact,
    is_empty,
    names_file,
    parts_of,
    paths_in,
)
from trueup.gates.closure.thread import moment, read_discussion


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("# Oracle Summary\nx", "oracle summary", "x"),
        ("## 1. Oracle summary\nx", "oracle summary", "x"),
        ("### Part 1: Oracle summary (short)\nx", "oracle summary", "x"),
        ("**Oracle summary**\nx", "oracle summary", "x"),
        ("**Oracle summary:** x", "oracle summary", "x"),
        ("__Oracle summary__\n\nx", "oracle summary", "x"),
        ("- **Oracle summary** - x", "oracle summary", "x"),
        ("2) Oracle summary: x", "oracle summary", "x"),
        ("Oracle summary: x", "oracle summary", "x"),
        ("ORACLE SUMMARY\nx", "oracle summary", "x"),
        ("🧪 Oracle summary\nx", "oracle summary", "x"),
        ("## Oracle summary\r\nx\r\n", "oracle summary", "x"),
        ("Equations: nl.x", "equation mapping", "nl.x"),
        ("## Files to change\na.py", "exact files", "a.py"),
        ("## Risks & Non-Goals\nx", "risks", "x"),
        ("## Risks & Non-Goals\nx", "non-goals", "x"),
        ("### Risks / non goals\nx", "non-goals", "x"),
        ("Risks\nA\nNon-goals\nB", "risks", "A"),
        ("Risks\nA\nNon-goals\nB", "non-goals", "B"),
        ("## Exact files\na\n## Exact files\nb", "exact files", "a"),
    ],
)
def test_part_is_found_however_it_is_headed(text: str, name: str, said: str) -> None:
    assert parts_of(text)[name].text == said


@pytest.mark.parametrize(
    "text",
    [
        "Oracle databases are slow",
        "The risks are few.",
        "```\n## Oracle summary\n```",
        "~~~~\n## Oracle summary\n```\n~~~~",
        "<!-- ## Oracle summary\nx -->",
        "## Notes on the oracle\nx",
    ],
)
def test_what_only_looks_like_a_part_is_none(text: str) -> None:
    assert parts_of(text) == {}


def test_a_part_ends_at_the_next_heading() -> None:
    found = parts_of("## Risks and non-goals\nA\n## Questions\nB")
    assert found["risks"].text == "A"


def test_the_four_parts_are_five_names() -> None:
    assert PARTS == ("oracle summary", "equation mapping", "exact files", "risks", "non-goals")


@pytest.mark.parametrize(
    "text", ["", "  \n", "-", "- [ ]", "TBD", "*to do*", "n/a", "1.", "====", "…"]
)
def test_an_empty_part_says_nothing(text: str) -> None:
    assert is_empty(text) is not None


@pytest.mark.parametrize("text", ["None known.", "x", "The evaluator may be slow."])
def test_words_say_something(text: str) -> None:
    assert is_empty(text) is None


KNOWN = ("nl.delta_momentum", "nl.muon_step", "dqn.c51_projection")


def test_ids_are_found_in_prose_and_code() -> None:
    good, bad = equation_ids("`nl.delta_momentum` and dqn.c51_projection, as before.", KNOWN)
    assert (good, bad) == (["nl.delta_momentum", "dqn.c51_projection"], [])


@pytest.mark.parametrize("word", ["nl.delta_momentun", "nl.unknown", "dqn.c51"])
def test_an_id_that_is_none_is_named(word: str) -> None:
    assert equation_ids(f"`{word}`", KNOWN) == ([], [word])


@pytest.mark.parametrize("text", ["kernels/nl/delta.cu", "numpy.float64", "nl.py", "v1.2", "e.g."])
def test_other_dotted_words_are_no_ids(text: str) -> None:
    assert equation_ids(text, KNOWN) == ([], [])


@pytest.mark.parametrize(
    "word", ["nl.d\u0435lta_momentum", "\uff4el.muon_step", "nl.muon_st\u0435p"]
)
def test_a_look_alike_is_told_with_its_letter(word: str) -> None:
    good, (bad,) = equation_ids(word, KNOWN)
    assert good == []
    assert "looks like nl." in bad
    assert "U+" in bad


def test_paths_are_found_as_people_write_them() -> None:
    text = (
        "- `train.py`\n* src/a.py: why\n1. b.cu, c/d.cuh.\n`Makefile` and tests/ e.g. v1.2 i.e. x"
    )
    found = ["train.py", "src/a.py", "b.cu", "c/d.cuh", "Makefile", "tests/"]
    assert paths_in(text) == found


@pytest.mark.parametrize("path", ["src/*.py", "src/", "a/**", "x?.py", "a.{py,cu}", "[ab].py"])
def test_a_pattern_is_no_exact_file(path: str) -> None:
    assert inexact(path)


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("also src/a.py.", True),
        ("`src/a.py`", True),
        ("src/a.pyx", False),
        ("lib/src/a.py", False),
        ("src/a.py/b", False),
        ("src/a.py.bak", False),
    ],
)
def test_a_file_is_named_exactly_or_not_at_all(text: str, there: bool) -> None:
    assert names_file(text, "src/a.py") is there


def test_anchors_are_those_of_the_rendered_page() -> None:
    text = """# Deviations
## NIAH at 2k: `k = 3`!
## Copy
## Copy
Übersicht
=========
```
# not a heading
```
<a id="old-name"></a>
Words with <a name='inline'>x</a>.
"""
    assert set(anchors_of(text)) == {
        "deviations", "niah-at-2k-k--3", "copy", "copy-1", "übersicht", "old-name", "inline",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "phase"),
    [("1", 1), ("1.2", 1), ("phase 3", 3), ("Phase::4.1", 4), ("P2", 2), ("later", None),
     ("", None), ("1a", None), ("\u0661", None)],
)  # fmt: skip
def test_major_phase(text: str, phase: int | None) -> None:
    assert major(text) == phase


@pytest.mark.parametrize(
    "text",
    ["2026-03-01T09:00:00", "2026-03-01", "09:00", "yesterday", "", None, 5, "0001-01-01T00:00:00Z",
     "9999-12-31T23:59:59-12:00", "2026-03-01T09:00:60Z", "2026-13-01T09:00:00Z",
     "\u0662026-03-01T09:00:00Z", "2026-03-01T09:00:00+25:00", "2026-03-01T09:00:00Z" + " " * 50],
)  # fmt: skip
def test_a_date_without_a_usable_zone_is_none(text: object) -> None:
    assert moment(text) is None


@pytest.mark.parametrize("text", ["2026-03-01T09:00:00Z", "2026-03-01T18:30:00.123+09:30"])
def test_a_date_with_its_zone_is_one(text: str) -> None:
    found = moment(text)
    assert found is not None
    assert found.utcoffset() is not None


@pytest.mark.parametrize(
    "data",
    [None, 3, "x", [], [{}, {}], {}, {"number": True}, {"number": "12"}, {"iid": None},
     {"number": 12, "createdAt": "2026-03-01T09:00:00Z", "title": "x", "comments": 3},
     {"number": 12, "createdAt": "2026-03-01T09:00:00Z", "title": "x", "comments": [None]},
     {"number": 12, "createdAt": "2026-03-01T09:00:00Z", "title": "x",
      "comments": [{"author": {"login": "a"}, "createdAt": "x"}]},
     {"number": 12, "createdAt": 5, "title": "x", "comments": []},
     {"iid": 12, "created_at": "2026-03-01T09:00:00Z", "title": "x"}],
)  # fmt: skip
def test_what_is_no_issue_is_refused_in_words(data: object) -> None:
    assert isinstance(read_discussion(data), str)
