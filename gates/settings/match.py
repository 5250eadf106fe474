"""The patterns of waivers and overrides: `*` and `?` alone are special, for keys hold brackets."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


def fits(pattern: str, text: str | None) -> bool:
    """Whether a pattern fits a text in full; no pattern fits everything, no text only that."""
    if not pattern:
        return True
    return text is not None and fnmatchcase(text, re.sub(r"\[", "[[]", pattern))


@dataclass(frozen=True, slots=True)
class Names:
    """The names by which a pattern can call an artifact.

    A pattern without a slash is held against the file name, as in profiles. One with a slash is
    held against the path from the run directory, and the path from the settings file.
    """

    run: str  # as it was given
    folder: str  # of the settings file, absolute

    def fit(self, pattern: str, artifact: str) -> bool:
        """Whether the pattern fits the artifact, which reports call by this name."""
        if not pattern:
            return True
        if "/" not in pattern:
            return fits(pattern, artifact.rsplit("/", 1)[-1])
        return any(fits(pattern, name) for name in self._of(artifact))

    def _of(self, artifact: str) -> list[str]:
        if "://" in artifact:
            return [artifact, artifact.removeprefix(self.run.rstrip("/") + "/")]
        names = [os.path.relpath(artifact, self.run)]
        if self.folder:
            names.append(os.path.relpath(os.path.realpath(artifact), self.folder))
        return [name.replace(os.sep, "/") for name in names]
