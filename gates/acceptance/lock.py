"""Locks a baseline: every number of a results file, as it was written there, never overwritten."""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from pathlib import Path

from trueup.gates.acceptance.baseline import sealed
from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.exact import Number
from trueup.gates.acceptance.inputs import Input, parse
from trueup.gates.acceptance.paths import Hit, PathError, follow, label, leaves, parse_path
from trueup.gates.catalogue.kinds import kinds
from trueup.gates.errors import Unreadable
from trueup.gates.read.documents.source import opened
from trueup.gates.read.limits import Fault, Limits

_MOST = 100_000  # numbers of one baseline

Kept = list[tuple[str, Hit, Number]]


def lock(results: Path, target: Path, *, name: str = "", paths: tuple[str, ...] = ()) -> int:
    """Write the baseline and give the count of its numbers.

    Raises `AcceptanceError` if the target is there already, or if a number is none.
    """
    if target.suffix not in (".toml", ".json"):
        raise AcceptanceError(
            "is no name for a baseline", where=str(target), expected="a name in .toml or .json"
        )
    if os.path.lexists(target):
        raise _there(target)
    source = _read(results)
    kept = _kept(source, paths)
    ident = name or target.stem
    text = _json(source, kept, ident) if target.suffix == ".json" else _toml(source, kept, ident)
    _write(target, sealed(text))
    return len(kept)


def _there(target: Path) -> AcceptanceError:
    return AcceptanceError(
        "is there already, and a baseline is never overwritten", where=str(target),
        fix="lock under a new name, and name that one in the acceptance file",
    )  # fmt: skip


def _read(path: Path) -> Input:
    name, limits = str(path), Limits()

    def refuse(fault: Fault) -> None:
        kind = kinds()[fault.kind]
        place = ":".join(str(p) for p in (name, fault.line, fault.byte, fault.key) if p is not None)
        raise AcceptanceError(
            f"{kind.summary}; nothing is locked", where=place, got=fault.got,
            expected=kind.expected, fix=kind.fix,
        )  # fmt: skip

    with opened(path, name, refuse) as (file, size):
        if size > limits.max_document:
            raise Unreadable("is too large", where=name, got=f"{size} bytes")
        raw = file.read(limits.max_document + 1)
    form = "TOML" if path.suffix.lower() == ".toml" else "JSON"
    return parse(raw, name, path, form, limits, refuse)


def _kept(source: Input, paths: tuple[str, ...]) -> Kept:
    """The numbers to lock: those of the paths, or all."""
    hits: list[tuple[str, Hit]] = []
    for text in paths:
        try:
            hits += [(text, hit) for hit in follow(source.data, parse_path(text))]
        except PathError as error:
            raise AcceptanceError(f"--path {text}: {error}", where=source.name) from None
    kept = [(path, hit, source.number(hit.pointer)) for path, hit in hits or leaves(source.data)]
    if not kept or len(kept) > _MOST:
        raise AcceptanceError(
            "holds no number" if not kept else "holds too many numbers", where=source.name,
            got=f"{len(kept)} numbers", expected=f"1 to {_MOST}", fix="choose metrics with --path",
        )  # fmt: skip
    seen: dict[str, Hit] = {}
    for path, hit, value in kept:
        shown = f"{path}{label(hit.of)}"
        if value.exact is None:
            raise AcceptanceError(
                f"{shown} is no finite number", where=source.name, got=value.text,
                fix="a baseline is locked from a run whose metrics are all there",
            )  # fmt: skip
        if shown in seen:
            raise AcceptanceError(
                f"{shown} is there twice", where=source.name,
                expected="elements that a seed, fold, task, name or id tells apart",
            )  # fmt: skip
        seen[shown] = hit
    return kept


def _now() -> str:
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    return now.isoformat().replace("+00:00", "Z")


def _about(source: Input) -> dict[str, str | int]:
    about: dict[str, str | int] = {
        "file": source.path.name, "sha256": source.sha256, "bytes": source.path.stat().st_size,
    }  # fmt: skip
    for key in ("run_id", "git_commit"):
        value = source.data.get(key) if isinstance(source.data, dict) else None
        if isinstance(value, str):
            about[key] = value
    return about


def _toml(source: Input, kept: Kept, ident: str) -> str:
    lines = [
        "# Locked by `trueup accept --lock`. Do not edit: a change of any byte of this file is",
        "# found. A new baseline is locked under a new name.",
        "[baseline]", "format = 1", f"id = {_quoted(ident)}", f"locked_at = {_quoted(_now())}",
        f'digest = "sha256:{"0" * 64}"', "", "[source]",
        *(f"{key} = {_quoted(value)}" for key, value in _about(source).items()),
    ]  # fmt: skip
    for path, hit, value in kept:
        of = ", ".join(f"{_quoted(key)} = {_quoted(one)}" for key, one in hit.of.items())
        lines += ["", "[[value]]", f"path = {_quoted(path)}"]
        lines += [f"of = {{ {of} }}"] if of else []
        lines.append(f"value = {value.text}")
    return "\n".join(lines) + "\n"


def _json(source: Input, kept: Kept, ident: str) -> str:
    head = {"format": 1, "id": ident, "locked_at": _now(), "digest": f"sha256:{'0' * 64}"}
    rows = ",\n".join(
        f'  {{"path": {json.dumps(path)}, "of": {json.dumps(dict(hit.of))}, "value": {value.text}}}'
        for path, hit, value in kept
    )
    about = json.dumps(_about(source))
    return f'{{\n"baseline": {json.dumps(head)},\n"source": {about},\n"value": [\n{rows}\n]\n}}\n'


def _quoted(value: str | int) -> str:
    """A TOML value: JSON's text without its escapes of characters that TOML takes as they are."""
    if isinstance(value, int):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write(target: Path, raw: bytes) -> None:
    """All of it or nothing; a file that appears meanwhile is not overwritten."""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(raw)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o444)
            os.link(temporary, target)
        finally:
            os.unlink(temporary)
    except FileExistsError:
        raise _there(target) from None
    except OSError as error:
        raise AcceptanceError(
            "cannot be written", where=str(target), got=str(error.strerror),
            fix="give a path in a folder that you may write to",
        ) from None  # fmt: skip
