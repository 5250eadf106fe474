"""Coverage-guided fuzzing of the readers: no crash, no hang, and nothing taken in silence.

    python benchmarks/fuzz_readers.py [TARGET] [--seconds 600] [--found DIR]
    python benchmarks/fuzz_readers.py TARGET --again FILE

Without a target the seconds are shared by all of them, each in a process of its own. The mutator is
libFuzzer's (atheris); it sees which branches of `trueup.gates.read` an input reaches. Only
`Unreadable` may be raised. What a reader hands on without a finding is held against an independent
reader: the standard library's `json`, `csv`, `gzip` and `tomllib`, and the libraries
`zstandard` and `safetensors`.
An input that breaks this is written to DIR.
"""

from __future__ import annotations

import argparse
import atexit
import csv
import datetime
import gzip
import importlib
import importlib.util
import io
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import zstandard

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
LONGEST, SEEDS = 1 << 14, 120  # bytes of an input, files to start from


def tests(name: str) -> ModuleType:
    """A module that stands beside the tests of the gates."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "gates" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


plain = tests("plain_rows")


class Silent(Exception):
    """Something was taken, or dropped, without a finding."""


def read_table(path: Path, size: int, flatten: bool) -> tuple[dict[int, dict[str, Any]], list[Any]]:
    """The rows by their number, and the faults."""
    from trueup.gates.read.limits import Limits
    from trueup.gates.read.nesting import Nesting
    from trueup.gates.read.tables import open_table

    faults: list[Any] = []
    limits = Limits(first_piece=size, piece=max(size, 300), late_after=10**6, max_row=1 << 16)
    table = open_table(path, report=faults.append, limits=limits, nesting=Nesting(flatten=flatten))
    rows: dict[int, dict[str, Any]] = {}
    for batch in table.batches():
        rows.update(zip(batch.rows.tolist(), batch.frame.to_dicts(), strict=True))
    return rows, faults


def same(got: dict[str, Any] | None, want: Any, flatten: bool) -> None:
    """Raise unless the row is the one that was written."""
    if not isinstance(want, dict) or got is None:
        raise Silent(f"{want!r} is no row, or was dropped")
    if not plain.same_row(got, plain.flat(want) if flatten else want):
        raise Silent(f"{got!r} for {want!r}")


def lines(path: Path, data: bytes, size: int, flatten: bool = False) -> None:
    """JSON lines: each line is handed on exactly, or named."""
    rows, faults = read_table(path, size, flatten)
    if data[:1] == b"[" or data.lstrip()[:1] != b"{":
        return whole(data, rows, faults, flatten)
    quiet = ("no_newline", "late_key", "unfinished")
    flagged = {fault.line for fault in faults if fault.kind not in quiet}
    body = data.removeprefix(b"\xef\xbb\xbf").rstrip(b"\0")
    for number, line in enumerate(body.removesuffix(b"\n").split(b"\n"), 1):
        if number not in flagged:
            same(rows.get(number), plain.row(line.removesuffix(b"\r")), flatten)
    return None


def whole(data: bytes, rows: dict[int, dict[str, Any]], faults: list[Any], flatten: bool) -> None:
    """A list: with no finding, all of it is handed on exactly."""
    if faults:
        return
    want = plain.exact(data)
    if not isinstance(want, list) or len(want) != len(rows):
        raise Silent(f"{len(rows)} rows of {want!r}")
    for number, one in enumerate(want, 1):
        same(rows.get(number), one, flatten)


def nested(path: Path, data: bytes, size: int) -> None:
    """Lines and lists with objects and lists inside, flattened."""
    lines(path, data, size, True)


def table(path: Path, data: bytes, size: int) -> None:
    """CSV: with no finding, each cell is what its text says."""
    rows, faults = read_table(path, size, False)
    if faults:
        return
    header, *records = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
    if len(records) != len(rows):
        raise Silent(f"{len(rows)} rows of {len(records)}")
    for record, row in zip(records, rows.values(), strict=True):
        said = {key: text for key, text in zip(header, record, strict=True) if text}
        got = {key: value for key, value in row.items() if value is not None}
        if got.keys() != said.keys() or not all(_says(said[key], got[key]) for key in got):
            raise Silent(f"{got!r} for {said!r}")


def _says(text: str, value: Any) -> bool:
    """Whether the text of a cell means this value."""
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, str):
        return text == value
    number = int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    return bool(number == value)


def packed(path: Path, data: bytes, size: int) -> None:
    """Compressed lines: with no finding, the rows are those that the libraries unpack."""
    rows, faults = read_table(path, size, False)
    if faults:
        return
    if path.suffix == ".gz":
        text = gzip.decompress(data)
    else:
        unpack = zstandard.ZstdDecompressor()
        with unpack.stream_reader(io.BytesIO(data), read_across_frames=True) as stream:
            text = stream.read()
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), 1):
        if text.lstrip()[:1] == b"{":
            same(rows.get(number), plain.row(line.removesuffix(b"\r")), False)


def columns(path: Path, data: bytes, size: int) -> None:
    """Parquet: damaged bytes are named or refused."""
    read_table(path, size, False)


def load(path: Path, kind: str) -> tuple[Any, list[Any]]:
    """A document, and its faults."""
    from trueup.gates.read.documents.read import load_document

    document, faults = load_document(path, kind=kind)
    return document.data, faults


def json_document(path: Path, data: bytes, size: int) -> None:
    """JSON: with no finding, the value is the one that was written."""
    got, faults = load(path, "eval")
    if not faults and not _equal(got, plain.exact(data)):
        raise Silent(f"{got!r}")


def yaml_document(path: Path, data: bytes, size: int) -> None:
    """YAML: what is JSON as well has the same value in both."""
    got, faults = load(path, "metadata")
    if faults:
        return
    try:
        want = plain.exact(data)
    except plain.Refused:
        return
    if not _equal(got, want):
        raise Silent(f"{got!r} for {want!r}")


def toml_document(path: Path, data: bytes, size: int) -> None:
    """TOML: with no finding, the value is tomllib's."""
    got, faults = load(path, "metadata")
    if not faults and not _equal(got, tomllib.loads(data.decode())):
        raise Silent(f"{got!r}")


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_equal, one, two))
    if isinstance(one, int | float) and isinstance(two, int | float):
        return bool(plain.same(one, two))
    if isinstance(two, datetime.date | datetime.time):
        two = two.isoformat()
    return type(one) is type(two) and bool(one == two)


def digests(path: Path, data: bytes, size: int) -> None:
    """Digest lists: what they hold stands in the text."""
    got, faults = load(path, "digest")
    if not faults and got is None:
        raise Silent("neither entries nor a finding")


def weights(path: Path, data: bytes, size: int) -> None:
    """Safetensors: what passes without a finding, the library opens as well."""
    _, faults = load(path, "weights")
    if not faults:
        from safetensors import safe_open

        with safe_open(path, "np") as tensors:
            tensors.keys()


def pickles(path: Path, data: bytes, size: int) -> None:
    """Pickles and archives: scanned, never loaded."""
    load(path, "pickle")


Target = Callable[[Path, bytes, int], None]
TARGETS: dict[str, tuple[Target, str, list[str]]] = {
    "lines": (lines, "x.jsonl", ["telemetry/*/telemetry.jsonl", "tables/*/*.jsonl"]),
    "lists": (lines, "x.json", ["telemetry/*/telemetry.json", "tables/*/*.json"]),
    "nested": (nested, "x.jsonl", ["telemetry/nested*/*", "tables/*/*.jsonl"]),
    "csv": (table, "x.csv", ["tables/*/*.csv"]),
    "gzip": (packed, "x.jsonl.gz", ["tables/*/*.gz"]),
    "zstandard": (packed, "x.jsonl.zst", ["tables/*/*.zst"]),
    "parquet": (columns, "x.parquet", ["tables/*/*.parquet"]),
    "json": (json_document, "x.json", ["documents/**/*.json", "evals/**/*.json"]),
    "yaml": (yaml_document, "x.yaml", ["**/*.yaml"]),
    "toml": (toml_document, "x.toml", ["**/*.toml"]),
    "digests": (digests, "x.sha256", ["**/*.sha256"]),
    "weights": (weights, "x.safetensors", ["**/*.safetensors"]),
    "pickles": (pickles, "x.pt", ["**/*.pt", "**/*.pth", "**/*.pkl"]),
}
WORDS = [
    b"NaN", b"Infinity", b"null", b"true", b"1e999", b"1e-999", b"9007199254740993", b"}, {",
    b"9223372036854775808", b"\xef\xbb\xbf", b"\\u0000", b"\\ud800", b"\r\n", b"}\n{", b"}{",
    b'{"step": 1}', b'"step": 1, ', b"[", b"]", b"{", b"}", b'"', b",", b":", b"0.0", b"1.5e3",
    b"nan", b"inf", b"- ", b"&a ", b"*a", b"!!int ", b"[[a]]", b"a.b = 1", b"'", b"#", b"---",
]  # fmt: skip


def seeds(name: str, folder: Path) -> None:
    """Inputs to start from: the fixtures of this form, and the corpus of faults."""
    _, _, patterns = TARGETS[name]
    found = [path for pattern in patterns for path in sorted(FIXTURES.glob(pattern))]
    short = [path for path in found if path.stat().st_size <= LONGEST]
    texts = [path.read_bytes() for path in short[:: len(short) // SEEDS + 1]]
    if name in ("lines", "lists", "nested"):
        texts += [one.text for one in tests("corpus").CORPUS if len(one.text) <= LONGEST]
        rows = [{"step": i, "o": {"x": i / 2, "t": "a:b"}, "l": [0.5, i], "e": {}} for i in (1, 2)]
        texts += ["\n".join(map(json.dumps, rows)).encode() + b"\n", json.dumps(rows).encode()]
    for place, text in enumerate(texts):
        (folder / f"{place:04}").write_bytes(bytes([place % 4]) + text)


def run(name: str, data: bytes, folder: Path) -> None:
    """One input: the first byte says where the reader cuts, the rest is the file."""
    from trueup.gates.errors import Unreadable

    check, file, _ = TARGETS[name]
    size, text = (64, 300, 1 << 12, 1 << 16)[data[0] % 4] if data else 64, data[1:]
    path = folder / file
    path.write_bytes(text)
    try:
        check(path, text, size)
    except Unreadable:
        return


def fuzz(name: str, seconds: int, found: Path) -> None:
    """Run one target in this process until its time is over or something is found."""
    import atheris

    with atheris.instrument_imports(include=["trueup.gates.read"]):
        import trueup.gates.read

        # Readers are imported where they are used: what is not imported here is not followed.
        for module in pkgutil.walk_packages(trueup.gates.read.__path__, "trueup.gates.read."):
            importlib.import_module(module.name)
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "seeds").mkdir()
    seeds(name, folder / "seeds")
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in WORDS)
    (folder / "words").write_text("".join(f'"{word}"\n' for word in escaped))

    def one(data: bytes) -> None:
        run(name, data, folder)

    options = [
        f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=3000",
        f"-dict={folder / 'words'}", f"-artifact_prefix={found}/{name}-", "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(folder / "seeds")], one)
    atheris.Fuzz()


def every(names: list[str], seconds: int, found: Path) -> Iterator[tuple[str, str, str]]:
    """Each target in a process of its own: name, executions, what was found."""
    for name in names:
        share = max(1, seconds // len(names))
        command = [sys.executable, __file__, name, "--seconds", str(share), "--found", str(found)]
        out = subprocess.run(
            command, capture_output=True, text=True, errors="replace",
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
        )  # fmt: skip
        runs = re.findall(r"stat::number_of_executed_units: (\d+)", out.stderr)
        kept = re.findall(r"Test unit written to (\S+)", out.stderr)
        if kept or out.returncode:
            print(out.stderr[-3000:], file=sys.stderr)
        yield (
            name,
            runs[-1] if runs else "?",
            ", ".join(kept) or ("nothing" if runs else "see above"),
        )


def main() -> int:
    """Run one target, or all of them one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--again", type=Path, help="run this one input, without the mutator")
    args = parser.parse_args()
    if args.again is not None:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            run(args.target, args.again.read_bytes(), Path(folder))
        return 0
    args.found.mkdir(parents=True, exist_ok=True)
    if args.target != "all":
        fuzz(args.target, args.seconds, args.found)
        return 0
    print("| target | executions | found |\n|---|---|---|")
    total, clean = 0, True
    for name, runs, kept in every(list(TARGETS), args.seconds, args.found):
        print(f"| {name} | {runs} | {kept} |", flush=True)
        total += int(runs) if runs.isdigit() else 0
        clean = clean and kept == "nothing"
    print(f"\n{total} executions in {args.seconds} s")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
