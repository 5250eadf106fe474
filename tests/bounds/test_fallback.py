"""Where the array types cannot follow, inputs are perturbed and the bound says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import BoundsError, Evaluator, Precision, judge

Array = Any
X = np.random.default_rng(0).normal(size=(5, 30)).astype(np.float32).astype(np.float64)


class Layer:
    """A method keeps the globals of its class: `float` and `np.zeros` are the real ones there."""

    def forward(self, x: Array) -> Array:
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = float(np.exp(x[i]).sum())
        return out


def with_method(x: Array) -> Array:
    return Layer().forward(x)


def leaves(x: Array) -> Array:
    return np.array([v.item().hex() != "" for v in x[:, 0]]) * np.exp(x).sum(axis=1)


@pytest.mark.parametrize("form", [with_method, leaves])
def test_inputs_only(form: Any) -> None:
    e = Evaluator([form], {"x": X}, Precision(), ["f32"], seed=0).evaluation()
    assert any(note.startswith("bound: inputs only (") for note in e.notes)
    np.testing.assert_array_equal(e.values[0], form(X))
    (alternative,) = e.outputs[0]
    assert np.isnan(alternative.worst).all()
    right = np.exp(X.astype(np.float32)).sum(axis=1).astype(float)
    assert judge(e, [right])[0].passed
    (judged,) = judge(e, [right * 1.001])
    assert judged.failed.all()
    assert judged.zone == "beyond sampled rounding"  # never proven without a worst case


def test_one_form_may_fall_back_alone() -> None:
    def followed(x: Array) -> Array:
        return np.exp(x).sum(axis=1)

    e = Evaluator([followed, with_method], {"x": X}, Precision(), ["f32"], seed=0).evaluation()
    assert sum("inputs only" in note for note in e.notes) == 1


def test_an_error_of_the_reference_is_not_hidden() -> None:
    def broken(x: Array) -> Array:
        raise ValueError("the reference is broken")

    with pytest.raises(BoundsError, match=r"test_fallback.py:\d+.*the reference is broken"):
        Evaluator([broken], {"x": X}, Precision(), ["f32"], seed=0).evaluation()


def test_linear_algebra_is_perturbed_with_a_note() -> None:
    rng = np.random.default_rng(1)
    a = (rng.normal(size=(6, 6)) + 4 * np.eye(6)).astype(np.float32).astype(float)
    b = rng.normal(size=6).astype(np.float32).astype(float)

    def form(a: Array, b: Array) -> Array:
        return np.linalg.solve(a, b)

    e = Evaluator([form], {"a": a, "b": b}, Precision(), ["f32"], seed=0).evaluation()
    assert any("solve: operands perturbed" in note for note in e.notes)
    assert any("no worst case" in note for note in e.notes)
    kernel = np.linalg.solve(a.astype(np.float32), b.astype(np.float32)).astype(float)
    assert judge(e, [kernel])[0].passed
    assert judge(e, [kernel * 1.0001])[0].failed.any()


def test_float64_kernels_are_judged_in_long_double() -> None:
    def form(x: Array) -> Array:
        return np.exp(x).sum(axis=1) / 3.0

    precision = Precision(storage="f64")
    e = Evaluator([form], {"x": X}, precision, ["f64"], seed=0).evaluation()
    right = form(X)
    assert judge(e, [right])[0].passed
    backwards = np.add.accumulate(np.exp(X)[:, ::-1], axis=1)[:, -1] / 3.0
    assert judge(e, [backwards])[0].passed
    single = form(X.astype(np.float32)).astype(float)
    assert judge(e, [single])[0].failed.all()
    assert judge(e, [right * (1 + 1e-13)])[0].failed.any()
    assert judge(e, [X.astype(np.float32).sum(axis=1).astype(float)])[0].failed.all()


def test_float64_products_are_judged_in_long_double() -> None:
    e = Evaluator(
        [lambda x: x @ x.T], {"x": X}, Precision(storage="f64"), ["f64"], seed=0
    ).evaluation()
    assert judge(e, [X @ X.T])[0].passed
    assert judge(e, [(X @ X.T) * (1 + 1e-12)])[0].failed.any()


def test_a_float64_kernel_is_never_judged_by_its_own_precision() -> None:
    e = Evaluator([with_method], {"x": X}, Precision(storage="f64"), ["f64"], seed=0)
    with pytest.raises(BoundsError, match="float64 kernel"):
        e.evaluation()


def test_without_a_wider_type_a_float64_kernel_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Narrow:
        nmant = 52

    e = Evaluator([lambda x: x * 0.1], {"x": X}, Precision(storage="f64"), ["f64"], seed=0)
    monkeypatch.setattr("trueup.oracle.bounds.model.np.finfo", lambda _: Narrow)
    with pytest.raises(BoundsError, match="long double"):
        e.evaluation()


def test_a_form_with_a_huge_intermediate_is_left_out() -> None:
    x = np.arange(1.0, 20_001.0)

    def lean(x: Array) -> Array:
        return x * (x @ x)

    def wide(x: Array) -> Array:
        return np.outer(x, x) @ x

    e = Evaluator([lean, wide], {"x": x}, Precision(), ["f32"], seed=0).evaluation()
    assert any("form 1 was left out" in note for note in e.notes)
    assert not any("inputs only" in note for note in e.notes)
    kernel = x.astype(np.float32) * np.float32(x @ x)
    assert judge(e, [kernel.astype(float)])[0].passed
