"""Rounding that does not average out: equal terms, constant inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import Evaluator, Precision, judge, judge_confirmed

Array = Any
F32 = np.float32


def in_order(x: Array) -> Array:
    return np.add.accumulate(x.astype(F32), axis=-1, dtype=F32)[..., -1].astype(float)


@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize("kind", ["equal", "mask", "spread"])
def test_sequential_sums_of_equal_terms_pass(kind: str, n: int) -> None:
    rng = np.random.default_rng(0)
    x = np.full((4, n), 0.1)
    if kind == "mask":
        x *= rng.integers(0, 2, x.shape)
    elif kind == "spread":
        x *= 1 + 1e-3 * rng.normal(size=x.shape)
    x = x.astype(F32).astype(float)
    e = Evaluator([lambda x: x.sum(axis=-1)], {"x": x}, Precision(), ["f32"], seed=1)
    evaluation = e.evaluation()
    if kind == "equal" and n >= 1000:
        assert evaluation.systematic == (True,)
        assert any("systematic" in note for note in evaluation.notes)
    (judged,) = judge(evaluation, [in_order(x)])
    assert judged.passed
    assert judged.worst_ratio <= 0.9
    lost = in_order(x[:, :-1])
    if kind != "mask":
        assert judge(e.evaluation(), [lost])[0].failed.any() == (n < 10_000 or kind == "spread")
    assert judge(e.evaluation(), [in_order(x) * 1.01])[0].failed.all()


def average(obs: Array, alpha: float) -> Array:
    p = obs[0]
    out = np.zeros_like(obs)
    for t in range(len(obs)):
        p = (1.0 - alpha) * p + alpha * obs[t]
        out[t] = p
    return out


def kernel(obs: Array, alpha: float, form: str) -> Array:
    a, p, rows = F32(alpha), obs[0].astype(F32), []
    for o in obs.astype(F32):
        p = F32(F32(1) - a) * p + a * o if form == "products" else p + a * (o - p)
        rows.append(p)
    return np.array(rows).astype(float)


@pytest.mark.parametrize("form", ["products", "correction"])
@pytest.mark.parametrize("alpha", [0.1, 0.001])
def test_averages_of_a_step_pass_in_either_form(alpha: float, form: str) -> None:
    alpha = float(F32(alpha))
    obs = np.full((1500, 2), float(F32(0.7)))
    obs[0] = 0.0
    e = Evaluator([average], {"obs": obs, "alpha": alpha}, Precision(), ["f32"], seed=0)
    (judged,) = judge_confirmed(e, [kernel(obs, alpha, form)])
    assert judged.passed
    if alpha > 0.01:
        assert judge(e.evaluation(), [kernel(obs, alpha * 1.01, form)])[0].failed.any()


def test_random_rounding_is_not_called_systematic() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 64)).astype(F32).astype(float)
    e = Evaluator([lambda x: x.sum(axis=-1)], {"x": x}, Precision(), ["f32"], seed=1)
    assert e.evaluation().systematic == (False,)
    (alternative,) = e.evaluation().outputs[0]
    assert (alternative.allowed < alternative.worst).any()
