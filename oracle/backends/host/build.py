"""Builds a kernel's shared object, or finds it in the cache.

A build is a folder `<cache>/host/<key>` whose key digests everything that goes into it. It is made
in a folder of its own and renamed into place, so that processes that build the same thing at the
same time cannot disturb each other.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from trueup.oracle.backends.base import Source
from trueup.oracle.backends.host.compiler import (
    ENTRY,
    Compiler,
    compile_error,
    failing_entry,
    find_compiler,
)
from trueup.oracle.backends.host.entries import check_entries, refused_entry
from trueup.oracle.backends.host.sources import TOKEN, SourceTree, read_tree
from trueup.oracle.backends.host.symbols import data_symbols
from trueup.oracle.cachefolder import cache_root
from trueup.oracle.errors import BackendUnavailable, OracleError

SHIM = Path(__file__).parent / "shim"
LIBRARY = "kernel.so"
SYMBOLS = "symbols.json"
_RUNTIME_OBJECT = "runtime.o"


def cache_folder() -> Path:
    """Return where builds are kept; where nothing is to be kept, a folder of this process."""
    root = cache_root()
    return (_own_folder() if root is None else root) / "host"


@functools.cache
def _own_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="trueup-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def build(source: Source, entries: Sequence[str]) -> tuple[Path, SourceTree]:
    """Return the folder that holds the built library, and the source tree it came from."""
    compiler = find_compiler()
    tree = read_tree(source.path, source.include, SHIM)
    check_entries(tree, entries)
    key = _key(compiler, tree, source, entries)
    folder = _cached(key, lambda work: _compile(compiler, tree, source, entries, work))
    return folder, tree


def _key(compiler: Compiler, tree: SourceTree, source: Source, entries: Sequence[str]) -> str:
    parts = [
        compiler.version,
        *compiler.command,
        *compiler.kernel_flags(),
        *compiler.runtime_flags(),
        shim_digest(),
        *(f"-D{name}={value}" for name, value in sorted(source.defines.items())),
        # The headers found there are in the tree, under names of its own.
        *(str(folder.absolute()) for folder in source.include if tree.asks_for_headers()),
        *entries,
        *tree.texts,
        # A header that only the preprocessor can name is not in the tree: build afresh.
        "" if tree.complete else uuid.uuid4().hex,
    ]
    return _digest(parts)


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


@functools.cache
def shim_digest() -> str:
    """Digest the shim's files: names and contents."""
    files = sorted(path for path in SHIM.rglob("*") if path.is_file())
    return _digest([f"{path.relative_to(SHIM)}\n{path.read_text('utf-8')}" for path in files])


def _cached(key: str, make: Callable[[Path], None]) -> Path:
    folder = cache_folder() / key
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".build-", dir=folder.parent))
    except OSError as error:
        raise BackendUnavailable(
            f"cannot write the host backend's cache: {error.strerror}",
            where=str(folder.parent),
            fix="name a writable folder in TRUEUP_CACHE",
        ) from error
    try:
        make(work)
        os.rename(work, folder)
    except OSError:
        # Another process was first; what it made is the same.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _compile(
    compiler: Compiler, tree: SourceTree, source: Source, entries: Sequence[str], work: Path
) -> None:
    for index, text in enumerate(tree.texts):
        path = work / f"{TOKEN}{index}"
        path.write_text(text + "\n", encoding="utf-8", errors="surrogateescape")
    exports = "".join(f"CUHOST_EXPORT({i}, {entry})\n" for i, entry in enumerate(entries))
    main = f'#include "cuda_host.h"\n#include "{TOKEN}0"\n#line 1 "{ENTRY}"\n{exports}'
    (work / "kernel.cpp").write_text(main, encoding="utf-8")
    arguments = [
        *compiler.kernel_flags(),
        f"-ffile-prefix-map={work}=.",
        f"-I{SHIM}",
        *(f"-I{folder.absolute()}" for folder in source.include),
        *(f"-D{name}={value}" for name, value in source.defines.items()),
        *("-c", "kernel.cpp", "-o", "kernel.o"),
    ]
    done = compiler.run(arguments, work)
    if done.returncode != 0:
        entry = failing_entry(done.stderr, tree)
        if entry is not None and entry < len(entries):
            raise refused_entry(tree, entries[entry], done.stderr)
        raise compile_error(done.stderr, tree)
    _link(compiler, work, tree)


def _link(compiler: Compiler, work: Path, tree: SourceTree) -> None:
    runtime = _runtime_object(compiler)
    done = compiler.run(
        ["-shared", "kernel.o", str(runtime), "-lm", "-Wl,-z,defs", "-o", LIBRARY], work
    )
    if done.returncode != 0:
        raise compile_error(done.stderr, tree)
    symbols = data_symbols(work / "kernel.o", work / LIBRARY, tree.shared_names())
    (work / SYMBOLS).write_text(json.dumps(symbols), encoding="utf-8")
    (work / "kernel.o").unlink()


def _runtime_object(compiler: Compiler) -> Path:
    flags = compiler.runtime_flags()
    key = _digest([compiler.version, *compiler.command, *flags, shim_digest()])

    def make(work: Path) -> None:
        sources = [str(path) for path in sorted((SHIM / "runtime").glob("*.cpp"))]
        done = compiler.run([*flags, "-r", "-nostdlib", *sources, "-o", _RUNTIME_OBJECT], work)
        if done.returncode != 0:
            raise OracleError(
                f"the host backend's runtime does not compile with {compiler.version}: "
                + done.stderr.strip(),
                fix="use g++ 10 or later",
            )

    return _cached(f"runtime-{key}", make) / _RUNTIME_OBJECT
