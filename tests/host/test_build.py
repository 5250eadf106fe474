"""Building: what the compiler refuses, what the cache keeps, and a machine without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.oracle.backends.base import Buffer, Launch, RunOptions, Source
from trueup.oracle.backends.host import HostBackend
from trueup.oracle.backends.host.build import cache_folder
from trueup.oracle.backends.host.compiler import Compiler, HostCompileError
from trueup.oracle.errors import BackendUnavailable, CompileError, ContractError

GOOD = 'extern "C" __global__ void k(int* y) { y[threadIdx.x] = VALUE; }\n'
LAUNCH = Launch("k", (1, 1, 1), (4, 1, 1), 0, ("y",))
BUFFER = Buffer("y", "out", np.dtype(np.int32), (4,))


@pytest.fixture
def cache(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, but for the runtime: it is built once for all tests."""
    bench.load("faults.cu", "good")
    own = tmp_path / "cache" / "host"
    own.mkdir(parents=True)
    for built in cache_folder().glob("runtime-*"):
        shutil.copytree(built, own / built.name)
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path / "cache"))
    return own


def write(folder: Path, text: str, name: str = "k.cu") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def load(path: Path, *entries: str, **options: Any) -> Any:
    return HostBackend().load(Source(path, "cu", **options), entries or ("k",))


def value(kernel: Any) -> int:
    return int(kernel.run([LAUNCH], [BUFFER], RunOptions()).buffers["y"][0])


def builds(cache: Path) -> int:
    return len([path for path in cache.iterdir() if not path.name.startswith(("runtime-", "."))])


def test_a_build_is_kept_by_what_goes_into_it(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path, GOOD)
    assert value(load(path, defines={"VALUE": "1"})) == 1
    assert value(load(path, defines={"VALUE": "1"})) == 1
    assert builds(cache) == 1
    assert value(load(path, defines={"VALUE": "2"})) == 2
    assert builds(cache) == 2
    write(tmp_path, GOOD.replace("VALUE", "3"))
    assert value(load(path)) == 3
    assert builds(cache) == 3
    assert not [path for path in cache.iterdir() if path.name.startswith(".")]


def test_a_changed_header_is_a_new_build(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "inc").mkdir()
    path = write(tmp_path, '#include "a.cuh"\n' + GOOD)
    write(tmp_path, "#pragma once\n#include <b.cuh>\n", "a.cuh")
    write(tmp_path / "inc", "#define VALUE 5\n", "b.cuh")
    include = (tmp_path / "inc",)
    assert value(load(path, include=include)) == 5
    write(tmp_path / "inc", "#define VALUE 6\n", "b.cuh")
    assert value(load(path, include=include)) == 6
    assert builds(cache) == 2


def test_an_include_that_a_macro_computes_is_never_taken_from_the_cache(
    tmp_path: Path, cache: Path
) -> None:
    write(tmp_path, "#define VALUE 7\n", "c.cuh")
    path = write(tmp_path, "#define HEADER <c.cuh>\n#include HEADER\n" + GOOD)
    assert value(load(path, include=(tmp_path,))) == 7
    write(tmp_path, "#define VALUE 8\n", "c.cuh")
    assert value(load(path, include=(tmp_path,))) == 8


def test_the_same_source_in_another_folder_is_the_same_build(tmp_path: Path, cache: Path) -> None:
    text = 'extern "C" __global__ void k(int* y) {\n  y[0] = 2147483647 + (int)blockDim.x;\n}\n'
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = write(tmp_path / name, "#include <h.cuh>\n" + text)
        write(tmp_path / name, "#pragma once\n", "h.cuh")
        kernel = load(path, include=(tmp_path / name,))
        (fault,) = kernel.run([LAUNCH], [BUFFER], RunOptions()).faults
        assert (fault.location or "").startswith(f"{path}:3:")
    assert builds(cache) == 1


def test_loading_from_the_cache_asks_no_compiler(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, GOOD)
    load(path, defines={"VALUE": "1"})

    def run(*_: object) -> None:
        raise AssertionError("the compiler was asked")

    monkeypatch.setattr(Compiler, "run", run)
    load(path, defines={"VALUE": "1"})
    with pytest.raises(AssertionError, match="was asked"):
        load(path, defines={"VALUE": "2"})


def test_processes_may_build_the_same_thing_at_once(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path, GOOD)
    script = (
        "import sys; from pathlib import Path\n"
        "from trueup.oracle.backends.base import *\n"
        "from trueup.oracle.backends.host import HostBackend\n"
        "import numpy as np\n"
        f"kernel = HostBackend().load(Source(Path({str(path)!r}), 'cu', defines={{'VALUE': '4'}}),"
        " ['k'])\n"
        "b = Buffer('y', 'out', np.dtype(np.int32), (4,))\n"
        "r = kernel.run([Launch('k', (1, 1, 1), (4, 1, 1), 0, ('y',))], [b], RunOptions())\n"
        "print(r.buffers['y'].tolist())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0] for process in running] == ["[4, 4, 4, 4]\n"] * 3
    assert builds(cache) == 1
    assert not [path for path in cache.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        pytest.param(
            'extern "C" __global__ void k(int* y) {\n  y[0] = missing;\n}\n',
            "k.cu:2:10",
            "'missing' was not declared in this scope",
            id="undeclared",
        ),
        pytest.param(
            '#include "gone.cuh"\nextern "C" __global__ void k(int* y) {}\n',
            "k.cu:1:10",
            "gone.cuh: No such file or directory",
            id="missing-header",
        ),
        pytest.param(
            "__global__ void k(int* y) {\n  extern __shared__\n    int s[];\n  z = s[0];\n}\n",
            "k.cu:4:3",
            "'z' was not declared in this scope",
            id="line-after-a-rewrite",
        ),
        pytest.param(
            "__device__ int gone(int);\n__global__ void k(int* y) {\n  y[0] = gone(1);\n}\n",
            "k.cu:3",
            "undefined reference to `gone(int)'",
            id="undefined-function",
        ),
    ],
)
def test_a_source_that_does_not_compile_shows_the_first_error_at_its_line(
    tmp_path: Path, cache: Path, text: str, where: str, what: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CompileError) as caught:
        load(path)
    assert caught.value.where == str(tmp_path / where)
    assert caught.value.what.startswith(what)
    assert isinstance(caught.value, HostCompileError)
    assert what in caught.value.output
    assert "trueup-source" not in caught.value.output
    assert builds(cache) == 0


@pytest.mark.parametrize(
    "instruction",
    ['asm("mov.f32 %0, 1.0;" : "=f"(v));', 'asm("add.s32 %0, %1, 1;" : "=r"(n) : "r"(y[0]));'],
)
def test_inline_ptx_is_refused_with_the_way_round_it(
    tmp_path: Path, cache: Path, instruction: str
) -> None:
    text = f"__global__ void k(int* y) {{\n  float v = 0;\n  int n = 0;\n  {instruction}\n"
    path = write(tmp_path, text + "  y[0] = v + n;\n}\n")
    with pytest.raises(CompileError, match="__CUHOST__") as caught:
        load(path)
    assert (caught.value.where or "").startswith(f"{path}:4")


KERNELS = """
namespace nl {
template <typename T> __global__ void delta_momentum(T* y) { y[0] = T(1); }
}
__device__ void helper(int* y) { y[0] = 1; }
static __global__ void __launch_bounds__(128, 2) layer_norm(int* y) { helper(y); }
// __global__ void commented_out(int* y) {}
"""


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("delta_momentun<float>", "is not in it.*delta_momentum, layer_norm.*did you mean delta"),
        ("layernorm", "did you mean layer_norm"),
        ("commented_out", "is not in it"),
        ("helper", "is no __global__ function"),
        ("delta_momentum<float>", "is not in it"),
        ("nl::delta_momentum", "template arguments: are they missing"),
        ("nl::delta_momentum<float, 3>", "do the template arguments fit"),
        ("", "is no name of a kernel"),
    ],
)
def test_an_entry_that_is_not_there_is_answered_with_those_that_are(
    tmp_path: Path, cache: Path, entry: str, said: str
) -> None:
    path = write(tmp_path, KERNELS)
    with pytest.raises(ContractError, match=f"(?s){said}") as caught:
        load(path, entry)
    assert caught.value.where == str(path)
    assert "delta_momentum, layer_norm" in str(caught.value)


def test_kernels_made_by_macros_are_found_by_the_compiler(tmp_path: Path, cache: Path) -> None:
    text = (
        "#define MAKE(name) \\\n"
        '  extern "C" __global__ void name##_f32(int* y) { y[0] = 9; }\n'
        "MAKE(k)\n"
    )
    path = write(tmp_path, text)
    kernel = load(path, "k_f32")
    launch = Launch("k_f32", (1, 1, 1), (4, 1, 1), 0, ("y",))
    assert kernel.run([launch], [BUFFER], RunOptions()).buffers["y"][0] == 9
    with pytest.raises(ContractError, match="is not in it"):
        load(path, "k_f64")


def test_a_source_that_is_not_there(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ContractError, match="No such file") as caught:
        load(tmp_path / "none.cu")
    assert caught.value.where == str(tmp_path / "none.cu")


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
def test_device_code_cannot_run_here(tmp_path: Path, kind: Any) -> None:
    with pytest.raises(ContractError, match=f"cannot run a {kind}"):
        HostBackend().load(Source(tmp_path / "k", kind), ["k"])


def test_a_machine_without_a_compiler_gets_one_clear_message(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, GOOD)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    backend = HostBackend()
    with pytest.raises(BackendUnavailable, match="apt-get install g") as caught:
        backend.load(Source(path, "cu"), ["k"])
    assert "`g++` does not run" in str(caught.value)
    with pytest.raises(BackendUnavailable):
        _ = backend.device


def test_cxx_names_the_compiler(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, GOOD)
    monkeypatch.setenv("CXX", "no-such-compiler -x")
    with pytest.raises(BackendUnavailable, match="`no-such-compiler -x` does not run"):
        load(path)
    log = tmp_path / "log"
    wrapper = write(tmp_path, f'#!/bin/sh\necho "$@" >> {log}\nexec g++ "$@"\n', "my-g++")
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    assert value(load(path, defines={"VALUE": "1"})) == 1
    assert "-DVALUE=1" in log.read_text()


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_CACHE", str(write(tmp_path, "a file", "occupied")))
    with pytest.raises(BackendUnavailable, match="TRUEUP_CACHE"):
        load(write(tmp_path, GOOD), defines={"VALUE": "1"})


def test_the_xdg_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUEUP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "trueup" / "host"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "trueup" / "host"
