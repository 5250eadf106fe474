"""gzip and zstandard: the same rows as the plain file, in bounded memory, every bad end named."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates import Unreadable, judge
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.sources.compressed import CompressedSource
from trueup.gates.read.sources.forms import name_of, without_codec
from trueup.gates.read.sources.source import FileSource
from trueup.gates.read.sources.streams import Codec, Stream
from trueup.gates.read.tables import open_table

ROWS = [{"step": n, "loss": n / 7, "phase": "ab"[n % 2]} for n in range(3_000)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
FORMS = {
    "x.jsonl": LINES,
    "x.json": json.dumps(ROWS).encode(),
    "x.csv": b"step,loss,phase\n" + "".join(
        f"{row['step']},{row['loss']!r},{row['phase']}\n" for row in ROWS
    ).encode(),
}  # fmt: skip
CODECS: tuple[Codec, ...] = ("gzip", "zstandard")
SUFFIX = {"gzip": ".gz", "zstandard": ".zst"}


def packed(codec: str, text: bytes) -> bytes:
    if codec == "gzip":
        return gzip.compress(text, 6, mtime=0)
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


def read(path: Path, **more: Any) -> tuple[list[dict[str, Any]], list[Fault]]:
    faults: list[Fault] = []
    table = open_table(path, report=faults.append, **more)
    return [row for batch in table.batches() for row in batch.frame.to_dicts()], faults


@pytest.mark.parametrize("limits", [None, Limits(first_piece=500, piece=900)], ids=["whole", "cut"])
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("codec", CODECS)
def test_the_rows_are_those_of_the_plain_file(
    codec: Codec, name: str, limits: Limits | None, tmp_path: Path
) -> None:
    path = tmp_path / (name + SUFFIX[codec])
    path.write_bytes(packed(codec, FORMS[name]))
    rows, faults = read(path, limits=limits)
    assert (rows, faults) == (ROWS, [])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("parts", [1, 2, 7, 200])
def test_any_number_of_members_is_one_text(codec: Codec, parts: int, tmp_path: Path) -> None:
    size = len(LINES) // parts + 1
    pieces = [LINES[low : low + size] for low in range(0, len(LINES), size)]
    path = tmp_path / f"x.jsonl{SUFFIX[codec]}"
    path.write_bytes(b"".join(packed(codec, piece) for piece in pieces) + packed(codec, b""))
    assert read(path) == (ROWS, [])


@pytest.mark.parametrize("codec", CODECS)
def test_a_window_gives_any_part_of_the_text(codec: Codec, tmp_path: Path) -> None:
    """Also parts far behind, for which it starts once more."""
    rng = random.Random(3)
    path = tmp_path / "x"
    path.write_bytes(packed(codec, LINES))
    source = CompressedSource(FileSource(path, "x"), codec, "x", Limits(piece=4_000, max_row=1_000))
    assert (source.size, source.nul_tail, source.ending.how) == (len(LINES), 0, "complete")
    for _ in range(200):
        at, size = rng.randrange(len(LINES) + 50), rng.randrange(1, 9_000)
        assert source.read_at(size, at) == LINES[at : at + size]
    source.close()


@pytest.mark.parametrize("tail", [0, 1, 5, 70_000])
def test_nul_bytes_at_the_end_of_the_text_are_counted(tail: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(packed("gzip", LINES + b"\0" * tail))
    source = CompressedSource(FileSource(path, "x"), "gzip", "x", Limits())
    assert (source.size, source.nul_tail) == (len(LINES) + tail, tail)
    source.close()


ENDS = [
    ("cut", lambda data: data[:-3], "stream_cut"),
    ("garbage", lambda data: data + b"rows\n", "stream_trailing"),
    ("nul", lambda data: data + b"\0" * 9, "stream_trailing"),
    ("checksum", lambda data: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:], "stream_damaged"),
]


@pytest.mark.parametrize(("change", "kind"), [e[1:] for e in ENDS], ids=[e[0] for e in ENDS])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", FORMS)
def test_a_bad_end_is_a_finding_beside_the_rows(
    name: str, codec: Codec, change: Any, kind: str, tmp_path: Path
) -> None:
    if (codec, kind) == ("zstandard", "stream_damaged"):
        change = lambda data: data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]  # noqa: E731
    path = tmp_path / (name + SUFFIX[codec])
    path.write_bytes(change(packed(codec, FORMS[name])))
    rows, faults = read(path)
    assert kind in {fault.kind for fault in faults}
    if kind != "stream_damaged":
        assert {fault.kind for fault in faults} == {kind}
    assert len(rows) > 1_000
    assert rows == ROWS[: len(rows)]


@pytest.mark.parametrize("codec", CODECS)
def test_what_a_live_stream_lacks_is_a_warning(codec: Codec, tmp_path: Path) -> None:
    path = tmp_path / f"x.jsonl{SUFFIX[codec]}"
    path.write_bytes(packed(codec, LINES)[:-3])
    _, faults = read(path, live=True)
    assert {fault.kind for fault in faults} == {"unfinished"}
    path.write_bytes(packed(codec, LINES) + b"rows")
    assert {fault.kind for fault in read(path, live=True)[1]} == {"stream_trailing"}


def test_a_stream_flushed_while_it_is_written_gives_what_is_there(tmp_path: Path) -> None:
    """As a trainer does that writes with `gzip.open` and flushes after each row."""
    path = tmp_path / "x.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for row in ROWS[:50]:
            file.write(json.dumps(row).encode() + b"\n")
            file.flush()
        file.write(b'{"step": 50, "lo')
        file.flush()
        rows, faults = read(path, live=True)
        assert rows == ROWS[:50]
        assert [fault.kind for fault in faults] == ["unfinished", "unfinished"]
        assert [fault.kind for fault in read(path)[1]] == ["truncated", "stream_cut"]


def test_bytes_are_of_the_text_and_say_so(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    text = LINES.replace(b'"loss": 0.2857142857142857', b'"loss": NaN', 1)
    path.write_bytes(packed("gzip", text))
    _, (fault,) = read(path)
    at = text.index(b"NaN")
    assert (fault.line, fault.byte) == (3, at)
    assert fault.got == f"NaN (byte {at} of the unpacked text)"


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_before_a_row_is_read(codec: Codec, tmp_path: Path) -> None:
    path = tmp_path / f"x.jsonl{SUFFIX[codec]}"
    path.write_bytes(packed(codec, b'{"step": 1}\n' * 200_000))
    with pytest.raises(Unreadable, match="unpacks to more text"):
        read(path, limits=Limits(max_inflation=20, inflated_from=100_000))
    with pytest.raises(Unreadable, match="unpacks to more text"):
        read(path, limits=Limits(max_inflated=1_000_000))
    assert len(read(path, limits=Limits(max_inflation=20, inflated_from=3_000_000))[0]) == 200_000


def test_a_zstandard_block_that_grows_without_measure_comes_in_parts(tmp_path: Path) -> None:
    """A block of four bytes may stand for 128 KiB: 64 KiB of them would be 2 GiB at once."""
    path = tmp_path / "x.zst"
    path.write_bytes(packed("zstandard", bytes(200 << 20)))
    stream = Stream(FileSource(path, "x"), "zstandard")
    sizes = []
    while block := stream.read():
        sizes.append(len(block))
    assert sum(sizes) == 200 << 20
    assert max(sizes) <= 40 << 20
    assert stream.ending is not None
    assert stream.ending.how == "complete"


def test_a_file_that_shrinks_between_the_passes_is_no_clean_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    noise = random.Random(1)
    text = b"".join(b'{"step": 1, "x": "%s"}\n' % noise.randbytes(50).hex().encode()
                    for _ in range(5_000))  # fmt: skip
    path.write_bytes(packed("gzip", text))
    faults: list[Fault] = []
    table = open_table(path, report=faults.append, limits=Limits(first_piece=100, piece=100))
    path.write_bytes(packed("gzip", text)[:2_000])
    with pytest.raises(Unreadable, match="changed while it was read"):
        list(table.batches())


def test_names_tell_form_and_codec() -> None:
    assert name_of("a/b.jsonl.GZ") == name_of("b.ndjson.gzip")
    assert (name_of("x.csv.zst").form, name_of("x.csv.zst").codec) == ("CSV", "zstandard")
    assert (name_of("x.pq").form, name_of("x").form, name_of("x.log.gz").form) == (
        "parquet", None, None
    )  # fmt: skip
    assert without_codec("run/x.jsonl.gz") == "run/x.jsonl"
    assert without_codec("run/x.jsonl") is None


def test_patterns_of_a_profile_find_compressed_telemetry(tmp_path: Path) -> None:
    good = (Path(__file__).resolve().parents[2] / "fixtures/tables/profile.toml").as_posix()
    (tmp_path / "telemetry.jsonl.gz").write_bytes(packed("gzip", LINES))
    (tmp_path / "telemetry.csv.zst").write_bytes(packed("zstandard", FORMS["x.csv"]))
    (tmp_path / "other.jsonl.gz").write_bytes(b"not looked at")
    verdict = judge(tmp_path, good)
    assert [(a.form, a.rows) for a in verdict.artifacts] == [
        ("CSV, zstandard", 3_000), ("JSON lines, gzip", 3_000)
    ]  # fmt: skip
    assert verdict.passed
    assert verdict.bytes == sum(path.stat().st_size for path in tmp_path.glob("telemetry*"))


def test_progress_counts_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(packed("gzip", LINES))
    calls: list[tuple[int, int]] = []
    limits = Limits(first_piece=5_000, piece=5_000)
    table = open_table(
        path, report=lambda _: None, limits=limits, progress=lambda *at: calls.append(at)
    )
    list(table.batches())
    size = path.stat().st_size
    assert calls[-1] == (size, size)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), codec=st.sampled_from(CODECS))
def test_mutants_are_read_or_refused_and_never_gain_a_row(
    data: st.DataObject, codec: Codec, tmp_path: Path
) -> None:
    small = LINES[:600]
    good = packed(codec, small[:300]) + packed(codec, small[300:])
    at = data.draw(st.integers(0, len(good) - 1))
    action = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    content = {
        "flip": good[:at]
        + bytes([good[at] ^ (1 << data.draw(st.integers(0, 7)))])
        + good[at + 1 :],
        "cut": good[:at],
        "insert": good[:at] + data.draw(st.binary(min_size=1, max_size=4)) + good[at:],
    }[action]
    path = tmp_path / f"x.jsonl{SUFFIX[codec]}"
    path.write_bytes(content)
    try:
        rows, faults = read(path)
    except Unreadable:
        return
    if not faults:
        assert rows == ROWS[: small.count(b"\n")]
