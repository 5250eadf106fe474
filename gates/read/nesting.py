"""How a profile wants objects and lists inside a row to be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nesting:
    """With `flatten`, what is nested becomes columns named by path; without it, it is a fault.

    `{"isv": {"lr": [1, 2]}}` has the columns `isv.lr[0]` and `isv.lr[1]`.
    """

    flatten: bool = False
    separator: str = "."
    max_items: int = 64  # of one list

    def member(self, parent: str | None, key: str) -> str:
        """The name of an object's member; the row itself is the parent None."""
        return key if parent is None else f"{parent}{self.separator}{key}"

    @staticmethod
    def item(parent: str | None, index: int) -> str:
        """The name of a list's item."""
        return f"{parent or ''}[{index}]"
