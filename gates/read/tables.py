"""One entry for every table: JSON, CSV or parquet, compressed or not, in; typed batches out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trueup.gates.errors import Unreadable
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.sources.compressed import CompressedSource
from trueup.gates.read.sources.forms import Form, Name, codec_of, form_of, name_of
from trueup.gates.read.sources.source import FileSource, Source
from trueup.gates.read.sources.streams import Ending

if TYPE_CHECKING:
    from trueup.gates.read.rows.engine import Batch

Progress = Callable[[int, int], None]
Report = Callable[[Fault], None]


class TableReader(Protocol):
    """What each reader of one form offers."""

    rows: int  # handed on so far

    @property
    def form(self) -> str:
        """In words, such as `JSON lines`."""
        ...

    @property
    def columns(self) -> int:
        """How many columns are known so far."""
        ...

    @property
    def late(self) -> int:
        """How many of them were first seen late."""
        ...

    @property
    def null_keys(self) -> set[str]:
        """Keys that are there with a null, which a typed batch cannot tell from absent ones."""
        ...

    def batches(self) -> Iterator[Batch]:
        """Typed batches in order. Raises `Unreadable` if there was no row at all."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a table is to be read: what the profile says, and the limits."""

    limits: Limits
    nullable: tuple[str, ...] = ()  # anchored patterns of the keys that may be null
    step_key: str = "step"
    nesting: Nesting | None = None
    timestamps: tuple[str, ...] = ()  # anchored patterns of the keys that hold date-times
    live: bool = False  # somebody may still be writing: an unfinished last line is a warning


class OpenTable:
    """A table that is open, whatever its form. One pass; faults go to `report` as found."""

    def __init__(
        self,
        path: Path,
        name: str,
        wanted: Wanted,
        report: Report,
        progress: Progress | None = None,
    ) -> None:
        """Use `open_table`. Raises `Unreadable` if no row can be in the file."""
        self._path, self._wanted, self._report = path, wanted, report
        file = FileSource(path, name)
        self.size = file.size  # of the file, compressed or not
        self._stamp = _stamp(path)
        self._before: list[Fault] = []
        try:
            source = self._unpacked(file, name, wanted.limits)
            self._compressed = source if isinstance(source, CompressedSource) else None
            scaled = _scaled(progress, self.size)
            self.reader = self._reader(source, name, wanted, scaled)
        except BaseException:
            file.close()
            raise

    @property
    def form(self) -> str:
        """In words: `JSON lines`, `CSV, gzip`."""
        packed = f", {self._compressed.codec}" if self._compressed is not None else ""
        return f"{self.reader.form}{packed}"

    @property
    def rows(self) -> int:
        """Handed on so far."""
        return self.reader.rows

    def batches(self) -> Iterator[Batch]:
        """Typed batches in order. Raises `Unreadable` if there was no row at all."""
        for fault in self._before:
            self._report(fault)
        from trueup.gates.read.timestamps import Timestamps

        stamps = Timestamps(self._wanted.timestamps, self._wanted.step_key, self._report)
        for batch in self.reader.batches():
            stamps.batch(batch)
            yield batch
        if self._compressed is not None:
            self._ending(self._compressed.ending)
        self._steady()

    def _unpacked(self, file: FileSource, name: str, limits: Limits) -> Source:
        codec, said = codec_of(file), name_of(self._path.name)
        if said.codec != codec and file.size:
            got = f"{codec or 'no compressed stream'} in a file named {self._path.name}"
            self._before.append(Fault("name_mismatch", got, byte=0))
        return file if codec is None else CompressedSource(file, codec, name, limits)

    def _reader(self, source: Source, name: str, wanted: Wanted, progress: Progress) -> TableReader:
        said = name_of(self._path.name)
        form = form_of(source, said)
        self._mismatch(form, said)
        if form == "JSON":
            from trueup.gates.read.rows.reader import Reader

            return Reader(
                self._path, report=self._fault, name=name, nullable=wanted.nullable,
                step_key=wanted.step_key, nesting=wanted.nesting, limits=wanted.limits,
                progress=progress, source=source, live=wanted.live,
            )  # fmt: skip
        if form == "CSV":
            from trueup.gates.read.columns.csv_reader import CsvReader

            return CsvReader(source, name, wanted, self._fault, progress)
        if isinstance(source, CompressedSource):
            raise Unreadable(
                "is parquet inside a compressed stream", where=name,
                got=f"{source.codec} around it", expected="parquet, which compresses by itself",
                fix="unpack the file",
            )  # fmt: skip
        from trueup.gates.read.columns.parquet_reader import ParquetReader

        return ParquetReader(source, self._path, name, wanted, self._fault, progress)

    def _mismatch(self, form: Form, said: Name) -> None:
        if said.form is not None and said.form != form:
            got = f"{form} in a file named {self._path.name}"
            self._before.append(Fault("name_mismatch", got, byte=0))

    def _fault(self, fault: Fault) -> None:
        """Pass a fault on, and say what its byte counts."""
        if self._compressed is not None and fault.byte is not None:
            got = f"{fault.got} (byte {fault.byte} of the unpacked text)"
            fault = Fault(fault.kind, got, fault.line, fault.byte, fault.row, fault.step, fault.key)
        self._report(fault)

    def _ending(self, ending: Ending) -> None:
        """What the stream's end says; only an unfinished one passes in a live file."""
        if ending.how == "complete":
            return
        kinds = {"cut": "stream_cut", "damaged": "stream_damaged", "trailing": "stream_trailing"}
        kind = "unfinished" if ending.how == "cut" and self._wanted.live else kinds[ending.how]
        self._report(Fault(kind, f"{ending.got} (byte {ending.at} of the file itself)"))

    def _steady(self) -> None:
        """Whether the file is still what it was. A live one may have grown."""
        size, time = _stamp(self._path)
        if (size, time) == self._stamp or (self._wanted.live and size >= self._stamp[0]):
            return
        got = f"{self._stamp[0]} bytes before, {size} after"
        self._report(Fault("changed", got if size != self._stamp[0] else f"{got}, times differ"))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        info = os.stat(path)
    except OSError:
        return -1, 0
    return info.st_size, info.st_mtime_ns


def _scaled(progress: Progress | None, size: int) -> Progress:
    """Progress in bytes of the file, whatever the reader counts."""

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(size if done >= total else done * size // total, size)

    return report


def open_table(
    path: Path,
    *,
    report: Report,
    name: str | None = None,
    nullable: Iterable[str] = (),
    step_key: str = "step",
    nesting: Nesting | None = None,
    timestamps: Iterable[str] = (),
    limits: Limits | None = None,
    progress: Progress | None = None,
    live: bool = False,
) -> OpenTable:
    """Open a table of any form. Raises `Unreadable` if no row can be in it."""
    wanted = Wanted(limits or Limits(), tuple(nullable), step_key, nesting, tuple(timestamps), live)
    return OpenTable(path, str(path) if name is None else name, wanted, report, progress)
