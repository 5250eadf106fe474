"""What can go wrong when an equation is looked up, declared or evaluated."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ReferenceError_(Exception):
    """Base of every error of the references: what, where, got, expected, fix.

    The trailing underscore keeps Python's own ``ReferenceError`` (weak references) apart.
    """

    def __init__(
        self, what: str, *, where: str = "", got: str = "", expected: str = "", fix: str = ""
    ) -> None:
        """Keep the parts for reports, and join them for people."""
        self.what, self.where, self.got, self.expected, self.fix = what, where, got, expected, fix
        super().__init__(self._text())

    def _text(self) -> str:
        detail = ", ".join(
            f"{word} {part}"
            for word, part in (("got", self.got), ("expected", self.expected))
            if part
        )
        head = ": ".join(part for part in (self.where, self.what, detail) if part)
        return f"{head}\n  fix: {self.fix}" if self.fix else head


class UnknownEquation(ReferenceError_):
    """No equation of the catalogue has this id."""

    def __init__(self, id: str, known: Iterable[str]) -> None:
        """Name the closest ids of the catalogue."""
        ids = sorted(known)
        close = difflib.get_close_matches(id, ids, n=3, cutoff=0.4)
        super().__init__(
            "no such equation",
            where="catalogue",
            got=repr(id),
            expected="one of " + ", ".join(ids),
            fix=f"did you mean {' or '.join(close)}?" if close else "see `trueup equations`",
        )


class UnknownReading(ReferenceError_):
    """The equation has no reading, and no known wrong variant, of this name."""

    def __init__(self, where: str, reading: object, known: Iterable[str]) -> None:
        """Name all readings, and the closest ones."""
        names = list(known)
        close = difflib.get_close_matches(str(reading), names, n=3, cutoff=0.4)
        super().__init__(
            "no such reading",
            where=where,
            got=repr(reading),
            expected="one of " + ", ".join(names),
            fix=f"did you mean {' or '.join(close)}?" if close else "",
        )


class NotApplicable(ReferenceError_):
    """The reading exists but has no meaning for the inputs at hand (say, it needs d_out = d_in)."""

    def __init__(self, where: str, reading: str, needs: str) -> None:
        """Say what the reading needs."""
        super().__init__(
            f"reading {reading!r} does not apply to these inputs", where=where, expected=needs
        )


class BadDeclaration(ReferenceError_):
    """An equation, symbol or domain is declared in a way that contradicts itself."""


class BadInputs(ReferenceError_):
    """An equation was called with inputs it does not have, or without inputs it needs."""
