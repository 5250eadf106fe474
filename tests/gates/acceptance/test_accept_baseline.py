"""A baseline is locked once, whole and exactly, and shows every change after that."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.acceptance.baseline import digest_of
from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.lock import lock
from trueup.gates.errors import GateError

TOML = """
[results]
files = ["results.json"]
[[baseline]]
file = "baseline.toml"
[[band]]
id = "x"
path = "cells[*].x"
relative = 0.15
"""
RESULTS = {
    "run_id": "r1",
    "cells": [{"seed": 1, "fold": 0, "x": 1.0}],
    "n": 3,
    "note": "ü\u007f\u0001",
}


def write(folder: Path, data: Any, name: str = "results.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


@pytest.mark.parametrize("name", ["b.toml", "b.json"])
def test_a_locked_baseline_holds_every_number_as_it_was_written(tmp_path: Path, name: str) -> None:
    text = '{"a": 0.10, "b": 1e5, "c": -0, "deep": {"d.e": 9007199254740993}, "t": true, "s": "1"}'
    assert lock(write(tmp_path, text), tmp_path / name) == 4
    raw = (tmp_path / name).read_bytes()
    if name == "b.toml":
        values = tomllib.loads(raw.decode(), parse_float=Decimal)["value"]
    else:
        values = json.loads(raw, parse_float=Decimal)["value"]
    assert {one["path"]: one["value"] for one in values} == {
        "a": Decimal("0.10"), "b": Decimal("1e5"), "c": 0, 'deep."d.e"': 9007199254740993,
    }  # fmt: skip
    assert b"0.10" in raw
    stated = re.search(rb"sha256:[0-9a-f]{64}", raw)
    assert stated is not None
    assert digest_of(raw) == stated.group().decode()


@pytest.mark.parametrize("name", ["b.toml", "b.json"])
def test_a_run_is_within_its_own_baseline(accepting: Any, name: str) -> None:
    folder = accepting.folder
    lock(write(folder, RESULTS), folder / name)
    toml = TOML.replace("baseline.toml", name)
    assert accepting.judged({"acceptance.toml": toml, "results.json": RESULTS}).passed


def test_it_is_read_only_and_never_overwritten(tmp_path: Path) -> None:
    results, target = write(tmp_path, RESULTS), tmp_path / "b.toml"
    lock(results, target)
    assert stat.S_IMODE(target.stat().st_mode) & 0o222 == 0
    before = target.read_bytes()
    with pytest.raises(AcceptanceError, match="is there already"):
        lock(results, target)
    assert target.read_bytes() == before
    link = tmp_path / "c.toml"
    link.symlink_to(tmp_path / "nowhere.toml")
    with pytest.raises(AcceptanceError, match="is there already"):
        lock(results, link)
    assert not (tmp_path / "nowhere.toml").exists()


def test_one_that_appears_while_locking_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, link = tmp_path / "b.toml", os.link

    def meanwhile(source: Any, to: Any, **words: Any) -> None:
        target.write_text("mine")
        link(source, to, **words)

    monkeypatch.setattr(os, "link", meanwhile)
    with pytest.raises(AcceptanceError, match="is there already"):
        lock(write(tmp_path, RESULTS), target)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.toml", "results.json"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param('{"a": NaN}', "a: .*a number|NaN", id="nan"),
        pytest.param('{"a": 1, "a": 2}', "then 2", id="duplicate"),
        pytest.param('{"a": 1e999}', "1e999", id="overflow"),
        pytest.param('{"a": 1', "not JSON|ends after", id="cut"),
        pytest.param('{"a": "1"}', "holds no number", id="no-number"),
        pytest.param("[]", "holds no number", id="empty"),
        pytest.param('{"c": [{"fold": 0, "x": 1}, {"fold": 0, "x": 2}]}', "is there twice",
                     id="not-told-apart"),
        pytest.param("", "is empty", id="no-bytes"),
    ],
)  # fmt: skip
def test_what_is_not_fit_is_not_locked(tmp_path: Path, data: str, words: str) -> None:
    with pytest.raises(GateError, match=words):
        lock(write(tmp_path, data), tmp_path / "b.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
    ("paths", "words"),
    [(("none",), "is no finite number"), (("a..b",), "no key"), (("note",), "is no finite number")],
)
def test_chosen_metrics_must_be_there(tmp_path: Path, paths: tuple[str, ...], words: str) -> None:
    with pytest.raises(AcceptanceError, match=words):
        lock(write(tmp_path, RESULTS), tmp_path / "b.toml", paths=paths)


def test_metrics_can_be_chosen(tmp_path: Path) -> None:
    assert lock(write(tmp_path, RESULTS), tmp_path / "b.toml", paths=("cells[*].x",)) == 1


@pytest.mark.parametrize("name", ["b.yaml", "b", "b.toml.txt"])
def test_the_name_says_the_form(tmp_path: Path, name: str) -> None:
    with pytest.raises(AcceptanceError, match=r"\.toml or \.json"):
        lock(write(tmp_path, RESULTS), tmp_path / name)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(AcceptanceError, match="cannot be written"):
        lock(write(tmp_path, RESULTS), tmp_path / "no" / "b.toml")


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda raw: raw.replace(b"value = 1.0", b"value = 0.9"), id="a-value"),
        pytest.param(lambda raw: raw.replace(b"value = 1.0", b"value = 1.00"), id="its-digits"),
        pytest.param(lambda raw: raw + b"\n", id="a-line-end"),
        pytest.param(lambda raw: raw.replace(b"\n", b"\r\n"), id="all-line-ends"),
        pytest.param(lambda raw: raw.replace(b"# Locked", b"# locked"), id="a-comment"),
        pytest.param(lambda raw: raw + b'[[value]]\npath = "y"\nvalue = 1\n', id="one-more"),
        pytest.param(lambda raw: re.sub(rb"sha256:[0-9a-f]{64}", b"sha256:" + b"0" * 64, raw),
                     id="its-digest"),
    ],
)  # fmt: skip
def test_every_change_after_the_lock_is_found(accepting: Any, edit: Any) -> None:
    raw = accepting.locked(RESULTS).encode()
    files = {"acceptance.toml": TOML, "results.json": RESULTS}
    assert accepting.judged({**files, "baseline.toml": raw}).passed
    judgement = accepting.judged({**files, "baseline.toml": edit(raw)})
    assert accepting.rules(judgement) == ["ACC008"]


def test_a_digest_made_again_is_found_by_the_results_beside_it(accepting: Any) -> None:
    folder = accepting.folder
    lock(write(folder, RESULTS, "old.json"), folder / "b.toml")
    raw = (folder / "b.toml").read_bytes().replace(b"value = 1.0", b"value = 0.9")
    stated = re.search(rb"sha256:[0-9a-f]{64}", raw)
    made = digest_of(raw)
    assert stated is not None
    assert made is not None
    forged = raw.replace(stated.group(), made.encode())
    files = {"acceptance.toml": TOML, "results.json": RESULTS, "baseline.toml": forged}
    judgement = accepting.judged(files)
    assert accepting.rules(judgement) == ["ACC009"]
    (finding,) = judgement.findings
    assert (finding.got, finding.expected[:3]) == ("cells[*].x[seed=1,fold=0] = 0.9", "1.0")
    write(folder, {**RESULTS, "n": 4}, "old.json")
    assert accepting.rules(accepting.judged({**files, "baseline.toml": raw})) == [
        "ACC008",
        "ACC009",
    ]


def test_without_the_old_results_the_digest_is_what_holds(accepting: Any) -> None:
    raw = accepting.locked(RESULTS)
    files = {"acceptance.toml": TOML, "results.json": RESULTS, "baseline.toml": raw}
    assert accepting.judged(files).passed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[baseline]\nformat = 2\n", "source"),
        ("value = 1\n", "baseline"),
        ("[baseline", "is not TOML"),
    ],
)
def test_what_is_no_baseline_is_refused(accepting: Any, text: str, words: str) -> None:
    files = {"acceptance.toml": TOML, "results.json": RESULTS, "baseline.toml": text}
    with pytest.raises(GateError, match=words):
        accepting.judged(files)


def test_a_baseline_that_is_not_there_cannot_be_judged_by(accepting: Any) -> None:
    with pytest.raises(GateError, match=r"baseline\.toml: is not there"):
        accepting.judged({"acceptance.toml": TOML, "results.json": RESULTS})
