"""Right kernels written by hand in float32 pass; wrong ones fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trueup.oracle.bounds import Evaluator, Precision, judge, judge_confirmed

Array = Any
F32 = np.float32


def single(x: Any) -> Array:
    return np.asarray(x, dtype=F32).astype(np.float64)


def evaluator(form: Callable[..., Any], *, seed: int = 0, **inputs: Any) -> Evaluator:
    return Evaluator([form], inputs, Precision(), ["f32"], seed=seed)


def ratio(e: Evaluator, output: Array) -> float:
    (judged,) = judge_confirmed(e, [np.asarray(output).astype(np.float64)])
    assert not judged.not_judged.any()
    return max(judged.worst_ratio, judged.coherent / 8.0)


def total(x: Array) -> Array:
    return np.sum(x, axis=-1)


def in_order(x: Array) -> Array:
    return np.add.accumulate(x.astype(F32), axis=-1, dtype=F32)[..., -1]


def in_pairs(x: Array) -> Array:
    x = x.astype(F32)
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def in_lanes(x: Array, lanes: int = 32) -> Array:
    pad = -x.shape[-1] % lanes
    x = np.concatenate([x, np.zeros((*x.shape[:-1], pad))], axis=-1).astype(F32)
    x = x.reshape(*x.shape[:-1], -1, lanes)
    return in_pairs(np.add.accumulate(x, axis=-2, dtype=F32)[..., -1, :])


SUMS: dict[str, Callable[[Array], Array]] = {
    "sequential": in_order,
    "reversed": lambda x: in_order(x[..., ::-1]),
    "pairwise": in_pairs,
    "lanes": in_lanes,
    "many lanes": lambda x: in_lanes(x, 256),
    "shuffled": lambda x: in_order(x[..., np.random.default_rng(5).permutation(x.shape[-1])]),
    "numpy": lambda x: np.sum(x.astype(F32), axis=-1),
}
RNG = np.random.default_rng(3)


def data(kind: str, n: int) -> Array:
    x = RNG.normal(size=(8, n))
    return single(
        {
            "normal": x,
            "positive": np.abs(x),
            "sorted": np.sort(x, axis=-1),
            "ramp": np.broadcast_to(np.linspace(-1, 2, n), x.shape),
            "halves": np.sign(np.arange(n) - n / 2 + 0.5) * np.abs(x),
            "period 2": np.where(np.arange(n) % 2, 1.0, -1.0) * (1 + np.abs(x)),
            "period 32": np.where(np.arange(n) % 32 < 16, 1.0, -1.0) * (1 + 0.1 * x),
            "offset": x + 100.0,
        }[kind]
    )


@pytest.mark.parametrize("n", [3, 33, 1024])
@pytest.mark.parametrize(
    "kind", ["normal", "positive", "sorted", "ramp", "halves", "period 2", "period 32", "offset"]
)
def test_sums_in_any_order_pass(kind: str, n: int) -> None:
    x = data(kind, n)
    e = evaluator(total, x=x)
    for name, add in SUMS.items():
        assert ratio(e, add(x)) <= 0.9, name


@pytest.mark.parametrize("kind", ["normal", "positive", "offset", "sorted"])
def test_wrong_sums_fail(kind: str) -> None:
    x = data(kind, 1024)
    e = evaluator(total, x=x)
    right = in_lanes(x)
    bf16 = x[..., 0].astype(ml_dtypes.bfloat16)
    for column in np.moveaxis(x, -1, 0)[1:]:
        bf16 = (bf16.astype(F32) + column.astype(F32)).astype(ml_dtypes.bfloat16)
    wrong = {
        "twice": 2 * right,
        "lost term": right - x[..., 7],
        "off by one": in_order(x[..., :-1]),
        "bf16 accumulation": bf16.astype(np.float64),
        "zeros": 0 * right,
        "sign": -right,
        "next row": np.roll(right, 1),
    }
    for name, output in wrong.items():
        assert ratio(e, output) > 1, name


def loops_of(a: Array, b: Array, *, fused: bool = False, backwards: bool = False) -> Array:
    out = np.zeros((a.shape[0], b.shape[1]), dtype=np.float64)
    steps = range(a.shape[1])
    for k in reversed(steps) if backwards else steps:
        product = a[:, k, None] * b[None, k, :]  # exact in float64
        out = single(out + (product if fused else single(product)))
    return out


def short(x: Array, bits: int) -> Array:
    scale = np.exp2(bits - np.frexp(x)[1])
    return np.rint(x * scale) / scale


@pytest.mark.parametrize("shape", [(5, 33, 7), (3, 600, 4), (16, 1, 9)])
def test_matrix_products(shape: tuple[int, int, int]) -> None:
    n, k, m = shape
    a, b = single(RNG.normal(size=(n, k))), single(RNG.normal(size=(k, m)))
    e = evaluator(lambda a, b: a @ b, a=a, b=b)
    rights = {
        "loop": loops_of(a, b),
        "fused": loops_of(a, b, fused=True),
        "backwards": loops_of(a, b, backwards=True),
        "blas": a.astype(F32) @ b.astype(F32),
        "lanes": in_lanes(single(a[:, None, :] * b.T[None])),
    }
    for name, output in rights.items():
        assert ratio(e, output) <= 0.9, name
    wrongs = {
        "tf32": loops_of(short(a, 11), short(b, 11)),
        "bf16": loops_of(short(a, 8), short(b, 8)),
        "transposed": loops_of(a[::-1], b),
    }
    for name, output in wrongs.items():
        assert ratio(e, output) > 1, name


def test_declared_short_multiplies_pass() -> None:
    a, b = single(RNG.normal(size=(8, 200))), single(np.abs(RNG.normal(size=(200, 8))))
    for multiply, bits in (("tf32", 11), ("bf16", 8)):
        e = Evaluator(
            [lambda a, b: a @ b], {"a": a, "b": b}, Precision(multiply=multiply), ["f32"], seed=1
        )
        assert ratio(e, loops_of(short(a, bits), short(b, bits))) <= 0.9
        assert ratio(e, loops_of(short(a, bits - 3), short(b, bits - 3))) > 1


def cut(x: Array, bits: int) -> Array:
    scale = np.exp2(bits - np.frexp(x)[1])
    return np.trunc(x * scale) / scale


def test_truncating_multiplies_must_be_declared() -> None:
    a, b = single(np.abs(RNG.normal(size=(8, 1024)))), single(np.abs(RNG.normal(size=(1024, 8))))
    output = loops_of(cut(a, 11), cut(b, 11))
    inputs = {"a": a, "b": b}
    rounding = Evaluator([lambda a, b: a @ b], inputs, Precision(multiply="tf32"), ["f32"], seed=1)
    truncating = Evaluator(
        [lambda a, b: a @ b],
        inputs,
        Precision(multiply="tf32", rounding="truncate"),
        ["f32"],
        seed=1,
    )
    assert ratio(rounding, output) > 1
    assert ratio(truncating, output) <= 0.9


def series(obs: Array, alpha: float) -> Array:
    out = np.zeros_like(obs)
    p = obs[0]
    out[0] = p
    for t in range(1, len(obs)):
        p = (1.0 - alpha) * p + alpha * obs[t]
        out[t] = p
    return out


def kernel_series(obs: Array, alpha: float, form: str) -> Array:
    a = F32(alpha)
    x = obs.astype(F32)
    p = x[0]
    rows = [p]
    for o in x[1:]:
        if form == "two products":
            p = F32(F32(1) - a) * p + a * o
        elif form == "correction":
            p = p + a * (o - p)
        else:  # one fused multiply-add
            p = (np.float64(F32(F32(1) - a)) * p + (a * o).astype(F32)).astype(F32)
        rows.append(p)
    return np.array(rows)


@pytest.mark.parametrize("form", ["two products", "correction", "fused"])
def test_averages_over_time(form: str) -> None:
    alpha = float(F32(0.1))
    obs = single(RNG.normal(size=(300, 3)) + 1)
    e = evaluator(series, obs=obs, alpha=alpha)
    assert ratio(e, kernel_series(obs, alpha, form)) <= 0.9
    assert ratio(e, kernel_series(obs, alpha * 1.001, form)) > 1
    late = np.vstack([obs[:1], kernel_series(obs, alpha, form)[:-1]])
    assert ratio(e, late) > 1


def softmax(x: Array) -> Array:
    z = np.exp(x - x.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def test_softmax() -> None:
    x = single(3 * RNG.normal(size=(6, 65)))
    e = evaluator(softmax, x=x)
    z = np.exp(single(x - x.max(-1, keepdims=True)).astype(F32))
    for add in SUMS.values():
        assert ratio(e, z / add(z)[:, None].astype(F32)) <= 0.9
    assert ratio(e, z * F32(1.0001) / in_lanes(z)[:, None]) > 1
    assert ratio(e, z / in_lanes(z[:, :-1])[:, None]) > 1


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    mean = x.mean(axis=-1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(var + eps) + beta


def kernel_norm(x: Array, g: Array, b: Array, eps: float, add: Any, one_pass: bool) -> Array:
    n = F32(x.shape[-1])
    x, g, b = x.astype(F32), g.astype(F32), b.astype(F32)
    mean = (add(x).astype(F32) / n)[:, None]
    off = x - mean
    var = (add(off * off).astype(F32) / n)[:, None]
    if one_pass:
        var = (add(x * x).astype(F32) / n)[:, None] - mean * mean
    return off * (F32(1) / np.sqrt(var + F32(eps))) * g + b


@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_layer_norm(offset: float) -> None:
    x = single(RNG.normal(size=(7, 130)) + offset)
    g, b = single(RNG.normal(size=130)), single(RNG.normal(size=130))
    e = evaluator(layer_norm, x=x, gamma=g, beta=b, eps=1e-5)
    for name, add in SUMS.items():
        assert ratio(e, kernel_norm(x, g, b, 1e-5, add, False)) <= 0.9, name
    if offset:  # a mean far above the spread is what shows the cancellation of one pass
        assert ratio(e, kernel_norm(x, g, b, 1e-5, in_order, True)) > 1


def test_epsilon_shows_near_the_smallest_variance() -> None:
    x = single(1e-3 * RNG.normal(size=(5, 64)))
    one, zero = np.ones(64), np.zeros(64)
    e = evaluator(layer_norm, x=x, gamma=one, beta=zero, eps=1e-5)
    assert ratio(e, kernel_norm(x, one, zero, 1e-5, in_lanes, False)) <= 0.9
    assert ratio(e, kernel_norm(x, one, zero, 1.01e-5, in_lanes, False)) > 1


def test_the_witness_is_not_the_judge() -> None:
    """A bound that accepts everything would pass all of the above."""
    x = data("normal", 64)
    (judged,) = judge(evaluator(total, x=x).evaluation(), [total(x) * (1 + 1e-5)])
    assert judged.failed.any()
