"""Evaluations kept on disk: one file each, written whole or not at all, bounded in size.

A file is a checksum and a NumPy archive without pickled objects. One that cannot be read, or is
not what was written, is dropped and the case evaluated again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.oracle.bounds.rule import Alternative
from trueup.oracle.cachefolder import cache_root

if TYPE_CHECKING:
    from trueup.oracle.bounds.evaluate import Evaluation

# Bytes the folder may hold; the files unused for longest go first.
LIMIT = 2**30
_SUFFIX = ".bounds"
_CHECK = 32  # bytes of the checksum in front
_ARRAYS = ("value", "allowed", "worst", "spread", "flags")


def default_folder() -> Path | None:
    """Where evaluations are kept when the caller does not say."""
    root = cache_root()
    return None if root is None else root / "bounds"


class Cache:
    """Evaluations by the digest of their case."""

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        """Keep files in `folder` (None: the default one), up to `limit` bytes."""
        self.folder = folder if folder is not None else default_folder()
        self.limit = limit

    def load(self, key: str) -> Evaluation | None:
        """The evaluation under this key; None if there is none that can be read."""
        if self.folder is None:
            return None
        path = self.folder / f"{key}{_SUFFIX}"
        try:
            data = path.read_bytes()
            if hashlib.sha256(data[_CHECK:]).digest() != data[:_CHECK]:
                raise ValueError("not what was written")
            with np.load(io.BytesIO(data[_CHECK:]), allow_pickle=False) as archive:
                found = _unpacked(archive)
            with contextlib.suppress(OSError):
                os.utime(path)
            return found
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            with contextlib.suppress(OSError):
                path.unlink()
            return None

    def store(self, key: str, evaluation: Evaluation) -> None:
        """Keep an evaluation; a full or read-only disk is no reason to fail."""
        if self.folder is None:
            return
        arrays = _packed(evaluation)
        if sum(a.nbytes for a in arrays.values()) > self.limit // 4:
            return
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        data = buffer.getvalue()
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(data).digest() + data)
                os.replace(name, self.folder / f"{key}{_SUFFIX}")
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
            self._trim()

    def _trim(self) -> None:
        if self.folder is None:
            return
        files = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size


def _packed(evaluation: Evaluation) -> dict[str, Any]:
    arrays: dict[str, Any] = {f"values.{i}": v for i, v in enumerate(evaluation.values)}
    entries = []
    for i, output in enumerate(evaluation.outputs):
        for j, a in enumerate(output):
            for name in _ARRAYS:
                arrays[f"{i}.{j}.{name}"] = getattr(a, name)
            entries.append([i, j, a.form, a.outcome, a.systematic, a.coherent])
    meta = {
        "entries": entries,
        "dtypes": evaluation.dtypes,
        "samples": evaluation.samples,
        "outcomes": evaluation.outcomes,
        "exhaustive": evaluation.exhaustive,
        "notes": evaluation.notes,
    }
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    return arrays


def _unpacked(archive: Any) -> Evaluation:
    from trueup.oracle.bounds.evaluate import Evaluation

    meta = json.loads(archive["meta"].tobytes())
    outputs: list[list[Alternative]] = [[] for _ in meta["dtypes"]]
    for i, j, form, outcome, systematic, coherent in meta["entries"]:
        parts = {name: archive[f"{i}.{j}.{name}"] for name in _ARRAYS}
        outputs[i].append(
            Alternative(
                form=form, outcome=outcome, systematic=systematic, coherent=coherent, **parts
            )
        )
    return Evaluation(
        values=tuple(archive[f"values.{i}"] for i in range(len(outputs))),
        outputs=tuple(tuple(output) for output in outputs),
        dtypes=tuple(meta["dtypes"]),
        samples=meta["samples"],
        outcomes=meta["outcomes"],
        exhaustive=meta["exhaustive"],
        notes=tuple(meta["notes"]),
    )
