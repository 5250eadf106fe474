"""URLs: the same verdict as of the local run, only what is wanted fetched, nothing left behind."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from trueup.gates import Unreadable, Verdict, judge
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.sources import listing, remote
from trueup.gates.read.sources.listing import Listing
from trueup.gates.read.sources.names import below, flaw_of, is_url, shown
from trueup.gates.read.sources.remote import fetched

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "tables"
PROFILE = str(FIXTURES / "profile.toml")
LINES = (FIXTURES / "passes_gz_lines" / "telemetry.jsonl.gz").read_bytes()
GOOD, BAD = FIXTURES / "passes_csv" / "telemetry.csv", FIXTURES / "csv_nan" / "telemetry.csv"


@pytest.fixture
def memory() -> Iterator[tuple[Any, str]]:
    """A folder in fsspec's memory, and its URL."""
    fs = fsspec.filesystem("memory")
    root = f"/{uuid.uuid4().hex}"
    yield fs, root
    if fs.exists(root):
        fs.rm(root, recursive=True)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made; a test can see that none is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def facts(verdict: Verdict) -> list[Any]:
    return [
        verdict.verdict, verdict.rows, verdict.bytes, verdict.checks,
        [(f.rule, f.where, f.got, f.count) for f in verdict.findings],
    ]  # fmt: skip


def test_a_folder_gives_the_verdict_of_its_local_copy(
    memory: tuple[Any, str], temporary: Path, tmp_path: Path
) -> None:
    fs, root = memory
    local = tmp_path / "run"
    for name, content in {
        "telemetry.csv": BAD.read_bytes(),
        "deep/er/telemetry.jsonl.gz": LINES,
        "notes.txt": b"not an artifact",
        "old/telemetry.csv.1": b"read under another name",
        ".hidden/telemetry.csv": b"not looked at",
    }.items():
        fs.pipe(f"{root}/{name}", content)
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        (local / name).write_bytes(content)
    url = f"memory:/{root}"
    there, here = judge(url, PROFILE), judge(local, PROFILE)
    assert facts(there) == facts(here)
    assert [artifact.path for artifact in there.artifacts] == [
        f"{url}/telemetry.csv", f"{url}/deep/er/telemetry.jsonl.gz"
    ]  # fmt: skip
    assert {finding.artifact for finding in there.findings} == {
        f"{url}/telemetry.csv", f"{url}/old/telemetry.csv.1"
    }  # fmt: skip
    assert list(temporary.iterdir()) == []


def test_one_file(memory: tuple[Any, str], temporary: Path) -> None:
    fs, root = memory
    fs.pipe(f"{root}/telemetry.csv", GOOD.read_bytes())
    fs.pipe(f"{root}/other.csv", b"")
    verdict = judge(f"memory:/{root}/telemetry.csv", PROFILE)
    assert verdict.passed
    assert [artifact.path for artifact in verdict.artifacts] == [f"memory:/{root}/telemetry.csv"]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("whole", [True, False])
def test_a_local_url_is_read_like_its_path(whole: bool, temporary: Path) -> None:
    path = BAD.parent if whole else BAD
    there, here = judge(path.as_uri(), PROFILE), judge(path, PROFILE)
    assert facts(there) == facts(here)
    assert there.artifacts[0].path == BAD.as_uri()
    assert list(temporary.iterdir()) == []


def test_only_what_the_profile_wants_is_copied(memory: tuple[Any, str]) -> None:
    fs, root = memory
    for name in ("telemetry.csv", "a/telemetry.json", "weights.bin", "a/b.csv"):
        fs.pipe(f"{root}/{name}", b"x" * 10)
    asked: list[str] = []

    def wanted(relative: str) -> bool:
        asked.append(relative)
        return relative.endswith("telemetry.csv")

    with fetched(f"memory:/{root}", wanted, Limits(), lambda *_: None) as copy:
        kept = sorted(p.relative_to(copy.path).as_posix() for p in copy.path.rglob("*"))
        assert kept == ["telemetry.csv"]
        assert copy.path.parent.stat().st_mode & 0o077 == 0  # nobody else's to read
    assert sorted(asked) == ["a/b.csv", "a/telemetry.json", "telemetry.csv", "weights.bin"]
    assert not copy.path.exists()


def test_the_copy_is_gone_after_an_error_as_well(memory: tuple[Any, str], temporary: Path) -> None:
    fs, root = memory
    fs.pipe(f"{root}/telemetry.csv", b"")
    with pytest.raises(Unreadable, match=r"memory:.*telemetry.csv: is empty"):
        judge(f"memory:/{root}", PROFILE)
    fs.pipe(f"{root}/telemetry.csv", GOOD.read_bytes())
    with pytest.raises(ZeroDivisionError):
        judge(f"memory:/{root}", PROFILE, progress=lambda *_: 1 / 0)  # type: ignore[arg-type]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "what", "says"),
    [
        pytest.param("memory://nowhere/at/all", "does not exist", "check the URL", id="missing"),
        pytest.param("file:///nowhere/at/all", "does not exist", "check the URL", id="no-file"),
        pytest.param("nothing://x/y", "has an unknown protocol", "s3://", id="unknown"),
        pytest.param("zip://x::memory://y", "is no place by itself", "chain", id="chain"),
        pytest.param("simplecache://x", "is no place by itself", "simplecache", id="wrapper"),
        pytest.param("ftp://127.0.0.1:1/x", "cannot be fetched", "network", id="no-server"),
    ],
)
def test_what_cannot_be_had_is_one_clear_refusal(url: str, what: str, says: str) -> None:
    with pytest.raises(Unreadable, match=what) as refusal:
        judge(url, PROFILE)
    assert says in str(refusal.value)
    assert str(refusal.value).startswith(url)


@pytest.mark.skipif(
    importlib.util.find_spec("s3fs") is not None, reason="s3fs is installed: nothing is missing"
)
def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(Unreadable, match="needs a package for s3://") as refusal:
        judge("s3://bucket/run", PROFILE)
    assert "s3fs" in refusal.value.fix


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.csv"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(Unreadable, match="may not be read"):
        judge(path.as_uri(), PROFILE)


def test_a_permission_error_of_a_library_is_no_crash(
    memory: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fs, root = memory
    fs.pipe(f"{root}/telemetry.csv", b"x")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Access Denied", "s3://bucket/secret?token=1")

    monkeypatch.setattr(type(fs), "open", refuse)
    with pytest.raises(Unreadable, match="may not be read") as refusal:
        judge(f"memory:/{root}", PROFILE)
    assert refusal.value.got == "PermissionError: Access Denied"


class Odd:
    """A file system whose listing was made by somebody else."""

    def __init__(self, *entries: dict[str, Any]) -> None:
        self.entries = list(entries)

    def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]:
        return [one for one in self.entries if one.get("in", "/run") == path]


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "file", "size": 3, **more}


@pytest.mark.parametrize(
    "name",
    ["/run/../telemetry.csv", "/etc/telemetry.csv", "/run/a/../../t.csv", "/run//telemetry.csv",
     "/run/./telemetry.csv", "/runaway/telemetry.csv", "/run/a\\telemetry.csv", "/run/a\0b",
     "/run/" + "x" * 300, "/run/" + "x/" * 600 + "y"],
)  # fmt: skip
def test_names_that_would_escape_are_findings_and_are_not_copied(name: str) -> None:
    faults: list[Fault] = []
    found = Listing(
        Odd(entry(name), entry("/run/telemetry.csv")), "/run", "x://run", lambda _: True,
        lambda _, fault: faults.append(fault),
    )  # fmt: skip
    assert [one.relative for one in found.files()] == ["telemetry.csv"]
    assert [fault.kind for fault in faults] == ["remote_name"]


def test_links_and_other_things_are_not_followed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(GOOD, run / "telemetry.csv")
    (run / "telemetry.json").symlink_to("/etc/passwd")
    (run / "elsewhere").symlink_to("/etc")
    os.mkfifo(run / "telemetry.jsonl")
    verdict = judge(run.as_uri(), PROFILE)
    assert [(f.rule, Path(f.artifact).name, f.got) for f in verdict.findings] == [
        ("RDR053", "telemetry.json", "a link"),
        ("RDR053", "telemetry.jsonl", "the type 'other'"),
    ]
    assert len(verdict.artifacts) == 1


def test_depth_and_count_are_limited(
    memory: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fs, root = memory
    fs.pipe(f"{root}/telemetry.csv", GOOD.read_bytes())
    fs.pipe(f"{root}/{'d/' * 20}telemetry.csv", GOOD.read_bytes())
    verdict = judge(f"memory:/{root}", PROFILE)
    assert [finding.rule for finding in verdict.findings] == ["GAT007"]
    monkeypatch.setattr(listing, "MAX_ENTRIES", 5)
    with pytest.raises(Unreadable, match="holds too many files"):
        judge(f"memory:/{root}", PROFILE)


def test_an_endless_listing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that lists itself under ever new names."""

    class Endless:
        def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]:
            return [entry(f"{path}/{i}", type="directory") for i in range(3)]

    monkeypatch.setattr(listing, "MAX_ENTRIES", 2_000)
    found = Listing(Endless(), "/run", "x://run", lambda _: True, lambda *_: None)
    with pytest.raises(Unreadable, match="holds too many files"):
        list(found.files())


def test_sizes_are_limited_before_and_while_copying(memory: tuple[Any, str]) -> None:
    fs, root = memory
    fs.pipe(f"{root}/telemetry.csv", GOOD.read_bytes())
    size = GOOD.stat().st_size
    for url in (f"memory:/{root}", f"memory:/{root}/telemetry.csv"):
        with pytest.raises(Unreadable, match="more than may be fetched"):
            judge(url, PROFILE, limits=Limits(max_fetched=size - 1))
        assert judge(url, PROFILE, limits=Limits(max_fetched=size)).passed


def test_a_file_that_changes_while_it_is_copied_is_a_finding(
    memory: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fs, root = memory
    fs.pipe(f"{root}/telemetry.csv", GOOD.read_bytes())
    original = Listing.files

    def files(self: Listing) -> Iterator[Any]:
        found = list(original(self))
        fs.pipe(f"{root}/telemetry.csv", GOOD.read_bytes() + b"6,4.75,24576,run,True\n")
        yield from found

    monkeypatch.setattr(Listing, "files", files)
    verdict = judge(f"memory:/{root}", PROFILE)
    assert [finding.rule for finding in verdict.findings] == ["RDR035"]
    assert verdict.rows == 6


def test_a_name_that_is_a_file_and_a_folder(
    memory: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Object stores have no folders: both names may be there."""
    fs, root = memory
    fs.pipe(f"{root}/telemetry.csv", GOOD.read_bytes())
    original = Listing.files

    def files(self: Listing) -> Iterator[Any]:
        (one,) = original(self)
        yield one
        yield listing.Entry(one.remote, "telemetry.csv/telemetry.csv", one.size)

    monkeypatch.setattr(Listing, "files", files)
    verdict = judge(f"memory:/{root}", PROFILE)
    assert [finding.rule for finding in verdict.findings] == ["RDR052"]


def test_names_of_urls() -> None:
    assert is_url("s3://bucket/run")
    assert not is_url("C://run")
    assert not is_url("runs/a:b")
    assert shown("sftp://me:secret@host:22/run/x.csv") == "sftp://me:***@host:22/run/x.csv"
    assert shown("https://h/x.csv?Signature=abc#frag") == "https://h/x.csv?..."
    assert shown("memory://run/x.csv") == "memory://run/x.csv"
    assert below("/run/a/b", "/run/") == "a/b"
    assert below("/runaway/b", "/run") is None
    assert flaw_of("a/b.csv") is None
    assert flaw_of("a/../b.csv") is not None


def test_a_secret_in_a_url_is_in_no_report(memory: tuple[Any, str]) -> None:
    with pytest.raises(Unreadable) as refusal:
        judge("ftp://me:hunter2@127.0.0.1:1/run", PROFILE)
    assert "hunter2" not in str(refusal.value)
    assert "me:***@127.0.0.1" in str(refusal.value)


needs_http = pytest.mark.skipif(
    importlib.util.find_spec("aiohttp") is None,
    reason="aiohttp, which fsspec needs for http://, is not installed",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A small server over a folder."""
    root = tmp_path / "served"
    (root / "run").mkdir(parents=True)
    shutil.copy(GOOD, root / "run" / "telemetry.csv")
    (root / "run" / "telemetry.jsonl.gz").write_bytes(LINES)
    (root / "run" / "notes.txt").write_text("<a href='http://elsewhere/telemetry.csv'>x</a>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as one:
        thread = threading.Thread(target=one.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{one.server_address[1]}"
        one.shutdown()
        thread.join()


@needs_http
def test_http(server: str, temporary: Path) -> None:
    verdict = judge(f"{server}/run/", PROFILE)
    assert verdict.passed
    assert [artifact.path for artifact in verdict.artifacts] == [
        f"{server}/run/telemetry.csv", f"{server}/run/telemetry.jsonl.gz"
    ]  # fmt: skip
    assert judge(f"{server}/run/telemetry.csv?a=b", PROFILE).artifacts[0].path.endswith("csv?...")
    for missing in ("nothing/", "nothing.csv"):
        with pytest.raises(Unreadable, match=r"does not exist|cannot be fetched"):
            judge(f"{server}/{missing}", PROFILE)
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(
    importlib.util.find_spec("aiohttp") is not None, reason="aiohttp is installed: nothing missing"
)
def test_http_without_its_package_names_it() -> None:
    with pytest.raises(Unreadable, match="needs a package for http://") as refusal:
        judge("http://127.0.0.1:1/run/", PROFILE)
    assert "aiohttp" in refusal.value.fix


def test_the_list_of_wrappers_is_of_protocols_that_exist() -> None:
    from fsspec.registry import known_implementations

    assert set(known_implementations) >= remote._WRAPPERS
