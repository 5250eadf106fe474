"""Choose a backend by name, and say what this machine has and lacks."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from trueup.oracle.errors import BackendUnavailable

# The order in which auto tries them.
NAMES = ("cuda", "host", "python")


class Capability(NamedTuple):
    """One thing this machine has or lacks, for `trueup doctor`."""

    name: str
    ok: bool
    detail: str
    fix: str


def choose(name: str, allowed: Sequence[str]) -> Any:
    """Return the backend of that name; "auto" takes the first of cuda, host and python that works.

    `allowed` are the backends the contract may run on. Raises BackendUnavailable with what is
    missing and the fix. (The backends load different kinds of source, hence no common type.)
    """
    if name != "auto":
        if name not in NAMES:
            raise BackendUnavailable(
                f"no backend {name!r}", expected="auto, " + ", ".join(NAMES), fix="choose another"
            )
        if name not in allowed:
            raise BackendUnavailable(
                f"the contract does not run on {name}",
                expected=" or ".join(allowed),
                fix=f"choose --backend {allowed[0] if allowed else 'auto'}, "
                f"or add {name} to `backends`",
            )
        return _make(name)
    reasons: list[str] = []
    for candidate in NAMES:
        if candidate in allowed:
            try:
                return _make(candidate)
            except BackendUnavailable as error:
                reasons.append(f"{candidate}: {error}")
    raise BackendUnavailable(
        "no backend works here that the contract allows (" + ", ".join(allowed) + ")",
        got="\n  " + "\n  ".join(reason.replace("\n", "\n  ") for reason in reasons)
        if reasons
        else None,
        fix="follow one of the fixes above, or widen `backends`" if reasons else "set `backends`",
    )


def _make(name: str) -> Any:
    # Imported where used: each pulls in what only it needs.
    if name == "cuda":
        from trueup.oracle.backends.cuda import CudaBackend

        return CudaBackend()
    if name == "host":
        from trueup.oracle.backends.host import HostBackend

        return HostBackend()
    from trueup.oracle.backends.python import PythonBackend

    return PythonBackend()


def available() -> list[Capability]:
    """Say what this machine can do; touches no driver where there is none, and never waits long."""
    return [_compiler(), _nvrtc(), *_devices(), _torch()]


def _compiler() -> Capability:
    name, fix = "C++ compiler (host backend)", "apt-get install g++"
    path = shutil.which("g++")
    if path is None:
        return Capability(name, False, "no g++ on PATH", fix)
    try:
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Capability(name, False, str(error), fix)
    lines = shown.stdout.splitlines()
    return Capability(name, bool(lines), f"{lines[0] if lines else path}, {platform.machine()}", "")


def _torch() -> Capability:
    name = 'torch (python backend, kind = "torch")'
    try:
        return Capability(name, True, importlib.metadata.version("torch"), "")
    except importlib.metadata.PackageNotFoundError:
        return Capability(name, False, "not installed", "pip install 'trueup[torch]'")


def _nvrtc() -> Capability:
    def look() -> str:
        from trueup.oracle.backends.cuda.compiler import nvrtc_version, toolkit_headers

        version, headers = nvrtc_version(), toolkit_headers()
        where = "bundled headers" if headers.bundled else ", ".join(map(str, headers.folders))
        return f"{version[0]}.{version[1]}, {where or 'no CUDA headers'}"

    return _ask("NVRTC (compiles for GPUs)", look)


def _devices() -> list[Capability]:
    from trueup.oracle.backends.cuda.driver import device_count, driver_version, open_device

    def look() -> str:
        count = device_count()
        if not count:
            raise BackendUnavailable("no device", fix="see nvidia-smi and CUDA_VISIBLE_DEVICES")
        version = driver_version()
        return f"CUDA {version[0]}.{version[1]}, {count} device{'s' if count > 1 else ''}"

    driver = _ask("NVIDIA driver (cuda backend)", look)
    if not driver.ok:
        return [driver]
    devices = []
    for ordinal in range(device_count()):
        device = open_device(ordinal)
        capability = f"compute capability {device.compute[0]}.{device.compute[1]}"
        devices.append(Capability(f"GPU {ordinal}", True, f"{device.name}, {capability}", ""))
    return [driver, *devices]


def _ask(name: str, look: Callable[[], str]) -> Capability:
    try:
        return Capability(name, True, look(), "")
    except BackendUnavailable as error:
        detail = f"{error.what} (got {error.got})" if error.got else error.what
        return Capability(name, False, detail, error.fix or "")
