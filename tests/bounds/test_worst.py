"""The worst case holds for every right machine, whatever the operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import Evaluator, Precision, machine
from trueup.oracle.bounds.orders import ORDERS

Array = Any
RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 33)).astype(np.float32).astype(np.float64)
V = RNG.normal(size=33).astype(np.float32).astype(np.float64)


def softmax(x: Array, v: Array) -> Array:
    z = np.exp(x - x.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def layer_norm(x: Array, v: Array) -> Array:
    return v * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def loop(x: Array, v: Array) -> Array:
    out = np.zeros(len(x))
    for j in range(x.shape[1]):
        out += x[:, j] * v[j]
    return out


def cancelling(x: Array, v: Array) -> Array:
    return np.abs(x) - np.log1p(np.abs(x))


CASES: dict[str, Callable[..., Any]] = {
    "sum": lambda x, v: x.sum(axis=1),
    "product": lambda x, v: (x @ x.T) @ x,
    "einsum": lambda x, v: np.einsum("ij,j,kj->ik", x, v, x),
    "concatenate": lambda x, v: np.concatenate([x * 0.1, x[:1] / 3.0]).sum(axis=0),
    "sort": lambda x, v: np.sort(x * 1.1, axis=1) * v,
    "place in a grid": lambda x, v: (
        np.sort(v)[np.searchsorted(np.sort(v), 0.9 * x[:, 0]) % 33] * 3.3
    ),
    "cumsum": lambda x, v: np.cumsum(x * v, axis=1),
    "softmax": softmax,
    "layer norm": layer_norm,
    "loop": loop,
    "x - log1p(x)": cancelling,
    "powers": lambda x, v: (x * 1.1) ** 3 + np.abs(x) ** 1.7 + (1.0 / (1.0 + x * x)) ** 2,
    "trigonometry": lambda x, v: np.sin(3.0 * x) * np.cos(x) + np.arctan2(x, v) + np.hypot(x, v),
    "hyperbolic": lambda x, v: np.tanh(x * 1.1) + np.cosh(x * 0.3) + np.arctan(x / 3.0),
    "quotients": lambda x, v: 1.0 / (2.0 + np.tanh(x * v)) + np.reciprocal(3.0 + x * x),
    "norm": lambda x, v: x / np.linalg.norm(x, axis=1, keepdims=True),
    "product of a row": lambda x, v: np.prod(1.0 + 0.1 * x, axis=1),
    "quantile": lambda x, v: np.quantile(x * 1.1, 0.3, axis=1) + np.median(x * 0.7, axis=1),
    "outer": lambda x, v: np.outer(v, v * 0.1)[:5],
    "where": lambda x, v: np.where(x > 0, x * 0.1, x / 3.0),
    "extremes": lambda x, v: np.maximum(x * 0.1, 0.2).max(axis=1) + (x * v).min(axis=1),
}


@pytest.mark.parametrize("name", CASES)
def test_right_machines_stay_within_both_bounds(name: str) -> None:
    form = CASES[name]
    inputs = {"x": X, "v": V}
    e = Evaluator([form], inputs, Precision(), ["f32"], seed=0).evaluation()
    (alternative,) = e.outputs[0]
    assert not np.isnan(alternative.worst).any(), e.notes
    for order in ORDERS:
        (made,) = machine(form, inputs, Precision(), order)
        error = np.abs(made.astype(np.float32) - alternative.value)
        assert (error <= alternative.worst).all(), order
        assert (error <= 0.9 * alternative.allowed + 2.0**-149).all(), order
    assert (alternative.worst[alternative.allowed == 0] == 0).all()


def test_a_worst_case_of_nothing_is_nothing() -> None:
    x = np.rint(X * 3)
    e = Evaluator(
        [lambda x: np.cumsum(x @ x.T, axis=1) * 0.5], {"x": x}, Precision(), ["f32"], seed=0
    ).evaluation()
    assert not e.outputs[0][0].worst.any()


def test_iterated_maps_have_no_useful_worst_case() -> None:
    def newton(x: Array) -> Array:
        y = x / 10.0
        for _ in range(12):
            y = y * (1.5 - 0.5 * y * y)
        return y

    e = Evaluator([newton], {"x": np.abs(X) + 0.1}, Precision(), ["f32"], seed=0).evaluation()
    (alternative,) = e.outputs[0]
    assert np.median(alternative.worst / alternative.allowed) > 100
