"""Warp operations, votes, cooperative groups and atomics against what NumPy says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.oracle.backends.base import AnyArray, RunOptions

ENTRIES = (
    "shuffles",
    "votes",
    "block_votes",
    "active",
    "early_exit",
    "groups",
    "coalesced",
    "atomics",
)
ORDERS = (0, 1, 2, 77)
T = np.arange(64)
LANE = T % 32
i32, u32 = np.int32, np.uint32


@pytest.fixture(params=ORDERS, ids=lambda order: f"order{order}")
def run(bench: Any, request: pytest.FixtureRequest) -> Any:
    kernel = bench.load("warps.cu", *ENTRIES)

    def in_order(entry: str, *args: Any, block: int = 64) -> dict[str, AnyArray]:
        options = RunOptions(order=request.param)
        result: dict[str, AnyArray] = bench.clean(
            kernel, entry, args, block=(block,), options=options
        )
        return result

    return in_order


def of_lane(values: AnyArray, lanes: AnyArray) -> AnyArray:
    """What each thread gets from the given lane of its own warp."""
    picked: AnyArray = values[T // 32 * 32 + lanes]
    return picked


def test_shuffles(bench: Any, run: Any) -> None:
    got = run("shuffles", bench.output("y", (64, 8), i32))["y"]
    v = 100 + T
    segment8 = LANE // 8 * 8
    down = np.where(LANE % 16 < 14, LANE + 2, LANE)
    crossed = LANE ^ 9
    want = [
        of_lane(v, np.full(64, 3)),
        of_lane(v, segment8 + (T + 1) % 8),
        of_lane(v, np.where(LANE >= 2, LANE - 2, LANE)),
        of_lane(v, down),
        of_lane(v, LANE ^ 5),
        of_lane(v, np.where(crossed < segment8 + 8, crossed, LANE)),
        np.full(64, 7 + 1),
        of_lane(v, np.where(LANE % 4 == 3, LANE - 3, LANE)),
    ]
    np.testing.assert_array_equal(got, np.stack(want, axis=1))


def test_votes_matches_and_reductions(bench: Any, run: Any) -> None:
    got = run("votes", bench.output("y", (64, 10), u32))["y"]
    lanes = range(32)
    match = [sum(1 << o for o in lanes if o // 5 == lane // 5) for lane in lanes]
    folded = int(np.bitwise_xor.reduce(np.arange(32) * 3)) + 255 + 0xF0
    assert got[:, 0].tolist() == [sum(1 << o for o in lanes if o % 3 == 0)] * 64
    assert got[:, 1].tolist() == [0] * 32 + [1] * 32
    assert got[:, 2].tolist() == [1] * 64
    assert got[:, 3].tolist() == match * 2
    assert got[:, 4].tolist() == [0xFFFFFFFF] * 64
    assert got[:, 5].tolist() == [0] * 64
    assert got[:, 6].tolist() == [2] * 64
    assert got[:, 7].tolist() == [sum(lanes)] * 64
    assert got[:, 8].tolist() == [(31 - 5) % 2**32] * 64
    assert got[:, 9].tolist() == [folded] * 64


def test_barriers_that_count(bench: Any, run: Any) -> None:
    got = run("block_votes", bench.output("y", 64, i32))["y"]
    assert got.tolist() == [22 * 100 + 0 + 1] * 64


@pytest.mark.parametrize("n", [1, 17, 32, 50, 64])
def test_the_active_lanes_are_those_that_have_not_returned(bench: Any, run: Any, n: int) -> None:
    got = run("active", bench.output("y", 64, u32), i32(n))["y"]
    first = (1 << min(n, 32)) - 1
    second = (1 << max(n - 32, 0)) - 1
    assert got.tolist() == [first if t < 32 else second for t in range(n)] + [0] * (64 - n)


def test_threads_that_returned_do_not_count_at_a_barrier(bench: Any, run: Any) -> None:
    got = run("early_exit", bench.input("x", T, i32), bench.output("y", 40, i32))["y"]
    np.testing.assert_array_equal(got, T[:40])


def test_tiles_of_a_warp(bench: Any, run: Any) -> None:
    got = run("groups", bench.output("y", (64, 10), i32))["y"]
    rank, tile = T % 8, T // 8
    first = tile * 8
    ballot = np.where(first % 2 == 0, 0b10101010, 0)
    want = [
        rank,
        tile * 100 + 8,
        first + 2,
        np.where(rank < 7, T + 1, T),
        np.where(rank >= 3, T - 3, T),
        first + (rank ^ 4),
        (T.reshape(-1, 8).sum(axis=1))[tile],
        ((T % 5).reshape(-1, 8).max(axis=1))[tile],
        ballot * 10 + (tile == 0) * 2 + (tile < 7),
        np.full(64, 64 + 8 + 8),
    ]
    np.testing.assert_array_equal(got, np.stack(want, axis=1))


def test_coalesced_threads_find_each_other(bench: Any, run: Any) -> None:
    got = run("coalesced", bench.output("y", 32, i32), block=32)["y"]
    chosen = np.arange(1, 32, 3)
    want = np.full(32, -1)
    want[chosen] = 1000 * np.arange(chosen.size) + 10 * chosen.size + 1
    np.testing.assert_array_equal(got, want)


def test_atomics(bench: Any, run: Any) -> None:
    got = run(
        "atomics",
        bench.inout("i", [0, 0, -5, 5, 0, 0, -1, 1, 0], i32),
        bench.inout("u", [0, 0], u32),
        bench.inout("f", [0], np.float32),
        bench.inout("d", [0], np.float64),
    )
    total = int(T.sum())
    assert got["i"][:8].tolist() == [total, -total, 63, -63, 255, 0, ~15, 77]
    assert 1 <= got["i"][8] <= 64
    assert got["u"].tolist() == [64 % 10, 2]
    assert (got["f"][0], got["d"][0]) == (32.0, 16.0)
