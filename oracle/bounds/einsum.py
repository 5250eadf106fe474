"""Einstein sums as matrix products of rows, two operands at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

np: Any = numpy  # NumPy's stubs know arrays only, not rows


def einsum_rows(model: Model, subscripts: Any, operands: list[Rows]) -> Any:
    """The Einstein sum; NumPy's own value replaces row 0 afterwards."""
    if not isinstance(subscripts, str):
        raise Unsupported("numpy.einsum with subscripts as lists")
    inputs, output = _parse(subscripts, operands)
    terms = [_diagonal(model, x, letters) for x, letters in zip(operands, inputs, strict=True)]
    current, letters = terms[0]
    for i, (following, names) in enumerate(terms[1:], start=1):
        needed = set(output).union(*(n for _, n in terms[i + 1 :]))
        current, letters = _pair(model, current, letters, following, names, needed)
    gone = tuple(i for i, c in enumerate(letters) if c not in output)
    if gone:
        current = np.sum(current, axis=gone)
        letters = "".join(c for c in letters if c in output)
    order = [letters.index(c) for c in output]
    return np.transpose(current, order) if order else current


def _parse(subscripts: str, operands: list[Rows]) -> tuple[list[str], str]:
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if "..." in text:
        spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text]
        extra = [x.ndim - len(s.replace("...", "")) for x, s in zip(operands, inputs, strict=True)]
        depth = max([n for n, s in zip(extra, inputs, strict=True) if "..." in s], default=0)
        names = "".join(spare[:depth])
        inputs = [s.replace("...", names[depth - n :]) for n, s in zip(extra, inputs, strict=True)]
        output = output.replace("...", names)
    if not arrow:
        joined = "".join(inputs)
        dots = "".join(c for c in sorted(set(joined)) if c.isupper() and "..." in text)
        once = [c for c in sorted(set(joined)) if joined.count(c) == 1 and c not in dots]
        output = dots + "".join(once)
    return inputs, output


def _diagonal(model: Model, x: Rows, letters: str) -> tuple[Rows, str]:
    """Repeated letters of one operand become one axis."""
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            x = np.diagonal(x, axis1=i, axis2=j)
            letters = "".join(s for k, s in enumerate(letters) if k not in (i, j)) + c
    return x, letters


def _pair(
    model: Model, a: Rows, left: str, b: Rows, right: str, needed: set[str]
) -> tuple[Rows, str]:
    """One matrix product over the letters that both have and nobody needs afterwards."""
    a, left = _drop(a, left, needed | set(right))
    b, right = _drop(b, right, needed | set(left))
    summed = [c for c in left if c in right and c not in needed]
    batch = [c for c in left if c in right and c in needed]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    sizes = dict(zip(left, a.shape, strict=True))
    for c, n in zip(right, b.shape, strict=True):
        sizes[c] = max(sizes.get(c, 1), n)
    left_rows = _matrix(a, left, batch, rows, summed, sizes)
    right_rows = _matrix(b, right, batch, summed, columns, sizes)
    out = model.matmul(left_rows, right_rows)
    names = batch + rows + columns
    return out.reshape([sizes[c] for c in names]), "".join(names)


def _drop(x: Rows, letters: str, needed: set[str]) -> tuple[Rows, str]:
    gone = tuple(i for i, c in enumerate(letters) if c not in needed)
    if not gone:
        return x, letters
    return np.sum(x, axis=gone), "".join(c for c in letters if c in needed)


def _matrix(
    x: Rows,
    letters: str,
    batch: list[str],
    rows: list[str],
    columns: list[str],
    sizes: dict[str, int],
) -> Any:
    names = batch + rows + columns
    turned = np.transpose(x, [letters.index(c) for c in names])
    whole = np.broadcast_to(turned, [sizes[c] for c in names])
    m = int(np.prod([sizes[c] for c in rows], dtype=np.int64))
    n = int(np.prod([sizes[c] for c in columns], dtype=np.int64))
    return whole.reshape([*(sizes[c] for c in batch), m, n])
