"""Each planted defect is found, and named with its place."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from trueup.oracle.backends.base import PLAIN_FILL, Fault, RunOptions

FILE = "faults.cu"
ENTRIES = (
    "store_past_end",
    "store_before",
    "load_past_end",
    "far_store",
    "shared_index",
    "shared_pointer",
    "dynamic_past_end",
    "misaligned",
    "float_to_int",
    "signed_overflow",
    "wide_shift",
    "null_store",
    "divide_by_zero",
    "uninitialised_shared",
    "unwritten_tail",
    "missing_barrier",
    "missing_second_barrier",
    "missing_syncwarp",
    "divergent_barrier",
    "half_a_warp",
    "not_in_mask",
    "mixed_operations",
    "bad_width",
    "reads_absent_lane",
    "spins",
    "loops_with_barrier",
    "changes_input",
    "stack_overflow",
    "traps",
    "local_overrun",
    "good",
)
i32, f32 = np.int32, np.float32


@pytest.fixture
def kernel(bench: Any) -> Any:
    return bench.load(FILE, *ENTRIES)


def only(faults: tuple[Fault, ...]) -> Fault:
    (fault,) = faults
    return fault


def at_end(**more: Any) -> RunOptions:
    return RunOptions(placement="page_end", **more)


def test_a_store_past_the_end_hits_the_page_behind(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 300, f32), i32(300)]
    bench.result(kernel, "store_past_end", args, grid=(2,), block=(256,), options=at_end())
    fault = only(bench.faults)
    assert (fault.kind, fault.buffer) == ("out of bounds", "y")
    assert (fault.block, fault.thread) == ((1, 0, 0), (44, 0, 0))
    assert "writes element 300 of `y`, which has 300 elements" in fault.message
    assert bench.at(fault, FILE, "store_past_end")


def test_a_store_past_the_end_overwrites_the_guard_zone(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 300, f32), i32(300)]
    outcome = bench.result(kernel, "store_past_end", args, grid=(2,), block=(256,))
    fault = only(bench.faults)
    assert (fault.kind, fault.buffer) == ("guard overwritten", "y")
    assert "behind the buffer, at element 300" in fault.message
    assert outcome.buffers["y"].sum() == 300


def test_a_store_before_the_start_is_found_in_both_ways(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 8, f32), i32(8)]
    bench.result(kernel, "store_before", args)
    fault = only(bench.faults)
    assert fault.kind == "guard overwritten"
    assert "before the buffer, at element -1" in fault.message
    bench.result(kernel, "store_before", args, options=RunOptions(placement="page_start"))
    fault = only(bench.faults)
    assert (fault.kind, fault.thread) == ("out of bounds", (0, 0, 0))
    assert "writes element -1" in fault.message
    assert bench.at(fault, FILE, "store_before")


def test_a_load_past_the_end_is_nan_in_a_guard_zone_and_a_fault_at_a_page(
    bench: Any, kernel: Any
) -> None:
    args = [bench.input("x", np.arange(300), f32), bench.output("y", 300, f32), i32(300)]
    outcome = bench.result(kernel, "load_past_end", args, grid=(2,), block=(256,))
    assert bench.faults == ()
    assert np.isnan(outcome.buffers["y"][-1])
    bench.result(kernel, "load_past_end", args, grid=(2,), block=(256,), options=at_end())
    fault = only(bench.faults)
    assert "reads element 300 of `x`" in fault.message
    assert bench.at(fault, FILE, "load_past_end")


def test_a_store_far_away_is_still_told_by_the_buffers_name(bench: Any, kernel: Any) -> None:
    bench.result(kernel, "far_store", [bench.output("y", 10, f32), i32(10)])
    fault = only(bench.faults)
    assert (fault.kind, fault.buffer) == ("out of bounds", "y")
    assert "writes element 40010" in fault.message


@pytest.mark.parametrize("entry", ["shared_index", "shared_pointer"])
def test_shared_memory_past_its_end_is_found_with_its_column(
    bench: Any, kernel: Any, entry: str
) -> None:
    bench.result(kernel, entry, [bench.output("y", 256, f32)], block=(256,))
    fault = only(bench.faults)
    assert (fault.kind, fault.thread) == ("out of bounds", (255, 0, 0))
    assert bench.at(fault, FILE, entry)
    assert re.search(r":\d+:\d+$", fault.location or "")
    if entry == "shared_index":
        assert "index 256 out of bounds for type 'float [256]'" in fault.message


def test_dynamic_shared_memory_ends_at_an_unmapped_page(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 64, f32)]
    bench.result(kernel, "dynamic_past_end", args, block=(64,), shared=256)
    fault = only(bench.faults)
    assert (fault.kind, fault.buffer) == ("out of bounds", "dynamic shared memory")
    assert "writes byte 256" in fault.message
    assert bench.at(fault, FILE, "dynamic_past_end")


def test_dynamic_shared_memory_of_an_odd_size_is_watched_too(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 63, f32)]
    bench.result(kernel, "dynamic_past_end", args, block=(63,), shared=252)
    fault = only(bench.faults)
    assert (fault.kind, fault.buffer) == ("guard overwritten", "dynamic shared memory")


@pytest.mark.parametrize(
    ("entry", "args", "said"),
    [
        ("float_to_int", ("x", 3e10), "outside the range of type 'int'"),
        ("float_to_int", ("x", np.nan), "outside the range of type 'int'"),
        ("signed_overflow", (2**31 - 1,), "integer overflow: 2147483647 + 1"),
        ("wide_shift", (32,), "shift of 1 by 32 places"),
        ("wide_shift", (-1,), "shift of 1 by -1 places"),
        ("divide_by_zero", (4,), "division by zero"),
        ("null_store", (1,), "null pointer"),
    ],
)
def test_undefined_behaviour_is_reported_at_its_line(
    bench: Any, kernel: Any, capfd: Any, entry: str, args: Any, said: str
) -> None:
    dtype = f32 if entry == "null_store" else i32
    out = bench.output("y", 32, dtype)
    if args[0] == "x":
        bench.result(kernel, entry, [bench.input("x", [args[1]], f32), out])
    else:
        bench.result(kernel, entry, [out, i32(args[0])])
    fault = only(bench.faults)
    assert fault.kind == "undefined behaviour"
    assert said in fault.message
    assert bench.at(fault, FILE, entry)
    assert capfd.readouterr() == ("", "")


def test_division_by_zero_names_the_thread(bench: Any, kernel: Any) -> None:
    bench.result(kernel, "divide_by_zero", [bench.output("y", 32, i32), i32(4)])
    assert only(bench.faults).thread == (4, 0, 0)


@pytest.mark.parametrize("placement", ["guard", "page_end", "page_start"])
def test_a_misaligned_vector_load_is_found(bench: Any, kernel: Any, placement: Any) -> None:
    args = [bench.input("x", np.arange(8), f32), bench.output("y", 1, f32)]
    bench.result(kernel, "misaligned", args, options=RunOptions(placement=placement))
    fault = only(bench.faults)
    assert (fault.kind, fault.buffer) == ("undefined behaviour", "x")
    assert "requires 16 byte alignment" in fault.message
    assert bench.at(fault, FILE, "misaligned")


def test_unwritten_shared_memory_and_outputs_show_the_fill(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 64, f32)]
    seen = {}
    for fill in (0x7FF5, PLAIN_FILL):
        options = RunOptions(fill=fill)
        bench.result(kernel, "uninitialised_shared", args, block=(64,), options=options)
        outcome = bench.result(kernel, "uninitialised_shared", args, block=(64,), options=options)
        seen[fill] = outcome.buffers["y"]
    assert np.isnan(seen[0x7FF5]).nonzero()[0].tolist() == list(range(0, 64, 8))
    assert seen[PLAIN_FILL][0] == np.uint32(0x01010101).view(f32)
    outcome = bench.result(kernel, "unwritten_tail", [bench.output("y", 9, f32), i32(9)])
    assert np.isnan(outcome.buffers["y"]).nonzero()[0].tolist() == [6, 7, 8]


@pytest.mark.parametrize(
    ("entry", "threads"),
    [("missing_barrier", 256), ("missing_second_barrier", 256), ("missing_syncwarp", 32)],
)
def test_a_missing_barrier_shows_as_a_result_that_depends_on_the_order(
    bench: Any, kernel: Any, entry: str, threads: int
) -> None:
    x = np.arange(1, threads + 1)
    args = [bench.input("x", x, f32), bench.output("y", threads, f32)]
    seen = {
        bench.result(kernel, entry, args, block=(threads,), options=RunOptions(order=order))
        .buffers["y"]
        .tobytes()
        for order in range(6)
    }
    assert len(seen) > 1


def test_a_divergent_barrier_names_both_places(bench: Any, kernel: Any) -> None:
    bench.result(kernel, "divergent_barrier", [bench.output("y", 256, f32)], block=(256,))
    fault = only(bench.faults)
    assert fault.kind == "divergent barrier"
    assert bench.at(fault, FILE, "divergent_barrier b")
    assert f"{bench.cu / FILE}:{bench.line(FILE, 'divergent_barrier a')}" in fault.message
    assert "128 thread(s)" in fault.message


def test_a_deadlock_tells_who_waits_where(bench: Any, kernel: Any) -> None:
    bench.result(kernel, "half_a_warp", [bench.output("y", 64, f32)], block=(64,))
    fault = only(bench.faults)
    assert fault.kind == "deadlock"
    line = bench.line(FILE, "half_a_warp")
    assert f"threads 0..15 wait at __shfl_xor_sync(0xffffffff) in {bench.cu / FILE}:{line}" in (
        fault.message
    )
    assert f"threads 16..31 wait at __syncthreads in {bench.cu / FILE}:{line + 1}" in fault.message


@pytest.mark.parametrize(
    ("entry", "mark", "said"),
    [
        ("not_in_mask", "not_in_mask", "mask 0x0000ffff, which leaves out the calling lane"),
        ("mixed_operations", "mixed_operations b", "__all_sync here, __any_sync in"),
        ("bad_width", "bad_width", "width 24"),
    ],
)
def test_misuse_of_a_warp_operation_is_reported(
    bench: Any, kernel: Any, entry: str, mark: str, said: str
) -> None:
    dtype = f32 if entry == "not_in_mask" else i32
    bench.result(kernel, entry, [bench.output("y", 32, dtype)])
    fault = only(bench.faults)
    assert fault.kind == "misuse"
    assert said in fault.message
    assert bench.at(fault, FILE, mark)


def test_a_lane_that_is_absent_gives_the_fill(bench: Any, kernel: Any) -> None:
    got = bench.clean(kernel, "reads_absent_lane", [bench.output("y", 32, f32)])["y"]
    assert np.isnan(got).nonzero()[0].tolist() == [4, 5, 6, 7]
    assert got[:4].tolist() == [1.0] * 4


def test_a_local_array_that_is_overrun_is_reported(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 8, f32), i32(8)]
    bench.clean(kernel, "local_overrun", args, block=(8,))
    bench.result(kernel, "local_overrun", [args[0], i32(24)], block=(8,))
    fault = only(bench.faults)
    assert (fault.kind, fault.thread) == ("out of bounds", (0, 0, 0))
    assert "local array" in fault.message
    assert (fault.location or "").startswith(str(bench.cu / FILE))


def test_a_changed_input_is_reported(bench: Any, kernel: Any) -> None:
    args = [bench.input("x", np.zeros(8), f32), bench.output("y", 1, f32)]
    bench.result(kernel, "changes_input", args)
    fault = only(bench.faults)
    assert (fault.kind, fault.buffer) == ("input changed", "x")
    assert "1 element(s), the first is element 3" in fault.message


def test_a_trap_ends_the_run_at_its_line(bench: Any, kernel: Any) -> None:
    bench.result(kernel, "traps", [bench.output("y", 1, i32)])
    fault = only(bench.faults)
    assert (fault.kind, fault.thread) == ("crash", (1, 0, 0))
    assert bench.at(fault, FILE, "traps")
