from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import BoundsError, Evaluator, Precision, judge, judge_confirmed
from trueup.oracle.bounds.formats import format_of

Array = Any
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 40)).astype(np.float32).astype(np.float64)


def evaluator(form: Callable[..., Any], dtype: str = "f32", **inputs: Any) -> Evaluator:
    return Evaluator([form], inputs, Precision(), [dtype], seed=0)


def single(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize(
    ("got", "fails"),
    [
        pytest.param([np.nan, np.inf, -np.inf, 1.0], False, id="same"),
        pytest.param([np.inf, np.inf, -np.inf, 1.0], True, id="inf-for-nan"),
        pytest.param([np.nan, -np.inf, -np.inf, 1.0], True, id="sign-of-inf"),
        pytest.param([np.nan, np.inf, -np.inf, np.nan], True, id="nan-for-number"),
        pytest.param([np.nan, 3e38, -np.inf, 1.0], True, id="number-for-inf"),
        pytest.param([0.0, np.inf, -np.inf, 1.0], True, id="number-for-nan"),
    ],
)
def test_what_is_not_finite_is_compared_by_position(got: list[float], fails: bool) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    (judged,) = judge(evaluator(lambda x: x * 1.0, x=x).evaluation(), [np.array(got)])
    assert bool(judged.failed.any()) == fails
    assert bool(judged.nonfinite_mismatch.any()) == fails


def test_a_row_with_nan_does_not_spoil_the_others() -> None:
    x = X.copy()
    x[3, 5] = np.nan
    e = evaluator(lambda x: np.exp(x).sum(axis=1), x=x).evaluation()
    kernel = np.exp(x.astype(np.float32)).sum(axis=1).astype(float)
    (judged,) = judge(e, [kernel])
    assert judged.passed
    kernel[4] *= 1.001
    assert judge(e, [kernel])[0].failed.tolist() == [i == 4 for i in range(30)]


def test_overflow_may_or_may_not_happen_at_the_edge() -> None:
    x = np.array([3.4028234e38, 1e30]).astype(np.float32).astype(float)
    e = evaluator(lambda x: x * 1.0000001 / 1.0000001 * 0.99999, x=x).evaluation()
    for first in (np.inf, float(e.values[0][0])):
        assert judge(e, [np.array([first, e.values[0][1]])])[0].passed
    assert judge(e, [np.array([np.nan, e.values[0][1]])])[0].failed[0]
    assert judge(e, [np.array([e.values[0][0], np.inf])])[0].failed[1]


def test_beyond_the_output_format_infinity_is_right() -> None:
    x = np.array([7e4, 1.0])
    e = evaluator(lambda x: x * 1.0, "f16", x=x).evaluation()
    assert judge(e, [np.array([np.inf, 1.0])])[0].passed
    assert judge(e, [np.array([1.0, np.inf])])[0].failed.all()


def test_an_element_without_allowance_neither_passes_nor_fails() -> None:
    """Every sample overflows on the way: nothing is known about the finite value."""
    x = np.array([1e30])
    e = evaluator(lambda x: x * x / x, x=x).evaluation()
    (judged,) = judge(e, [x])
    assert judged.not_judged.all()
    assert not judged.failed.any()
    assert not judged.passed
    (judged,) = judge(e, [np.array([np.inf])])
    assert not judged.failed.any()


def test_zones() -> None:
    e = evaluator(lambda x: x.sum(axis=1), x=X).evaluation()
    (alternative,) = e.outputs[0]
    value, allowed, worst = alternative.value, alternative.allowed, alternative.worst
    assert (allowed < worst).all()
    for error, zone in ((0.5 * allowed, "pass"), (1.5 * allowed, "beyond sampled rounding")):
        output = value.copy()
        output[7] += error[7]
        (judged,) = judge(e, [output])
        assert judged.zone == zone
        assert judged.worst_index == (7,)
        assert judged.error[7] == pytest.approx(error[7], rel=1e-6)
    (judged,) = judge(e, [value + 1.1 * worst])
    assert judged.zone == "proven"
    assert judged.proven.all()
    assert judged.passed is False


def test_two_per_cent_are_found_although_no_element_is_beyond() -> None:
    x = np.random.default_rng(2).normal(size=(100, 40)).astype(np.float32).astype(float)
    compute = Precision(storage="bf16", compute="bf16")
    bf16 = format_of("bf16")
    x = bf16.round(x)

    def form(x: Array) -> Array:
        y = x
        for _ in range(12):
            y = (y + 0.0625 * x) * 0.96875
        return y

    def kernel(x: Array) -> Array:
        y = x
        for _ in range(12):
            y = bf16.round(bf16.round(y + bf16.round(0.0625 * x)) * 0.96875)
        return y

    e = Evaluator([form], {"x": x}, compute, ["bf16"], seed=0)
    (judged,) = judge_confirmed(e, [kernel(x)])
    assert judged.passed
    (judged,) = judge(e.evaluation(), [bf16.round(1.02 * kernel(x))])
    assert judged.rejected
    assert judged.coherent > 8


def test_equal_elements_may_share_one_error() -> None:
    """A kernel rounds equal elements equally, which samples do not."""
    x = np.full((50, 50), float(np.float32(0.7)))

    def form(x: Array) -> Array:
        return x * 0.1 * x / 3.0

    kernel = x.astype(np.float32) * np.float32(0.1) * x.astype(np.float32) / np.float32(3)
    (judged,) = judge(evaluator(form, x=x).evaluation(), [kernel.astype(float)])
    assert judged.passed


def test_several_forms() -> None:
    """x² - y² has another conditioning than (x - y)(x + y); either may be used."""
    y = single(X * (1 + 1e-5))

    def factors(x: Array, y: Array) -> Array:
        return (x - y) * (x + y)

    def squares(x: Array, y: Array) -> Array:
        return x * x - y * y

    a, b = X.astype(np.float32), y.astype(np.float32)
    kernel = (a * a - b * b).astype(float)
    inputs = {"x": X, "y": y}
    one = Evaluator([factors], inputs, Precision(), ["f32"], seed=0).evaluation()
    both = Evaluator([factors, squares], inputs, Precision(), ["f32"], seed=0).evaluation()
    assert judge(one, [kernel])[0].failed.any()
    assert judge(both, [kernel])[0].passed
    np.testing.assert_array_equal(both.values[0], factors(X, y))


def test_forms_of_different_shapes_are_refused() -> None:
    with pytest.raises(BoundsError, match="form 1"):
        Evaluator(
            [lambda x: x, lambda x: x[0]], {"x": X}, Precision(), ["f32"], seed=0
        ).evaluation()


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([X, X], "2 outputs"),
        ([X[0]], "shape"),
        ([X.astype(complex)], "dtype"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(outputs: list[Any], message: str) -> None:
    e = evaluator(lambda x: x * 1.0, x=X).evaluation()
    with pytest.raises(BoundsError, match=message):
        judge(e, outputs)


def test_an_empty_output_does_not_pass() -> None:
    e = evaluator(lambda x: x * 1.1, x=np.zeros((0, 3))).evaluation()
    (judged,) = judge(e, [np.zeros((0, 3))])
    assert not judged.passed
    assert judged.judged == 0
    assert judged.worst_index is None


def test_a_failure_is_judged_again_by_fresh_samples() -> None:
    e = evaluator(lambda x: x * 1.1, x=X)
    first, again = e.evaluation(), e.confirmed()
    assert (first.samples, again.samples) == (32, 256)
    a, b = first.outputs[0][0].spread, again.outputs[0][0].spread
    assert (a != b).any()
    # 256 samples of one rounding: the spread is its root mean square, to a tenth.
    expected = 2.0**-24 * np.sqrt(2.0 / 3.0)  # of the product and of the constant
    assert np.median(b / np.abs(1.1 * X)) == pytest.approx(expected, rel=0.1)
    (judged,) = judge_confirmed(e, [1.1 * X * (1 + 6e-7)])
    assert judged.failed.any()


def test_counts_and_conditions() -> None:
    def form(x: Array) -> Array:
        return (x + 1000.0) - 1000.0

    (judged,) = judge(evaluator(form, x=X).evaluation(), [X])
    assert judged.judged == X.size
    assert (judged.condition > 10).mean() > 0.9


def test_unsigned_and_64_bit_integers_do_not_wrap() -> None:
    big = np.array([2**62, 5], dtype=np.int64)
    e = Evaluator([lambda n: n + 0], {"n": big}, Precision(), ["i64"], seed=0).evaluation()
    assert judge(e, [big])[0].passed
    assert judge(e, [big + 1])[0].failed.all()
    assert judge(e, [np.array([2**62, 4], dtype=np.uint64)])[0].failed.tolist() == [False, True]


def test_inputs_that_are_none_are_refused() -> None:
    with pytest.raises(BoundsError, match="'x'"):
        evaluator(lambda x: x, x=object())
    with pytest.raises(BoundsError, match="complex"):
        evaluator(lambda x: x, x=X.astype(complex))
    with pytest.raises(BoundsError, match="no form"):
        Evaluator([], {}, Precision(), ["f32"], seed=0)
    with pytest.raises(BoundsError, match="returned 1"):
        Evaluator([lambda x: x], {"x": X}, Precision(), ["f32", "f32"], seed=0).evaluation()


@pytest.mark.parametrize("dtype", ["bool", "u8", "i32"])
def test_masks_and_small_integers_are_compared_exactly(dtype: str) -> None:
    kind = {"bool": np.bool_, "u8": np.uint8, "i32": np.int32}[dtype]

    def form(x: Array) -> Array:
        return x > 0

    e = Evaluator([form], {"x": X}, Precision(), [dtype], seed=0).evaluation()
    right = (X > 0).astype(kind)
    assert judge(e, [right])[0].passed
    wrong = right.copy()
    wrong[2, 3] = not wrong[2, 3]
    (judged,) = judge(e, [wrong])
    assert int(judged.failed.sum()) == 1
    assert judged.worst_index == (2, 3)
