"""Where arithmetic is exact the allowed error is 0; one ulp off fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import Evaluation, Evaluator, Precision, judge

Array = Any
RNG = np.random.default_rng(0)
INTEGERS = RNG.integers(-4, 5, (6, 40)).astype(np.float64)
X = RNG.normal(size=(6, 40)).astype(np.float32).astype(np.float64)


def evaluation(form: Callable[..., Any], dtype: str = "f32", **inputs: Any) -> Evaluation:
    return Evaluator([form], inputs, Precision(), [dtype], seed=0).evaluation()


def running(x: Array) -> Array:
    out = np.zeros(len(x))
    for j in range(x.shape[1]):
        out += x[:, j]
    return out


@pytest.mark.parametrize(
    ("form", "x"),
    [
        pytest.param(lambda x: x @ x.T, INTEGERS, id="matmul of integers"),
        pytest.param(lambda x: x.sum(axis=1), INTEGERS, id="sum of integers"),
        pytest.param(lambda x: np.cumsum(x, axis=1), INTEGERS, id="running sum of integers"),
        pytest.param(lambda x: np.einsum("ij,kj->ik", x, x), INTEGERS, id="einsum of integers"),
        pytest.param(running, INTEGERS, id="loop over integers"),
        pytest.param(lambda x: 2.0 * x, X, id="twice"),
        pytest.param(lambda x: x[::-1].T, X, id="copy"),
        pytest.param(lambda x: np.where(x > 0, x, 0.0), X, id="mask"),
        pytest.param(lambda x: x - x, X, id="difference with itself"),
        pytest.param(lambda x: np.sort(x, axis=1), X, id="sort"),
        pytest.param(lambda x: np.maximum(x, 0.0), X, id="relu"),
        pytest.param(lambda x: np.exp(0.0 * x) + np.tanh(0.0 * x), X, id="special points"),
    ],
)
def test_exact_results_allow_nothing(form: Callable[..., Any], x: Array) -> None:
    e = evaluation(form, x=x)
    (right,) = e.values
    (judged,) = judge(e, [right])
    assert judged.exact.all()
    assert judged.passed
    off = right.copy()
    off.reshape(-1)[5] = np.nextafter(np.float32(off.reshape(-1)[5]), np.float32(1e9))
    (judged,) = judge(e, [off])
    assert int(judged.failed.sum()) == 1
    assert judged.worst_ratio == np.inf
    assert judged.zone == "proven"


@pytest.mark.parametrize(
    ("form", "x"),
    [
        pytest.param(lambda x: x * x, X, id="product"),
        pytest.param(lambda x: x.sum(axis=1), X, id="sum"),
        pytest.param(running, X, id="loop"),
        pytest.param(lambda x: x * 0.1, X, id="constant"),
        pytest.param(lambda x: (x * x) - (x * x), X, id="fused residue"),
    ],
)
def test_rounded_results_allow_something(form: Callable[..., Any], x: Array) -> None:
    e = evaluation(form, x=x)
    assert (e.outputs[0][0].allowed > 0).mean() > 0.9


def test_a_fused_residue_passes() -> None:
    e = evaluation(lambda x: x * x - x * x, x=X)
    product = X * X
    residue = product - product.astype(np.float32).astype(np.float64)
    (judged,) = judge(e, [residue.astype(np.float32).astype(np.float64)])
    assert judged.passed


def test_exact_by_luck_in_one_order_is_not_exact() -> None:
    """2^24 cancels before 0.75 comes in the order of the loop, and not in the reversed one."""
    x = np.array([[2.0**24, -(2.0**24), 0.75]])
    e = evaluation(running, x=x)
    backwards = np.float32(0)
    for term in x[0, ::-1].astype(np.float32):
        backwards = np.float32(backwards + term)
    assert float(backwards) != e.values[0][0]
    (judged,) = judge(e, [np.array([float(backwards)])])
    assert judged.passed


def test_integers_beyond_24_bits_are_not_exact() -> None:
    big = np.full((1, 3), 2.0**24) + np.array([[0, 2, 2]])
    e = evaluation(lambda x: x.sum(axis=1), x=big)
    assert e.outputs[0][0].allowed[0] > 0


def test_integer_outputs_are_exact() -> None:
    e = evaluation(lambda x: (x > 0).sum(axis=1), "i32", x=X)
    right = (X > 0).sum(axis=1)
    assert judge(e, [right])[0].passed
    assert judge(e, [right + 1])[0].failed.all()


def test_an_output_shorter_than_the_value_is_rounded_once() -> None:
    e = evaluation(lambda x: 1.0 * x, "bf16", x=X)
    allowed = e.outputs[0][0].allowed
    np.testing.assert_allclose(allowed, 2.0**-8 * np.abs(X), rtol=1e-12)
