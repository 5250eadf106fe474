"""Mistakes that a sampled bound invites, each met once and held off here."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from trueup.oracle.bounds import Evaluator, Precision, judge, machine
from trueup.oracle.bounds.follow import BUDGET
from trueup.oracle.bounds.sampled import Sampled
from trueup.oracle.bounds.tape import Tape

Array = Any
F32 = np.float32
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 20)).astype(F32).astype(np.float64)


def evaluator(form: Any, **inputs: Any) -> Evaluator:
    return Evaluator([form], inputs, Precision(), ["f32"], seed=0)


def test_a_constant_has_one_rounding_the_same_at_every_use() -> None:
    """c·x - c·x is 0 for every rounding of c."""
    model = Sampled(Precision(), Tape(), samples=8, seed=(0,))
    one, other = model.lift(0.1), model.lift(0.1)
    np.testing.assert_array_equal(one.d, other.d)
    assert len(set(one.d[model.s].tolist())) == 8
    assert (one.d[model.w] == float(F32(0.1))).all()
    assert np.abs(one.d[model.s] / 0.1 - 1).max() <= 2.0**-24


def test_a_number_of_the_format_has_none() -> None:
    model = Sampled(Precision(), Tape(), samples=8, seed=(0,))
    assert model.lift(0.5).d.shape[0] == 1
    assert model.lift(np.array([0.25, 3.0])).d.shape[0] == 1


def test_special_points_are_exact() -> None:
    """exp(0), log(1), tanh(0) are exact in every library."""
    zero = np.zeros(3)
    e = evaluator(lambda x: np.exp(x) + np.log1p(x) + np.cos(x), x=zero).evaluation()
    assert not e.outputs[0][0].allowed.any()


def test_a_saturated_tanh_may_be_one_ulp_off() -> None:
    e = evaluator(lambda x: np.tanh(x), x=np.full(3, 30.0)).evaluation()
    off = np.full(3, float(np.nextafter(F32(1), F32(0))))
    assert judge(e, [off])[0].passed


def test_fast_intrinsics_must_be_declared() -> None:
    """The documented error of the fast exponential grows with its argument."""
    x = np.linspace(-60, 60, 50).astype(F32).astype(float)
    ulp = 2.0 + np.floor(1.173 * np.abs(x))
    fast = (np.exp(x) * (1 + 0.9 * ulp * 2.0**-23)).astype(F32).astype(float)
    declared = Evaluator([np.exp], {"x": x}, Precision(approximate=("exp",)), ["f32"], seed=0)

    def form(x: Array) -> Array:
        return np.exp(x)

    assert judge(evaluator(form, x=x).evaluation(), [fast])[0].failed.any()
    declared = Evaluator([form], {"x": x}, Precision(approximate=("exp",)), ["f32"], seed=0)
    assert judge(declared.evaluation(), [fast])[0].passed


def test_subnormals_may_lose_bits_but_not_be_flushed() -> None:
    x = np.full(4, 1e-30).astype(F32).astype(float)
    y = np.array([1e-10, 3e-11, 1e-9, 7e-12]).astype(F32).astype(float)
    e = evaluator(lambda x, y: x * y, x=x, y=y).evaluation()
    kernel = (x.astype(F32) * y.astype(F32)).astype(float)
    assert judge(e, [kernel])[0].passed
    assert judge(e, [np.zeros(4)])[0].failed.all()


def test_a_loop_may_be_summed_in_another_order() -> None:
    """Partial sums of alternating terms are tiny, and exact by luck, in the loop's own order."""

    def loop(x: Array) -> Array:
        out = np.zeros(len(x))
        for j in range(x.shape[1]):
            out += x[:, j]
        return out

    def by_item(x: Array) -> Array:
        out = np.zeros(len(x))
        for j in range(x.shape[1]):
            for i in range(len(x)):
                out[i] = out[i] + x[i, j]
        return out

    x = np.abs(X) * np.where(np.arange(20) % 2, 1.0, -1.0)
    x[:, 1::2] = -x[:, ::2]
    for form in (loop, by_item):
        e = evaluator(form, x=x).evaluation()
        order = np.r_[0:20:2, 1:20:2]
        kernel = np.add.accumulate(x[:, order].astype(F32), axis=1)[:, -1].astype(float)
        assert judge(e, [kernel])[0].passed
        assert judge(e, [kernel + 1e-5])[0].failed.all()


def test_an_update_may_be_bracketed_otherwise() -> None:
    """(v + a) - m against v + (a - m)."""
    v, a, m = (RNG.normal(size=50).astype(F32) * s for s in (1, 1e3, 1e3))
    inputs = {"v": v.astype(float), "a": a.astype(float), "m": (a + v * F32(0.3)).astype(float)}
    m = inputs["m"].astype(F32)
    e = evaluator(lambda v, a, m: v + (a - m), **inputs).evaluation()
    assert judge(e, [((v + a) - m).astype(float)])[0].passed


def test_a_difference_of_two_terms_keeps_its_power() -> None:
    e = evaluator(lambda x: x[0] - x[1], x=X).evaluation()
    limit = 6 * 2.0**-24 * np.abs(X[0] - X[1]) + 2.0**-24 * np.abs(X[0] - X[1])
    assert (e.outputs[0][0].allowed <= 1.2 * limit).all()


def test_a_rounded_grid_handed_over_is_the_kernels_own() -> None:
    """A reference takes what the kernel takes; a grid rebuilt inside is another function."""
    z = (np.linspace(-10, 10, 51)).astype(F32).astype(float)

    def linear(x: Array, z: Array) -> Array:
        return x[:, 0] * z[7] + z[8]

    kernel = X[:, 0].astype(F32) * F32(z[7]) + F32(z[8])
    assert judge(evaluator(linear, x=X, z=z).evaluation(), [kernel.astype(float)])[0].passed


def test_an_undeclared_rounding_is_a_wrong_contract() -> None:
    """A·A kept in bf16 between two products is seen."""
    a = (RNG.normal(size=(8, 8)) / 3).astype(F32).astype(float)

    def form(a: Array) -> Array:
        return a @ a @ a

    squared = (a.astype(F32) @ a.astype(F32)).astype(ml_dtypes.bfloat16).astype(F32)
    kernel = (squared @ a.astype(F32)).astype(float)
    assert judge(evaluator(form, a=a).evaluation(), [kernel])[0].failed.any()


def test_an_unwritten_element_of_the_reference_shows() -> None:
    def form(x: Array) -> Array:
        out = np.empty(3)
        out[:2] = x[0, :2]
        out[2] = 0.1 if x[0, 0] > 100 else out[1]
        return out[:2]

    e = evaluator(form, x=X).evaluation()
    assert np.isfinite(e.values[0]).all()


def test_samples_run_in_chunks_when_arrays_are_large() -> None:
    """The spread does not depend on how the samples were divided."""
    size = BUDGET // (8 * 12)
    x = RNG.normal(size=size).astype(F32).astype(float)
    e = evaluator(lambda x: x * x, x=x).evaluation()
    spread = e.outputs[0][0].spread / (x * x)
    assert np.sqrt(np.mean(spread**2)) == np.float64(np.sqrt(np.mean(spread**2)))
    assert abs(np.sqrt(np.mean(spread**2)) / (2.0**-24 / 3.0**0.5) - 1) < 0.02


def test_decisions_survive_chunks() -> None:
    size = BUDGET // (8 * 20)
    x = np.full(size, 0.3).astype(F32).astype(float)
    x[1:] = RNG.normal(size=size - 1).astype(F32)

    def form(x: Array) -> Array:
        return np.where(x * 3.0 > x * 0.1 + x * 2.9, 1.0, 2.0)[:1] * x[:1]

    e = evaluator(form, x=x).evaluation()
    for factor in (1.0, 2.0):
        assert judge(e, [factor * x[:1]])[0].passed


def test_a_machine_is_not_the_reference() -> None:
    (a,) = machine(lambda x: x.sum(axis=1), {"x": X}, Precision(), "sequential")
    want = np.add.accumulate(X.astype(F32), axis=1)[:, -1]
    np.testing.assert_array_equal(a, want)
    (b,) = machine(lambda x: x * 0.1, {"x": X}, Precision(), "blas")
    np.testing.assert_array_equal(b, X.astype(F32) * F32(0.1))
    (c,) = machine(lambda x: x * x + x, {"x": X}, Precision(), "fma")
    np.testing.assert_array_equal(c, (X * X + X).astype(F32))


def test_the_same_seed_gives_the_same_bounds() -> None:
    a, b = (evaluator(lambda x: np.exp(x), x=X).evaluation() for _ in range(2))
    np.testing.assert_array_equal(a.outputs[0][0].allowed, b.outputs[0][0].allowed)
