"""Choosing a backend, and what `trueup doctor` is told about this machine."""

import ctypes
import subprocess
import sys

import pytest

from trueup.oracle.backends import choose as module
from trueup.oracle.backends.choose import available, choose
from trueup.oracle.errors import BackendUnavailable


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def test_python_is_chosen_where_only_python_is_allowed() -> None:
    assert choose("auto", ["python"]).name == "python"
    assert choose("python", ["python"]).name == "python"


def test_an_unknown_name_and_a_forbidden_one_are_refused() -> None:
    with pytest.raises(BackendUnavailable, match="expected auto, cuda, host, python"):
        choose("gpu", ["cuda"])
    with pytest.raises(BackendUnavailable, match="the contract does not run on host"):
        choose("host", ["cuda"])
    with pytest.raises(BackendUnavailable, match="set `backends`"):
        choose("auto", [])


def test_auto_falls_back_and_says_everything_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def make(name: str) -> object:
        tried.append(name)
        if name != "python":
            raise BackendUnavailable(f"no {name} here", fix=f"get {name}")
        return name

    monkeypatch.setattr(module, "_make", make)
    assert choose("auto", ["python", "host", "cuda"]) == "python"
    assert tried == ["cuda", "host", "python"]
    with pytest.raises(BackendUnavailable) as caught:
        choose("auto", ["cuda", "host"])
    for part in ("cuda: no cuda here", "get cuda", "host: no host here", "get host"):
        assert part in str(caught.value)


def test_cuda_by_name_without_a_driver_is_one_clear_message() -> None:
    if has_driver():
        pytest.skip("this machine has a driver")
    pytest.importorskip("cuda.core", reason="the cuda extra is not installed")
    with pytest.raises(BackendUnavailable, match=r"libcuda\.so\.1 does not load"):
        choose("cuda", ["cuda", "host"])


def test_available_has_a_row_for_everything_and_a_fix_for_what_is_missing() -> None:
    rows = available()
    names = [row.name for row in rows]
    assert len(names) == len(set(names))
    for part in ("C++ compiler", "NVRTC", "NVIDIA driver", "torch"):
        assert any(part in name for name in names)
    for row in rows:
        assert row.detail
        assert row.ok or row.fix


def test_available_does_not_wait_for_a_driver_that_is_not_there() -> None:
    code = "from trueup.oracle.backends.choose import available; available(); available()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_no_compiler_is_a_row_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    row = available()[0]
    assert (row.ok, row.detail, row.fix) == (False, "no g++ on PATH", "apt-get install g++")
