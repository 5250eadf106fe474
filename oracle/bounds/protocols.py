"""What Python itself asks of an array: its length, its truth, a number out of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from trueup.oracle.bounds.errors import Unsupported

np: Any = numpy  # NumPy's stubs know arrays only, not rows


def unpack(args: tuple[Any, ...]) -> Any:
    """The arguments of a method that takes either a tuple or its items."""
    return args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


class Protocols:
    """Python's own protocols for rows. Integers may become plain numbers, floats never do."""

    __slots__ = ()

    # What the array type has.
    model: Any
    v: Any
    d: Any
    ndim: Any
    shape: Any
    floating: Any
    reshape: Any

    def __getitem__(self, key: Any) -> Any:
        """As `ndarray[key]`; the array type has its own."""
        raise NotImplementedError  # trueup: allow SRC008: a protocol in all but name

    def __setitem__(self, key: Any, value: Any) -> None:
        """As `ndarray[key] = value`; the array type has its own."""
        raise NotImplementedError  # trueup: allow SRC008: a protocol in all but name

    def __len__(self) -> int:
        """As `len(ndarray)`."""
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        """Go along the first axis."""
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        """The truth of one element, which may be a close decision."""
        from trueup.oracle.bounds.decisions import truth

        this: Any = self
        return bool(truth(this).v)

    def __int__(self) -> int:
        """One element truncated, which may be a close decision."""
        return int(self.model.integers(self).item())

    def __index__(self) -> int:
        """An integer element as a plain index."""
        if self.floating or self.ndim:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.v)

    def __float__(self) -> float:
        """Refuse: a float would leave the array type."""
        raise Unsupported("a value left the array type through float()")

    def __complex__(self) -> complex:
        """Refuse: complex numbers are not followed."""
        raise Unsupported("complex numbers are not followed")

    def __hash__(self) -> int:
        """The hash of an integer element."""
        if self.floating or self.ndim:
            raise TypeError("unhashable type: an array")
        return hash(int(self.v))

    def __round__(self, digits: int | None = None) -> Any:
        """As `round(x)`, which may be a close decision."""
        return int(np.rint(self)) if digits is None else np.round(self, digits)

    def __repr__(self) -> str:
        """Show the plain value and how many rows there are."""
        return f"Rows(value={self.v!r}, rows={self.d.shape[0]})"

    def item(self, *index: Any) -> Any:
        """As `ndarray.item`, but floats stay in the array type."""
        one = self[unpack(index)] if index else self.reshape(())
        return one if one.floating else one.v.item()

    def tolist(self) -> Any:
        """As `ndarray.tolist`, but floats stay in the array type."""
        if not self.floating:
            return self.v.tolist()
        return [x.tolist() for x in self] if self.ndim else self

    def sort(self, axis: int = -1, **_: Any) -> None:
        """As `ndarray.sort`: in place."""
        self[...] = np.sort(self, axis=axis)
