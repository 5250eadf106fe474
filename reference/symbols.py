"""The words an equation is declared with: domains, symbols, input families."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from trueup.reference.errors import BadDeclaration

F64: TypeAlias = NDArray[np.float64]
Scalar: TypeAlias = float | F64
"""A number, or a 0-d array where NumPy makes one."""

Values: TypeAlias = dict[str, F64 | float]
"""One float64 draw of an equation's inputs, by name."""

Make: TypeAlias = Callable[[np.random.Generator, Mapping[str, int], Values], Values]
"""Change an ordinary draw: ``make(rng, sizes, values) -> values``."""

DOMAINS: Mapping[str, str] = MappingProxyType(
    {
        "real": "any finite number",
        "positive": "greater than 0",
        "nonnegative": "0 or greater",
        "unit": "in the closed interval [0, 1]",
        "simplex": "non-negative, and the last axis sums to 1",
        "index": "an integer from 0 to below the size of an axis",
        "mask": "0 or 1",
        "monotone": "non-decreasing along the last axis",
        "sentinel": "any number; a value that is not above 0 means 'not set yet'",
    }
)
"""Every kind of domain, with what it means."""

_CALLS = frozenset({"ceil", "min", "max"})


@dataclass(frozen=True)
class Domain:
    """The legal values of a symbol, and the range from which values are usually drawn.

    ``low`` and ``high`` bound the *typical* range only: a learning rate is any positive number,
    yet drawing it between 0.01 and 0.5 keeps each term of an update visible beside the others.
    """

    kind: str
    low: float | None = None
    high: float | None = None
    axis: str | None = None
    """For ``index``: the axis whose size the index stays below."""

    def __post_init__(self) -> None:
        """Refuse an unknown kind, an empty range, and an index that names no axis."""
        where = f"domain {self.kind!r}"
        if self.kind not in DOMAINS:
            raise BadDeclaration(
                "no such domain", where=where, expected="one of " + ", ".join(DOMAINS)
            )
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise BadDeclaration(
                "empty range", where=where, got=f"({self.low}, {self.high})", expected="low <= high"
            )
        if (self.kind == "index") != (self.axis is not None):
            raise BadDeclaration(
                "an index, and only an index, names the axis it stays below",
                where=where,
                got=f"axis={self.axis!r}",
            )

    def __str__(self) -> str:
        """Say it in words, for tables."""
        below = f" of {self.axis}" if self.axis else ""
        if self.low is None and self.high is None:
            return f"{self.kind}{below}"
        return f"{self.kind}{below}, typically {self.low} to {self.high}"


@dataclass(frozen=True)
class Symbol:
    """One input or output of an equation: name, shape in axes, domain, meaning.

    ``shape`` holds axis names, or expressions in axes such as ``"2 * D"``; ``()`` is a scalar.
    An optional input may be left out (the function gives it a default); an optional output is
    returned only where the optional input it belongs to is given.
    """

    name: str
    shape: tuple[str, ...]
    domain: Domain
    meaning: str
    optional: bool = False

    def axes(self) -> frozenset[str]:
        """Give the names of the axes that the shape (and an index's bound) refers to."""
        found: set[str] = set() if self.domain.axis is None else {self.domain.axis}
        for entry in self.shape:
            found |= _names(entry, self.name)
        return frozenset(found)


def _names(expression: str, symbol: str) -> set[str]:
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise BadDeclaration(
            "shape is not an expression in axes", where=f"symbol {symbol!r}", got=repr(expression)
        ) from error
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _CALLS


@dataclass(frozen=True)
class Family:
    """Inputs of one character, because ordinary draws hide some mistakes.

    ``make`` takes the ordinary draw of every input (float64, before rounding to the kernel's
    dtype) and returns the changed draw; it works for every size, 1 included, and leaves inputs
    that are not there alone. ``right_kernel_only`` marks families that a right kernel must pass
    but that cannot tell a wrong one (near-ties, constant rows, points where readings coincide).
    """

    name: str
    why: str
    make: Make
    right_kernel_only: bool = False
