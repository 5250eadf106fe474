"""Finds and reads `trueup.toml`. What is wrong with it is an error, never a default."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import re
import stat
from importlib import resources
from pathlib import Path
from typing import Any

from trueup.gates.errors import SettingsError
from trueup.gates.read.limits import Limits
from trueup.gates.read.toml import plain_toml
from trueup.gates.settings.model import FILE, Settings, SeverityOverride, Waiver
from trueup.gates.structure import first_problem

_MAX_BYTES = 1 << 20


def find_settings(start: Path) -> Path | None:
    """The nearest `trueup.toml` from a folder upward, not beyond the repository it stands in."""
    for folder in (start, *start.parents):
        path = folder / FILE
        if os.path.lexists(path):
            return path
        if (folder / ".git").exists():
            return None
    return None


def load_settings(path: Path, name: str | None = None) -> Settings:
    """Read a settings file; reports call it `name`. Raises `SettingsError` with file and key."""
    name = name or str(path)
    raw = _bytes(path, name)
    data = _toml(raw, name)
    problem = first_problem(schema(), data)
    if problem is not None:
        what = f"{problem.place}: {problem.what}" if problem.place else problem.what
        raise SettingsError(what, where=name, fix=problem.fix)
    gate = data.get("gate", {})
    return Settings(
        path=name,
        folder=os.path.realpath(path.parent),
        digest=f"sha256:{hashlib.sha256(raw).hexdigest()}",
        profile=gate.get("profile"),
        runs=tuple(gate.get("runs", ())),
        limits=Limits(**data["limits"]) if data.get("limits") else None,
        severities=tuple(
            override
            for rule, value in data.get("severity", {}).items()
            for override in _overrides(rule, value)
        ),
        waivers=tuple(
            _waiver(entry, f"waiver[{index}]", name, line)
            for index, (entry, line) in enumerate(_with_lines(data.get("waiver", []), raw))
        ),
    )


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of `trueup.toml`."""
    text = (resources.files("trueup.gates.settings") / "settings.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _bytes(path: Path, name: str) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SettingsError(
                "is not a regular file", where=name, expected="a TOML file",
                fix="give another file with --config, or judge without one: --no-config",
            )  # fmt: skip
        if status.st_size > _MAX_BYTES:
            got, most = f"{status.st_size} bytes", f"at most {_MAX_BYTES}"
            raise SettingsError("is too large", where=name, got=got, expected=most)
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"cannot be read: {error.strerror or error}", where=name,
            fix="check the path and its permissions, or judge without settings: --no-config",
        ) from None  # fmt: skip


def _toml(raw: bytes, name: str) -> dict[str, Any]:
    try:
        data = plain_toml(raw)
    except UnicodeDecodeError as error:
        got = f"byte {raw[error.start]:#04x} at {error.start}"
        raise SettingsError("is not UTF-8", where=name, got=got) from None
    except ValueError as error:
        fix = "docs/settings.md has a whole example; `trueup init` writes one"
        raise SettingsError(f"is not TOML: {error}", where=name, fix=fix) from None
    plain: dict[str, Any] = _plain(data)
    return plain


def _plain(value: Any) -> Any:
    """A date as the text that the schema asks for; one with a time stays what it is."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    return value


def _overrides(rule: str, value: Any) -> list[SeverityOverride]:
    place = f"severity.{rule}"
    if isinstance(value, str):
        value = {"severity": value}
    if isinstance(value, dict):
        return [SeverityOverride(rule, place=place, **value)]
    return [
        SeverityOverride(rule, place=f"{place}[{index}]", **one) for index, one in enumerate(value)
    ]


def _with_lines(entries: list[Any], raw: bytes) -> list[tuple[Any, int | None]]:
    """Each waiver with the line of its head, where every head stands on a line of its own."""
    heads = [
        number
        for number, line in enumerate(raw.split(b"\n"), 1)
        if re.match(rb"\s*\[\[\s*waiver\s*\]\]", line)
    ]
    known = heads if len(heads) == len(entries) else [None] * len(entries)
    return list(zip(entries, known, strict=True))


def _waiver(entry: dict[str, Any], place: str, name: str, line: int | None) -> Waiver:
    if not any(char.isalnum() for char in entry["reason"]):  # dots, or what nobody sees
        raise SettingsError(f"{place}.reason: is blank", where=name, fix="say it in words")
    steps = entry.get("steps")
    if steps and steps[0] > steps[1]:
        raise SettingsError(
            f"{place}.steps: the first step is after the last", where=name, got=str(steps)
        )
    texts = {key: entry.get(key, "") for key in ("artifact", "key", "approved_by", "ticket")}
    return Waiver(
        rule=entry["rule"],
        reason=" ".join(entry["reason"].split()),
        expires=datetime.date.fromisoformat(entry["expires"]),
        place=place,
        steps=(steps[0], steps[1]) if steps else None,
        line=line,
        **texts,
    )
