"""Bundles are made whole or not at all, are the same every time, and go on where they stopped."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest
import zstandard

from trueup.gates import GateError, Unreadable, judge
from trueup.gates.bundle import make
from trueup.gates.bundle.archive import write_archive
from trueup.gates.bundle.errors import BundleError
from trueup.gates.bundle.make import Bundle, make_bundle
from trueup.gates.bundle.plan import variant_of

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SMALL = FIXTURES / "runs" / "memory_small"
PROFILE = """
[profile]
id = "mine"
summary = "bundles of the small memory model"
include = ["bundle", "evals"]
[[artifact]]
kind = "metadata"
patterns = ["*.meta.json"]
[[artifact]]
kind = "weights"
patterns = ["*.safetensors"]
[[rule]]
id = "BND010"
on = "manifest"
severity = "error"
summary = "both variants"
why = "because"
check = "bundle_variants"
params = { variants = ["no_teach", "teach"] }
expected = "both"
fix = "bundle both"
"""
FIRST = "no_teach/checkpoints/step_000100.meta.json"


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE)
    return str(path)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the real run that a test may change."""
    return Path(shutil.copytree(SMALL, tmp_path / "run"))


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def nothing_there(out: Path) -> bool:
    """Neither the bundle nor anything that could be taken for one."""
    return not os.path.lexists(out)


def test_a_bundle_of_a_real_run_passes_the_gate(run: Path, profile: str, tmp_path: Path) -> None:
    made = make_bundle([run], tmp_path / "out", profile)
    assert (made.files, made.kept, made.was_there, made.left_out) == (22, 0, False, 1)
    kinds = ("continual", "niah", "passkey", "pg19", "zeroshot")
    assert made.variants == {"no_teach": kinds, "teach": kinds}
    assert made.missing == ()
    verdict = judge(tmp_path / "out", profile)
    assert (verdict.verdict, verdict.findings) == ("pass", ())
    rules = {one.id: one.status for one in verdict.rules}
    assert {rules[f"BND{n:03}"] for n in range(1, 13)} == {"true"}
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_the_same_files_give_the_same_bytes(run: Path, profile: str, tmp_path: Path) -> None:
    """Whatever their times, modes, order of creation, or the place of the run."""
    make_bundle([run], tmp_path / "one", profile)
    other = tmp_path / "elsewhere" / "copied"
    for path in sorted(run.rglob("*"), reverse=True):
        if path.is_file():
            target = other / path.relative_to(run)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
            target.chmod(0o600)
            os.utime(target, (1, 1))
    mask = os.umask(0o077)
    try:
        make_bundle([other], tmp_path / "two", profile)
    finally:
        os.umask(mask)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "two").rglob("*.json")}
    assert modes == {0o644}


def test_several_directories_become_folders(profile: str, tmp_path: Path) -> None:
    make_bundle([SMALL / "teach", SMALL / "no_teach"], tmp_path / "apart", profile)
    make_bundle([SMALL], tmp_path / "whole", profile)
    assert tree(tmp_path / "apart") == tree(tmp_path / "whole")


def test_a_bundle_can_be_bundled_and_is_the_same(profile: str, tmp_path: Path) -> None:
    make_bundle([SMALL], tmp_path / "one", profile)
    make_bundle([tmp_path / "one"], tmp_path / "two", profile)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_files_keep_the_time_of_their_source(run: Path, profile: str, tmp_path: Path) -> None:
    os.utime(run / FIRST, (1_000_000_000, 1_000_000_000))
    make_bundle([run], tmp_path / "out", profile)
    assert (tmp_path / "out" / FIRST).stat().st_mtime == 1_000_000_000


def test_other_files_are_taken_where_they_are_asked_for(
    run: Path, profile: str, tmp_path: Path
) -> None:
    (run / ".hidden.toml").write_text("x")
    made = make_bundle([run], tmp_path / "out", profile, also=["*.toml"])
    assert made.left_out == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {one["path"] for one in manifest["files"] if one["kind"] == "other"} == {"run.toml"}
    assert judge(tmp_path / "out", profile).passed


def interrupted(run: Path, out: Path, profile: str, after: int) -> None:
    """A run that dies once so many bytes are copied."""

    class Died(Exception):
        pass

    def progress(done: int, total: int) -> None:
        if done >= after:
            raise Died

    with pytest.raises(Died):
        make_bundle([run], out, profile, progress=progress)


def partial_of(out: Path) -> Path:
    return out.parent / f".{out.name}.partial"


def test_an_interrupted_run_is_continued(run: Path, profile: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_bundle([run], tmp_path / "whole", profile)
    interrupted(run, out, profile, 30_000)
    assert nothing_there(out)
    there = len(tree(partial_of(out)))
    made = make_bundle([run], out, profile)
    assert 0 < made.kept < made.files
    assert made.kept >= there - 1  # one file was under way
    assert tree(out) == tree(tmp_path / "whole")
    assert not partial_of(out).exists()


def test_what_an_interrupted_run_left_is_not_trusted(
    run: Path, profile: str, tmp_path: Path
) -> None:
    out, outside = tmp_path / "out", tmp_path / "outside"
    outside.mkdir()
    make_bundle([run], tmp_path / "whole", profile)
    interrupted(run, out, profile, 60_000)
    left = partial_of(out)
    (left / FIRST).write_bytes(b"x" * (run / FIRST).stat().st_size)  # same size, other bytes
    (left / "stranger.txt").write_text("x")
    (left / "manifest.json").write_text("{}")
    (left / "a" / "b").mkdir(parents=True)
    shutil.rmtree(left / "no_teach" / "eval")
    (left / "no_teach" / "eval").symlink_to(outside)
    (left / "teach").mkdir(exist_ok=True)
    (left / "teach" / "eval").symlink_to(outside / "gone")
    weights = left / "no_teach" / "checkpoints" / "step_000200.safetensors"
    weights.unlink()
    weights.symlink_to(run / "no_teach" / "checkpoints" / "step_000200.safetensors")
    make_bundle([run], out, profile)
    assert tree(out) == tree(tmp_path / "whole")
    assert [path for path in out.rglob("*") if path.is_symlink()] == []
    assert list(outside.iterdir()) == []


def test_a_continued_run_takes_files_as_they_are_now(
    run: Path, profile: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    interrupted(run, out, profile, 60_000)
    (run / FIRST).write_text('{"step": 100, "created_at": "2026-01-01T00:00:00Z"}\n')
    (run / "no_teach" / "eval" / "niah.json").unlink()
    make_bundle([run], out, profile)
    assert (out / FIRST).read_bytes() == (run / FIRST).read_bytes()
    assert not (out / "no_teach" / "eval" / "niah.json").exists()
    make_bundle([run], tmp_path / "anew", profile)
    assert tree(out) == tree(tmp_path / "anew")


@pytest.mark.parametrize("at", [1, 30_000, 89_000])
def test_a_source_that_changes_is_refused(at: int, run: Path, profile: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    changed: list[str] = []

    def progress(done: int, total: int) -> None:
        if done >= at and not changed:
            changed.append("x")
            for path in sorted(run.rglob("*.json")):
                path.write_bytes(path.read_bytes() + b" ")

    with pytest.raises(BundleError, match="changed while it was copied"):
        make_bundle([run], out, profile, progress=progress)
    assert nothing_there(out)
    if at == 1:  # the first file changed under way: it was refused before a second was begun
        assert tree(partial_of(out)).keys() <= {".copying"}
    make_bundle([run], out, profile)  # the run has ended: the same command goes through


def test_a_link_that_leads_out_is_refused(run: Path, profile: str, tmp_path: Path) -> None:
    (tmp_path / "secret.safetensors").write_bytes(b"x")
    (run / "teach" / "best.safetensors").symlink_to(tmp_path / "secret.safetensors")
    with pytest.raises(BundleError, match="link that leads out"):
        make_bundle([run], tmp_path / "out", profile)
    assert nothing_there(tmp_path / "out")
    assert not partial_of(tmp_path / "out").exists()


def test_a_link_inside_becomes_a_file(run: Path, profile: str, tmp_path: Path) -> None:
    folder = run / "teach" / "checkpoints"
    (folder / "step_latest.safetensors").symlink_to("step_000300.safetensors")
    (run / "teach" / "linked").symlink_to("checkpoints")  # a folder: not entered, as by the gate
    make_bundle([run], tmp_path / "out", profile)
    latest = tmp_path / "out" / "teach" / "checkpoints" / "step_latest.safetensors"
    assert not latest.is_symlink()
    assert latest.read_bytes() == (folder / "step_000300.safetensors").read_bytes()
    assert not (tmp_path / "out" / "teach" / "linked").exists()
    assert judge(tmp_path / "out", profile).passed


def test_what_is_no_file_is_passed_over(run: Path, profile: str, tmp_path: Path) -> None:
    os.mkfifo(run / "teach" / "pipe")
    made = make_bundle([run], tmp_path / "out", profile)
    assert made.files == 22


def test_an_artifact_that_is_no_file_is_refused(run: Path, profile: str, tmp_path: Path) -> None:
    """The gate fails the run for it; a bundle without it would pass."""
    os.mkfifo(run / "teach" / "eval" / "pipe.json")
    with pytest.raises(BundleError, match=r"eval/pipe.json: .*not a regular file"):
        make_bundle([run], tmp_path / "out", profile)
    assert nothing_there(tmp_path / "out")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(["A.meta.json", "a.meta.json"], "one where case or accents", id="case"),
        pytest.param(["é.meta.json", "e\u0301.meta.json"], "one where case or", id="accents"),
        pytest.param(["a\nb.meta.json"], "has a control character", id="newline"),
        pytest.param(["a\\b.meta.json"], "has a backslash", id="backslash"),
        pytest.param(["a\udcff.meta.json"], "bytes that are no text", id="no-text"),
    ],
)
def test_names_that_could_not_be_unpacked_are_refused(
    names: list[str], message: str, run: Path, profile: str, tmp_path: Path
) -> None:
    for name in names:
        (run / name).write_text("{}")
    with pytest.raises(BundleError, match=message):
        make_bundle([run], tmp_path / "out", profile)
    assert nothing_there(tmp_path / "out")


def test_an_empty_directory_is_taken(run: Path, profile: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert not make_bundle([run], tmp_path / "out", profile).was_there
    assert judge(tmp_path / "out", profile).passed


def test_the_same_bundle_again_changes_nothing(run: Path, profile: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_bundle([run], out, profile)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert make_bundle([run], out, profile).was_there
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


@pytest.mark.parametrize("change", ["bytes", "more", "manifest", "source", "gone"])
def test_another_bundle_in_its_place_is_left_alone(
    change: str, run: Path, profile: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    make_bundle([run], out, profile)
    if change == "bytes":
        (out / FIRST).write_bytes(b"x" * (out / FIRST).stat().st_size)
    elif change == "more":
        (out / "more.txt").write_text("x")
    elif change == "manifest":
        (out / "manifest.json").write_text("{}")
    elif change == "source":
        (run / FIRST).write_text("{}")
    else:
        (out / FIRST).unlink()
    before = tree(out)
    with pytest.raises(BundleError, match="is there already, and is not this bundle"):
        make_bundle([run], out, profile)
    assert tree(out) == before


def test_a_directory_that_is_no_bundle_is_left_alone(
    run: Path, profile: str, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x")
    with pytest.raises(BundleError, match="is there already"):
        make_bundle([run], tmp_path / "out", profile)
    assert tree(tmp_path / "out") == {"thesis.tex": b"x"}


@pytest.mark.parametrize(
    ("sources", "out", "message"),
    [
        (["run"], "run/out", "lie in each other"),
        (["run"], "run", "lie in each other"),
        (["run"], ".", "lie in each other"),
        (["run", "run"], "out", "two run directories have one name"),
        (["gone"], "out", "does not exist"),
        (["mine.toml"], "out", "is no directory"),
        (["run"], "mine.toml", "is there already, and no directory"),
        (["run"], "mine.toml/out", "cannot be written: Not a directory"),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    sources: list[str], out: str, message: str, run: Path, profile: str, tmp_path: Path
) -> None:
    before = tree(tmp_path)
    with pytest.raises(BundleError, match=message):
        make_bundle([tmp_path / one for one in sources], tmp_path / out, profile)
    assert tree(tmp_path) == before


def test_a_directory_without_artifacts_is_unreadable(profile: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Unreadable, match="holds no artifact"):
        make_bundle([tmp_path / "empty"], tmp_path / "out", profile)


def test_two_runs_do_not_write_one_bundle(run: Path, profile: str, tmp_path: Path) -> None:
    partial_of(tmp_path / "out").mkdir()
    handle = os.open(partial_of(tmp_path / "out"), os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(BundleError, match="another run is making this bundle"):
            make_bundle([run], tmp_path / "out", profile)
    finally:
        os.close(handle)
    make_bundle([run], tmp_path / "out", profile)


def test_too_little_room_is_said_before_anything_is_written(
    run: Path, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(make.shutil, "disk_usage", lambda path: real._replace(free=89_650))
    with pytest.raises(BundleError, match=r"89,650 bytes free, expected 89,651"):
        make_bundle([run], tmp_path / "out", profile)
    assert tree(partial_of(tmp_path / "out")) == {}


@pytest.mark.parametrize("end", [".tar", ".tar.zst"])
def test_an_archive_holds_the_bundle_and_is_the_same_every_time(
    end: str, run: Path, profile: str, tmp_path: Path
) -> None:
    digests = set()
    for name in ("one", "two"):
        make_bundle([run], tmp_path / name, profile)
        digests.add(write_archive(tmp_path / name, tmp_path / f"{name}{end}"))
        for path in run.rglob("*.json"):
            os.utime(path, (5, 5))
    assert len(digests) == 1
    raw = (tmp_path / f"one{end}").read_bytes()
    if end == ".tar.zst":
        raw = zstandard.ZstdDecompressor().stream_reader(raw).read()
    (tmp_path / "plain.tar").write_bytes(raw)
    with tarfile.open(tmp_path / "plain.tar") as tar:
        entries = tar.getmembers()
        tar.extractall(tmp_path / "unpacked", filter="data")
    assert [entry.name for entry in entries] == sorted(tree(tmp_path / "one"))
    assert {(e.mtime, e.uid, e.gid, e.uname, e.mode) for e in entries} == {(0, 0, 0, "", 0o644)}
    assert tree(tmp_path / "unpacked") == tree(tmp_path / "one")
    assert judge(tmp_path / "unpacked", profile).passed


def test_an_archive_of_a_damaged_bundle_is_refused(run: Path, profile: str, tmp_path: Path) -> None:
    make_bundle([run], tmp_path / "out", profile)
    (tmp_path / "out" / FIRST).write_bytes(b"x" * (run / FIRST).stat().st_size)
    with pytest.raises(BundleError, match="is not what the manifest lists"):
        write_archive(tmp_path / "out", tmp_path / "out.tar")
    assert not [path for path in tmp_path.iterdir() if "tar" in path.name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.zip", "is no name of an archive"),
        ("out/it.tar", "lies in the bundle"),
        ("there.tar", "is there already"),
    ],
)
def test_an_archive_that_cannot_be_is_refused(
    name: str, message: str, run: Path, profile: str, tmp_path: Path
) -> None:
    make_bundle([run], tmp_path / "out", profile)
    (tmp_path / "there.tar").write_bytes(b"of something else")
    before = tree(tmp_path)
    with pytest.raises(GateError, match=message):
        write_archive(tmp_path / "out", tmp_path / name)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("path", "stated", "variant"),
    [
        ("teach/eval/niah.json", None, "teach"),
        ("eval/niah_no_teach.json", None, "no_teach"),
        ("eval/niah_teach.json", None, "teach"),
        ("runs/no_teach/eval/niah_teach.json", None, "no_teach"),
        ("eval/niah.json", None, None),
        ("eval/preteach.json", None, None),
        ("teach/eval/niah.json", "third", "third"),
    ],
)
def test_a_result_belongs_to_a_variant(path: str, stated: str | None, variant: str | None) -> None:
    assert variant_of(path, stated, ("teach", "no_teach")) == variant


def test_what_was_made_is_told_in_full(profile: str, tmp_path: Path) -> None:
    made = make_bundle([SMALL / "teach"], tmp_path / "out", profile)
    assert isinstance(made, Bundle)
    assert (made.missing, list(made.variants)) == (("no_teach",), ["teach"])
    found = {finding.rule for finding in judge(tmp_path / "out", profile).findings}
    assert found == {"BND010"}


def test_a_folder_that_may_not_be_read_is_not_listed(
    run: Path, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in it: the bundle says nothing of it."""
    make_bundle([run], tmp_path / "out", profile)
    (tmp_path / "out" / "closed").mkdir()
    assert judge(tmp_path / "out", profile).passed  # empty, so far
    scandir = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    found = {(one.rule, one.got) for one in judge(tmp_path / "out", profile).findings}
    assert ("GAT007", "Permission denied") in found
    assert '"closed"' in {got for _, got in found}
