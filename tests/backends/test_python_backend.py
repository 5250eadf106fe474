"""The Python backend: callables on NumPy arrays and torch tensors, and what they may not do."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trueup.oracle.backends.base import Buffer, Launch, RunOptions, RunResult, Scalar
from trueup.oracle.backends.python import PythonBackend, PythonCall, PythonSource
from trueup.oracle.errors import BackendUnavailable, CompileError, ContractError

BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def buffer(
    name: str, role: Any, array: Any = None, dtype: Any = F32, shape: Any = (2, 3)
) -> Buffer:
    if array is not None:
        return Buffer(name, role, array.dtype, array.shape, array)
    return Buffer(name, role, np.dtype(dtype), shape)


def run(
    tmp_path: Path,
    code: str,
    call: PythonCall,
    buffers: list[Buffer],
    scalars: tuple[Scalar, ...] = (),
    options: RunOptions | None = None,
) -> RunResult:
    path = tmp_path / "user.py"
    path.write_text(code)
    source = PythonSource("user.py", "f", call, tmp_path)
    launch = Launch("f", (1, 1, 1), (1, 1, 1), 0, scalars)
    return PythonBackend().load(source).run([launch], buffers, options or RunOptions())


def test_numpy_results_come_back_by_name_in_order(tmp_path: Path) -> None:
    call = PythonCall(args=("x", "a", "n", "flag"), results=("y", "total"))
    code = """
import numpy as np
def f(x, a, n, flag):
    assert type(a) is float and type(n) is int and flag is True
    return x * a + n, x.sum(axis=1)
"""
    buffers = [buffer("x", "in", X), buffer("y", "out"), buffer("total", "out", shape=(2,))]
    scalars = (
        Scalar("a", np.float32(0.5)),
        Scalar("n", np.int32(3)),
        Scalar("flag", np.bool_(True)),
    )
    result = run(tmp_path, code, call, buffers, scalars)
    assert result.faults == ()
    assert result.launches == 1
    np.testing.assert_array_equal(result.buffers["y"], [[3, 3.5, 4], [4.5, 5, 5.5]])
    np.testing.assert_array_equal(result.buffers["total"], [3, 12])
    np.testing.assert_array_equal(result.buffers["x"], X)


def test_scalars_hold_the_value_of_their_dtype(tmp_path: Path) -> None:
    code = "def f(a, y):\n    y[0] = a\n"
    call = PythonCall(args=("a", "y"))
    for value in (np.float32(0.1), ml_dtypes.bfloat16(0.1), np.float16(0.1)):
        buffers = [buffer("y", "out", dtype=np.float64, shape=(1,))]
        result = run(tmp_path, code, call, buffers, (Scalar("a", value),))
        assert result.buffers["y"][0] == float(value) != 0.1


def test_keywords_are_passed_by_name(tmp_path: Path) -> None:
    call = PythonCall(keywords={"source": "x", "target": "y"})
    code = "def f(*, target, source):\n    target[...] = source + 1\n"
    result = run(tmp_path, code, call, [buffer("x", "in", X), buffer("y", "out")])
    np.testing.assert_array_equal(result.buffers["y"], X + 1)


@pytest.mark.parametrize("fill", [0x7FF5, 0x0101])
def test_unwritten_elements_show_the_fill(tmp_path: Path, fill: int) -> None:
    call = PythonCall(args=("x", "y"))
    code = "def f(x, y):\n    y[0] = x[0]\n"
    buffers = [buffer("x", "in", X), buffer("y", "out")]
    result = run(tmp_path, code, call, buffers, options=RunOptions(fill=fill))
    assert result.faults == ()
    np.testing.assert_array_equal(result.buffers["y"][0], X[0])
    assert set(result.buffers["y"][1].view(np.uint16).tolist()) == {fill}


def test_dirty_contents_and_inout_and_workspace_are_where_they_should_be(tmp_path: Path) -> None:
    call = PythonCall(args=("m", "w", "y"))
    code = "def f(m, w, y):\n    y[...] += m + w\n    m *= 2\n"
    ones = np.ones((2, 3), np.float32)
    buffers = [buffer("m", "inout", X), buffer("w", "workspace"), buffer("y", "out")]
    options = RunOptions(dirty={"w": ones, "y": 10 * ones})
    result = run(tmp_path, code, call, buffers, options=options)
    np.testing.assert_array_equal(result.buffers["m"], 2 * X)
    np.testing.assert_array_equal(result.buffers["y"], X + 11)
    np.testing.assert_array_equal(X, np.arange(6).reshape(2, 3))
    assert result.faults == ()


def test_a_changed_input_is_found(tmp_path: Path) -> None:
    call = PythonCall(args=("x",), results=("y",))
    code = "def f(x):\n    x[1, 2] = 7\n    return x.copy()\n"
    result = run(tmp_path, code, call, [buffer("x", "in", X), buffer("y", "out")])
    (fault,) = result.faults
    assert (fault.kind, fault.buffer) == ("input changed", "x")
    assert "[1, 2]" in fault.message


def test_a_changed_sign_of_zero_is_a_changed_input(tmp_path: Path) -> None:
    call = PythonCall(args=("x", "y"))
    code = "def f(x, y):\n    x[0, 0] = -0.0\n    y[...] = 0\n"
    result = run(tmp_path, code, call, [buffer("x", "in", X), buffer("y", "out")])
    assert [fault.kind for fault in result.faults] == ["input changed"]


@pytest.mark.parametrize(
    ("offset", "where"),
    [(6, "1 element past its last"), (-1, "1 element before its first"), (9, "4 elements past")],
)
def test_a_write_beside_the_buffer_is_found(tmp_path: Path, offset: int, where: str) -> None:
    call = PythonCall(args=("y",))
    code = f"""
import ctypes
def f(y):
    y[...] = 0
    ctypes.c_float.from_address(y.ctypes.data + 4 * {offset}).value = 1.0
"""
    result = run(tmp_path, code, call, [buffer("y", "out")])
    (fault,) = result.faults
    assert (fault.kind, fault.buffer) == ("guard overwritten", "y")
    assert where in fault.message


def test_an_exception_is_a_crash_at_the_users_line(tmp_path: Path) -> None:
    call = PythonCall(args=("x",), results=("y",))
    code = "import json\n\ndef f(x):\n    return g(x)\n\ndef g(x):\n    return json.loads('{')\n"
    result = run(tmp_path, code, call, [buffer("x", "in", X), buffer("y", "out")])
    (fault,) = result.faults
    assert fault.kind == "crash"
    assert fault.location == f"{tmp_path / 'user.py'}:7"
    assert fault.message.startswith("JSONDecodeError: ")
    assert "json.loads" in fault.message


def test_leaving_the_process_is_a_crash_and_not_the_end(tmp_path: Path) -> None:
    code = "import sys\ndef f(y):\n    sys.exit(0)\n"
    result = run(tmp_path, code, PythonCall(args=("y",)), [buffer("y", "out")])
    assert [fault.kind for fault in result.faults] == ["crash"]


def test_numpy_warnings_about_special_values_are_no_crash(tmp_path: Path) -> None:
    code = "import numpy as np\ndef f(x):\n    return np.log(x) / x\n"
    call = PythonCall(args=("x",), results=("y",))
    result = run(tmp_path, code, call, [buffer("x", "in", X - 3), buffer("y", "out")])
    assert result.faults == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x.astype('f8')", "y: returned float64 (2, 3), expected float32 (2, 3)"),
        ("x.T", "y: returned float32 (3, 2), expected float32 (2, 3)"),
        ("x.tolist()[0]", "returned 3 values, expected 1: y"),
        ("3.0", "y: returned a float, expected float32 (2, 3)"),
        ("None", "y: returned a NoneType, expected float32 (2, 3)"),
        ("(x, x)", "returned 2 values, expected 1: y"),
    ],
)
def test_a_wrong_result_is_misuse(tmp_path: Path, value: str, said: str) -> None:
    call = PythonCall(args=("x",), results=("y",))
    code = f"def f(x):\n    return {value}\n"
    result = run(tmp_path, code, call, [buffer("x", "in", X), buffer("y", "out")])
    (fault,) = result.faults
    assert (fault.kind, fault.message) == ("misuse", said)
    assert set(result.buffers["y"].view(np.uint16).ravel().tolist()) == {0x7FF5}


def test_a_strided_result_is_read_as_what_it_shows(tmp_path: Path) -> None:
    call = PythonCall(args=("x",), results=("y",))
    result = run(
        tmp_path,
        "def f(x):\n    return x.T\n",
        call,
        [buffer("x", "in", X), buffer("y", "out", shape=(3, 2))],
    )
    np.testing.assert_array_equal(result.buffers["y"], X.T)


SLOW = """
import time
def f(y):
    try:
        time.sleep(60)
    except Exception:
        pass
"""


def test_the_time_limit_ends_the_call_and_gives_the_alarm_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    options = RunOptions(time_limit=0.2)
    result = run(tmp_path, SLOW, PythonCall(args=("y",)), [buffer("y", "out")], options=options)
    assert time.monotonic() - began < 10
    assert [fault.kind for fault in result.faults] == ["time limit"]
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_off_the_main_thread_the_limit_is_judged_afterwards(tmp_path: Path) -> None:
    code = SLOW.replace("60", "0.3")
    options = RunOptions(time_limit=0.1)
    results: list[RunResult] = []

    def work() -> None:
        call, buffers = PythonCall(args=("y",)), [buffer("y", "out")]
        results.append(run(tmp_path, code, call, buffers, options=options))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert [fault.kind for fault in results[0].faults] == ["time limit"]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (7, 1, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, BF16, np.float16, np.bool_])
def test_every_dtype_and_shape_goes_through_unchanged(
    tmp_path: Path, dtype: Any, shape: tuple[int, ...]
) -> None:
    count = int(np.prod(shape))
    array = (np.arange(count) % 2 + 0.5).astype(dtype).reshape(shape)
    buffers = [buffer("x", "in", array), buffer("y", "out", dtype=dtype, shape=shape)]
    for code, call in (
        ("def f(x, y):\n    y[...] = x\n", PythonCall(args=("x", "y"))),
        ("def f(x):\n    return x.copy()\n", PythonCall(args=("x",), results=("y",))),
    ):
        result = run(tmp_path, code, call, buffers)
        assert result.faults == ()
        assert result.buffers["y"].dtype == np.dtype(dtype)
        assert result.buffers["y"].tobytes() == array.tobytes()


def test_names_of_the_call_are_held_to_the_arguments(tmp_path: Path) -> None:
    code = "def f(*a):\n    pass\n"
    buffers = [buffer("x", "in", X), buffer("y", "out")]
    with pytest.raises(ContractError, match="`args` of \\[call\\] names 'z'"):
        run(tmp_path, code, PythonCall(args=("z",), results=("y",)), buffers)
    with pytest.raises(ContractError, match="`results` of \\[call\\] names 'x'"):
        run(tmp_path, code, PythonCall(args=("x",), results=("x",)), buffers)
    with pytest.raises(ContractError, match="nothing gives the output y"):
        run(tmp_path, code, PythonCall(args=("x",)), buffers)
    with pytest.raises(ContractError, match="guard zones only"):
        run(tmp_path, code, PythonCall(("x", "y")), buffers, options=RunOptions(order=1))


@pytest.mark.parametrize(
    ("python", "error", "said"),
    [
        ("nowhere.py:f", ContractError, "cannot read the Python file"),
        ("no_such_module_xyz:f", ContractError, "no module no_such_module_xyz"),
        ("json.no_such_part:f", ContractError, "no module json.no_such_part"),
        ("good.py:g", ContractError, "expected one of f, h"),
        ("good.py:value", ContractError, "no function value"),
        ("syntax.py:f", CompileError, "syntax.py:2: SyntaxError"),
        ("raises.py:f", CompileError, "raises.py:2: ZeroDivisionError"),
        ("needs.py:f", BackendUnavailable, "needs the module no_such_module_xyz"),
        ("good.py", ContractError, "names no callable"),
        (":f", ContractError, "names no callable"),
    ],
)
def test_what_cannot_be_loaded_is_said_with_its_place(
    tmp_path: Path, python: str, error: type[Exception], said: str
) -> None:
    (tmp_path / "good.py").write_text("value = 3\ndef f(): pass\ndef h(): pass\ndef _p(): pass\n")
    (tmp_path / "syntax.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "raises.py").write_text("x = 0\ny = 1 / x\n")
    (tmp_path / "needs.py").write_text("import no_such_module_xyz\n")

    def load() -> None:
        PythonBackend().load(PythonSource.of(python, tmp_path / "k.toml", PythonCall()))

    with pytest.raises(error, match=said):
        load()


def test_a_module_and_a_dotted_name_can_be_named(tmp_path: Path) -> None:
    source = PythonSource.of("os:path.join", tmp_path / "k.toml", PythonCall(results=()))
    assert source.call.results is None
    assert PythonBackend().load(source).signature("join") is None
    assert source.text == "os:path.join"


def test_an_edited_file_is_loaded_anew_and_an_unchanged_one_once(tmp_path: Path) -> None:
    call = PythonCall(args=("y",))
    code = "import sys\nn = [0]\ndef f(y):\n    n[0] += 1\n    y[...] = n[0]\n"
    first = run(tmp_path, code, call, [buffer("y", "out")])
    second = run(tmp_path, code, call, [buffer("y", "out")])
    edited = run(tmp_path, code.replace("= n[0]", "= 50"), call, [buffer("y", "out")])
    got = [result.buffers["y"][0, 0] for result in (first, second, edited)]
    assert got == [1, 2, 50]


class TestTorch:
    """The same with torch tensors on the CPU."""

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="the torch extra is not installed")

    @pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16, np.int64, np.bool_, np.uint8])
    @pytest.mark.parametrize("shape", [(), (0, 3), (5, 3)])
    def test_dtypes_go_through_unchanged(
        self, tmp_path: Path, dtype: Any, shape: tuple[int, ...]
    ) -> None:
        array = (np.arange(int(np.prod(shape))) % 2 + 0.5).astype(dtype).reshape(shape)
        buffers = [buffer("x", "in", array), buffer("y", "out", dtype=dtype, shape=shape)]
        for code, call in (
            ("def f(x, y):\n    y.copy_(x)\n", PythonCall(("x", "y"), kind="torch")),
            ("def f(x):\n    return x.clone()\n", PythonCall(("x",), results=("y",), kind="torch")),
        ):
            result = run(tmp_path, code, call, buffers)
            assert result.faults == ()
            assert result.buffers["y"].dtype == np.dtype(dtype)
            assert result.buffers["y"].tobytes() == array.tobytes()

    def test_bfloat16_is_torchs_bfloat16(self, tmp_path: Path) -> None:
        """bf16(1 + 2**-8) rounds to even: 1.0; bf16(3 * 2**-1 + 2**-8) to 1.5."""
        code = """
import torch
def f(x):
    assert x.dtype == torch.bfloat16
    return x + torch.tensor(2.0 ** -8, dtype=torch.bfloat16)
"""
        array = np.array([1.0, 1.5], BF16)
        call = PythonCall(("x",), results=("y",), kind="torch")
        buffers = [buffer("x", "in", array), buffer("y", "out", dtype=BF16, shape=(2,))]
        result = run(tmp_path, code, call, buffers)
        assert result.buffers["y"].tolist() == [1.0, 1.5]

    def test_faults_are_found_as_with_numpy(self, tmp_path: Path) -> None:
        call = PythonCall(("x", "y"), kind="torch")
        code = """
def f(x, y):
    y.zero_()
    x[0, 1] = 9
    y.as_strided((1,), (1,), y.storage_offset() + 6).fill_(1.0)
"""
        result = run(tmp_path, code, call, [buffer("x", "in", X), buffer("y", "out")])
        assert [(fault.kind, fault.buffer) for fault in result.faults] == [
            ("input changed", "x"),
            ("guard overwritten", "y"),
        ]

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            ("x.double()", "returned float64 (2, 3)"),
            ("x.T", "returned float32 (3, 2)"),
            ("x.numpy()", "returned a ndarray"),
            ("x.to('meta')", "returned a tensor on meta"),
        ],
    )
    def test_a_wrong_result_is_misuse(self, tmp_path: Path, value: str, said: str) -> None:
        call = PythonCall(("x",), results=("y",), kind="torch")
        buffers = [buffer("x", "in", X), buffer("y", "out")]
        result = run(tmp_path, f"def f(x):\n    return {value}\n", call, buffers)
        (fault,) = result.faults
        assert fault.kind == "misuse"
        assert said in fault.message

    def test_a_result_with_a_gradient_and_strides_is_read(self, tmp_path: Path) -> None:
        call = PythonCall(("x",), results=("y",), kind="torch")
        code = "def f(x):\n    return (x.clone().requires_grad_() * 2).T\n"
        buffers = [buffer("x", "in", X), buffer("y", "out", shape=(3, 2))]
        result = run(tmp_path, code, call, buffers)
        np.testing.assert_array_equal(result.buffers["y"], 2 * X.T)

    def test_no_cuda_device_is_said_so(self, tmp_path: Path) -> None:
        import torch

        if torch.cuda.is_available():
            pytest.skip("this machine has a CUDA device")
        call = PythonCall(("x",), results=("y",), kind="torch", device="cuda")
        with pytest.raises(BackendUnavailable, match="torch sees no CUDA device"):
            run(tmp_path, "def f(x): ...\n", call, [buffer("x", "in", X), buffer("y", "out")])


def test_without_torch_the_message_gives_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    call = PythonCall(("y",), kind="torch")
    with pytest.raises(BackendUnavailable, match=r"pip install 'trueup\[torch\]'"):
        run(tmp_path, "def f(y): ...\n", call, [buffer("y", "out")])


def test_numpy_contracts_never_import_torch(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "user.py").write_text("def f(y):\n    y[...] = 1\n")
    code = f"""
import sys
from pathlib import Path
import numpy as np
from trueup.oracle.backends.base import Buffer, RunOptions
from trueup.oracle.backends.python import PythonBackend, PythonCall, PythonSource
source = PythonSource("user.py", "f", PythonCall(("y",)), Path({str(tmp_path)!r}))
buffers = [Buffer("y", "out", np.dtype("f4"), (2,))]
result = PythonBackend().load(source).run([], buffers, RunOptions())
assert result.buffers["y"].tolist() == [1, 1], result
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
