"""The limits a reader keeps, so that no file can exhaust memory or time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, unless said otherwise."""

    piece: int = 8 << 20  # read at once; larger ones are no faster and hold more memory
    first_piece: int = 1 << 20  # learned from untyped, which is slower: so kept short
    max_row: int = 16 << 20
    max_depth: int = 64  # levels of nesting
    max_digits: int = 400  # of one integer
    max_keys: int = 20_000  # distinct keys of one file
    max_cells: int = 8 << 20  # rows times columns of one batch: 64 MiB of numbers
    late_after: int = 1_000  # rows; a key first seen later is reported
    max_inflated: int = 64 << 30  # text of a compressed table
    max_inflation: int = 1_000  # bytes of text for each compressed byte, ...
    inflated_from: int = 64 << 20  # ... past so many bytes of text
    max_cell: int = 100_000  # characters of one CSV cell: what the standard library takes
    max_group: int = 20_000  # rows read one by one at a time
    max_footer: int = 16 << 20  # of parquet
    max_chunk: int = 1 << 30  # one column of one row group of parquet
    max_fetched: int = 32 << 30  # from a URL, all files together
    located: int = 200  # faults of one kind and key that get an exact byte; the rest is counted
    max_document: int = 16 << 20  # of JSON, YAML, TOML and digest lists
    max_nodes: int = 1_000_000  # values of one document
    max_tensor_header: int = 100 << 20  # of safetensors
    max_pickle: int = 256 << 20  # of all pickles of one file, uncompressed
    max_members: int = 100_000  # entries of an archive
    max_ratio: int = 200  # of a compressed entry

    @property
    def joined(self) -> int:
        """Cells up to which small batches are joined: each costs the same to judge."""
        return self.piece // (8 if self.piece > 1 << 20 else 64)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of the text itself. `kind` is a name in `gates/catalogue`."""

    kind: str
    got: str
    line: int | None = None
    byte: int | None = None
    row: int | None = None
    step: int | None = None
    key: str | None = None
    count: int = 1  # of how many like it this is the one that is placed
