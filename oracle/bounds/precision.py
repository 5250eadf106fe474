"""The declared precision of a kernel, as a contract states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trueup.oracle.bounds.errors import BoundsError
from trueup.oracle.bounds.formats import Format, format_of
from trueup.oracle.bounds.intrinsics import FAST


@dataclass(frozen=True)
class Precision:
    """How a kernel stores, multiplies and adds.

    `compute` is the format every elementwise result is rounded to (default: f32, or f64 when the
    storage is f64). `stored` names intermediates of the reference that are rounded to a format.
    """

    storage: str = "f32"
    multiply: str = "f32"
    accumulate: str = "f32"
    compute: str | None = None
    stored: Mapping[str, str] = field(default_factory=dict)
    rounding: str = "nearest"
    approximate: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse formats and intrinsics that are not known."""
        for name in (self.storage, self.multiply, self.accumulate, *self.stored.values()):
            format_of(name)
        if self.compute is not None:
            format_of(self.compute)
        if self.rounding not in ("nearest", "truncate"):
            raise BoundsError(
                f"precision.rounding is {self.rounding!r}; expected 'nearest' or 'truncate'"
            )
        for name in self.approximate:
            if name not in FAST:
                known = ", ".join(sorted(FAST))
                raise BoundsError(f"precision.approximate names {name!r}; known: {known}")

    @property
    def elementwise(self) -> Format:
        """The format of elementwise results."""
        if self.compute is not None:
            return format_of(self.compute)
        return format_of("f64" if format_of(self.storage).name == "f64" else "f32")

    @property
    def sums(self) -> Format:
        """The format sums are kept in; never narrower than float64 in a float64 kernel."""
        accumulate = format_of(self.accumulate)
        if self.elementwise.name == "f64" and self.accumulate == "f32":
            return self.elementwise
        return accumulate

    @property
    def products(self) -> Format:
        """The format the operands of matrix products are rounded to."""
        multiply = format_of(self.multiply)
        if self.elementwise.name == "f64" and self.multiply == "f32":
            return self.elementwise
        return multiply

    def key(self) -> str:
        """A text that is equal exactly where the precision is."""
        stored = sorted(self.stored.items())
        return repr(
            (
                self.storage,
                self.multiply,
                self.accumulate,
                self.compute,
                stored,
                self.rounding,
                sorted(self.approximate),
            )
        )
