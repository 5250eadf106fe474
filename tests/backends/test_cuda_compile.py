"""NVRTC without a device: what the CUDA backend compiles, and what it says when it cannot."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from trueup.oracle.backends.base import Source
from trueup.oracle.backends.cuda import compile_cubin, compiler
from trueup.oracle.backends.cuda.compiler import compile_source, toolkit_headers
from trueup.oracle.backends.cuda.images import (
    kernels_in_cubin,
    kernels_in_ptx,
    kernels_in_source,
)
from trueup.oracle.backends.cuda.loader import check_image
from trueup.oracle.errors import CompileError, ContractError

pytest.importorskip("cuda.core", reason="the cuda extra is not installed")

ARCHS = ["sm_80", "sm_90", "sm_100"]

TEMPLATE = """
#include <cuda_bf16.h>
template <typename T, int N>
__global__ void scale(const T* x, T* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = T(float(x[i]) * a + N);
}
"""

PRELUDE = """
#include <cuda_runtime.h>
#include <stdint.h>
#include <cstdint>
#include <math.h>
#include <float.h>
#include <climits>
extern "C" __global__ void limits(float* y, uint64_t n, std::int8_t b) {
  y[0] = -INFINITY; y[1] = NAN; y[2] = FLT_MAX; y[3] = INT_MAX; y[4] = fmaxf(sqrtf(y[0]), b + n);
}
"""


def write(folder: Path, text: str, name: str = "k.cu") -> Source:
    path = folder / name
    path.write_text(text)
    return Source(path, "cu")


@pytest.mark.parametrize("arch", ARCHS)
def test_template_instances_with_bfloat16_compile_without_a_driver(
    tmp_path: Path, arch: str
) -> None:
    entries = ["scale<float, 4>", "scale<__nv_bfloat16, 2>"]
    image = compile_source(write(tmp_path, TEMPLATE), entries, arch)
    assert list(image.symbols) == entries
    assert sorted(image.symbols.values()) == kernels_in_cubin(image.code)
    assert len(set(image.symbols.values())) == 2


@pytest.mark.parametrize("arch", ARCHS)
def test_the_prelude_gives_infinity_limits_and_fixed_width_integers(
    tmp_path: Path, arch: str
) -> None:
    code = compile_cubin(write(tmp_path, PRELUDE), ["limits"], arch)
    assert code[:4] == b"\x7fELF"
    assert kernels_in_cubin(code) == ["limits"]


def test_infinity_is_the_infinity(tmp_path: Path) -> None:
    """0x7f800000 is +inf: compiling fails unless the constant has those bits."""
    text = """
    static_assert(INFINITY > 3.4028234e38f, "not infinite");
    static_assert(-INFINITY < -3.4028234e38f, "not infinite");
    static_assert(!(NAN == NAN), "not a NaN");
    static_assert(sizeof(int64_t) == 8 && sizeof(uint16_t) == 2 && int8_t(-1) < 0, "width");
    extern "C" __global__ void k() {}
    """
    assert compile_cubin(write(tmp_path, text), ["k"], "sm_90")


def test_defines_and_include_folders_reach_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "width.cuh").write_text("#define WIDTH 8\n")
    (tmp_path / "beside.cuh").write_text("#define BESIDE 1\n")
    text = """
    #include "width.cuh"
    #include "beside.cuh"
    static_assert(WIDTH == 8 && BESIDE == 1 && ROWS == 3, "");
    #ifndef FLAG
    #error no flag
    #endif
    extern "C" __global__ void k() {}
    """
    source = write(tmp_path, text)
    defined = {"ROWS": "3", "FLAG": ""}
    full = Source(source.path, "cu", (tmp_path / "common",), defined)
    assert compile_cubin(full, ["k"], "sm_90")
    with pytest.raises(CompileError, match=r"width\.cuh"):
        compile_cubin(source, ["k"], "sm_90")


def test_contraction_is_on_and_nothing_is_approximate(tmp_path: Path) -> None:
    text = """
    #ifdef __CUDACC_RDC__
    #error relocatable
    #endif
    #if __CUDA_FTZ || __USE_FAST_MATH__ || !__CUDA_PREC_DIV || !__CUDA_PREC_SQRT
    #error fast math
    #endif
    #if __cplusplus != 201703L
    #error not C++17
    #endif
    extern "C" __global__ void k() {}
    """
    assert compile_cubin(write(tmp_path, text), ["k"], "sm_90")


def test_the_first_compile_error_comes_with_its_line(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void k(float* y) {\n  y[0] = 1;\n  y[1] = nonsense;\n  more;\n}\n'
    source = write(tmp_path, text)
    with pytest.raises(CompileError) as caught:
        compile_cubin(source, ["k"], "sm_90")
    assert caught.value.where == f"{source.path}:3"
    assert 'identifier "nonsense" is undefined' in caught.value.what


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "bad.cuh").write_text("\nint f( { return 0; }\n")
    text = '#include "bad.cuh"\nextern "C" __global__ void k() {}\n'
    with pytest.raises(CompileError) as caught:
        compile_cubin(write(tmp_path, text), ["k"], "sm_90")
    assert caught.value.where is not None
    assert caught.value.where.endswith("bad.cuh:2")


def test_a_missing_entry_lists_the_kernels_there(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void real_one(float*) {}\n' + TEMPLATE
    with pytest.raises(ContractError) as caught:
        compile_cubin(write(tmp_path, text), ["real_one", "reel_one"], "sm_90")
    assert caught.value.what == "no kernel reel_one"
    assert caught.value.expected == "one of real_one, scale"


def test_a_template_without_its_arguments_is_told_to_name_an_instance(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="instance"):
        compile_cubin(write(tmp_path, TEMPLATE), ["scale"], "sm_90")


def test_an_unknown_architecture_and_a_missing_file_are_said_so(tmp_path: Path) -> None:
    source = write(tmp_path, 'extern "C" __global__ void k() {}')
    with pytest.raises(CompileError, match="gpu-architecture"):
        compile_cubin(source, ["k"], "sm_12345")
    with pytest.raises(ContractError, match=r"nowhere\.cu"):
        compile_cubin(Source(tmp_path / "nowhere.cu", "cu"), ["k"], "sm_90")


def test_headers_are_found() -> None:
    found = toolkit_headers()
    assert found.bundled or found.folders


def test_an_nvrtc_without_headers_of_its_own_takes_the_toolkits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = compiler._toolkit_folder()
    if folder is None:
        pytest.skip("no CUDA toolkit or nvidia-cuda-runtime wheel here")
    found = compiler.ToolkitHeaders(folders=(folder, folder / "cccl"))
    monkeypatch.setattr(compiler, "toolkit_headers", lambda: found)
    assert compile_cubin(write(tmp_path, TEMPLATE), ["scale<__nv_bfloat16, 2>"], "sm_90")


def test_without_any_headers_the_error_says_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "toolkit_headers", compiler.ToolkitHeaders)
    with pytest.raises(CompileError, match="cuda_bf16") as caught:
        compile_cubin(write(tmp_path, TEMPLATE), ["scale<float, 2>"], "sm_90")
    assert caught.value.fix is not None
    assert "pip install nvidia-cuda-runtime" in caught.value.fix


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('extern "C" __global__ void a(int) {}', ["a"]),
        ("__global__ void __launch_bounds__(256, 2) b(int) {}", ["b"]),
        ("__global__ __launch_bounds__(64) void c (int) {}", ["c"]),
        ("template<class T>\n__global__ static\nvoid d(T*) {}", ["d"]),
        ("// __global__ void e(int)\n/* __global__ void f() */ void g() {}", []),
    ],
)
def test_kernel_names_are_read_from_source(text: str, names: list[str]) -> None:
    assert kernels_in_source(text) == names


PTX = """
.version 8.0
.target sm_80
.address_size 64
// .entry commented
.visible .entry twice(.param .u64 p) { ret; }
.weak .entry _Z1kIfEvPT_(.param .u64 p) { ret; }
"""


def test_entries_are_read_from_ptx() -> None:
    assert kernels_in_ptx(PTX) == ["_Z1kIfEvPT_", "twice"]


def test_images_are_checked_before_a_driver_sees_them(tmp_path: Path) -> None:
    cubin = compile_cubin(write(tmp_path, PRELUDE), ["limits"], "sm_90")
    check_image(cubin, "cubin", "k.cubin", ["limits"])
    check_image(PTX.encode(), "ptx", "k.ptx", ["twice"])
    with pytest.raises(ContractError, match="expected one of limits"):
        check_image(cubin, "cubin", "k.cubin", ["limit"])
    with pytest.raises(ContractError, match="twice"):
        check_image(PTX.encode(), "ptx", "k.ptx", ["thrice"])
    with pytest.raises(ContractError, match="no cubin"):
        check_image(b"not an image", "cubin", "k.cubin", ["k"])
    with pytest.raises(ContractError, match="no ptx"):
        check_image(cubin, "ptx", "k.ptx", ["k"])


@pytest.mark.parametrize("cut", [4, 40, 64, 200, -1])
def test_a_truncated_cubin_is_no_traceback(tmp_path: Path, cut: int) -> None:
    cubin = compile_cubin(write(tmp_path, PRELUDE), ["limits"], "sm_90")
    assert kernels_in_cubin(cubin[:cut]) in ([], ["limits"])


NO_DRIVER = """
from trueup.oracle.backends.cuda import CudaBackend
from trueup.oracle.errors import BackendUnavailable
for _ in range(2):
    try:
        CudaBackend()
    except BackendUnavailable as error:
        print(error)
"""


def test_without_a_driver_the_backend_says_so_at_once_and_every_time() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        pass
    else:
        pytest.skip("this machine has a driver")
    done = subprocess.run(
        [sys.executable, "-c", NO_DRIVER], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.count("finds no NVIDIA driver: libcuda.so.1 does not load") == 2
    assert "--backend host" in done.stdout


NO_PACKAGE = """
import sys
sys.modules["cuda"] = None
from trueup.oracle.backends.choose import available
from trueup.oracle.backends.cuda import CudaBackend
from trueup.oracle.errors import BackendUnavailable
try:
    CudaBackend()
except BackendUnavailable as error:
    print(error)
for row in available():
    print(row)
"""


def test_without_cuda_core_the_message_gives_the_install_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_PACKAGE], capture_output=True, text=True, timeout=60, check=True
    )
    assert "needs the package cuda-core" in done.stdout
    assert "pip install 'trueup[cuda]'" in done.stdout
