"""The reader of telemetry: a JSON list of rows or JSON lines in, typed batches and faults out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from trueup.gates.errors import Unreadable
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.rows.ahead import Attempt, Helper, one_ahead
from trueup.gates.read.rows.engine import Batch, Engine, merged
from trueup.gates.read.rows.listed import ListReader
from trueup.gates.read.rows.opening import Opened, look
from trueup.gates.read.rows.pieces import Piece, line_pieces
from trueup.gates.read.sources.source import FileSource, Source

Progress = Callable[[int, int], None]


class Reader:
    """One pass over one file. Faults go to `report` as they are found; memory stays bounded."""

    def __init__(
        self,
        path: Path,
        *,
        report: Callable[[Fault], None],
        name: str | None = None,
        nullable: Iterable[str] = (),
        step_key: str = "step",
        nesting: Nesting | None = None,
        limits: Limits | None = None,
        progress: Progress | None = None,
        source: Source | None = None,
        live: bool = False,
    ) -> None:
        """Open the file, or take a source. Raises `Unreadable` if no row can be in it.

        With `live`, a last line that is not finished is a warning; everything else stays.
        """
        self.name = name or str(path)
        self.limits = limits or Limits()
        self.engine = Engine(self.limits, nullable, step_key, report, nesting, live)
        self.rows = 0
        self._progress = progress or (lambda done, total: None)
        self._source = FileSource(path, self.name) if source is None else source
        try:
            self.opened = look(self._source, path, self.name)
        except BaseException:
            self._source.close()
            raise
        self._complete_list = False

    @property
    def form(self) -> str:
        """In words."""
        return "JSON list" if self.opened.form == "list" else "JSON lines"

    @property
    def columns(self) -> int:
        """How many columns are known so far."""
        return len(self.engine.table.columns)

    @property
    def late(self) -> int:
        """How many keys were first seen late."""
        return self.engine.table.late

    @property
    def null_keys(self) -> set[str]:
        """Keys that were written as null so far."""
        return self.engine.table.null_keys

    def batches(self) -> Iterator[Batch]:
        """Batches of accepted rows, in order. Raises `Unreadable` if there was no row at all."""
        opened = self.opened
        try:
            self._edges(opened)
            pieces = self._listed(opened) if opened.form == "list" else self._lines(opened)
            for batch in merged(pieces, self.limits.joined):
                self.rows += batch.frame.height
                yield batch
        finally:
            self._source.close()
        self._progress(opened.size, opened.size)
        if not self.engine.recognised and not self._complete_list:
            self._refuse()

    def _refuse(self) -> None:
        fault = self.engine.first_fault
        place = f":{fault.line or 1}:{fault.byte or 0}" if fault else ""
        raise Unreadable(
            "no row could be read", where=f"{self.name}{place}",
            got=f"{fault.got} ({fault.kind.replace('_', ' ')})" if fault else "nothing",
            expected="a JSON list of rows, or JSON lines",
            fix="check that this is the telemetry of a run, and that it was written to its end",
        )  # fmt: skip

    def _edges(self, opened: Opened) -> None:
        if opened.has_bom:
            self.engine.fault(Fault("bom", "EF BB BF", line=1, byte=0))

    def _nul_tail(self, opened: Opened) -> None:
        if opened.nul_tail:
            at = opened.size - opened.nul_tail
            self.engine.fault(Fault("nul", f"{opened.nul_tail} NUL bytes at the end", byte=at))

    def _lines(self, opened: Opened) -> Iterator[Batch]:
        end = opened.size - opened.nul_tail
        sizes = (self.limits.first_piece, self.limits.piece, self.limits.max_row)
        pieces = line_pieces(self._source, opened.start, end, *sizes)
        line, ended = 1, True
        with Helper() as helper:
            begun = one_ahead(pieces, lambda piece: self.engine.begin(piece.text(), helper))
            for piece, attempt in begun:
                self._progress(piece.byte, opened.size)
                ended = piece.ended
                if piece.skipped:
                    got = f"{piece.skipped} bytes"
                    self.engine.fault(Fault("row_too_long", got, line, piece.byte, line))
                    line += 1
                    continue
                yield from self._piece(piece, attempt, line)
                line += attempt.seen.lines
        if not ended:
            self._last_row(end, line - 1)
        self._nul_tail(opened)

    def _piece(self, piece: Piece, attempt: Attempt, line: int) -> Iterator[Batch]:
        numbers = np.arange(line, line + attempt.seen.lines, dtype=np.int64)
        batch = self.engine.fastest(attempt, numbers, numbers) or self.engine.with_nulls(
            attempt, numbers, numbers
        )
        if batch is not None:
            yield batch
        else:
            yield from self._closely(piece, line, self.limits.first_piece)

    def _closely(self, piece: Piece, line: int, size: int) -> Iterator[Batch]:
        """The same piece in small groups, so that one bad row slows few others."""
        low, raw = 0, piece.raw
        while low < len(raw):
            at = raw.rfind(b"\n", low, low + size)
            if at < 0:
                at = raw.find(b"\n", low + size)
            high = len(raw) if at < 0 else at + 1
            part = Piece(raw[low:high], piece.byte + low, raw[high - 1 : high] == b"\n")
            text = part.text()
            yield from self.engine.group(text, part.rows(line), line, not part.ended)
            line += text.count(b"\n")
            low = high

    def _last_row(self, end: int, line: int) -> None:
        """The last line has no newline: a fault only if nothing worse was said about it."""
        fault = self.engine.last_fault
        if fault is None or fault.line != line:
            self.engine.fault(Fault("no_newline", "the file ends in a row", line, end, line))

    def _listed(self, opened: Opened) -> Iterator[Batch]:
        reader = ListReader(self._source, opened, self.engine, self._progress)
        yield from reader.batches()
        self._complete_list = reader.closed
        self._nul_tail(opened)
