"""CUDA C++ that g++ does not know by itself, from template entries to shared memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.oracle.backends.base import Parameter, RunOptions, Source
from trueup.oracle.backends.host import HostBackend
from trueup.oracle.errors import CompileError

FILE = "language.cu"
ENTRIES = (
    "affine",
    "constants",
    "shared_at_file_scope",
    "static_shared_at_file_scope",
    "aligned_shared",
    "indices",
    "many_kinds",
    "shapes::fill<float, 4>",
    "shapes::fill<__half, 8>",
    "reverse_tile<int>",
    "reverse_tile<float4>",
)
i32, f32 = np.int32, np.float32


@pytest.fixture
def kernel(bench: Any) -> Any:
    return bench.load(FILE, *ENTRIES)


def test_template_instances_are_entries(bench: Any, kernel: Any) -> None:
    args = [bench.output("y", 10, f32), f32(2.5), i32(10)]
    got = bench.clean(kernel, "shapes::fill<float, 4>", args, grid=(3,), block=(4,))
    np.testing.assert_array_equal(got["y"], np.full(10, 2.5, f32))
    args = [bench.output("y", 10, np.float16), np.float16(0.1), i32(10)]
    got = bench.clean(kernel, "shapes::fill<__half, 8>", args, grid=(2,), block=(8,))
    np.testing.assert_array_equal(got["y"], np.full(10, 0.1, np.float16))


def test_a_struct_is_passed_by_value(bench: Any, kernel: Any) -> None:
    layout = np.dtype([("scale", np.float64), ("shift", f32), ("count", i32)])
    value = np.zeros(1, layout)
    value[0] = (0.5, 3.0, 4)
    args = [bench.input("x", np.arange(5), f32), bench.output("y", 5, f32), value[0]]
    got = bench.clean(kernel, "affine", args)["y"]
    np.testing.assert_array_equal(got[:4], np.array([3.0, 3.5, 4.0, 4.5], f32))
    assert np.isnan(got[4])


def test_every_kind_of_parameter_is_deduced(bench: Any, kernel: Any) -> None:
    assert kernel.signature("many_kinds") == (
        Parameter(1, "int"),
        Parameter(2, "int"),
        Parameter(8, "int"),
        Parameter(1, "int"),
        Parameter(2, "float"),
        Parameter(8, "float"),
        Parameter(8, "const pointer"),
        Parameter(8, "pointer"),
        Parameter(8, "pointer"),
    )
    assert kernel.signature("affine")[2] == Parameter(16, "struct")
    vectors = bench.input("g", np.zeros((2, 4)), f32)
    args = [np.int8(-3), np.int16(300), np.int64(-1), np.bool_(True), np.float16(2.0)]
    args += [np.float64(7.9), vectors, bench.inout("h", [0], i32)]
    got = bench.clean(kernel, "many_kinds", [*args, bench.output("y", 1, np.uint8)])
    assert got["y"][0] == (-3 + 300 + 255 + 1 + 2 + 7) % 256


def test_constants_defines_and_module_variables(bench: Any) -> None:
    kernel = bench.load(FILE, "constants", SCALE="3")
    for calls in range(3):
        got = bench.clean(kernel, "constants", [bench.output("y", 4, f32)], block=(4,))["y"]
        np.testing.assert_array_equal(got, np.array([calls, 6.0, 12.0, 24.0], f32))


def test_shared_memory_declared_at_file_scope(bench: Any, kernel: Any) -> None:
    args = [bench.input("x", np.arange(50), i32), bench.output("y", 50, i32), i32(50)]
    for placement in ("guard", "page_end"):
        got = bench.clean(
            kernel,
            "shared_at_file_scope",
            args,
            block=(64,),
            shared=200,
            options=RunOptions(placement=placement),
        )
        np.testing.assert_array_equal(got["y"], np.arange(50)[::-1])


def test_static_shared_memory_at_file_scope_is_poisoned(bench: Any, kernel: Any) -> None:
    got = bench.clean(kernel, "static_shared_at_file_scope", [bench.output("y", 32, i32)])["y"]
    assert got[0] == 32
    assert got[1] == 0x7FF57FF5


@pytest.mark.parametrize("entry", ["reverse_tile<int>", "reverse_tile<float4>"])
def test_dynamic_shared_memory_of_an_included_header(bench: Any, kernel: Any, entry: str) -> None:
    size = 4 if entry.endswith("4>") else 1
    x = np.arange(20 * size, dtype=f32 if size == 4 else i32).reshape(20, size)
    args = [bench.input("x", x, x.dtype), bench.output("y", x.shape, x.dtype), i32(20)]
    got = bench.clean(kernel, entry, args, shared=x.nbytes)
    np.testing.assert_array_equal(got["y"], x[::-1])


def test_a_fault_in_a_header_names_the_header(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    header = tmp_path / "include" / "step.cuh"
    header.write_text("#pragma once\n__device__ int step(int n) {\n  return n * 2;\n}\n")
    source = tmp_path / "k.cu"
    source.write_text(
        '#include <step.cuh>\nextern "C" __global__ void k(int* y, int n) { y[0] = step(n); }\n'
    )
    kernel = HostBackend().load(Source(source, "cu", include=(tmp_path / "include",)), ["k"])
    bench.result(kernel, "k", [bench.output("y", 1, i32), i32(2**30)])
    (fault,) = bench.faults
    assert re.fullmatch(re.escape(str(header)) + r":3:\d+", fault.location)


def test_alignment_and_static_in_shared_declarations(bench: Any, kernel: Any) -> None:
    got = bench.clean(kernel, "aligned_shared", [bench.output("y", 8, f32)], block=(8,))["y"]
    np.testing.assert_array_equal(got, [(t // 4) * 4 + 2 * t + 4 for t in range(8)])


@pytest.mark.parametrize("order", [0, 1, 9])
def test_indices_of_blocks_and_threads(bench: Any, kernel: Any, order: int) -> None:
    args = [bench.output("y", (2 * 3 * 2, 4 * 2 * 3), i32)]
    options = RunOptions(order=order)
    got = bench.clean(kernel, "indices", args, grid=(2, 3, 2), block=(4, 2, 3), options=options)
    want = 1000 * np.arange(12)[:, None] + np.arange(24)[None, :]
    np.testing.assert_array_equal(got["y"], want)


def test_what_no_rewriting_can_express_is_an_error_at_its_line(bench: Any, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        'extern "C" __global__ void k(int* y) {\n  extern __shared__ int a[], b[];\n'
        "  y[0] = a[0] + b[0];\n}\n"
    )
    bench.cu = tmp_path
    with pytest.raises(CompileError, match="one name to a declaration") as caught:
        bench.load("k.cu", "k")
    assert caught.value.where == f"{source}:2"


def test_printf_and_assert(bench: Any, tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "k.cu").write_text(
        "#include <cassert>\n#include <cstdio>\n"
        'extern "C" __global__ void k(int* y, int n) {\n'
        '  if (threadIdx.x == 2) printf("thread %d of %s\\n", threadIdx.x, "k");\n'
        "  assert(n != 7);\n"
        "  y[threadIdx.x] = n;\n"
        "}\n"
    )
    bench.cu = tmp_path
    kernel = bench.load("k.cu", "k")
    bench.clean(kernel, "k", [bench.output("y", 4, i32), i32(1)], block=(4,))
    assert capfd.readouterr() == ("thread 2 of k\n", "")
    bench.result(kernel, "k", [bench.output("y", 4, i32), i32(7)], block=(1,))
    (fault,) = bench.faults
    assert fault.kind == "crash"
    assert fault.location == f"{tmp_path / 'k.cu'}:5"
    assert "assertion failed: n != 7" in fault.message
    assert capfd.readouterr() == ("", "")
