"""Paths and manifests of bundles as laws: nothing climbs, clashes, or breaks a rule."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import shutil
import tempfile
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trueup.gates import judge
from trueup.gates.bundle.checks import CHECKS
from trueup.gates.bundle.errors import BundleError
from trueup.gates.bundle.make import make_bundle
from trueup.gates.bundle.paths import clashes, flaw_of_path, folded
from trueup.gates.documents.model import Document, Subject
from trueup.gates.documents.run import Run
from trueup.gates.profile.load import load_profile

BUNDLES = Path(__file__).resolve().parents[2] / "fixtures" / "bundles"
PROFILE = str(BUNDLES / "profile.toml")
OWN = load_profile(PROFILE)
RULES = {rule.check: rule for rule in OWN.rules}
LAW = settings(deadline=None)
ANY = """
[profile]
id = "any"
summary = "every file is taken"
include = ["bundle"]
[[artifact]]
kind = "pickle"
patterns = ["*"]
"""

odd = st.text(st.characters(max_codepoint=0x2FF) | st.sampled_from("/.\\:\0"), max_size=12)
parts = st.sampled_from(["a", "A", "b", "..", ".", "", "é", "e\u0301", "ss", "ß", "a.b", "C:"])
made_of_parts = st.lists(parts, min_size=1, max_size=4).map("/".join)


@LAW
@given(path=odd | made_of_parts)
def test_a_path_that_is_accepted_stays_inside_on_every_system(path: str) -> None:
    if flaw_of_path(path):
        return
    assert posixpath.normpath(path) == path
    assert not posixpath.isabs(path)
    assert ".." not in path.split("/")
    elsewhere = PureWindowsPath(path)
    assert (elsewhere.drive, elsewhere.root) == ("", "")
    assert ".." not in elsewhere.parts


@pytest.mark.parametrize(
    "path",
    ["", "/a", "../a", "a/../b", "a//b", "a/", "./a", "a\\b", "C:/a", "a\nb", "a\0b", "x" * 256,
     "a\udc80", "a/\u2028"],
)  # fmt: skip
def test_a_path_that_is_not_plain_is_told(path: str) -> None:
    assert flaw_of_path(path)


@LAW
@given(paths=st.lists(made_of_parts.filter(lambda p: not flaw_of_path(p)), max_size=6))
def test_paths_without_a_clash_can_all_be_unpacked_anywhere(paths: list[str]) -> None:
    """A file system that knows neither case nor typing, as sets of its folders and files."""
    found = clashes(paths)
    files = [folded(path) for path in paths]
    folders = {plain[:at] for plain in files for at, char in enumerate(plain) if char == "/"}
    fits = len(set(files)) == len(files) and not folders & set(files)
    assert (found == []) is fits
    for path, other in found:
        assert {path, other} <= set(paths)


@settings(deadline=None, max_examples=25)
@given(
    tree=st.dictionaries(
        st.lists(st.sampled_from(["a", "b", "run 1", "ü", "x.json"]), min_size=1, max_size=3).map(
            "/".join
        ),
        st.binary(max_size=50),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_bundled_is_what_was_there_and_every_rule_on_its_files_holds(
    tree: dict[str, bytes],
) -> None:
    folders = {os.path.dirname(path) for path in tree} | {
        os.path.dirname(os.path.dirname(path)) for path in tree
    }
    assume(not folders & tree.keys())
    root = Path(tempfile.mkdtemp())
    try:
        (root / "any.toml").write_text(ANY)
        for path, data in tree.items():
            (root / "run" / path).parent.mkdir(parents=True, exist_ok=True)
            (root / "run" / path).write_bytes(data)
        make_bundle([root / "run"], root / "out", str(root / "any.toml"))
        listed = json.loads((root / "out" / "manifest.json").read_text())["files"]
        assert {one["path"]: (one["sha256"], one["size"]) for one in listed} == {
            path: (hashlib.sha256(data).hexdigest(), len(data)) for path, data in tree.items()
        }
        (root / "only.toml").write_text(ANY.partition("[[artifact]]")[0])
        verdict = judge(root / "out", str(root / "only.toml"))
        statuses = {one.id: one.status for one in verdict.rules}
        assert {statuses[f"BND00{n}"] for n in range(1, 10)} == {"true"}
    finally:
        shutil.rmtree(root)


words = st.sampled_from(
    ["schema", "trueup.bundle/1", "files", "total", "bytes", "variants", "name", "evals", "path",
     "sha256", "size", "kind", "niah", "pg19", "bundle_id", "bundle_root", "eval", "tag",
     "bundle_path", "no_teach", "teach", "../x", "a/b", "manifest.json", "no_teach/eval/niah.json"]
)  # fmt: skip
leaves = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=6),
    max_leaves=40,
)
shaped = st.fixed_dictionaries(
    {
        "schema": st.just("trueup.bundle/1"),
        "files": st.lists(st.dictionaries(words, values, max_size=5), max_size=4) | values,
        "variants": st.lists(st.dictionaries(words, values, max_size=4), max_size=3) | values,
        "total": values,
    }
)


@settings(deadline=None, max_examples=300)
@given(data=values | shaped)
def test_no_manifest_breaks_a_rule(data: Any) -> None:
    root = BUNDLES / "passes_small" / "bundle"
    run = Run(root, "bundle", OWN)
    subject = Subject("manifest.json", "manifest", root / "manifest.json",
                      Document(data, "JSON", 1), run)  # fmt: skip
    run.subjects.append(subject)
    for check in CHECKS:
        answer = check.run(subject, RULES[check.name])
        assert answer.read >= 0
        assert all(flaw.got for flaw in answer.flaws)


def test_a_link_in_a_bundle_is_told_twice_as_missing_and_as_unlisted(tmp_path: Path) -> None:
    shutil.copytree(BUNDLES / "passes_small" / "bundle", tmp_path / "b")
    path = tmp_path / "b" / "teach" / "eval" / "niah.json"
    shutil.move(path, tmp_path / "niah.json")
    path.symlink_to(tmp_path / "niah.json")
    found = {(f.rule, f.got) for f in judge(tmp_path / "b", PROFILE).findings}
    name = '"teach/eval/niah.json"'
    assert ("BND004", f"{name} is a link or no file") in found
    assert ("BND007", f"{name}, a link") in found
    assert {rule for rule, _ in found} >= {"GAT005"}


def test_a_linked_folder_is_not_entered(tmp_path: Path) -> None:
    shutil.copytree(BUNDLES / "passes_small" / "bundle", tmp_path / "b")
    shutil.move(tmp_path / "b" / "teach", tmp_path / "teach")
    (tmp_path / "b" / "teach").symlink_to(tmp_path / "teach")
    found = {f.rule for f in judge(tmp_path / "b", PROFILE).findings}
    assert {"BND004", "BND007"} <= found


def test_a_bundle_below_the_top_is_judged_by_its_own_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(BUNDLES / "passes_small" / "bundle", tmp_path / name)
    assert judge(tmp_path, PROFILE).passed
    (tmp_path / "two" / "more.txt").write_text("x")
    (found,) = judge(tmp_path, PROFILE).findings
    assert (found.rule, Path(found.artifact).parent.name) == ("BND007", "two")


def test_too_many_names_of_one_kind_are_told_once(tmp_path: Path) -> None:
    """A list of 5000 paths that climb is one finding for each place, and never millions."""
    files = [
        {"path": f"../{n}", "sha256": "0" * 64, "size": 1, "kind": "other"} for n in range(5000)
    ]
    data = {"schema": "trueup.bundle/1", "profile": "x", "files": files, "variants": [],
            "total": {"files": 5000, "bytes": 5000}}  # fmt: skip
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    found = [f for f in judge(tmp_path, PROFILE).findings if f.rule == "BND002"]
    assert len(found) == 200


def test_an_unreadable_source_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "any.toml").write_text(ANY)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a").write_text("x")
    real = os.open

    def refuse(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(BundleError, match="cannot be read: Permission denied"):
        make_bundle([tmp_path / "run"], tmp_path / "out", str(tmp_path / "any.toml"))
    assert not (tmp_path / "out").exists()
