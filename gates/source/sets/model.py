"""What a rule over several files finds, and the files it looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trueup.gates.source.config import Config, matches
from trueup.gates.source.unit import Unit


@dataclass(frozen=True, slots=True)
class Placed:
    """Something found in a file, at a byte; `at` is None where it is the file that is meant."""

    kind: str
    file: str  # from the root of the settings
    at: int | None
    got: str
    line: int | None = None  # in a file that is no source, such as the registry


@dataclass(frozen=True, slots=True)
class Tree:
    """Every file under the root of the settings that rules over several files may read."""

    config: Config
    units: Mapping[str, Unit]  # by path from the root

    def fitting(self, globs: Sequence[str]) -> Iterator[Unit]:
        """The files that fit one of the globs, sorted."""
        for relative in sorted(self.units):
            if matches(relative, globs):
                yield self.units[relative]
