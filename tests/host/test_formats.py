"""The 16-bit formats and directed rounding, against ml_dtypes, NumPy and exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trueup.oracle.backends.base import AnyArray

bf16, f16, f32, f64, i32 = (
    np.dtype(ml_dtypes.bfloat16),
    np.dtype(np.float16),
    np.dtype(np.float32),
    np.dtype(np.float64),
    np.int32,
)
# NumPy warns where it widens a signalling NaN or rounds to infinity; both are meant here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning"),
]
ENTRIES = ("decode", "encode", "directed", "pairs")
ARITHMETIC = ("arithmetic<__half>", "arithmetic<__nv_bfloat16>")
RNG = np.random.default_rng(11)


@pytest.fixture
def kernel(bench: Any) -> Any:
    return bench.load("formats.cu", *ENTRIES, *ARITHMETIC)


@pytest.fixture
def rounding(bench: Any) -> Any:
    return bench.load("rounding.cu", "rounded", "to_integers", "bits", "extremes")


def floats(values: list[float]) -> AnyArray:
    return np.array(values, f32)


def grid(n: int) -> dict[str, Any]:
    return {"grid": (-(-n // 256),), "block": (256,)}


def same(got: AnyArray, want: AnyArray) -> None:
    """Bit for bit, NaNs apart."""
    nan = np.isnan(want.astype(f64))
    np.testing.assert_array_equal(np.isnan(got.astype(f64)), nan)
    np.testing.assert_array_equal(
        got.view(np.uint8).reshape(got.size, -1)[~nan.ravel()],
        want.view(np.uint8).reshape(want.size, -1)[~nan.ravel()],
    )


def hard_floats() -> AnyArray:
    """Floats over the whole range, and every boundary and tie of both formats."""
    patterns = RNG.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(f32)
    usual = (RNG.standard_normal(50_000) * 10.0 ** RNG.integers(-9, 6, 50_000)).astype(f32)
    all_bits = np.arange(2**16, dtype=np.uint16)
    ties = []
    for dtype in (f16, bf16):
        at = all_bits.view(dtype).astype(f64)
        after = (all_bits[np.minimum(np.arange(2**16) + 1, 2**16 - 1)]).view(dtype).astype(f64)
        with np.errstate(invalid="ignore", over="ignore"):
            middle = ((at + after) / 2).astype(f32)
            ties += [
                middle,
                np.nextafter(middle, f32.type(np.inf)),
                np.nextafter(middle, f32.type(-np.inf)),
            ]
    special = floats([0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, 65536, 3.4e38])
    every: AnyArray = np.concatenate([patterns, usual, *ties, special]).astype(f32)
    return every


def test_every_half_and_every_bfloat16_decodes_exactly(bench: Any, kernel: Any) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    args = [bench.input("h", bits.view(f16), f16), bench.input("b", bits.view(bf16), bf16)]
    args += [bench.output("yh", 2**16, f32), bench.output("yb", 2**16, f32), i32(2**16)]
    got = bench.clean(kernel, "decode", args, **grid(2**16))
    same(got["yh"], bits.view(f16).astype(f32))
    same(got["yb"], bits.view(bf16).astype(f32))


def test_encoding_rounds_to_nearest_even(bench: Any, kernel: Any) -> None:
    x = hard_floats()
    n = x.size
    args = [bench.input("x", x, f32), bench.input("d", x.astype(f64), f64)]
    args += [
        bench.output(name, n, dtype)
        for name, dtype in (("h", f16), ("b", bf16), ("hd", f16), ("bd", bf16))
    ]
    got = bench.clean(kernel, "encode", [*args, i32(n)], **grid(n))
    same(got["h"], x.astype(f16))
    same(got["b"], x.astype(bf16))
    same(got["hd"], x.astype(f16))
    same(got["bd"], x.astype(bf16))
    assert set(got["h"].view(np.uint16)[np.isnan(x)]) == {0x7FFF}
    assert set(got["b"].view(np.uint16)[np.isnan(x)]) == {0x7FFF}


def test_doubles_are_rounded_once(bench: Any, kernel: Any) -> None:
    """Just above a tie of fp16 by less than a float can tell."""
    d = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-40])
    args = [bench.input("x", d, f32), bench.input("d", d, f64)]
    args += [
        bench.output(name, 3, dtype)
        for name, dtype in (("h", f16), ("b", bf16), ("hd", f16), ("bd", bf16))
    ]
    got = bench.clean(kernel, "encode", [*args, i32(3)])
    np.testing.assert_array_equal(got["hd"].astype(f64), [1 + 2.0**-10, 1.0, 1 + 2.0**-10])


def test_directed_encodings_bracket_the_value(bench: Any, kernel: Any) -> None:
    x = hard_floats()
    x = x[np.isfinite(x)][::7]
    n = x.size
    args = [bench.input("x", x, f32), *(bench.output(name, n, f16) for name in ("rz", "ru", "rd"))]
    got = bench.clean(kernel, "directed", [*args, i32(n)], **grid(n))
    wide, up, down = x.astype(f64), got["ru"].astype(f64), got["rd"].astype(f64)
    assert (down <= wide).all()
    assert (wide <= up).all()
    exact = x.astype(f16).astype(f64) == wide
    assert (up[exact] == wide[exact]).all()
    assert (down[exact] == wide[exact]).all()
    between = ~exact & np.isfinite(up) & np.isfinite(down)
    np.testing.assert_array_equal(
        np.nextafter(got["rd"], f16.type(np.inf))[between], got["ru"][between]
    )
    np.testing.assert_array_equal(got["rz"], np.where(x > 0, got["rd"], got["ru"]))


def exact_round(value: Fraction, dtype: np.dtype[Any]) -> float:
    """Round an exact rational to nearest even of a 16-bit format, by comparing neighbours."""
    digits, least = (11, -14) if dtype == f16 else (8, -126)
    if value == 0:
        return 0.0
    exponent = max(math.floor(math.log2(abs(value))), least)
    if abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (max(exponent, least) - digits + 1)
    return float(round(value / step) * step)  # round() of a Fraction is to even


@pytest.mark.parametrize(("entry", "dtype"), [(ARITHMETIC[0], f16), (ARITHMETIC[1], bf16)])
def test_arithmetic_rounds_the_exact_result_once(
    bench: Any, kernel: Any, entry: str, dtype: np.dtype[Any]
) -> None:
    n = 1500
    a, b, c = (
        (RNG.standard_normal(n) * 2.0 ** RNG.integers(-6, 5, n)).astype(dtype) for _ in range(3)
    )
    # Sums that a double rounds on to a tie of the format, and the third term decides.
    c[:500] = (2.0 ** RNG.integers(-24, -15, 500)).astype(dtype)
    args = [bench.input("a", a, dtype), bench.input("b", b, dtype), bench.input("c", c, dtype)]
    args += [bench.output("y", (n, 6), dtype), i32(n)]
    got = bench.clean(kernel, entry, args, **grid(n))["y"].astype(f64)
    for i in range(n):
        x, y, z = (Fraction(float(v[i])) for v in (a, b, c))
        want = [x + y, x - y, x * y, x / y, x * y + z]
        assert got[i, :5].tolist() == [exact_round(v, dtype) for v in want], (i, x, y, z)
        low, high = (np.nextafter(got[i, 5].astype(dtype), dtype.type(v)) for v in (-1, 1e4))
        assert (float(low) + got[i, 5]) / 2 <= math.sqrt(abs(x)) <= (float(high) + got[i, 5]) / 2


def test_pairs(bench: Any, kernel: Any) -> None:
    a, b = (RNG.integers(-8, 9, (32, 2)).astype(f16) for _ in range(2))
    args = [bench.input("a", a, f16), bench.input("b", b, f16)]
    args += [bench.output("y", (32, 3, 2), f16), bench.output("f", (32, 2), f32)]
    got = bench.clean(kernel, "pairs", [*args, bench.output("flags", 32, i32)])
    np.testing.assert_array_equal(got["y"][:, 0], a + b)
    np.testing.assert_array_equal(got["y"][:, 1], a * b + 1)
    np.testing.assert_array_equal(got["y"][:, 2], np.maximum(a, b[:, ::-1]))
    np.testing.assert_array_equal(got["f"], a.astype(f32))
    flags = (a > b).all(axis=1) + 2 * (a[:, 0] > b[:, 1])
    np.testing.assert_array_equal(got["flags"], flags)


def rounded_down(value: Fraction) -> tuple[np.float32, np.float32]:
    """The floats around an exact value: equal where it is one."""
    near = f32.type(float(value))
    exact = Fraction(float(near))
    if exact == value:
        return near, near
    if exact < value:
        return near, np.nextafter(near, f32.type(np.inf))
    return np.nextafter(near, f32.type(-np.inf)), near


def test_directed_rounding_of_float_arithmetic(bench: Any, rounding: Any) -> None:
    n = 400
    a, b, c = (
        (RNG.standard_normal(n) * 2.0 ** RNG.integers(-20, 20, n)).astype(f32) for _ in range(3)
    )
    a[:20] = b[:20] = 1.5  # some exact results
    args = [bench.input("a", a, f32), bench.input("b", b, f32), bench.input("c", c, f32)]
    got = bench.clean(
        rounding, "rounded", [*args, bench.output("y", (n, 16), f32), i32(n)], **grid(n)
    )["y"]
    for i in range(n):
        x, y, z = (Fraction(float(v[i])) for v in (a, b, c))
        for k, value in enumerate((x + y, x * y, x / y, x * y + z)):
            low, high = rounded_down(value)
            zero = low if value > 0 else high
            assert got[i, 3 * k : 3 * k + 3].tolist() == [zero, high, low], (i, k)
        low, high = got[i, 12], got[i, 13]
        assert Fraction(float(low)) ** 2 <= abs(x) <= Fraction(float(high)) ** 2
        assert high <= np.nextafter(low, f32.type(np.inf))
        assert got[i, 15] == f32.type(1) / a[i]
        low, high = rounded_down(x * y + z)
        assert got[i, 14] in (low, high)


def test_terms_that_cancel_give_minus_zero_only_where_the_rounding_is_down(
    bench: Any, rounding: Any
) -> None:
    a, b, c = floats([1.5, -0.0, 0.0, 2.0]), floats([-1.5, 0.0, 0.0, 3.0]), floats([2.25, 0, 0, -6])
    args = [bench.input("a", a, f32), bench.input("b", b, f32), bench.input("c", c, f32)]
    got = bench.clean(rounding, "rounded", [*args, bench.output("y", (4, 16), f32), i32(4)])["y"]
    signs = np.signbit(got)
    assert got[:3, :3].tolist() == [[0, 0, 0]] * 3
    assert signs[:3, :3].tolist() == [[False, False, True], [False, False, True], [False] * 3]
    assert signs[[0, 1, 3], 9:12].tolist() == [[False, False, True]] * 3
    assert signs[[0, 1, 3], 14].tolist() == [False] * 3


def test_float_to_int_saturates_and_rounds_as_named(bench: Any, rounding: Any) -> None:
    x = floats([0.5, 1.5, -0.5, -1.5, 2.7, -2.7, 3e9, -3e9, np.nan, np.inf, -np.inf, 5e9])
    n = x.size
    args = [
        bench.input("x", x, f32),
        bench.output("y", (n, 4), i32),
        bench.output("u", n, np.uint32),
    ]
    got = bench.clean(rounding, "to_integers", [*args, i32(n)])
    wide = x.astype(f64)
    for k, how in enumerate((np.rint, np.trunc, np.ceil, np.floor)):
        want = np.clip(np.nan_to_num(how(wide), nan=0.0), -(2**31), 2**31 - 1)
        np.testing.assert_array_equal(got["y"][:, k], want)
    want = np.clip(np.nan_to_num(np.rint(wide), nan=0.0), 0, 2**32 - 1)
    np.testing.assert_array_equal(got["u"], want)


def test_integer_intrinsics(bench: Any, rounding: Any) -> None:
    n = 200
    x, z = (RNG.integers(-(2**31), 2**31, n).astype(i32) for _ in range(2))
    x[:3] = [0, 1, -1]
    args = [bench.input("x", x, i32), bench.input("z", z, i32), bench.output("y", (n, 12), i32)]
    got = bench.clean(rounding, "bits", [*args, i32(n)], **grid(n))["y"].astype(np.int64)
    for i in range(n):
        a, b = int(x[i]) % 2**32, int(z[i]) % 2**32
        both = b << 32 | a
        octets = both.to_bytes(8, "little")
        dot = sum(
            int(np.int8(np.uint8(p))) * int(np.int8(np.uint8(q)))
            for p, q in zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True)
        )
        want = [
            a.bit_count(),
            32 - a.bit_length(),
            (a & -a).bit_length(),
            int(f"{a:032b}"[::-1], 2),
            int(x[i]) * int(z[i]) >> 32,
            a * b >> 32,
            int.from_bytes(bytes([octets[1], octets[2], octets[0], octets[6]]), "little"),
            both << 9 >> 32,
            both >> 9,
            a,
            int(x[i]) + int(z[i]) >> 1,
            dot + 5,
        ]
        assert [int(v) % 2**32 for v in got[i]] == [v % 2**32 for v in want], i


def test_min_and_max_prefer_numbers_to_nan(bench: Any, rounding: Any) -> None:
    a = floats([1, np.nan, 2, np.nan, -0.5, np.inf, 3, 4])
    b = floats([2, 1, np.nan, np.nan, 0.5, -np.inf, 3, np.inf])
    args = [bench.input("a", a, f32), bench.input("b", b, f32), bench.output("y", (8, 4), f32)]
    got = bench.clean(rounding, "extremes", [*args, i32(8)])["y"]
    np.testing.assert_array_equal(got[:, 0], np.fmax(a, b))
    np.testing.assert_array_equal(got[:, 1], np.fmin(a, b))
    wide = 1 / np.sqrt(np.abs(a).astype(f64) + 0.25)
    np.testing.assert_array_equal(got[:, 2], wide.astype(f32))
    i = np.arange(8)
    classes = np.isnan(a) + 2 * np.isinf(b) + 4 * np.isfinite(a)
    np.testing.assert_array_equal(got[:, 3], classes + np.maximum(i, 3) + np.minimum(7, i))
