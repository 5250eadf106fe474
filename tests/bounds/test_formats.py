from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from trueup.oracle.bounds import BoundsError
from trueup.oracle.bounds.formats import format_of, lowest_bit, output_format

RNG = np.random.default_rng(0)
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, 1.0, -1.5, 3.3895313892515355e38, 1e-45, 2e-40, 7e4])
WIDE = np.concatenate([EDGES, RNG.normal(size=400) * 10.0 ** RNG.integers(-44, 38, 400)])
HALF = np.concatenate([EDGES, RNG.normal(size=400) * 10.0 ** RNG.integers(-8, 5, 400)])


def nearest(x: float, bits: int, emin: int) -> Fraction:
    """Round to nearest, ties to even, with exact rationals."""
    exact = Fraction(x)
    if exact == 0:
        return exact
    _, exponent = np.frexp(x)
    step = Fraction(2) ** max(int(exponent) - bits, emin - bits + 1)
    return round(exact / step) * step


@pytest.mark.parametrize(("name", "bits"), [("bf16", 8), ("tf32", 11), ("tf32x3", 22)])
def test_short_formats_round_to_nearest_even(name: str, bits: int) -> None:
    fmt = format_of(name)
    for x in WIDE[np.isfinite(WIDE) & (np.abs(WIDE) < 1e38)]:
        assert Fraction(float(fmt.round(np.array([x]))[0])) == nearest(float(x), bits, -126)


def test_bf16_agrees_with_ml_dtypes_on_float32_numbers() -> None:
    single = WIDE.astype(np.float32)
    want = single.astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(format_of("bf16").round(single.astype(np.float64)), want)


@pytest.mark.parametrize(("name", "dtype"), [("f32", np.float32), ("f16", np.float16)])
def test_native_formats_are_numpys(name: str, dtype: type) -> None:
    with np.errstate(over="ignore"):
        want = HALF.astype(dtype).astype(np.float64)
        np.testing.assert_array_equal(format_of(name).round(HALF), want)


@pytest.mark.parametrize("name", ["bf16", "tf32"])
def test_truncation_never_grows_and_loses_less_than_a_step(name: str) -> None:
    fmt = format_of(name)
    x = RNG.normal(size=300)
    cut = fmt.truncate(x)
    assert (np.abs(cut) <= np.abs(x)).all()
    assert (np.abs(x - cut) < 2 * 2 * fmt.u * np.abs(x)).all()
    assert fmt.represents(cut).all()


def test_nan_is_not_a_number_of_any_format() -> None:
    for name in ("f64", "f32", "bf16", "f16", "tf32"):
        assert not format_of(name).represents(np.array([np.nan]))[0]
        assert np.isnan(format_of(name).round(np.array([np.nan])))[0]


def test_lowest_bit_is_the_largest_power_of_two_that_divides() -> None:
    x = np.array([1.0, 1.5, 0.1, 96.0, 5e-324, -3.25, 0.0])
    for value, bit in zip(x, lowest_bit(x), strict=True):
        if value == 0:
            assert bit == np.inf
            continue
        quotient = Fraction(float(value)) / Fraction(float(bit))
        assert quotient.denominator == 1
        assert quotient.numerator % 2


def test_lowest_bit_sees_the_tail_of_a_long_double() -> None:
    x = np.array([1.0], dtype=np.longdouble) + np.longdouble(2.0) ** -60
    assert lowest_bit(x)[0] == 2.0**-60


def test_dtypes_of_outputs() -> None:
    for name in ("i32", "int64", "u8", "bool", "uint32"):
        assert output_format(name) is None
    assert output_format("float32") == format_of("f32")
    with pytest.raises(BoundsError, match="complex64"):
        output_format("complex64")
    with pytest.raises(BoundsError, match="f31"):
        format_of("f31")
