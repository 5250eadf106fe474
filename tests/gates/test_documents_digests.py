"""Lists of digests: the forms that tools write, and the judgement of `sha256sum --check`."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates.errors import GateError, Unreadable
from trueup.gates.read.documents.read import load_document

HEX = hashlib.sha256(b"weights\n").hexdigest()


def read(text: str | bytes, folder: Path) -> tuple[list[dict[str, str]], list[str]]:
    path = folder / "a.sha256"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    document, faults = load_document(path, kind="digest")
    return (document.data or {"entries": []})["entries"], [fault.kind for fault in faults]


@pytest.mark.parametrize(
    ("line", "name", "form"),
    [
        (f"{HEX}  a.pt", "a.pt", "text"),
        (f"{HEX} *a.pt", "a.pt", "binary"),
        (f"{HEX}   a.pt", " a.pt", "text"),
        (f"{HEX}  a b (1).pt", "a b (1).pt", "text"),
        (f"SHA256 (a.pt) = {HEX}", "a.pt", "BSD"),
        (f"SHA256 (a) = b) = {HEX}", "a) = b", "BSD"),
        (f"\\{HEX}  a\\\\b\\nc", "a\\b\nc", "text"),
        (f"{HEX}  a\\b", "a\\b", "text"),
        (f"{HEX}  ../a.pt", "../a.pt", "text"),
    ],
)
def test_forms(line: str, name: str, form: str, tmp_path: Path) -> None:
    entries, faults = read(f"{line}\n", tmp_path)
    assert faults == []
    assert entries == [{"name": name, "sha256": HEX, "form": form}]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (HEX, "digest_line"),
        (f"{HEX} a.pt", "digest_line"),
        (f"{HEX}\ta.pt", "digest_line"),
        (f"  {HEX}  a.pt", "digest_line"),
        (f"a.pt  {HEX}", "digest_line"),
        (f"{HEX}  ", "digest_line"),
        (f"\\{HEX}  a\\b", "digest_line"),
        (f"{HEX[:-1]}  a.pt", "digest_length"),
        (f"{HEX}0  a.pt", "digest_length"),
        (f"{'0' * 32}  a.pt", "digest_length"),
        (f"{'0' * 128}  a.pt", "digest_length"),
        (f"MD5 (a.pt) = {'0' * 32}", "digest_length"),
        (f"SHA512 (a.pt) = {'0' * 128}", "digest_length"),
        (f"{HEX.upper()}  a.pt", "digest_uppercase"),
        (f"{HEX}  a.pt\r", "digest_crlf"),
        (f"{HEX}  good.pt", "digest_duplicate"),
    ],
)
def test_faults(line: str, kind: str, tmp_path: Path) -> None:
    _, faults = read(f"{HEX}  good.pt\n{line}\n", tmp_path)
    assert faults == [kind]


def test_capitals_are_the_same_digest(tmp_path: Path) -> None:
    entries, _ = read(f"{HEX.upper()}  a.pt\n", tmp_path)
    assert entries[0]["sha256"] == HEX


def test_comments_are_passed_over_as_sha256sum_does(tmp_path: Path) -> None:
    entries, faults = read(f"# made by hand\n\n{HEX}  a.pt\n", tmp_path)
    assert (len(entries), faults) == (1, [])


@pytest.mark.parametrize("text", ["no digest\n", "# a comment\n", HEX + "\n"])
def test_a_file_without_any_digest_cannot_be_judged(text: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no list of digests"):
        read(text, tmp_path)


def test_a_digest_of_another_kind_alone_is_a_finding(tmp_path: Path) -> None:
    assert read(f"{'0' * 32}  a.pt\n", tmp_path)[1] == ["digest_length"]


SHA256SUM = shutil.which("sha256sum")


def sha256sum_takes(folder: Path) -> bool:
    """Every line is well-formed, and every file is there with its digest."""
    assert SHA256SUM is not None
    run = subprocess.run(
        [SHA256SUM, "--check", "--strict", "--quiet", "a.sha256"], cwd=folder, capture_output=True
    )
    return run.returncode == 0


@pytest.mark.skipif(SHA256SUM is None, reason="sha256sum is not installed")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_list_passes_that_sha256sum_refuses(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "digests"
    folder.mkdir(exist_ok=True)
    (folder / "a.pt").write_bytes(b"weights\n")
    text = bytearray(f"{HEX}  a.pt\n{HEX} *./a.pt\nSHA256 (a.pt) = {HEX}\n".encode())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        end = min(len(text), at + data.draw(st.integers(0, 6)))
        new = data.draw(
            st.sampled_from([b"", b" ", b"0", b"a", b"\\", b"\r", b"\n", b"*", b"/", b"("])
        )
        text[at:end] = new
    try:
        entries, faults = read(bytes(text), folder)
    except GateError:
        return
    files = [folder / entry["name"] for entry in entries]
    holds = all(
        file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == entry["sha256"]
        for file, entry in zip(files, entries, strict=True)
    )
    assert faults or not holds or sha256sum_takes(folder)
