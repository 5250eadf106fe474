"""Row 0 of an evaluation is the plain float64 result, bit by bit."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import exp, zeros

from trueup.oracle.bounds import Precision
from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.model import Model
from trueup.oracle.bounds.sampled import Sampled
from trueup.oracle.bounds.swap import rebuild
from trueup.oracle.bounds.tape import Tape
from trueup.oracle.bounds.worst import Worst

Array = Any
RNG = np.random.default_rng(0)


def single(x: Array) -> Array:
    return np.asarray(x, dtype=np.float32).astype(np.float64)


SQUARE = single(RNG.normal(size=(4, 4)) + 3 * np.eye(4))
VALUES: dict[str, Array] = {
    "x": single(RNG.normal(size=(5, 6))),
    "v": single(RNG.normal(size=6)),
    "i": np.array([2, 0, 1]),
    "pos": single(np.abs(RNG.normal(size=(5, 6))) + 0.1),
    "sq": SQUARE,
    "spd": single(SQUARE @ SQUARE.T),
}
CASES: dict[str, Callable[..., Any]] = {}


def case(name: str, function: Callable[..., Any]) -> None:
    CASES[name] = function


def _named(name: str, *, axis: Any = "none", arguments: str = "x") -> None:
    function = getattr(np, name)
    if arguments == "x" and axis == "none":
        case(name, lambda x: function(x * 1.1))
    elif arguments == "x":
        case(f"{name} axis={axis}", lambda x: function(x * 1.1, axis=axis))
    elif arguments == "pos":
        case(name, lambda pos: function(pos))
    else:
        case(name, lambda x, v: function(x * 1.1, v))


for _name in [
    "exp",
    "tanh",
    "sin",
    "cos",
    "arctan",
    "expm1",
    "sinh",
    "cosh",
    "square",
    "floor",
    "ceil",
    "rint",
    "sign",
    "abs",
    "negative",
    "cbrt",
    "ravel",
    "transpose",
    "fliplr",
    "flipud",
    "rot90",
    "tril",
    "triu",
    "diag",
    "diagonal",
    "trace",
    "isnan",
    "copy",
]:
    _named(_name)
for _name in ["log", "sqrt", "log1p", "reciprocal", "log2", "log10"]:
    _named(_name, arguments="pos")
for _name in [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "hypot",
    "arctan2",
    "copysign",
    "logaddexp",
    "floor_divide",
    "remainder",
    "fmod",
]:
    _named(_name, arguments="x, v")
for _axis in (None, 0, 1):
    for _name in [
        "sum",
        "mean",
        "var",
        "std",
        "max",
        "min",
        "prod",
        "ptp",
        "median",
        "cumsum",
        "cumprod",
        "argmax",
        "argmin",
        "any",
        "all",
        "count_nonzero",
    ]:
        _named(_name, axis=_axis)
for _axis in (0, 1):
    for _name in ["sort", "argsort", "flip", "diff"]:
        _named(_name, axis=_axis)

case("sum of two axes", lambda x: x.sum(axis=(0, 1)))
case("mean keepdims", lambda x: (x * 1.1).mean(axis=0, keepdims=True))
case("powers", lambda x: (x * 1.1) ** 2 + x**3 + abs(x) ** 0.5 + abs(x) ** 1.7)
case("matmul vector", lambda x, v: x @ v)
case("matmul transposed", lambda x: x @ x.T)
case("vector dot", lambda v: v @ v)
case("dot", lambda x, v: np.dot(x, v))
case("outer", lambda v: np.outer(v, v * 1.1))
case("inner", lambda x: np.inner(x, x))
case("einsum ij,j->i", lambda x, v: np.einsum("ij,j->i", x, v))
case("einsum ij,kj->ik", lambda x: np.einsum("ij,kj->ik", x, x))
case("einsum three", lambda x, v: np.einsum("ij,j,ik->k", x, v, x))
case("einsum diagonal", lambda sq: np.einsum("ii->i", sq) + np.einsum("ii", sq))
case("einsum sum", lambda x: np.einsum("ij->j", x))
case("einsum dots", lambda x: np.einsum("...j,...j->...", x, x))
case("einsum implicit", lambda x, v: np.einsum("ij,j", x, v))
case("einsum scale", lambda x, v: np.einsum("ij,j->ij", x, v))
case("einsum batch", lambda x: np.einsum("bi,bj->bij", x, x))
case("tensordot", lambda x: np.tensordot(x, x, axes=([0], [0])))
case("kron", lambda v: np.kron(v, v))
case("cross", lambda x: np.cross(x[:, :3], x[:, 3:]))
case("convolve", lambda v: np.convolve(v, v[:3], "same"))
case("correlate", lambda v: np.correlate(v, v[:3], "full"))
case("norm", lambda x: np.linalg.norm(x))
case("norm rows", lambda x: np.linalg.norm(x, axis=1, keepdims=True))
case("norm inf", lambda v: np.linalg.norm(v, np.inf))
case("norm fro", lambda x: np.linalg.norm(x, "fro"))
case("norm spectral", lambda x: np.linalg.norm(x, 2))
case("solve", lambda sq: np.linalg.solve(sq, sq[:, 0]))
case("inv", lambda sq: np.linalg.inv(sq))
case("cholesky", lambda spd: np.linalg.cholesky(spd))
case("eigh", lambda spd: np.linalg.eigh(spd)[0])
case("matrix power", lambda sq: np.linalg.matrix_power(sq, 3))
case("concatenate scalars", lambda x, v: np.concatenate([x, [[v[0], 1.0, 2.0, 3.0, 4.0, 0.1]]]))
case("stack", lambda v: np.stack([v, v * 1.1]))
case("hstack", lambda v: np.hstack([v, v * 1.1, [1.0, 2.0]]))
case("tile", lambda v: np.tile(v * 1.1, (2, 2)))
case("repeat", lambda v: np.repeat(v * 1.1, 2))
case("roll", lambda v: np.roll(v * 1.1, 2))
case("take", lambda v, i: np.take(v * 1.1, i))
case(
    "take_along_axis",
    lambda x: np.take_along_axis(x * 1.1, np.argsort(x, axis=1), axis=1),
)
case("pad", lambda v: np.pad(v * 1.1, 2))
case("pad edge", lambda v: np.pad(v * 1.1, 2, mode="edge"))
case("insert", lambda v: np.insert(v * 1.1, 1, 2.5))
case("append", lambda v: np.append(v, v))
case("delete", lambda v: np.delete(v * 1.1, 1))
case("split", lambda v: np.split(v * 1.1, 2)[1])
case("where", lambda x: np.where(x > 0, x * 1.1, 0))
case("select", lambda x: np.select([x > 1, x < -1], [x * 1.1, x * 3.3], default=0.5))
case("clip", lambda x: np.clip(x * 1.1, -0.5, 0.7))
case("clip method", lambda x: (x * 1.1).clip(0, None))
case("round", lambda x: np.round(x * 1.1, 2))
case("bincount", lambda v, i: np.bincount(i, weights=v[:3] * 1.1, minlength=5))
case("interp", lambda v: np.interp(v * 1.1, [-1.0, 0.0, 1.0], [3.0, 1.0, 2.0]))
case("searchsorted", lambda v: np.searchsorted(np.sort(v), v * 1.0))
case("digitize", lambda v: np.digitize(v * 1.1, [-1.0, 0.0, 1.0]))
case("quantile", lambda x: np.quantile(x * 1.1, 0.3, axis=0))
case("percentile", lambda v: np.percentile(v * 1.1, [10, 50]))
case("average", lambda x, v: np.average(x, axis=1, weights=abs(v)))
case("nansum", lambda x: np.nansum(x))
case("trapezoid", lambda v: np.trapezoid(v))
case("running maximum", lambda x: np.maximum.accumulate(x * 1.1, axis=1))
case("add.reduce", lambda x: np.add.reduce(x))
case("multiply.outer", lambda v: np.multiply.outer(v, v))
case("meshgrid", lambda v: np.meshgrid(v, v * 1.1)[0])
case("column_stack", lambda v: np.column_stack([v, v]))
case("swapaxes", lambda x: np.swapaxes(x * 1.1, 0, 1))
case("moveaxis", lambda x: np.moveaxis(x, 0, 1))
case("broadcast_to", lambda v: np.broadcast_to(v * 1.1, (3, 6)))
case("newaxis", lambda v: v[:, None] * v[None])
case("fancy rows", lambda x, i: x[i][:, [0, 2]])
case("fancy ellipsis", lambda x, i: x[i, :][..., i])
case("fancy apart", lambda x, i: np.stack([x * 1.1, x])[0, :, i])
case("mask", lambda x: (x * 1.1)[x > 0])
case("mask of rows", lambda x: x[x[:, 0] > 0])
case("backwards", lambda x: x[::-1, ::-2])
case("nonzero", lambda x: np.nonzero(x > 0)[0])
case("argwhere", lambda x: np.argwhere(x > 0))
case("integers", lambda i: i * 2 + 1)
case("mean of integers", lambda i: i.mean())
case("quotient of integers", lambda i: i / 3)
case("count of a mask", lambda x: (x > 0).sum(axis=0))
case("mean of a mask", lambda x: (x > 0).mean(axis=0))
case("linspace", lambda v: np.linspace(v[0], v[1], 7))
case("arange", lambda v: np.arange(5) * v[0])
case("eye", lambda v: np.eye(6) * v)
case("descending", lambda v: np.sort(v)[::-1])


def loops(x: Array) -> Any:
    out = np.zeros(x.shape[1])
    count = np.zeros(x.shape[1], dtype=np.int64)
    for k in range(len(x)):
        out += x[k] * 1.1
        count[k] = np.argmax(x[k])
        row = out[1:3]
        row *= 1.01
    return out, count


def scalars(x: Array) -> Array:
    z = math.log(float(exp(x).sum()))
    out = zeros(3)
    out[0] = z
    out[1] = max(float(x[0, 0]), 0.3)
    out[2] = min(x[0, 1], z)
    if np.isnan(x).any():
        out[0] = 1.0
    s = 0.0
    for row in x:
        s += float(row[0] * 0.1)
    out[1] += s
    return out


def scatter(x: Array, i: Array) -> Array:
    out = np.zeros(6)
    np.add.at(out, i, x[0, :3] * 1.1)
    return out


def views(x: Array) -> Array:
    """Views of an array that has not been written write through to it."""
    out = np.zeros((3, 4))
    row = out[1]
    row += x[0, :4] * 1.1
    column = out.T[2]
    column[:] = x[1, :3] * 1.3
    out.reshape(-1)[0] = 7.5
    number = out[0, 0]
    number += 1
    return out


for _function in (loops, scalars, scatter, views):
    case(_function.__name__, _function)

NO_WORST_CASE = {"norm spectral", "solve", "inv", "cholesky", "eigh"}


@pytest.mark.parametrize("kind", ["sampled", "worst"])
@pytest.mark.parametrize("name", CASES)
def test_row_zero_is_the_plain_result(name: str, kind: str) -> None:
    function = CASES[name]
    given = {k: VALUES[k] for k in inspect.signature(function).parameters}
    model: Model = (
        Sampled(Precision(), Tape(), samples=4, seed=(1,))
        if kind == "sampled"
        else Worst(Precision(), Tape())
    )
    if kind == "worst" and name in NO_WORST_CASE:
        with np.errstate(all="ignore"), pytest.raises(Unsupported, match="no worst case"):
            rebuild(function, model, {})(**{k: model.lift(v) for k, v in given.items()})
        return
    want = function(**given)
    with np.errstate(all="ignore"):
        got = rebuild(function, model, {})(**{k: model.lift(v) for k, v in given.items()})
    for one, rows in zip(
        want if isinstance(want, tuple) else (want,),
        got if isinstance(got, tuple) else (got,),
        strict=True,
    ):
        row = model.lift(rows).v
        assert row.shape == np.shape(one)
        assert row.dtype.kind == np.asarray(one).dtype.kind
        np.testing.assert_array_equal(row, one, strict=False)


def test_a_float_never_leaves_silently() -> None:
    model = Sampled(Precision(), Tape(), samples=4, seed=(1,))
    x = model.lift(np.ones(3))
    with pytest.raises(Unsupported):
        np.array(x)
    with pytest.raises(Unsupported):
        float(x[0])
    np.testing.assert_array_equal(np.asarray(model.lift(np.arange(3))), [0, 1, 2])
