"""A kernel may hang, crash or run out of stack: Python lives on, and the next run is right."""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.oracle.backends.base import Launch, RunOptions, Scalar
from trueup.oracle.backends.host.memory import PAGE, Region

FILE = "faults.cu"
ENTRIES = ("spins", "loops_with_barrier", "stack_overflow", "far_store", "divide_by_zero", "good")
SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGALRM)
i32, f32 = np.int32, np.float32
SHORT = RunOptions(time_limit=0.2)


@pytest.fixture
def kernel(bench: Any) -> Any:
    return bench.load(FILE, *ENTRIES)


def still_works(bench: Any, kernel: Any) -> None:
    got = bench.clean(kernel, "good", [bench.output("y", 100, f32), i32(100)], block=(128,))
    np.testing.assert_array_equal(got["y"], np.arange(100))


def test_a_kernel_that_spins_meets_the_time_limit(bench: Any, kernel: Any) -> None:
    start = time.monotonic()
    args = [bench.inout("flag", [0], i32), bench.output("y", 32, i32)]
    outcome = bench.result(kernel, "spins", args, options=SHORT)
    assert 0.2 <= time.monotonic() - start < 15
    (fault,) = outcome.faults
    assert (fault.kind, fault.thread) == ("time limit", (0, 0, 0))
    assert bench.at(fault, FILE, "spins")
    assert "0.2 s" in fault.message
    assert outcome.launches == 0
    still_works(bench, kernel)


def test_a_kernel_that_loops_through_a_barrier_meets_it_too(bench: Any, kernel: Any) -> None:
    bench.result(kernel, "loops_with_barrier", [bench.output("y", 1, i32)], options=SHORT)
    (fault,) = bench.faults
    assert fault.kind == "time limit"
    assert bench.at(fault, FILE, "loops_with_barrier")
    still_works(bench, kernel)


def test_the_time_limit_is_for_all_launches_together(bench: Any, kernel: Any) -> None:
    flag, y = bench.inout("flag", [0], i32), bench.output("y", 32, i32)
    good = bench.output("g", 32, f32)
    launches = [
        Launch("good", (1, 1, 1), (32, 1, 1), 0, ("g", _scalar(32))),
        Launch("spins", (1, 1, 1), (32, 1, 1), 0, ("flag", "y")),
        Launch("good", (1, 1, 1), (32, 1, 1), 0, ("g", _scalar(32))),
    ]
    outcome = kernel.run(launches, [flag, y, good], SHORT)
    assert outcome.launches == 1
    assert [fault.kind for fault in outcome.faults] == ["time limit"]
    np.testing.assert_array_equal(outcome.buffers["g"], np.arange(32))


def _scalar(n: int) -> Any:
    return Scalar("n", i32(n))


def test_running_out_of_stack_is_a_crash_with_a_name(bench: Any, kernel: Any) -> None:
    bench.result(kernel, "stack_overflow", [bench.inout("y", [0], i32)], block=(1,))
    (fault,) = bench.faults
    assert fault.kind == "crash"
    assert "stack overflow" in fault.message
    still_works(bench, kernel)


def test_what_handled_signals_before_handles_them_again(bench: Any, kernel: Any) -> None:
    def handler(*_: object) -> None:
        raise AssertionError

    old = {number: signal.signal(number, handler) for number in SIGNALS}
    was_enabled = faulthandler.is_enabled()
    try:
        for entry, args in (
            ("far_store", [bench.output("y", 4, f32), i32(4)]),
            ("divide_by_zero", [bench.output("y", 32, i32), i32(1)]),
            ("good", [bench.output("y", 4, f32), i32(4)]),
        ):
            bench.result(kernel, entry, args)
            assert [signal.getsignal(number) for number in SIGNALS] == [handler] * len(SIGNALS)
    finally:
        for number, previous in old.items():
            signal.signal(number, previous)
    assert faulthandler.is_enabled() == was_enabled


def test_an_alarm_of_somebody_else_arrives_and_ends_no_kernel(bench: Any, kernel: Any) -> None:
    rung = []
    old = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        args = [bench.inout("flag", [0], i32), bench.output("y", 32, i32)]
        bench.result(kernel, "spins", args, options=SHORT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert [fault.kind for fault in bench.faults] == ["time limit"]
    assert rung == [1]


def test_other_threads_of_python_go_on_meanwhile(bench: Any, kernel: Any) -> None:
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.01):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    args = [bench.inout("flag", [0], i32), bench.output("y", 32, i32)]
    bench.result(kernel, "spins", args, options=SHORT)
    stop.set()
    thread.join()
    assert len(ticks) >= 3


def test_threads_of_python_take_turns(bench: Any, kernel: Any) -> None:
    results = []

    def work() -> None:
        for _ in range(20):
            y = bench.output("y", 1000, f32)
            outcome = kernel.run(
                [Launch("good", (8, 1, 1), (128, 1, 1), 0, ("y", _scalar(1000)))], [y], RunOptions()
            )
            results.append((outcome.buffers["y"] == np.arange(1000)).all() and not outcome.faults)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 60


def test_a_crash_of_python_itself_is_still_a_crash(bench: Any, kernel: Any) -> None:
    """The handlers are gone after a run: a later fault outside kernels is nobody's but Python's."""
    script = (
        "import ctypes, sys, runpy\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "import numpy as np\n"
        "from trueup.oracle.backends.base import *\n"
        "from trueup.oracle.backends.host import HostBackend\n"
        f"kernel = HostBackend().load(Source(Path({str(bench.cu / FILE)!r}), 'cu'),"
        f" {list(ENTRIES)!r})\n"
        "y = Buffer('y', 'out', np.dtype('f4'), (4,))\n"
        "n = Scalar('n', np.int32(4))\n"
        "l = Launch('far_store', (1, 1, 1), (1, 1, 1), 0, ('y', n))\n"
        "print([f.kind for f in kernel.run([l], [y], RunOptions()).faults], flush=True)\n"
        "ctypes.string_at(16)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "['out of bounds']\n"
    assert done.returncode == -signal.SIGSEGV


def test_module_variables_are_as_loaded_after_a_fault(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "__device__ int calls = 3;\n"
        'extern "C" __global__ void k(int* y, int n) {\n'
        "  y[0] = atomicAdd(&calls, 1);\n"
        "  if (n) __trap();\n"
        "}\n"
    )
    bench.cu = tmp_path
    kernel = bench.load("k.cu", "k")
    y = bench.output("y", 1, i32)
    seen = []
    for crash in (0, 0, 1, 0):
        outcome = bench.result(kernel, "k", [y, i32(crash)], block=(1,))
        seen.append(int(outcome.buffers["y"][0]))
        assert len(outcome.faults) == crash
    assert seen == [3, 4, 5, 3]


@pytest.mark.parametrize("order", [0, 1, 5])
def test_the_portable_fibers_give_the_same_results(
    bench: Any, monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    x = np.random.default_rng(order).integers(-9, 9, 600).astype(f32)
    options = RunOptions(order=order)
    seen = []
    for portable in ("", "1"):
        monkeypatch.setenv("TRUEUP_HOST_UCONTEXT", portable)
        kernel = bench.load("correct.cu", "block_reduce", "scan")
        args = [bench.input("x", x, f32), bench.output("y", 3, f32), i32(600)]
        got = bench.clean(kernel, "block_reduce", args, grid=(3,), block=(256,), options=options)
        seen.append(got["y"].tobytes())
    assert seen[0] == seen[1]
    padded = np.zeros(768, f32)
    padded[:600] = x
    assert seen[0] == padded.reshape(3, 256).sum(axis=1).tobytes()


def test_the_portable_fibers_report_faults_too(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_HOST_UCONTEXT", "1")
    kernel = bench.load(FILE, "half_a_warp", "far_store", "good", "loops_with_barrier")
    bench.result(kernel, "half_a_warp", [bench.output("y", 64, f32)], block=(64,))
    assert [fault.kind for fault in bench.faults] == ["deadlock"]
    bench.result(kernel, "far_store", [bench.output("y", 4, f32), i32(4)])
    assert [fault.kind for fault in bench.faults] == ["out of bounds"]
    bench.result(kernel, "loops_with_barrier", [bench.output("y", 1, i32)], options=SHORT)
    assert [fault.kind for fault in bench.faults] == ["time limit"]
    still_works(bench, kernel)


def test_subnormals_stay(bench: Any) -> None:
    """No flag of the build may turn on flush-to-zero for the process."""
    kernel = bench.load("correct.cu", "saxpy")
    tiny = np.full(8, 1e-40, f32)
    args = [bench.input("x", tiny, f32), bench.inout("y", tiny, f32), f32(1.0), i32(8)]
    got = bench.clean(kernel, "saxpy", args)
    np.testing.assert_array_equal(got["y"], tiny + tiny)
    assert np.float32(1e-40) * np.float32(0.5) > 0


@pytest.mark.parametrize("placement", ["guard", "page_end", "page_start"])
@pytest.mark.parametrize("size", [0, 1, 6, PAGE - 2, PAGE, PAGE + 3])
def test_every_byte_beside_a_buffer_is_watched(size: int, placement: Any) -> None:
    region = Region("y", size, 0x7FF5, placement)
    try:
        assert region.overwritten() is None
        assert region.data.size == size
        region.data[:] = 1
        assert region.overwritten() is None
        low, high = region.address - region._low, region._high - (region.address + size)
        expected = {
            "guard": (PAGE, PAGE + (-size % PAGE)),
            "page_end": (-size % PAGE, 0),
            "page_start": (0, -size % PAGE),
        }[placement]
        assert (low, high) == expected
        for offset in {-low, -1, size, size + high - 1}:
            if -low <= offset < 0 or size <= offset < size + high:
                byte = (ctypes.c_uint8).from_address(region.address + offset)
                kept, byte.value = byte.value, byte.value ^ 0x10
                assert region.overwritten() == offset
                byte.value = kept
        assert region.overwritten() is None
    finally:
        region.close()
