"""What the worst case alone makes certain: exact elements, and errors no right kernel exceeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import Certain, Evaluator, Precision, certain, machine
from trueup.oracle.bounds.orders import ORDERS

Array = Any
RNG = np.random.default_rng(0)
INTEGERS = RNG.integers(-4, 5, (6, 40)).astype(np.float64)
X = RNG.normal(size=(6, 40)).astype(np.float32).astype(np.float64)


def told(form: Callable[..., Any], dtype: str = "f32", **inputs: Any) -> Certain:
    found = certain(Evaluator([form], inputs, Precision(), [dtype], seed=0), 0)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x @ x.T,
        lambda x: x.sum(axis=1),
        lambda x: np.where(x > 0, x, 0.0),
        lambda x: np.sort(x, axis=1),
    ],
    ids=["matmul", "sum", "mask", "sort"],
)
def test_integers_are_exact(form: Callable[..., Any]) -> None:
    assert (told(form, x=INTEGERS).largest == 0).all()
    assert told(form, x=INTEGERS).clear


@pytest.mark.parametrize("form", [lambda x: x @ x.T, lambda x: np.exp(x), lambda x: x * 0.1])
def test_what_rounds_is_not_exact(form: Callable[..., Any]) -> None:
    assert (told(form, x=X).largest > 0).all()


def test_exact_elements_are_those_without_allowance() -> None:
    def form(x: Array) -> Array:
        return np.where(x > 0, 3.0 * x, x / 3.0)

    evaluator = Evaluator([form], {"x": INTEGERS}, Precision(), ["f32"], seed=0)
    (output,) = evaluator.evaluation().outputs
    np.testing.assert_array_equal(told(form, x=INTEGERS).largest == 0, output[0].allowed == 0)


def test_the_output_s_own_rounding_counts() -> None:
    third = told(lambda x: x, "bf16", x=X)
    assert (third.largest >= 2.0**-9 * np.abs(X)).all()
    assert (told(lambda x: x, x=X).largest == 0).all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_kernel_of_any_order_is_within(order: str) -> None:
    def form(x: Array) -> Array:
        return np.tanh(x @ x.T) / 3.0

    value = machine(form, {"x": X}, Precision(), order)[0]
    certainly = told(form, x=X)
    assert (np.abs(value - certainly.value) <= certainly.largest).all()


@pytest.mark.parametrize(
    "form",
    [
        lambda x: np.floor(x * 0.1 * 10.0),
        lambda x: np.where(x * 0.1 > 0.1, 1.0, 0.0),
        lambda x: np.argmax(np.stack([x * 0.1, x / 10.0]), axis=0),
        lambda x: np.argsort(np.stack([x * 0.1, x / 10.0]), axis=0),
    ],
    ids=["floor", "compare", "argmax", "argsort"],
)
def test_a_decision_within_rounding_is_not_clear(form: Callable[..., Any]) -> None:
    dtype = "i64" if form(INTEGERS).dtype.kind == "i" else "f32"
    assert not told(form, dtype, x=INTEGERS).clear


def test_infinity_and_nan_stand_and_what_hangs_on_them_has_no_bound() -> None:
    x = X.copy()
    x[0, 0], x[1, 0] = np.nan, np.inf
    certainly = told(lambda x: (x * 0.1).sum(axis=1), x=x)
    np.testing.assert_array_equal(np.isfinite(certainly.value), [False, False, *[True] * 4])
    assert np.isfinite(certainly.largest[2:]).all()


def test_what_cannot_be_followed_is_told_so() -> None:
    job = Evaluator([lambda x: np.linalg.inv(x[:, :6])], {"x": X}, Precision(), ["f32"], seed=0)
    assert certain(job, 0) is None
