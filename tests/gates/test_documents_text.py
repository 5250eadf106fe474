"""JSON, YAML and TOML documents: values, the place of each, and what libraries let through."""

from __future__ import annotations

import json
import math
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from trueup.gates.documents.model import Document
from trueup.gates.errors import Unreadable
from trueup.gates.read.documents import source
from trueup.gates.read.documents.places import Lines, Places
from trueup.gates.read.documents.read import load_document
from trueup.gates.read.limits import Fault, Limits


def load(text: str | bytes, folder: Path, name: str = "a.json") -> tuple[Document, list[Fault]]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_document(path)


def told(faults: list[Fault]) -> list[tuple[str, str, int | None, int | None, str | None]]:
    return [(one.kind, one.got, one.line, one.byte, one.key) for one in faults]


JSON = '{\n  "å": [1, {"b": "x"}],\n  "c": null\n}\n'
YAML = "å:\n  - 1\n  - b: x\nc: null\n"
TOML = '# first\nc = 1\n["å"]\nx.y = "\\n"\n[[d]]\ne = [\n  1,\n]\n[[d]]\nf = {g = 2}\n'


@pytest.mark.parametrize(
    ("text", "name", "pointer", "begins"),
    [
        (JSON, "a.json", (), '{\n  "å"'),
        (JSON, "a.json", ("å",), '[1, {"b"'),
        (JSON, "a.json", ("å", 1), '{"b"'),
        (JSON, "a.json", ("å", 1, "b"), '"x"'),
        (JSON, "a.json", ("c",), "null"),
        (YAML, "a.yaml", ("å", 0), "1\n"),
        (YAML, "a.yaml", ("å", 1, "b"), "x\n"),
        (YAML, "a.yaml", ("c",), "null"),
        (TOML, "a.toml", ("c",), "1\n"),
        (TOML, "a.toml", ("å",), '["å"]'),
        (TOML, "a.toml", ("å", "x", "y"), '"\\n"'),
        (TOML, "a.toml", ("d", 0, "e"), "[\n  1"),
        (TOML, "a.toml", ("d", 1), "[[d]]\nf"),
        (TOML, "a.toml", ("d", 1, "f"), "{g = 2}"),
    ],
)
def test_every_value_has_its_place(
    text: str, name: str, pointer: tuple[str | int, ...], begins: str, tmp_path: Path
) -> None:
    document, faults = load(text, tmp_path, name)
    assert faults == []
    where = document.where(*pointer)
    raw = text.encode()
    assert where.byte is not None
    assert raw[where.byte :].startswith(begins.encode())
    assert where.line == raw[: where.byte].count(b"\n") + 1


@pytest.mark.parametrize(("text", "name"), [(JSON, "a.json"), (YAML, "a.yaml")])
def test_the_places_are_those_of_all_values(text: str, name: str, tmp_path: Path) -> None:
    document, _ = load(text, tmp_path, name)
    assert set(document.places) == {(), ("å",), ("å", 0), ("å", 1), ("å", 1, "b"), ("c",)}
    assert len(document.places) == 6
    assert ("å", 7) not in document.places
    assert ("c", "d") not in document.places


def test_a_value_without_a_place_has_that_of_what_holds_it(tmp_path: Path) -> None:
    document, _ = load("a = {b = [1, 2]}\n", tmp_path, "a.toml")
    assert (document.where("a", "b", 1).byte, document.where("a", "b", 1).key) == (4, "a.b[1]")


def test_lines_count_bytes_of_wide_characters() -> None:
    lines = Lines("aé\n😀b", shift=3)
    assert [lines.byte(at) for at in range(5)] == [3, 4, 6, 7, 11]
    assert [lines.line(at) for at in range(5)] == [1, 1, 1, 2, 2]


def test_places_of_nothing_are_empty() -> None:
    places = Places(None, Lines(""))
    assert list(places) == []
    assert () not in places


@pytest.mark.parametrize(
    ("text", "name", "faults"),
    [
        ('{"a": 1,\n "a": {"b": 2}}', "a.json",
         [("document_duplicate_key", "1 at line 1, then {...}", 2, 15, "a")]),
        ('{"a": [1, 2], "a": "x"}', "a.json",
         [("document_duplicate_key", '[...] at line 1, then "x"', 1, 19, "a")]),
        ('{"a": {"n": NaN, "m": 1e400}}', "a.json",
         [("document_non_finite", "NaN", 1, 12, "a.n"),
          ("document_overflow", "1e400", 1, 22, "a.m")]),
        ('\ufeff{"a": Infinity}', "a.json",
         [("document_bom", "bytes ef bb bf", 1, 0, None),
          ("document_non_finite", "Infinity", 1, 9, "a")]),
        ("a: 1\nb: 2\na: {c: 3}\n", "a.yaml",
         [("document_duplicate_key", "1 at line 1, then {...}", 3, 10, "a")]),
        ("é: .nan\n", "a.yaml", [("document_non_finite", ".nan", 1, 4, "é")]),
        ("a = 1\n[b]\nc = 2\nc = 3\n", "a.toml",
         [("document_duplicate_key", "2 at line 3, then 3", 4, 20, "b.c")]),
        ("[a]\nx = 1\n[b]\n[a]\n", "a.toml",
         [("document_duplicate_key", "[a] at line 1, then [a]", 4, 14, "a")]),
        ("a.b = 1\na = {}\n", "a.toml",
         [("document_duplicate_key", "1 at line 1, then {}", 2, 12, "a")]),
        ("a = 1\nb = [nan]\n", "a.toml", [("document_non_finite", "nan", 2, 10, "b[0]")]),
        ("a = 1\nb = 1e400\n", "a.toml", [("document_overflow", "1e400", 2, 10, "b")]),
    ],
)  # fmt: skip
def test_faults_say_what_and_where(
    text: str, name: str, faults: list[Any], tmp_path: Path
) -> None:  # fmt: skip
    assert told(load(text, tmp_path, name)[1]) == faults


def test_a_faulty_number_never_satisfies_a_comparison(tmp_path: Path) -> None:
    document, _ = load('{"a": NaN, "b": 1e999, "c": -Infinity}', tmp_path)
    assert math.isnan(document.data["a"])
    assert (document.data["b"], document.data["c"]) == (math.inf, -math.inf)


def test_integers_past_64_bits_stay_exact(tmp_path: Path) -> None:
    for name, text in (("a.json", '{"a": %d}'), ("a.yaml", "a: %d"), ("a.toml", "a = %d")):
        document, faults = load(text % (2**64 + 1), tmp_path, name)
        assert document.data == {"a": 2**64 + 1}
        assert [fault.kind for fault in faults] == ["document_past_int64"]


def test_integers_of_hex_are_limited_as_well(tmp_path: Path) -> None:
    _, faults = load("a = 0x" + "f" * 400, tmp_path, "a.toml")
    assert [fault.kind for fault in faults] == ["document_number_too_long"]


# What YAML 1.1 makes of these, by PyYAML; the last is what they are here.
@pytest.mark.parametrize(
    ("text", "there", "here"),
    [
        ("no", False, "no"),
        ("on", True, "on"),
        ("1e3", "1e3", 1000.0),
        ("1e-4", "1e-4", 0.0001),
        ("010", 8, "010"),
        ("0123456", 42798, "0123456"),
        ("12:30:45", 45045, "12:30:45"),
        ("0x1f", 31, "0x1f"),
        ("1_000", 1000, "1_000"),
    ],
)
def test_plain_values_that_readers_disagree_on_are_told(
    text: str, there: Any, here: Any, tmp_path: Path
) -> None:
    assert yaml.safe_load(text) == there
    document, faults = load(f"a: {text}\n", tmp_path, "a.yaml")
    assert document.data == {"a": here}
    assert [fault.kind for fault in faults] == ["yaml_ambiguous"]


@pytest.mark.parametrize(
    "text", ["1", "-1.5", "1.0e-4", "true", "null", "~", "x", "'no'", "'010'", ".5", "2.5e+3"]
)
def test_plain_values_that_all_read_alike(text: str, tmp_path: Path) -> None:
    document, faults = load(f"a: {text}\n", tmp_path, "a.yaml")
    assert faults == []
    assert document.data == {"a": yaml.safe_load(text)}


def test_a_commit_of_digits_stays_text(tmp_path: Path) -> None:
    document, _ = load("commit: 0123456\n", tmp_path, "a.yaml")
    assert document.data == {"commit": "0123456"}


def test_naive_dates_of_yaml_stay_text(tmp_path: Path) -> None:
    document, faults = load("at: 2026-03-01 12:00:00\nday: 2026-03-01\n", tmp_path, "a.yaml")
    assert document.data == {"at": "2026-03-01 12:00:00", "day": "2026-03-01"}
    assert faults == []


def test_a_null_of_yaml_is_no_document_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="holds no document"):
        load("# only a comment\n", tmp_path, "a.yaml")


def test_times_of_toml_become_text_with_their_zone(tmp_path: Path) -> None:
    document, faults = load("at = 2026-03-01T12:00:00+02:00\n", tmp_path, "a.toml")
    assert document.data == {"at": "2026-03-01T12:00:00+02:00"}
    assert faults == []


def test_toml_is_what_the_standard_library_reads(tmp_path: Path) -> None:
    document, faults = load(TOML, tmp_path, "a.toml")
    assert faults == []
    assert document.data == tomllib.loads(TOML)


def test_the_form_is_told_by_the_name(tmp_path: Path) -> None:
    forms = {
        "a.json": "JSON",
        "a.meta.json": "JSON",
        "a.yml": "YAML",
        "a.toml": "TOML",
        "a": "JSON",
    }
    texts = {"JSON": "{}", "YAML": "a: 1", "TOML": "a = 1"}
    for name, form in forms.items():
        assert load(texts[form], tmp_path, name)[0].form == form


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a: 1\n\ufeff", "document_bom"),
        ("a: |\t\n  x\n", "yaml_ambiguous"),
        ("a: |#\n  x\n", "yaml_ambiguous"),
        ("a: \tx\n", "yaml_ambiguous"),
        ("a\tb: 1\n", "yaml_ambiguous"),
        ("on: 1\n", "yaml_ambiguous"),
        ("a: [!, 1]\n", "yaml_tag"),
        ("a: ! 1\n", "yaml_tag"),
    ],
)
def test_what_yaml_readers_disagree_on_is_told(text: str, kind: str, tmp_path: Path) -> None:
    assert [fault.kind for fault in load(text, tmp_path, "a.yaml")[1]] == [kind]


@pytest.mark.parametrize(
    "text",
    ['a: "x\ty"\n', "a: 'x\ty'\n", "a: |2- # two\n  x\ty\n", "a: 1 # x\ty\n", "# x\ty\na: 1\n"],
)
def test_tabs_in_quotes_blocks_and_comments_are_tabs(text: str, tmp_path: Path) -> None:
    document, faults = load(text, tmp_path, "a.yaml")
    assert faults == []
    assert document.data == yaml.safe_load(text)


def test_a_bomb_of_references_is_refused_at_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    document, faults = load("\n".join(lines), tmp_path, "a.yaml")
    assert document.data is None
    assert [fault.kind for fault in faults] == ["yaml_reference"]


@pytest.mark.parametrize(("text", "name"), [("[" * 200_000, "a.json"), ("[" * 200_000, "a.yaml")])
def test_depth_costs_no_stack(text: str, name: str, tmp_path: Path) -> None:
    assert [fault.kind for fault in load(text, tmp_path, name)[1]] == ["document_too_deep"]


@pytest.mark.parametrize("text", ["[{}]", "{} = 1", "x = {{ y = 1, {} = 2 }}", "[[ {} ]]"])
@pytest.mark.parametrize("part", ["a", '"a.b"', "'x'"])
def test_a_key_of_very_many_parts_costs_no_time(text: str, part: str, tmp_path: Path) -> None:
    """100,000 parts: the library's own way takes minutes."""
    _, faults = load(text.format(" . ".join([part] * 100_000)), tmp_path, "a.toml")
    assert [fault.kind for fault in faults] == ["document_too_deep"]


def test_the_number_of_values_is_limited(tmp_path: Path) -> None:
    limits = Limits(max_nodes=100)
    for name, text in (
        ("a.json", json.dumps(list(range(200)))),
        ("a.yaml", json.dumps(list(range(200)))),
        ("a.toml", f"a = {list(range(200))}"),
    ):
        (tmp_path / name).write_text(text)
        document, faults = load_document(tmp_path / name, limits=limits)
        assert document.data is None
        assert [fault.kind for fault in faults] == ["document_too_large"], name


def test_the_size_is_limited_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte, of which the disk holds nothing
    with pytest.raises(Unreadable, match="too large for a document"):
        load_document(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda path: None, "cannot be opened", id="missing"),
        pytest.param(lambda path: path.mkdir(), "not a regular file", id="folder"),
        pytest.param(lambda path: os.mkfifo(path), "not a regular file", id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "not a regular file", id="device"),
    ],
)
def test_what_is_no_file_is_refused_and_never_waited_for(
    make: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    make(path)
    with pytest.raises(Unreadable, match=message):
        load_document(path)


def test_a_file_that_changes_while_it_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    stat = os.fstat
    calls = []

    def grown(fd: int) -> os.stat_result:
        calls.append(fd)
        if len(calls) == 2:  # the second look, after the reading
            with path.open("a") as file:
                file.write(" ")
        return stat(fd)

    monkeypatch.setattr(source.os, "fstat", grown)
    document, faults = load_document(path)
    assert document.data == {"a": 1}
    assert [fault.kind for fault in faults] == ["document_changed"]


def test_every_fault_is_told_not_the_first_alone(tmp_path: Path) -> None:
    text = '{"a": NaN, "b": 1e999, "b": 2, "c": 99999999999999999999, "d": "\\ud800"}'
    _, faults = load(text, tmp_path)
    assert [fault.kind.removeprefix("document_") for fault in faults] == [
        "non_finite", "overflow", "duplicate_key", "past_int64", "surrogate",
    ]  # fmt: skip
