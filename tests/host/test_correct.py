"""Correct kernels agree with NumPy, and give the same bits in every order of threads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trueup.oracle.backends.base import PLAIN_FILL, AnyArray, Buffer, RunOptions

ENTRIES = (
    "saxpy",
    "block_reduce",
    "warp_reduce",
    "row_softmax",
    "matmul",
    "scan",
    "last_block_sum",
    "vector_copy",
)
ORDERS = (0, 1, 2, 3, 12345678901234)
RNG = np.random.default_rng(7)
i32, f32 = np.int32, np.float32


@pytest.fixture
def kernel(bench: Any) -> Any:
    return bench.load("correct.cu", *ENTRIES)


def in_all_orders(bench: Any, kernel: Any, entry: str, args: Any, **launch: Any) -> dict[str, Any]:
    runs = [
        bench.clean(kernel, entry, args, options=RunOptions(order=order, fill=fill), **launch)
        for order in ORDERS
        for fill in (RunOptions().fill, PLAIN_FILL)
    ]
    for run in runs[1:]:
        for name, array in run.items():
            assert array.tobytes() == runs[0][name].tobytes(), name
    first: dict[str, Any] = runs[0]
    return first


def whole(*shape: int) -> AnyArray:
    """Small whole numbers: every sum of them is exact in every order."""
    return RNG.integers(-8, 9, shape).astype(f32)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000])
def test_saxpy_is_exact(bench: Any, kernel: Any, n: int) -> None:
    x, y = RNG.standard_normal(n, f32), RNG.standard_normal(n, f32)
    args = [bench.input("x", x, f32), bench.inout("y", y, f32), f32(1.7), i32(n)]
    got = in_all_orders(bench, kernel, "saxpy", args, grid=(-(-n // 256),), block=(256,))
    np.testing.assert_array_equal(got["y"], f32(1.7) * x + y)


@pytest.mark.parametrize("n", [1, 256, 1000])
def test_block_reduce_sums(bench: Any, kernel: Any, n: int) -> None:
    blocks = -(-n // 256)
    x = whole(n)
    args = [bench.input("x", x, f32), bench.output("y", blocks, f32), i32(n)]
    got = in_all_orders(bench, kernel, "block_reduce", args, grid=(blocks,), block=(256,))
    padded = np.zeros(256 * blocks, f32)
    padded[:n] = x
    np.testing.assert_array_equal(got["y"], padded.reshape(-1, 256).sum(axis=1))


def test_warp_reduce_sums(bench: Any, kernel: Any) -> None:
    x = whole(500)
    args = [bench.input("x", x, f32), bench.output("y", 16, f32), i32(500)]
    got = in_all_orders(bench, kernel, "warp_reduce", args, grid=(2,), block=(256,))
    padded = np.zeros(512, f32)
    padded[:500] = x
    np.testing.assert_array_equal(got["y"], padded.reshape(-1, 32).sum(axis=1))


def test_row_softmax_is_right_to_a_bf16_rounding(bench: Any, kernel: Any) -> None:
    x = (RNG.standard_normal((5, 333)) * 3).astype(ml_dtypes.bfloat16)
    args = [bench.input("x", x, x.dtype), bench.output("y", (5, 333), x.dtype), i32(333)]
    got = in_all_orders(bench, kernel, "row_softmax", args, grid=(5,), block=(128,))
    wide = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=1, keepdims=True))
    right = wide / wide.sum(axis=1, keepdims=True)
    # Half a unit in the last of bf16's 8 digits, and a little for the float32 sum and division.
    np.testing.assert_allclose(got["y"].astype(np.float64), right, rtol=2.0**-8 * 1.01)


@pytest.mark.parametrize(("m", "n", "k", "edge"), [(16, 16, 16, 8), (17, 9, 33, 8), (1, 1, 5, 16)])
def test_matmul_is_exact_on_whole_numbers(
    bench: Any, kernel: Any, m: int, n: int, k: int, edge: int
) -> None:
    a, b = whole(m, k), whole(k, n)
    args: list[Buffer | np.generic] = [bench.input("a", a, f32), bench.input("b", b, f32)]
    args += [bench.output("c", (m, n), f32), i32(m), i32(n), i32(k)]
    grid, shared = (-(-n // edge), -(-m // edge)), 2 * edge * edge * 4
    got = in_all_orders(bench, kernel, "matmul", args, grid=grid, block=(edge, edge), shared=shared)
    np.testing.assert_array_equal(got["c"], a @ b)


@pytest.mark.parametrize("n", [1, 32, 33, 1000, 1024])
def test_scan_sums_up(bench: Any, kernel: Any, n: int) -> None:
    x = RNG.integers(-99, 100, n).astype(i32)
    args = [bench.input("x", x, i32), bench.output("y", n, i32), i32(n)]
    got = in_all_orders(bench, kernel, "scan", args, block=(1024,))
    np.testing.assert_array_equal(got["y"], np.cumsum(x))


def test_the_last_block_whichever_it_is_adds_up_the_others(bench: Any, kernel: Any) -> None:
    x = whole(1000)
    args = [bench.input("x", x, f32), bench.output("p", 7, f32), bench.output("t", 1, f32)]
    got = in_all_orders(bench, kernel, "last_block_sum", [*args, i32(1000)], grid=(7,), block=(64,))
    assert got["t"][0] == x.sum()


@pytest.mark.parametrize("placement", ["guard", "page_end", "page_start"])
def test_correct_kernels_stay_correct_at_the_edge_of_a_page(
    bench: Any, kernel: Any, placement: Any
) -> None:
    x, y = whole(1001), whole(1001)
    args = [bench.input("x", x, f32), bench.inout("y", y, f32), f32(2.0), i32(1001)]
    options = RunOptions(placement=placement)
    got = bench.clean(kernel, "saxpy", args, grid=(4,), block=(256,), options=options)
    np.testing.assert_array_equal(got["y"], 2 * x + y)


def test_an_empty_buffer_has_an_address(bench: Any, kernel: Any) -> None:
    empty = np.zeros(0, f32)
    args = [bench.input("x", empty, f32), bench.inout("y", empty, f32), f32(2.0), i32(0)]
    for placement in ("guard", "page_end", "page_start"):
        got = bench.clean(kernel, "saxpy", args, options=RunOptions(placement=placement))
        assert got["y"].shape == (0,)


@pytest.mark.parametrize("n", [4, 5, 63, 64, 255])
@pytest.mark.parametrize("placement", ["guard", "page_end", "page_start"])
def test_vector_access_may_rely_on_the_alignment_of_an_allocation(
    bench: Any, kernel: Any, placement: Any, n: int
) -> None:
    x = whole(n)
    args = [bench.input("x", x, f32), bench.output("y", n, f32), i32(n)]
    options = RunOptions(placement=placement)
    got = bench.clean(kernel, "vector_copy", args, block=(64,), options=options)
    np.testing.assert_array_equal(got["y"], x)
