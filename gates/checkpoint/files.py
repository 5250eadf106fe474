"""Which files of a run belong together: checkpoint, sidecar, configuration, list of digests."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.gates.documents.model import Document, Subject
from trueup.gates.documents.paths import get
from trueup.gates.documents.run import Run

WEIGHTS = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
_META = (".meta.json", ".meta.yaml", ".meta.yml")
_PLAIN = (".json", ".yaml", ".yml")
_CONFIGS = (".yaml", ".yml")
_LISTS = (".sha256", ".sha256sum")
# What only a sidecar holds: a configuration beside a checkpoint has a `step` of its own at most.
_MARKS = ("checkpoint_sha256", "param_sha256", "rng_states", "files")
_SHARD = re.compile(r"-\d{2,6}-of-\d{2,6}$")


def is_sidecar(subject: Subject) -> bool:
    """Whether a document is the metadata of a checkpoint, and not its configuration."""
    if subject.path.name.lower().endswith(_META):
        return True
    data = subject.document.data
    return isinstance(data, dict) and any(mark in data for mark in _MARKS)


def stem_of(name: str) -> str:
    """A file name without what tells sidecar, checkpoint and list of digests apart."""
    for ending in (*_META, *_LISTS, *_PLAIN):
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
            break
    for ending in WEIGHTS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name


@dataclass(frozen=True, slots=True)
class Named:
    """A file that a document names: the way to the name, and the file if it is there."""

    pointer: tuple[str | int, ...]
    name: str
    file: Path | None
    sha256_at: tuple[str | int, ...] | None = None  # the way to its digest


def leads_out(name: str) -> str | None:
    """Why a name is no place inside the run directory; None if it may be one."""
    if not name or "\0" in name:
        return "no file name"
    if os.path.isabs(name) or re.match(r"[A-Za-z]:[\\/]|\\\\|~", name):
        return "an absolute path"
    if ".." in re.split(r"[\\/]", name):
        return "a path with .."
    return None


def locate(run: Run, name: str, folder: Path) -> Path | None:
    """The file of a name: from the folder of the document, else from the run directory.

    Trainers write paths from where they were started (`artifacts/run7/step_10.yaml`): then the
    longest tail of the path that is there is meant.
    """
    if leads_out(name) is not None:
        return None
    parts = name.split("/")
    for first in range(len(parts)):
        tail = "/".join(parts[first:])
        for base in (folder, run.root):
            found = run.inside(tail, base)
            if found is not None:
                return found
    return None


def link_out(run: Run, name: str, folder: Path) -> bool:
    """Whether a name leads out of the run directory by a link."""
    if leads_out(name) is not None:
        return False
    root = Path(os.path.realpath(run.root))
    target = Path(os.path.realpath(folder / name))
    return os.path.lexists(folder / name) and not target.is_relative_to(root)


def checkpoints_of(subject: Subject, digests: tuple[str, ...]) -> list[Named]:
    """The checkpoint files that a sidecar speaks of. `digests`: keys that may hold the SHA-256."""
    data, folder = subject.document.data, subject.path.parent
    files = get(data, "files")
    if isinstance(files, dict) and files:
        return [
            Named(("files", name), name, locate(subject.run, name, folder), ("files", name))
            for name in files
        ]
    key = next((one for one in digests if get(data, one) is not None), None)
    at = (key,) if key is not None else None
    name = get(data, "checkpoint")
    if isinstance(name, str) and name:
        return [Named(("checkpoint",), name, locate(subject.run, name, folder), at)]
    beside = [one for one in _beside(subject) if one is not None]
    stem = stem_of(subject.path.name)
    shown = beside[0].name if beside else f"{stem}{WEIGHTS[0]} or {stem}{WEIGHTS[1]}"
    return [Named((), shown, beside[0] if beside else None, at)]


def _beside(subject: Subject) -> list[Path | None]:
    """Files of weights with the stem of a document, in the order of `WEIGHTS`."""
    stem = stem_of(subject.path.name)
    whole = re.sub(r"\.(meta\.)?(json|ya?ml|sha256(sum)?)$", "", subject.path.name)
    names = [whole, *(f"{stem}{ending}" for ending in WEIGHTS)]
    return [
        subject.run.inside(name, subject.path.parent) for name in names if name.endswith(WEIGHTS)
    ]


def weights_beside(subject: Subject) -> list[Path]:
    """The checkpoints that stand beside a document and share its stem."""
    found: list[Path] = []
    for file in _beside(subject):
        if file is not None and file not in found:
            found.append(file)
    return found


def sidecar_of(subject: Subject) -> Subject | None:
    """The sidecar of a checkpoint, if it was read."""
    for other in sidecars(subject.run):
        files = get(other.document.data, "files")
        named = [*files] if isinstance(files, dict) else [get(other.document.data, "checkpoint")]
        if other.path.parent == subject.path.parent and subject.path.name in named:
            return other
    stem = stem_of(subject.path.name)
    for other in sidecars(subject.run):
        if other.path.parent == subject.path.parent and stem_of(other.path.name) == stem:
            return other
    return None


def sidecars(run: Run) -> list[Subject]:
    """All sidecars of a run."""
    return [one for one in run.subjects if one.kind == "metadata" and is_sidecar(one)]


def sidecar_names(path: Path) -> list[str]:
    """The names that the sidecar of a checkpoint may have."""
    stem = stem_of(path.name)
    bare = _SHARD.sub("", stem)
    stems = [path.name, stem] if bare == stem else [path.name, stem, bare]
    return [f"{one}{ending}" for one in stems for ending in _META]


def list_names(path: Path) -> list[str]:
    """The names that the list of digests beside a checkpoint may have."""
    return [f"{one}{ending}" for one in (path.name, stem_of(path.name)) for ending in _LISTS]


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a run: from a file beside the sidecar, or written out in it."""

    data: Any
    file: Path | None
    faulty: bool = False


def config_of(subject: Subject) -> Config | None:
    """The configuration that a sidecar speaks of; a file goes before what is written out."""
    data, run = subject.document.data, subject.run
    file = config_file(subject)
    if file is not None:
        for other in run.subjects:
            if other.path == file:
                return Config(other.document.data, file)
        return _read(file)
    written = get(data, "config")
    return Config(written, None) if isinstance(written, dict) else None


def config_file(subject: Subject) -> Path | None:
    """The file named by `config_path`, or STEM.yaml beside the sidecar."""
    name = get(subject.document.data, "config_path")
    if isinstance(name, str) and name:
        return locate(subject.run, name, subject.path.parent)
    stem = stem_of(subject.path.name)
    for ending in _CONFIGS:
        found = subject.run.inside(f"{stem}{ending}", subject.path.parent)
        if found is not None and found != Path(os.path.realpath(subject.path)):
            return found
    return None


def _read(file: Path) -> Config:
    from trueup.gates.errors import Unreadable
    from trueup.gates.read.documents.read import load_document

    try:
        document: Document
        document, faults = load_document(file, kind="metadata")
    except Unreadable:
        return Config(None, file, True)
    return Config(document.data, file, bool(faults))
