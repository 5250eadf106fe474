"""Named intermediates are rounded where the contract says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import BoundsError, Evaluator, Precision, judge
from trueup.oracle.bounds.formats import format_of

Array = Any
RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 40)).astype(np.float32).astype(np.float64)
BF16 = format_of("bf16")


def plain_name(x: Array) -> Array:
    t = x * x
    return t.sum(axis=1)


def of_a_tuple(x: Array) -> Array:
    t, scale = x * x, 1.0
    return scale * t.sum(axis=1)


def augmented(x: Array) -> Array:
    t = x
    t = t + 0.0
    t *= x
    return t.sum(axis=1)


def walrus(x: Array) -> Array:
    return (t := x * x).sum(axis=1) + 0.0 * t[:, 0]


def in_a_loop(x: Array) -> Array:
    out = np.zeros(len(x))
    for i in range(len(x)):
        if i >= 0:
            t = x[i] * x[i]
        out[i] = t.sum()
    return out


def squared(x: Array) -> Array:
    t = x * x
    return t


def in_a_helper(x: Array) -> Array:
    return squared(x).sum(axis=1)


def in_an_argument(x: Array, *, square: Callable[..., Any] = squared) -> Array:
    return square(x).sum(axis=1)


def with_closure(offset: float) -> Callable[..., Any]:
    def form(x: Array, *, scale: float = 1.0) -> Array:
        t: Array = x * x
        return scale * t.sum(axis=1) + offset

    return form


def kernel(x: Array) -> Array:
    t = BF16.round((x * x).astype(np.float32).astype(float)).astype(np.float32)
    return np.add.accumulate(t, axis=1)[:, -1].astype(float)


@pytest.mark.parametrize(
    "form",
    [
        plain_name,
        of_a_tuple,
        augmented,
        walrus,
        in_a_loop,
        with_closure(0.0),
        in_a_helper,
        in_an_argument,
        partial(in_an_argument, square=squared),
    ],
)
def test_a_stored_intermediate_is_declared(form: Callable[..., Any]) -> None:
    stored = Precision(stored={"t": "bf16"})
    with_it = Evaluator([form], {"x": X}, stored, ["f32"], seed=0).evaluation()
    without = Evaluator([form], {"x": X}, Precision(), ["f32"], seed=0).evaluation()
    assert not with_it.notes
    assert judge(with_it, [kernel(X)])[0].passed
    assert judge(without, [kernel(X)])[0].failed.any()
    np.testing.assert_array_equal(with_it.values[0], form(X))


def test_only_the_named_one_is_rounded() -> None:
    stored = Precision(stored={"t": "bf16"})
    x = RNG.normal(size=(5, 4000)).astype(np.float32).astype(np.float64)
    e = Evaluator([plain_name], {"x": x}, stored, ["f32"], seed=0).evaluation()
    assert judge(e, [kernel(x)])[0].passed
    twice = BF16.round(kernel(x))  # the sum stored in bf16 as well
    assert judge(e, [twice])[0].failed.any()


def test_a_name_that_is_never_assigned_is_refused() -> None:
    stored = Precision(stored={"tt": "bf16"})
    with pytest.raises(BoundsError, match="tt"):
        Evaluator([plain_name], {"x": X}, stored, ["f32"], seed=0).evaluation()


def test_every_operation_in_bf16_is_another_contract() -> None:
    def form(x: Array) -> Array:
        return (x * x + x) * 0.5

    def every_operation(x: Array) -> Array:
        y = BF16.round(x)
        return BF16.round(BF16.round(BF16.round(y * y) + y) * 0.5)

    inputs = {"x": BF16.round(X)}
    compute = Precision(storage="bf16", compute="bf16")
    loose = Evaluator([form], inputs, compute, ["bf16"], seed=0).evaluation()
    tight = Evaluator([form], inputs, Precision(storage="bf16"), ["bf16"], seed=0).evaluation()
    assert judge(loose, [every_operation(X)])[0].passed
    assert judge(tight, [every_operation(X)])[0].failed.any()
    once = BF16.round(form(BF16.round(X)))
    assert judge(tight, [once])[0].passed


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("storage", "f31"),
        ("multiply", "int8"),
        ("rounding", "up"),
        ("approximate", ("gamma",)),
        ("stored", {"t": "f31"}),
    ],
)
def test_a_precision_that_is_none_is_refused(field: str, value: Any) -> None:
    with pytest.raises(BoundsError):
        Precision(**{field: value})
