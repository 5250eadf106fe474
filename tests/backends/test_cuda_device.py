"""The CUDA backend on a device: buffers, launches, and every fault it has to find.

What loses the context or never returns runs in a process of its own.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trueup.oracle.backends.base import (
    Buffer,
    Kernel,
    Launch,
    RunOptions,
    RunResult,
    Scalar,
    Source,
)
from trueup.oracle.backends.choose import available, choose
from trueup.oracle.backends.cuda import CudaBackend, compile_cubin
from trueup.oracle.errors import BackendUnavailable, CompileError, ContractError

pytestmark = pytest.mark.gpu

BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
X = np.arange(1, 301, dtype=np.float32)


@pytest.fixture(scope="module")
def cuda() -> CudaBackend:
    try:
        return CudaBackend()
    except BackendUnavailable as error:
        pytest.skip(f"no CUDA device: {error.what}")


def source_of(folder: Path, text: str) -> Source:
    path = folder / "k.cu"
    path.write_text(text)
    return Source(path, "cu")


def launch(entry: str, *args: str | Scalar, grid: Any = (3, 1, 1), **more: Any) -> Launch:
    return Launch(entry, grid, more.get("block", (128, 1, 1)), more.get("shared", 0), args)


def execute(kernel: Kernel, *launches: Launch, **more: Any) -> RunResult:
    buffers = more.get(
        "buffers", [Buffer("x", "in", F32, X.shape, X), Buffer("y", "out", F32, X.shape)]
    )
    return kernel.run(launches, buffers, more.get("options", RunOptions()))


N = Scalar("n", np.int32(X.size))

COPY = """
extern "C" __global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
extern "C" __global__ void add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}
extern "C" __global__ void past(float* y, int at) { if (threadIdx.x == 0) y[at] = 1.0f; }
extern "C" __global__ void spoil(float* x) { if (threadIdx.x == 0) x[7] = -x[7]; }
"""


@pytest.fixture
def copy(cuda: CudaBackend, tmp_path: Path) -> Any:
    return cuda.load(source_of(tmp_path, COPY), ["copy", "add", "past", "spoil"])


def test_the_device_says_what_it_is(cuda: CudaBackend) -> None:
    assert "sm_" in cuda.device
    assert "NVRTC" in cuda.device
    assert not cuda.hung
    assert cuda.dead is None
    assert choose("auto", ["host", "cuda"]).name == "cuda"
    rows = [row for row in available() if row.name.startswith("GPU")]
    assert rows
    assert "compute capability" in rows[0].detail


def test_launches_run_in_order_and_inputs_stay(copy: Any) -> None:
    result = execute(copy, launch("copy", "x", "y", N), launch("add", "x", "y", N))
    assert result.faults == ()
    assert result.launches == 2
    np.testing.assert_array_equal(result.buffers["y"], 2 * X)
    np.testing.assert_array_equal(result.buffers["x"], X)


@pytest.mark.parametrize("fill", [0x7FF5, 0x0101])
def test_unwritten_elements_show_the_fill(copy: Any, fill: int) -> None:
    few = launch("copy", "x", "y", Scalar("n", np.int32(100)))
    result = execute(copy, few, options=RunOptions(fill=fill))
    np.testing.assert_array_equal(result.buffers["y"][:100], X[:100])
    assert set(result.buffers["y"][100:].view(np.uint16).tolist()) == {fill}


def test_dirty_contents_are_what_an_output_starts_with(copy: Any) -> None:
    options = RunOptions(dirty={"y": 10 * X})
    result = execute(copy, launch("add", "x", "y", N), options=options)
    np.testing.assert_array_equal(result.buffers["y"], 11 * X)


def test_inout_and_workspace(copy: Any) -> None:
    buffers = [Buffer("x", "inout", F32, X.shape, X), Buffer("w", "workspace", F32, X.shape)]
    run = (launch("copy", "x", "w", N), launch("add", "w", "x", N))
    result = execute(copy, *run, buffers=buffers)
    assert result.faults == ()
    np.testing.assert_array_equal(result.buffers["x"], 2 * X)
    np.testing.assert_array_equal(result.buffers["w"], X)


@pytest.mark.parametrize(
    ("at", "where"),
    [(300, "1 element past its last"), (331, "32 elements past"), (-1, "1 element before")],
)
def test_a_write_beside_a_buffer_is_found(copy: Any, at: int, where: str) -> None:
    result = execute(copy, launch("past", "y", Scalar("at", np.int32(at)), grid=(1, 1, 1)))
    (fault,) = result.faults
    assert (fault.kind, fault.buffer) == ("guard overwritten", "y")
    assert where in fault.message


def test_a_changed_input_is_found(copy: Any) -> None:
    result = execute(copy, launch("spoil", "x", grid=(1, 1, 1)))
    (fault,) = result.faults
    assert (fault.kind, fault.buffer) == ("input changed", "x")
    assert "[7]" in fault.message


def test_an_empty_grid_is_not_launched(copy: Any) -> None:
    result = execute(copy, launch("copy", "x", "y", N, grid=(0, 1, 1)))
    assert (result.faults, result.launches) == ((), 0)
    assert set(result.buffers["y"].view(np.uint16).tolist()) == {0x7FF5}


@pytest.mark.parametrize("shape", [(0,), (0, 5), ()])
def test_buffers_without_elements_have_an_address(copy: Any, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    buffers = [Buffer("x", "in", F32, shape, x), Buffer("y", "out", F32, shape)]
    n = Scalar("n", np.int32(x.size))
    result = execute(copy, launch("copy", "x", "y", n), buffers=buffers)
    assert result.faults == ()
    assert result.buffers["y"].shape == shape


def test_many_launches_are_all_made(copy: Any) -> None:
    options = RunOptions(dirty={"y": np.zeros_like(X)})
    result = execute(copy, *[launch("add", "x", "y", N)] * 300, options=options)
    assert (result.faults, result.launches) == ((), 300)
    np.testing.assert_array_equal(result.buffers["y"], 300 * X)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"block": (2048, 1, 1)}, "threads per block"),
        ({"block": (0, 1, 1)}, "copy <<<"),
        ({"shared": 1 << 22}, "shared memory per block"),
        ({"grid": (1, 1 << 20, 1)}, "copy <<<"),
        ({"grid": (1 << 40, 1, 1)}, "sizes must lie"),
    ],
)
def test_a_launch_the_device_cannot_make_is_refused(copy: Any, more: Any, said: str) -> None:
    result = execute(copy, launch("copy", "x", "y", N, **more))
    (fault,) = result.faults
    assert fault.kind == "launch refused"
    assert said in fault.message
    assert result.launches == 0
    fine = execute(copy, launch("copy", "x", "y", N))
    np.testing.assert_array_equal(fine.buffers["y"], X)


def test_arguments_are_held_to_the_parameters(copy: Any) -> None:
    with pytest.raises(ContractError, match="expected 3 parameters"):
        execute(copy, launch("copy", "x", "y"))
    with pytest.raises(ContractError, match=r"argument 2 \(n\).*got 8 bytes, expected 4 bytes"):
        execute(copy, launch("copy", "x", "y", Scalar("n", np.int64(3))))
    with pytest.raises(ContractError, match="'z', which is no argument"):
        execute(copy, launch("copy", "x", "z", N))
    with pytest.raises(ContractError, match="other was not loaded"):
        execute(copy, launch("other", "x", "y", N))
    assert copy.parameter_sizes("copy") == (8, 8, 4)
    assert copy.signature("copy") is None


SCALARS = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
struct Mixed { float a; double b; short c; };
extern "C" __global__ void scalars(
    double* y, bool b, int8_t i8, uint8_t u8, int16_t i16, uint16_t u16, int32_t i32, uint32_t u32,
    int64_t i64, uint64_t u64, __half h, __nv_bfloat16 bf, float f, double d, Mixed m) {
  y[0] = b; y[1] = i8; y[2] = u8; y[3] = i16; y[4] = u16; y[5] = i32; y[6] = u32;
  y[7] = double(i64); y[8] = double(u64); y[9] = __half2float(h); y[10] = __bfloat162float(bf);
  y[11] = f; y[12] = d; y[13] = m.a; y[14] = m.b; y[15] = m.c;
}
"""


def test_scalars_of_every_dtype_and_structs_arrive_bit_for_bit(
    cuda: CudaBackend, tmp_path: Path
) -> None:
    mixed = np.dtype([("a", "f4"), ("b", "f8"), ("c", "i2")], align=True)
    values: list[Any] = [
        np.bool_(True),
        np.int8(-7),
        np.uint8(200),
        np.int16(-30000),
        np.uint16(60000),
        np.int32(-(2**31)),
        np.uint32(2**32 - 1),
        np.int64(-(2**52) - 1),
        np.uint64(2**53 - 1),
        np.float16(0.333),
        ml_dtypes.bfloat16(-3.14),
        np.float32(0.1),
        np.float64(0.1),
        np.array((1.5, 0.1, -9), mixed)[()],
    ]
    scalars = [Scalar(f"s{index}", value) for index, value in enumerate(values)]
    kernel = cuda.load(source_of(tmp_path, SCALARS), ["scalars"])
    buffers = [Buffer("y", "out", np.dtype(np.float64), (16,))]
    one = launch("scalars", "y", *scalars, grid=(1, 1, 1), block=(1, 1, 1))
    result = execute(kernel, one, buffers=buffers)
    assert result.faults == ()
    want = [float(value) for value in values[:-1]] + [1.5, 0.1, -9.0]
    assert result.buffers["y"].tolist() == want


TYPED = """
#include <cuda_bf16.h>
template <typename T, int N> __global__ void twice(const T* x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = T(N * float(x[i]));
}
"""


def test_template_instances_are_found_by_name_expression(cuda: CudaBackend, tmp_path: Path) -> None:
    names = ["twice<float, 2>", "twice<__nv_bfloat16, 3>"]
    kernel = cuda.load(source_of(tmp_path, TYPED), names)
    result = execute(kernel, launch(names[0], "x", "y", N))
    np.testing.assert_array_equal(result.buffers["y"], 2 * X)
    x = X[:64].astype(BF16)  # 3x of these is exact or rounds once
    buffers = [Buffer("x", "in", BF16, x.shape, x), Buffer("y", "out", BF16, x.shape)]
    result = execute(kernel, launch(names[1], "x", "y", Scalar("n", np.int32(64))), buffers=buffers)
    assert result.faults == ()
    np.testing.assert_array_equal(result.buffers["y"], (3 * X[:64]).astype(BF16))


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, BF16, np.float64]
)
def test_arrays_of_every_dtype_come_back_bit_for_bit(
    cuda: CudaBackend, tmp_path: Path, dtype: Any
) -> None:
    text = """
    extern "C" __global__ void bytes(const unsigned char* x, unsigned char* y, int n) {
      for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
    }
    """
    kernel = cuda.load(source_of(tmp_path, text), ["bytes"])
    x = np.arange(-17, 20).astype(dtype)
    buffers = [Buffer("x", "in", x.dtype, x.shape, x), Buffer("y", "out", x.dtype, x.shape)]
    one = launch("bytes", "x", "y", Scalar("n", np.int32(x.nbytes)), grid=(1, 1, 1))
    result = execute(kernel, one, buffers=buffers)
    assert result.faults == ()
    assert result.buffers["y"].tobytes() == x.tobytes()


SHARED = """
extern "C" __global__ void reverse(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i];
}
"""


@pytest.mark.parametrize("kib", [16, 48, 64, 96])
def test_shared_memory_above_48_kib_is_asked_for(
    cuda: CudaBackend, tmp_path: Path, kib: int
) -> None:
    x = np.arange(kib * 256, dtype=np.float32)
    buffers = [Buffer("x", "in", F32, x.shape, x), Buffer("y", "out", F32, x.shape)]
    one = launch(
        "reverse", "x", "y", Scalar("n", np.int32(x.size)), grid=(1, 1, 1), shared=x.nbytes
    )
    kernel = cuda.load(source_of(tmp_path, SHARED), ["reverse"])
    result = execute(kernel, one, buffers=buffers)
    assert result.faults == ()
    np.testing.assert_array_equal(result.buffers["y"], x[::-1])


def test_a_cubin_is_loaded(cuda: CudaBackend, tmp_path: Path) -> None:
    arch = cuda.device.split("(")[1].split(",")[0]
    path = tmp_path / "k.cubin"
    path.write_bytes(compile_cubin(source_of(tmp_path, COPY), ["copy"], arch))
    kernel = cuda.load(Source(path, "cubin"), ["copy"])
    result = execute(kernel, launch("copy", "x", "y", N))
    np.testing.assert_array_equal(result.buffers["y"], X)
    with pytest.raises(ContractError, match="expected one of add, copy"):
        cuda.load(Source(path, "cubin"), ["kopy"])
    other = "sm_80" if not arch.startswith("sm_8") else "sm_90"
    path.write_bytes(compile_cubin(source_of(tmp_path, COPY), ["copy"], other))
    with pytest.raises(ContractError, match="holds no code for this device"):
        cuda.load(Source(path, "cubin"), ["copy"])


PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [n];
  setp.ge.s32 %p, %r4, %r5;
  @%p bra DONE;
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y];
  mul.wide.s32 %d3, %r4, 4;
  add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
  ld.global.f32 %f, [%d4]; st.global.f32 [%d5], %f;
DONE:
  ret;
}
"""


def test_ptx_is_loaded_and_its_first_error_shown(cuda: CudaBackend, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    kernel = cuda.load(Source(path, "ptx"), ["copy"])
    result = execute(kernel, launch("copy", "x", "y", N))
    assert result.faults == ()
    np.testing.assert_array_equal(result.buffers["y"], X)
    path.write_text(PTX.replace("setp.ge.s32", "setp.nonsense.s32"))
    with pytest.raises(CompileError, match=r"k\.ptx: ptxas.*line 10"):
        cuda.load(Source(path, "ptx"), ["copy"])


def test_the_callers_context_is_left_as_it_was(cuda: CudaBackend, copy: Any) -> None:
    from cuda.bindings import driver

    before = driver.cuCtxGetCurrent()[1]
    execute(copy, launch("copy", "x", "y", N))
    assert int(driver.cuCtxGetCurrent()[1]) == int(before)


def test_torch_and_the_backend_share_the_device(cuda: CudaBackend, copy: Any) -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA here")
    mine = torch.arange(1000, device="cuda", dtype=torch.float32)
    result = execute(copy, launch("copy", "x", "y", N))
    np.testing.assert_array_equal(result.buffers["y"], X)
    assert float((mine * 2).sum()) == 999000.0


HEAD = """
import os, sys, time
from pathlib import Path
import numpy as np
from trueup.oracle.backends.base import Buffer, Launch, RunOptions, Scalar, Source
from trueup.oracle.backends.cuda import CudaBackend
from trueup.oracle.errors import BackendUnavailable
F32 = np.dtype(np.float32)
path = Path(sys.argv[1]) / "k.cu"
path.write_text('''
extern "C" __global__ void spin(float* y) { while (atomicAdd(y, 0.0f) != 1.0f) { } }
extern "C" __global__ void wild(float* y) { *(float*)(threadIdx.x * 4ull + 64) = 1.0f; }
extern "C" __global__ void misaligned(float* y) { *(float4*)(y + 1) = float4{1, 2, 3, 4}; }
extern "C" __global__ void trap(float* y) { __trap(); }
extern "C" __global__ void one(float* y) { y[threadIdx.x] = 1.0f; }
''')
backend = CudaBackend()
kernel = backend.load(Source(path, "cu"), ["spin", "wild", "misaligned", "trap", "one"])
def run(entry, seconds=20.0):
    launch = Launch(entry, (1, 1, 1), (32, 1, 1), 0, ("y",))
    buffers = [Buffer("y", "out", F32, (32,))]
    return kernel.run([launch], buffers, RunOptions(fill=0, time_limit=seconds))
"""


def in_process(tmp_path: Path, body: str) -> str:
    code = HEAD + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("wild", "ILLEGAL_ADDRESS"),
        ("misaligned", "MISALIGNED_ADDRESS"),
        ("trap", "(LAUNCH_FAILED|ILLEGAL_INSTRUCTION)"),
    ],
)
def test_a_crash_is_a_fault_and_ends_the_device_for_the_process(
    tmp_path: Path, entry: str, said: str
) -> None:
    body = f"""
    result = run("{entry}")
    (fault,) = result.faults
    print(fault.kind, fault.message)
    assert result.buffers["y"].tolist() == [0.0] * 32
    try:
        run("one")
    except BackendUnavailable as error:
        print(error, flush=True)
    assert backend.dead and not backend.hung
    os._exit(0)
    """
    out = in_process(tmp_path, body)
    assert re.match(f"crash {entry}: CUDA_ERROR_{said}", out)
    assert "cannot be used in this process any more" in out


@pytest.mark.usefixtures("cuda")
def test_a_kernel_that_never_returns_meets_the_time_limit(tmp_path: Path) -> None:
    body = """
    began = time.monotonic()
    result = run("spin", 1.0)
    took = time.monotonic() - began
    print([fault.kind for fault in result.faults], backend.hung, took < 20)
    try:
        run("one")
    except BackendUnavailable as error:
        print("still running" in str(error), flush=True)
    os._exit(0)
    """
    assert in_process(tmp_path, body).splitlines() == ["['time limit'] True True", "True"]
