"""A launch that does not fit its kernel is refused before anything runs, and says how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trueup.oracle.backends.base import Buffer, Launch, RunOptions, Scalar, Source
from trueup.oracle.backends.host import HostBackend
from trueup.oracle.errors import ContractError

SOURCE = """
#include <cuda_bf16.h>
extern "C" __global__ void step(const float* x, float* y, float a, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x];
}
extern "C" __global__ void total(float* x, float* sum) { *sum = x[0] + x[1]; }
extern "C" __global__ void narrow(const __nv_bfloat16* x, unsigned char* bytes, __nv_bfloat16 a) {}
"""
f32, i32 = np.float32, np.int32


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    source = tmp_path / "k.cu"
    source.write_text(SOURCE)
    return HostBackend().load(Source(source, "cu"), ["step", "total", "narrow"])


def launch(entry: str, *args: str | Scalar) -> Launch:
    return Launch(entry, (1, 1, 1), (32, 1, 1), 0, args)


def buffer(name: str, role: Any, dtype: Any = f32) -> Buffer:
    dtype = np.dtype(dtype)
    initial = np.zeros(4, dtype) if role in ("in", "inout") else None
    return Buffer(name, role, dtype, (4,), initial)


A, N = Scalar("a", f32(2)), Scalar("n", i32(4))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        pytest.param(("x", "y", A), ["3 (x, y, a)", "4 (const pointer, pointer"], id="too-few"),
        pytest.param(("x", "y", A, N, N), ["got 5"], id="too-many"),
        pytest.param(("x", "y", N, A), ["argument 3", "declared int32", "float32"], id="swapped"),
        pytest.param(
            ("x", "y", Scalar("a", np.float64(2)), N), ["float64 (8 bytes)"], id="wide-float"
        ),
        pytest.param(
            ("x", "y", A, Scalar("n", np.int64(2))), ["argument 4", "32-bit int"], id="wide-int"
        ),
        pytest.param(("x", "y", A, "y"), ["takes a value there"], id="buffer-for-value"),
        pytest.param((A, "y", A, N), ["argument 1", "const pointer"], id="value-for-buffer"),
        pytest.param(("x", "z", A, N), ["no buffer is called `z`"], id="unknown-buffer"),
        pytest.param(("y", "x", A, N), ["declared out", "const pointer"], id="const-output"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(
    kernel: Any, args: tuple[str | Scalar, ...], said: list[str]
) -> None:
    with pytest.raises(ContractError) as caught:
        kernel.run([launch("step", *args)], [buffer("x", "in"), buffer("y", "out")], RunOptions())
    for words in said:
        assert words in str(caught.value)
    assert "step" in str(caught.value)


def test_another_dtype_than_the_kernels_is_refused(kernel: Any) -> None:
    buffers = [buffer("x", "in", np.float16), buffer("b", "out", np.uint8)]
    value: Any = np.asarray(1, ml_dtypes.bfloat16)[()]
    one = Scalar("a", value)
    with pytest.raises(ContractError, match="declared float16, expected bfloat16"):
        kernel.run([launch("narrow", "x", "b", one)], buffers, RunOptions())
    buffers[0] = buffer("x", "in", ml_dtypes.bfloat16)
    with pytest.raises(ContractError, match=r"declared float16 \(2 bytes\), expected bf"):
        kernel.run([launch("narrow", "x", "b", Scalar("a", np.float16(1)))], buffers, RunOptions())
    assert kernel.run([launch("narrow", "x", "b", one)], buffers, RunOptions()).faults == ()


def test_an_input_may_go_to_a_pointer_that_is_not_const(kernel: Any) -> None:
    x = Buffer("x", "in", np.dtype(f32), (4,), np.arange(4, dtype=f32))
    result = kernel.run([launch("total", "x", "s")], [x, buffer("s", "out")], RunOptions())
    assert result.faults == ()
    assert result.buffers["s"][0] == 1.0


def test_one_launch_may_read_what_another_wrote(kernel: Any) -> None:
    x = Buffer("x", "in", np.dtype(f32), (4,), np.arange(4, dtype=f32))
    buffers = [x, buffer("w", "workspace"), buffer("y", "out")]
    launches = [launch("step", "x", "w", A, N), launch("step", "w", "y", A, N)]
    result = kernel.run(launches, buffers, RunOptions())
    assert result.launches == 2
    np.testing.assert_array_equal(result.buffers["y"], 4 * np.arange(4))
    np.testing.assert_array_equal(result.buffers["w"], 2 * np.arange(4))
    np.testing.assert_array_equal(result.buffers["x"], np.arange(4))


def test_dirty_contents_take_the_place_of_the_fill(kernel: Any) -> None:
    x = Buffer("x", "in", np.dtype(f32), (4,), np.ones(4, f32))
    few = Scalar("n", i32(2))
    options = RunOptions(dirty={"y": np.full(4, 9, f32)})
    result = kernel.run([launch("step", "x", "y", A, few)], [x, buffer("y", "out")], options)
    assert result.buffers["y"].tolist() == [2, 2, 9, 9]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Buffer("x", "in", np.dtype(f32), (4,), None), "no initial content"),
        (Buffer("x", "in", np.dtype(f32), (4,), np.zeros(5, f32)), r"float32 \(5,\)"),
        (Buffer("x", "in", np.dtype(f32), (4,), np.zeros(4)), "float64"),
    ],
)
def test_contents_that_do_not_fit_are_refused(kernel: Any, given: Buffer, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        kernel.run([launch("step", "x", "y", A, N)], [given, buffer("y", "out")], RunOptions())


def test_an_entry_that_was_not_loaded_is_named(kernel: Any) -> None:
    with pytest.raises(ContractError, match=r"`other` was not loaded.*one of step, total"):
        kernel.signature("other")
    with pytest.raises(ContractError, match="`other` was not loaded"):
        kernel.run([launch("other")], [], RunOptions())
