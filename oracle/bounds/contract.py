"""Products of arrays other than `@`: einsum, tensordot, outer, convolution, norms, solvers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy

from trueup.oracle.bounds.composed import axes_of
from trueup.oracle.bounds.dispatch import handles, matmul
from trueup.oracle.bounds.einsum import einsum_rows
from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

np: Any = numpy  # NumPy's stubs know arrays only, not rows


@handles(np.dot)
def _dot(model: Model, a: Any, b: Any) -> Any:
    a, b = model.floats(a), model.floats(b)
    if not a.ndim or not b.ndim:
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return model.anchor(matmul(model, a, b), np.dot(a.v, b.v))
    return _tensordot(model, a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))


@handles(np.vdot)
def _vdot(model: Model, a: Any, b: Any) -> Any:
    return _dot(model, model.floats(a).reshape(-1), model.floats(b).reshape(-1))


@handles(np.inner)
def _inner(model: Model, a: Any, b: Any) -> Any:
    a, b = model.floats(a), model.floats(b)
    if not a.ndim or not b.ndim:
        return a * b
    out = _tensordot(model, a, b, ([a.ndim - 1], [b.ndim - 1]))
    return model.anchor(out, np.inner(a.v, b.v))


@handles(np.outer, np.linalg.outer)
def _outer(model: Model, a: Any, b: Any) -> Any:
    a, b = model.floats(a).reshape(-1), model.floats(b).reshape(-1)
    model.room((a.size, b.size))
    return model.anchor(model.matmul(a[:, None], b[None, :]), np.outer(a.v, b.v))


@handles(np.tensordot)
def _tensordot(model: Model, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = model.floats(a), model.floats(b)
    if isinstance(axes, int):
        axes = (list(range(a.ndim - axes, a.ndim)), list(range(axes)))
    left, right = ([ax] if isinstance(ax, int) else list(ax) for ax in axes)
    left, right = [i % a.ndim for i in left], [i % b.ndim for i in right]
    free_a = [i for i in range(a.ndim) if i not in left]
    free_b = [i for i in range(b.ndim) if i not in right]
    k = int(np.prod([a.shape[i] for i in left], dtype=np.int64))
    flat_a = np.transpose(a, free_a + left).reshape(-1 if a.size else 0, k)
    flat_b = np.transpose(b, right + free_b).reshape(k, -1 if b.size else 0)
    out = model.matmul(flat_a, flat_b)
    shape = [a.shape[i] for i in free_a] + [b.shape[i] for i in free_b]
    return model.anchor(out.reshape(shape), np.tensordot(a.v, b.v, axes=(left, right)))


@handles(np.einsum)
def _einsum(model: Model, subscripts: Any, *operands: Any, **_: Any) -> Any:
    rows = [model.floats(x) for x in operands]
    out = einsum_rows(model, subscripts, rows)
    return model.anchor(out, np.einsum(subscripts, *(x.v for x in rows)))


@handles(np.kron)
def _kron(model: Model, a: Any, b: Any) -> Any:
    a, b = model.floats(a), model.floats(b)
    depth = max(a.ndim, b.ndim)
    a = a.reshape((1,) * (depth - a.ndim) + a.shape)
    b = b.reshape((1,) * (depth - b.ndim) + b.shape)
    left = a.reshape([n for size in a.shape for n in (size, 1)])
    right = b.reshape([n for size in b.shape for n in (1, size)])
    return (left * right).reshape([m * n for m, n in zip(a.shape, b.shape, strict=True)])


@handles(np.cross)
def _cross(model: Model, a: Any, b: Any, axis: int = -1, **_: Any) -> Any:
    a, b = np.moveaxis(model.floats(a), axis, -1), np.moveaxis(model.floats(b), axis, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise Unsupported("numpy.cross of vectors that are not three-dimensional")
    turn, back = [1, 2, 0], [2, 0, 1]
    out = a[..., turn] * b[..., back] - a[..., back] * b[..., turn]
    return np.moveaxis(out, -1, axis)


@handles(np.trace, np.linalg.trace)
def _trace(model: Model, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, **_: Any) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


@handles(np.convolve)
def _convolve(model: Model, a: Any, v: Any, mode: str = "full") -> Any:
    a, v = model.floats(a), model.floats(v)
    if len(v) > len(a):
        a, v = v, a
    n, m = len(a), len(v)
    padded = np.pad(a, (m - 1, m - 1))
    places = np.arange(n + m - 1)[:, None] + np.arange(m - 1, -1, -1)[None, :]
    out = matmul(model, padded[places], v)
    edge = {"full": (0, n + m - 1), "same": ((m - 1) // 2, (m - 1) // 2 + n), "valid": (m - 1, n)}
    out = out[slice(*edge[mode])]
    return model.anchor(out, np.convolve(a.v, v.v, mode))


@handles(np.correlate)
def _correlate(model: Model, a: Any, v: Any, mode: str = "valid") -> Any:
    if len(v) > len(a):
        return _convolve(model, a, model.floats(v)[::-1], mode)[::-1]
    return _convolve(model, a, model.floats(v)[::-1], mode)


@handles(np.linalg.norm, np.linalg.vector_norm, floats=True)
def _norm(
    model: Model, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, **_: Any
) -> Any:
    x = model.floats(x)
    axes = axes_of(x, axis)
    matrix = len(axes) == 2 and ord not in (None, "fro")
    if matrix:
        return _matrix_norm(model, x, ord, axes, keepdims)
    kept = {"axis": axis, "keepdims": keepdims}
    size = abs(x)
    if ord in (None, 2, "fro"):
        out: Any = np.sqrt(np.sum(x * x, **kept))
    elif ord in (np.inf, -np.inf):
        return (np.max if ord > 0 else np.min)(size, **kept)
    elif ord == 1:
        return np.sum(size, **kept)
    elif ord == 0:
        return np.sum((x != 0).astype(float), **kept)
    else:
        return np.sum(size**ord, **kept) ** (1.0 / ord)
    return model.anchor(out, np.linalg.norm(x.v, axis=axis, keepdims=keepdims))


@handles(np.linalg.matrix_norm, floats=True)
def _matrix_norm_of(model: Model, x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _norm(model, x, ord, (-2, -1), keepdims)


def _matrix_norm(model: Model, x: Rows, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    moved = np.moveaxis(x, axes, (-2, -1))
    if order in (1, -1, np.inf, -np.inf):
        lines = np.sum(abs(moved), axis=-2 if abs(order) == 1 else -1)
        out = (np.max if order > 0 else np.min)(lines, axis=-1)
    elif order in (2, -2, "nuc"):
        values = np.linalg.svd(moved, compute_uv=False)
        out = np.sum(values, axis=-1) if order == "nuc" else values[..., 0 if order > 0 else -1]
    else:
        raise Unsupported(f"numpy.linalg.norm of a matrix with ord={order!r}")
    return np.expand_dims(out, axes) if keepdims else out


@handles(np.linalg.matmul)
def _linalg_matmul(model: Model, a: Any, b: Any, /) -> Any:
    return matmul(model, model.floats(a), model.floats(b))


@handles(np.linalg.matrix_power)
def _matrix_power(model: Model, a: Any, n: int) -> Any:
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 0:
        return model.exact(np.broadcast_to(np.eye(a.shape[-1]), a.shape).copy())
    out = a
    for _ in range(n - 1):
        out = out @ a
    return model.anchor(out, np.linalg.matrix_power(a.v, n))


@handles(np.linalg.multi_dot)
def _multi_dot(model: Model, arrays: Any, **_: Any) -> Any:
    rows = [model.floats(a) for a in arrays]
    out = functools.reduce(lambda a, b: _dot(model, a, b), rows)
    return model.anchor(out, np.linalg.multi_dot([x.v for x in rows]))


def _solver(function: Any, operands: int) -> Any:
    def handler(model: Model, *args: Any, **kwargs: Any) -> Any:
        rows = [model.floats(a) for a in args[:operands]]
        if len(args) > operands:
            raise Unsupported(f"numpy.linalg.{function.__name__} with positional options")
        return model.solver(function, rows, **kwargs)

    return handler


for _function, _operands in (
    (np.linalg.solve, 2),
    (np.linalg.inv, 1),
    (np.linalg.pinv, 1),
    (np.linalg.cholesky, 1),
    (np.linalg.det, 1),
    (np.linalg.slogdet, 1),
    (np.linalg.eigh, 1),
    (np.linalg.eigvalsh, 1),
    (np.linalg.svd, 1),
    (np.linalg.svdvals, 1),
    (np.linalg.qr, 1),
):
    handles(_function, floats=True)(_solver(_function, _operands))
