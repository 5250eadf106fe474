"""What is wrong in a source, and where readings of it are the same: data beside an equation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from trueup.reference.errors import BadDeclaration

SEVERITIES: Mapping[str, str] = MappingProxyType(
    {
        "A": "changes the direction of the algorithm, or makes it diverge",
        "B": "changes numbers by a factor, or needs a declared convention",
        "A/B": "changes the algorithm or a factor, depending on the part",
        "C": "notation only",
    }
)
"""How much an erratum matters."""


@dataclass(frozen=True)
class Erratum:
    """One place where a source, taken literally, does not say what its algebra gives."""

    id: str
    severity: str
    text: str

    def __post_init__(self) -> None:
        """Refuse an unknown severity and an erratum that says nothing."""
        if self.severity not in SEVERITIES:
            raise BadDeclaration(
                "no such severity",
                where=f"erratum {self.id}",
                got=repr(self.severity),
                expected="one of " + ", ".join(SEVERITIES),
            )
        if not self.text.strip():
            raise BadDeclaration("an erratum without words", where=f"erratum {self.id}")


@dataclass(frozen=True)
class Coincidence:
    """Inputs on which several forms give the same result: a test there tells none of them apart.

    ``family`` names the equation's input family that draws such inputs, where there is one.
    """

    forms: tuple[str, ...]
    where: str
    family: str | None = None
