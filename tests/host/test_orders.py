"""The seed decides the order of blocks and threads, and nothing is left over between blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.oracle.backends.base import PLAIN_FILL, AnyArray, RunOptions

FILE = "orders.cu"
i32, f32 = np.int32, np.float32


@pytest.fixture
def kernel(bench: Any) -> Any:
    return bench.load(
        FILE, "arrivals", "left_over", "interleaving", "load_through_cache", "atomic_past_end"
    )


def arrivals(bench: Any, kernel: Any, order: int) -> tuple[list[int], list[int]]:
    args = [bench.output("b", 37, i32), bench.output("t", 70, i32), bench.inout("c", [0, 0], i32)]
    options = RunOptions(order=order)
    got = bench.clean(kernel, "arrivals", args, grid=(37,), block=(70,), options=options)
    return got["b"].tolist(), got["t"].tolist()


def test_order_0_is_natural_and_order_1_reversed(bench: Any, kernel: Any) -> None:
    up = list(range(37)), list(range(70))
    assert arrivals(bench, kernel, 0) == up
    assert arrivals(bench, kernel, 1) == (up[0][::-1], up[1][::-1])


def test_a_seed_permutes_and_gives_the_same_again(bench: Any, kernel: Any) -> None:
    seen = [arrivals(bench, kernel, seed) for seed in (2, 3, 4, 2)]
    assert seen[0] == seen[3]
    for place in (0, 1):
        assert len({tuple(one[place]) for one in seen}) == 3
    for blocks, threads in seen:
        assert sorted(blocks) == list(range(37))
        assert sorted(threads) == list(range(70))


def test_the_orders_interleave_warps_differently(bench: Any, kernel: Any) -> None:
    def trace(order: int) -> list[int]:
        args = [bench.output("trace", 16, i32), bench.inout("count", [0], i32)]
        options = RunOptions(order=order)
        got = bench.clean(kernel, "interleaving", args, block=(128,), options=options)
        warps: list[int] = got["trace"].tolist()
        return warps

    assert trace(0) == [w for w in range(4) for _ in range(4)]
    seen = {tuple(trace(order)) for order in range(8)}
    assert len(seen) == 8
    assert all(sorted(one) == trace(0) for one in seen)
    assert len({tuple(one[:4]) for one in seen}) > 3


@pytest.mark.parametrize("fill", [RunOptions().fill, PLAIN_FILL])
def test_shared_memory_is_filled_anew_for_every_block(bench: Any, kernel: Any, fill: int) -> None:
    args = [bench.output("s", (3, 8), f32), bench.output("d", (3, 8), f32)]
    options = RunOptions(fill=fill)
    got = bench.clean(kernel, "left_over", args, grid=(3,), block=(8,), shared=32, options=options)
    pattern: AnyArray = np.full((3, 8), fill << 16 | fill, np.uint32)
    np.testing.assert_array_equal(got["s"].view(np.uint32), pattern)
    np.testing.assert_array_equal(got["d"].view(np.uint32), pattern)


def test_a_fault_inside_a_device_function_is_told_at_the_users_line(
    bench: Any, kernel: Any
) -> None:
    at_end = RunOptions(placement="page_end")
    args = [bench.input("x", np.zeros(4), f32), bench.output("y", 4, f32), i32(1)]
    bench.result(kernel, "load_through_cache", args, block=(4,), options=at_end)
    (fault,) = bench.faults
    assert (fault.kind, fault.buffer) == ("out of bounds", "x")
    assert bench.at(fault, FILE, "load_through_cache")
    args = [bench.output("y", 4, f32), i32(4)]
    bench.result(kernel, "atomic_past_end", args, block=(1,), options=at_end)
    (fault,) = bench.faults
    assert (fault.kind, fault.buffer) == ("out of bounds", "y")
    assert bench.at(fault, FILE, "atomic_past_end")
