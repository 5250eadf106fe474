"""The locked baseline: the numbers a run is held against, with a digest over every byte of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trueup.gates.acceptance.exact import Number
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.paths import follow, label, parse_path
from trueup.gates.documents.model import Pointer

_DIGEST = re.compile(rb'("?digest"?\s*[=:]\s*"sha256:)([0-9a-f]{64})(")')


@dataclass(frozen=True, slots=True)
class Locked:
    """One number of a baseline."""

    path: str
    of: Mapping[str, str]
    value: Number
    pointer: Pointer

    @property
    def name(self) -> str:
        """The metric and what it is of."""
        return f"{self.path}{label(self.of)}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline that was read; whether its lock holds is asked apart."""

    source: Input
    values: tuple[Locked, ...]

    @property
    def stated(self) -> str:
        """The digest it states of itself."""
        return str(self.source.data["baseline"]["digest"])

    def of_path(self, path: str) -> list[Locked]:
        """Every number of one metric."""
        wanted = _plain(path)
        return [one for one in self.values if _plain(one.path) == wanted]

    def matching(self, path: str, of: Mapping[str, str], match: Iterable[str]) -> list[Locked]:
        """The numbers of a metric that agree with a value of the run in these names."""
        keys = tuple(match)
        return [
            one for one in self.of_path(path)
            if all(one.of.get(key) == of.get(key) for key in keys)
        ]  # fmt: skip


def _plain(path: str) -> tuple[str | None, ...]:
    """A path without what its brackets select: `cells[fold=0].val` asks of `cells[*].val`."""
    steps = parse_path(path)
    return tuple("[]" if s.key is None else s.key for s in steps)


def read_baseline(source: Input) -> Baseline:
    """The numbers of a baseline. Raises `AcceptanceError` if it is none."""
    check(source, "baseline")
    values = tuple(
        Locked(entry["path"], entry.get("of", {}), source.number(("value", index, "value")),
               ("value", index))
        for index, entry in enumerate(source.data["value"])
    )  # fmt: skip
    return Baseline(source, values)


def digest_of(raw: bytes) -> str | None:
    """The digest of a baseline's bytes, its own stated digest taken as zeros."""
    found = _DIGEST.findall(raw)
    if len(found) != 1:
        return None
    zeroed = _DIGEST.sub(lambda m: m[1] + b"0" * 64 + m[3], raw)
    return "sha256:" + hashlib.sha256(zeroed).hexdigest()


def sealed(text: str) -> bytes:
    """The bytes of a baseline, with the digest of them put in the place left for it."""
    raw = text.encode("utf-8")
    digest = digest_of(raw)
    if digest is None:
        raise ValueError("no place for the digest")
    return _DIGEST.sub(lambda m: m[1] + digest[len("sha256:") :].encode() + m[3], raw)


def differences(baseline: Baseline, results: Input) -> list[tuple[Locked, Number]]:
    """Numbers of a baseline that are not those of the results it says it was locked from."""
    wrong: list[tuple[Locked, Number]] = []
    cache: dict[str, dict[tuple[tuple[str, str], ...], Number]] = {}
    for locked in baseline.values:
        if locked.path not in cache:
            hits = follow(results.data, parse_path(locked.path))
            cache[locked.path] = {
                tuple(sorted(hit.of.items())): results.number(hit.pointer) for hit in hits
            }
        now = cache[locked.path].get(tuple(sorted(locked.of.items())))
        if now is None or now.exact != locked.value.exact:
            wrong.append((locked, now or Number(None, "nothing", "missing")))
    return wrong
