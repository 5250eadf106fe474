"""Nested rows: refused as they are, or flattened by the rule that the profile declares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from trueup.gates import judge
from trueup.gates.catalogue.kinds import kinds
from trueup.gates.errors import ProfileError
from trueup.gates.profile.load import load_profile, parse_profile
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.rows import engine
from trueup.gates.read.rows.proof import counts, tier_a, tier_b, typed_with_nulls
from trueup.gates.read.rows.reader import Reader
from trueup.gates.read.rows.shape import Shape
from trueup.gates.read.rows.typed import TypedRows

FLATTEN = Nesting(flatten=True)
SMALL = Limits(first_piece=600, piece=600, late_after=10**6)


def row(step: int) -> dict[str, Any]:
    """A row with objects, lists, lists of objects and an empty object."""
    return {
        "step": step,
        "isv": {"lr": 0.5 * step, "atoms": {"low": -1.5, "high": step}},
        "mix": [0.25, 0.5, 0.25 * step],
        "flags": [0, step, 0],
        "tag": {"name": "a:b", "on": step % 2 == 0},
        "parts": [{"q": 1.5, "n": 1}, {"q": 2.5, "n": step}],
        "reasons": {},
    }


FLAT = {
    "step": 3, "isv.lr": 1.5, "isv.atoms.low": -1.5, "isv.atoms.high": 3,
    "mix[0]": 0.25, "mix[1]": 0.5, "mix[2]": 0.75, "flags[0]": 0, "flags[1]": 3, "flags[2]": 0,
    "tag.name": "a:b", "tag.on": False, "parts[0].q": 1.5, "parts[0].n": 1, "parts[1].q": 2.5,
    "parts[1].n": 3,
}  # fmt: skip
LINES = [json.dumps(row(step)).encode() for step in range(1, 5)]


def read(
    path: Path, nesting: Nesting = FLATTEN, limits: Limits | None = None
) -> tuple[list[dict[str, Any]], list[Fault]]:
    faults: list[Fault] = []
    reader = Reader(path, report=faults.append, nesting=nesting, limits=limits)
    rows = [one for batch in reader.batches() for one in batch.frame.to_dicts()]
    return rows, faults


def written(tmp_path: Path, lines: list[bytes]) -> Path:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.mark.parametrize("form", ["lines", "list", "indented"])
@pytest.mark.parametrize("limits", [None, SMALL], ids=["whole", "pieces"])
def test_objects_and_lists_become_columns_by_path(
    form: str, limits: Limits | None, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    rows = [row(step) for step in range(1, 30)]
    text = {"lines": "\n".join(map(json.dumps, rows)) + "\n", "list": json.dumps(rows)}
    path.write_text(text.get(form) or json.dumps(rows, indent=1))
    got, faults = read(path, limits=limits)
    assert faults == []
    assert got[2] == FLAT
    assert [one["step"] for one in got] == list(range(1, 30))


def test_without_the_rule_they_are_refused(tmp_path: Path) -> None:
    rows, faults = read(written(tmp_path, LINES), Nesting())
    assert rows == []
    assert {fault.kind for fault in faults} == {"nested"}
    assert {fault.key for fault in faults if fault.row == 1} == {
        "isv", "mix", "flags", "tag", "parts", "reasons"
    }  # fmt: skip


def test_separator_is_the_declared_one(tmp_path: Path) -> None:
    path = written(tmp_path, [b'{"step": 1, "a": {"b": {"c": 2.5}}, "a.b": 1}'] * 2)
    rows, faults = read(path, Nesting(flatten=True, separator="/"))
    assert faults == []
    assert rows[0] == {"step": 1, "a/b/c": 2.5, "a.b": 1}


def third(text: bytes) -> list[bytes]:
    return [*LINES[:2], text, LINES[3]]


def changed(old: str, new: str) -> list[bytes]:
    text = LINES[2].decode()
    assert text.count(old) == 1
    return third(text.replace(old, new).encode())


LR, FLAGS, MIX, NAME = '"lr": 1.5', '"flags": [0, 3, 0]', '"mix": [0.25, 0.5', '"name": "a:b"'
ATOMS, LAST = '"atoms": {"low": -1.5, "high": 3}', '"reasons": {}'
# What is changed in row 3; the kind and key it must lead to; whether the row is handed on.
CHANGES: list[tuple[str, str, str, str | None, str | None, bool]] = [
    ("duplicate in an object", LR, LR + ', "lr": 2', "duplicate_key", "isv.lr", False),
    ("duplicate two levels down", '"low": -1.5', '"low": -1.5, "low": -1.5', "duplicate_key",
     "isv.atoms.low", False),
    ("object that stands twice", LAST, LAST + ', "isv": {"lr": 1}', "duplicate_key", "isv", False),
    ("duplicate in a list", '"q": 1.5', '"q": 1.5, "q": 7', "duplicate_key", "parts[0].q", False),
    ("clash with a plain key", LAST, LAST + ', "isv.lr": 2', "key_clash", "isv.lr", False),
    ("clash with an item", LAST, LAST + ', "mix[1]": 2', "key_clash", "mix[1]", False),
    ("null inside", LR, '"lr": null', "null", "isv.lr", True),
    ("null in a list", FLAGS, '"flags": [0, null, 0]', "null", "flags[1]", True),
    ("null for an object", ATOMS, '"atoms": null', "null", "isv.atoms", True),
    ("null for a list", '"mix": [0.25, 0.5, 0.75]', '"mix": null', "null", "mix", True),
    ("shorter list", FLAGS, '"flags": [0, 3]', "list_length", "flags", False),
    ("empty list", FLAGS, '"flags": []', "list_length", "flags", False),
    ("longer list", FLAGS, '"flags": [0, 3, 0, 0]', "list_length", "flags", False),
    ("list past the maximum", FLAGS, f'"flags": [{"0, " * 64}0]', "list_too_long", "flags", False),
    ("number for an object", ATOMS, '"atoms": 2', "mistyped", "isv.atoms", False),
    ("object for a number", LR, '"lr": {"x": 1}', "mistyped", "isv.lr", False),
    ("list for a number", LR, '"lr": [1]', "mistyped", "isv.lr", False),
    ("number for a list", FLAGS, '"flags": 3', "mistyped", "flags", False),
    ("boolean in a list", FLAGS, '"flags": [0, true, 0]', "mistyped", "flags[1]", False),
    ("list in a list", FLAGS, '"flags": [0, [3], 0]', "mistyped", "flags[1]", False),
    ("list for a string", NAME, '"name": ["a"]', "mistyped", "tag.name", False),
    ("object for a string", NAME, '"name": {"a": "b"}', "mistyped", "tag.name", False),
    ("number for a string", NAME, '"name": 7', "mistyped", "tag.name", False),
    ("string for a number", LR, '"lr": "1.5"', "mistyped", "isv.lr", False),
    ("NaN inside", LR, '"lr": NaN', "non_finite_literal", "isv.lr", True),
    ("Infinity in a list", MIX, '"mix": [0.25, Infinity', "non_finite_literal", "mix[1]", True),
    ("overflow inside", LR, '"lr": 1e999', "overflow", "isv.lr", True),
    ("underflow inside", LR, '"lr": 1e-999', "underflow", "isv.lr", True),
    ("lost digits inside", LR, '"lr": 9007199254740993', "lost_digits", "isv.lr", False),
    ("lost digits in a list", MIX, '"mix": [1, 9007199254740993', "lost_digits", "mix[1]", False),
    ("very deep", LAST, '"reasons": ' + '{"a":' * 70 + "1" + "}" * 70, "too_deep", None, False),
    ("odd name inside is a name", LAST, '"reasons": {"*": 1}', None, "reasons.*", True),
    ("new key inside", LAST, '"reasons": {"lr": "no data: none"}', None, None, True),
    ("empty object has no column", LAST, '"*": {}', None, None, True),
    ("missing key inside", '"lr": 1.5, ', "", None, None, True),
    ("missing list", '"mix": [0.25, 0.5, 0.75], ', "", None, None, True),
]  # fmt: skip
FAULTS = [
    pytest.param(changed(old, new), kind, key, kept, id=name)
    for name, old, new, kind, key, kept in CHANGES
]


@pytest.mark.parametrize("limits", [None, SMALL], ids=["whole", "pieces"])
@pytest.mark.parametrize(("lines", "kind", "key", "kept"), FAULTS)
def test_faults_are_named_with_line_byte_and_key(
    lines: list[bytes],
    kind: str | None,
    key: str | None,
    kept: bool,
    limits: Limits | None,
    tmp_path: Path,
) -> None:
    """Whole: the slower tiers see it. Pieces: the fast tier has taken over before."""
    before = [json.dumps(row(0)).encode()] * (0 if limits is None else 6)
    path = written(tmp_path, [*before, *lines])
    rows, faults = read(path, limits=limits)
    assert {fault.kind for fault in faults} == ({kind} if kind else set())
    for fault in faults:
        assert fault.line == len(before) + 3
        assert fault.step == 3
        if key is not None:
            assert fault.key == key
        start = sum(len(line) + 1 for line in [*before, *lines[:2]])
        if kind != "duplicate_key":
            assert fault.byte is not None
            assert start < fault.byte < start + len(lines[2])
    steps = [one["step"] for one in rows if one["step"]]
    assert steps == ([1, 2, 3, 4] if kept else [1, 2, 4])


@pytest.mark.parametrize(("lines", "kind", "key", "kept"), FAULTS)
def test_fast_tier_alone_lets_no_fault_through(
    lines: list[bytes], kind: str | None, key: str | None, kept: bool
) -> None:
    """It learned the shape from good rows; a list whose rows miss keys is right to be taken."""
    schema, shape = learned()
    text = b"\n".join(lines) + b"\n"
    frame = tier_a(text, schema, shape.root)
    if kind is not None:
        assert frame is None
    if frame is not None:
        assert [one["step"] for one in frame.to_dicts()] == [1, 2, 3, 4]
        assert b"no data" not in lines[2]


@pytest.mark.parametrize(("lines", "kind", "key", "kept"), FAULTS)
def test_tier_for_nulls_alone_lets_no_fault_through(
    lines: list[bytes], kind: str | None, key: str | None, kept: bool
) -> None:
    """Nulls are its matter, and it says where they were."""
    schema, shape = learned()
    text = b"\n".join(lines) + b"\n"
    found = typed_with_nulls(text, counts(text), TypedRows(shape.root, schema), schema)
    if kind == "null":
        assert found is not None
        assert found.nulls == {key}
        assert [one["step"] for one in found.frame.to_dicts()] == [1, 2, 3, 4]
    elif kind is not None:
        assert found is None


def test_allowed_nulls_keep_the_tier_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A null and a key that is not there are told apart, at each level; few rows are slow."""
    seen: list[bytes] = []
    rows = [row(step) for step in range(1, 40)]
    for step in (5, 6, 30):
        rows[step]["isv"]["lr"] = None
    rows[7]["isv"]["atoms"] = None
    rows[8]["mix"][1] = None
    del rows[9]["tag"]
    path = written(tmp_path, [json.dumps(one).encode() for one in rows])
    faults: list[Fault] = []
    reader = Reader(
        path, report=faults.append, nesting=FLATTEN, nullable=["^.*$"],
        limits=Limits(first_piece=600, piece=1200, late_after=10**6),
    )  # fmt: skip

    def noted(text: bytes, nested: bool = False) -> list[dict[str, Any]] | None:
        seen.append(text)
        return tier_b(text, nested)

    monkeypatch.setattr(engine, "tier_b", noted)
    got = [one for batch in reader.batches() for one in batch.frame.to_dicts()]
    assert faults == []
    assert 0 < sum(text.count(b"\n") for text in seen) < len(rows) / 2
    assert reader.null_keys == {"isv.lr", "isv.atoms", "mix[1]"}
    assert [one["isv.lr"] for one in got].count(None) == 3
    assert got[7]["isv.atoms.low"] is got[7]["isv.atoms.high"] is got[9]["tag.name"] is None
    assert got[8]["mix[2]"] == 0.25 * 9


def learned() -> tuple[dict[str, type[pl.DataType]], Shape]:
    shape = Shape(FLATTEN, Limits())
    for line in LINES:
        assert shape.flatten(json.loads(line))[1] == []
    kinds_of = {int: pl.Int64, float: pl.Float64, str: pl.String, bool: pl.Boolean}
    return {name: kinds_of[type(value)] for name, value in FLAT.items()}, shape


def test_fast_tier_takes_nested_rows() -> None:
    schema, shape = learned()
    frame = tier_a(b"\n".join(LINES) + b"\n", schema, shape.root)
    assert frame is not None
    assert frame.to_dicts()[2] == FLAT
    assert frame.columns == list(FLAT)


def test_second_tier_counts_inner_keys() -> None:
    text = b"\n".join(LINES) + b"\n"
    assert tier_b(text, True) == [row(step) for step in range(1, 5)]
    assert tier_b(text, False) is None
    assert tier_b(text.replace(b'"lr": 1.5', b'"lr": 1.5, "lr": 2.5'), True) is None


def test_clash_names_both_places(tmp_path: Path) -> None:
    _, faults = read(written(tmp_path, [b'{"step": 1, "a": {"b": 1.5}, "a.b": 2.5}']))
    assert [fault.got for fault in faults] == ['2.5 at "a.b", and another value at "a" > "b"']


def test_clash_is_found_across_rows(tmp_path: Path) -> None:
    lines = [b'{"step": 1, "a": {"b": 1.5}}'] * 3 + [b'{"step": 4, "a.b": 2.5}'] * 2
    rows, faults = read(written(tmp_path, lines), limits=Limits(first_piece=60, piece=60))
    assert [(fault.kind, fault.line) for fault in faults] == [("key_clash", 4), ("key_clash", 5)]
    assert len(rows) == 3


def test_items_of_a_list_share_their_type(tmp_path: Path) -> None:
    """One float makes all of them floats, so that a whole 1 among fractions stays a number."""
    lines = [b'{"step": 1, "mix": [1, 0, 0.5]}', b'{"step": 2, "mix": [0.5, 0.25, 1]}']
    rows, faults = read(written(tmp_path, lines))
    assert faults == []
    assert rows[0] == {"step": 1, "mix[0]": 1.0, "mix[1]": 0.0, "mix[2]": 0.5}
    assert all(type(rows[0][f"mix[{i}]"]) is float for i in range(3))


def test_keys_are_counted_however_deep_they_are(tmp_path: Path) -> None:
    wide = {"step": 1, "o": {f"k{i}": {"x": i} for i in range(60)}}
    path = written(tmp_path, [json.dumps(wide).encode(), b'{"step": 2}'])
    rows, faults = read(path, limits=Limits(max_keys=100))
    assert [fault.kind for fault in faults] == ["too_many_keys"]
    assert [one["step"] for one in rows] == [2]


@pytest.mark.parametrize("empty", [b"{}", b'{"reasons": {}}'])
@pytest.mark.parametrize("at", [0, 1, 4])
@pytest.mark.parametrize("limits", [None, Limits(first_piece=100, piece=100)])
def test_row_without_a_value_is_named(
    empty: bytes, at: int, limits: Limits | None, tmp_path: Path
) -> None:
    """Wherever it stands: before any column is known, or among many good rows."""
    lines = [b'{"step": %d, "reasons": {}, "parts": []}' % step for step in range(1, 5)]
    rows, faults = read(written(tmp_path, [*lines[:at], empty, *lines[at:]]), limits=limits)
    assert [(fault.kind, fault.line) for fault in faults] == [("empty_row", at + 1)]
    assert [one["step"] for one in rows] == [1, 2, 3, 4]


@pytest.mark.parametrize(("size", "kinds_found"), [(20, ["empty_row"]), (1 << 10, [])])
def test_allowed_null_is_a_row_once_a_column_is_known(
    size: int, kinds_found: list[str], tmp_path: Path
) -> None:
    faults: list[Fault] = []
    path = written(tmp_path, [b'{"device": null}', b'{"step": 1}', b'{"device": null}'])
    limits = Limits(first_piece=size, piece=size)
    reader = Reader(path, report=faults.append, nullable=["^device$"], limits=limits)
    rows = [one for batch in reader.batches() for one in batch.frame.to_dicts()]
    assert [fault.kind for fault in faults] == kinds_found
    assert len(rows) == 3 - len(kinds_found)


PROFILE = b"""
[profile]
id = "nested"
summary = "one rule on a nested key"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[table]
nested = "flatten"
[[rule]]
id = "OWN001"
severity = "error"
summary = "flags are 0"
why = "to be read"
check = "between"
pattern = '^flags\\[\\d+\\]$'
params = { min = 0, max = 0 }
absent = "skip"
expected = "0"
fix = "none"
[[rule]]
id = "OWN002"
severity = "error"
summary = "steps rise"
why = "to be read"
check = "increasing"
keys = ["step"]
expected = "rising"
fix = "none"
"""


def test_profile_declares_the_rule() -> None:
    assert parse_profile(PROFILE, "x").nesting == Nesting(True, ".", 64)
    assert load_profile("nl").nesting == Nesting(False)
    text = PROFILE.replace(b'"flatten"', b'"flatten"\nseparator = "/"\nmax_items = 8')
    assert parse_profile(text, "x").nesting == Nesting(True, "/", 8)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"flatten"', b'"join"'), (b'"flatten"', b'"flatten"\nseparator = ""'),
     (b'"flatten"', b'"flatten"\nmax_items = -1'), (b"nested", b"nesting")],
)  # fmt: skip
def test_profile_with_another_rule_is_refused(old: bytes, new: bytes) -> None:
    with pytest.raises(ProfileError, match="table"):
        parse_profile(PROFILE.replace(old, new), "x")


def test_rules_read_flattened_columns(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(PROFILE)
    path = tmp_path / "x.jsonl"
    path.write_text('{"step": 1, "flags": [0, 0]}\n{"step": 2, "flags": [0, 1]}\n')
    verdict = judge(path, str(tmp_path / "own.toml"))
    (finding,) = verdict.findings
    assert (finding.rule, finding.where.line, finding.where.key) == ("OWN001", 2, "flags[1]")


@pytest.mark.parametrize("name", ["key_clash", "list_length", "list_too_long", "empty_row"])
def test_examples_of_the_catalogue_are_true(name: str, tmp_path: Path) -> None:
    kind = kinds()[name]
    (tmp_path / "own.toml").write_bytes(PROFILE)
    for text, held in ((kind.passes, True), (kind.fails, False)):
        path = tmp_path / "x.jsonl"
        path.write_text(text.strip() + "\n")
        found = {finding.rule for finding in judge(path, str(tmp_path / "own.toml")).findings}
        assert (kind.id not in found) == held
