"""The C++ compiler: which one, with which flags, and what its messages say."""

from __future__ import annotations

import functools
import os
import platform
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trueup.oracle.backends.host.sources import TOKEN, SourceTree
from trueup.oracle.errors import BackendUnavailable, CompileError

ENTRY = "trueup-entry"
_ERROR = re.compile(r"^(.+?):(\d+)(?::(\d+))?: (?:fatal )?[Ee]rror: (.*)$", re.MULTILINE)
_UNDEFINED = re.compile(rf"({TOKEN}\d+):(\d+): (undefined reference to .*)")
_ASSEMBLY = re.compile(r"\bconstraint\b.*(?:register|'asm')|'asm'|no such instruction")
_COMMON = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-w")
# DWARF 4: of version 5, addr2line names the wrong file for what is included first.
_LANGUAGE = ("-O2", "-g1", "-gdwarf-4", "-ffp-contract=off", "-fno-threadsafe-statics")
# The runtime turns the stack protector's finding into a report; a fortified libc would abort.
_PROTECT = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE")
_SANITIZE = ("-fsanitize=undefined,float-cast-overflow", "-fno-sanitize=vptr")


class HostCompileError(CompileError):
    """A source that g++ refuses; `output` is everything the compiler said."""

    def __init__(self, what: str, *, where: str | None, output: str) -> None:
        """Keep the whole output beside the first error."""
        portable = "keep PTX out of the host build: #ifndef __CUHOST__, with a portable #else"
        super().__init__(what, where=where, fix=portable if _ASSEMBLY.search(what) else None)
        self.output = output


@dataclass(frozen=True)
class Compiler:
    """A working C++ compiler: the command and what it says it is."""

    command: tuple[str, ...]
    version: str

    def run(self, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the compiler in a folder, speaking English."""
        environment = {**os.environ, "LC_ALL": "C"}
        return subprocess.run(
            [*self.command, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )

    def runtime_flags(self) -> tuple[str, ...]:
        """Flags of the runtime, which is never instrumented."""
        portable = ("-DCUHOST_UCONTEXT",) if os.environ.get("TRUEUP_HOST_UCONTEXT") else ()
        return (*_COMMON, "-O2", "-U_FORTIFY_SOURCE", *portable)

    def kernel_flags(self) -> tuple[str, ...]:
        """Flags of the kernels: FMA only where written, subnormals kept, UBSan always on."""
        clang = "clang" in self.version
        own = ("-fno-sanitize=function",) if clang else ("-fno-gnu-unique",)
        return (*_COMMON, *_LANGUAGE, *_PROTECT, *_SANITIZE, *own, *_machine_flags())


@functools.cache
def _machine_flags() -> tuple[str, ...]:
    """Let fmaf be one instruction where the processor has it: the result is the same."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    try:
        words = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return ()
    return ("-mfma",) if "fma" in words and "avx" in words else ()


def find_compiler() -> Compiler:
    """Return the compiler that CXX names, else g++; raise BackendUnavailable without one."""
    return _probe(os.environ.get("CXX") or "g++", os.environ.get("PATH", os.defpath))


@functools.cache
def _probe(command: str, path: str) -> Compiler:
    words = tuple(shlex.split(command))
    unavailable = BackendUnavailable(
        f"the host backend needs a C++ compiler, and `{command}` does not run",
        fix="install g++ (on Debian or Ubuntu: apt-get install g++), or name one in CXX",
    )
    if shutil.which(words[0], path=path) is None:
        raise unavailable
    try:
        said = subprocess.run(
            [*words, "--version"], capture_output=True, text=True, check=True, errors="replace"
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise unavailable from error
    return Compiler(words, said.stdout.splitlines()[0] if said.stdout else command)


def compile_error(output: str, tree: SourceTree) -> HostCompileError:
    """Make the compiler's first error an error of ours, at its place in the user's file."""
    text = tree.localise(output)
    for found in _ERROR.finditer(output):
        place = ":".join(part for part in found.group(1, 2, 3) if part)
        return HostCompileError(tree.localise(found[4]), where=tree.localise(place), output=text)
    undefined = _UNDEFINED.search(output)
    if undefined:
        where = tree.localise(f"{undefined[1]}:{undefined[2]}")
        return HostCompileError(undefined[3], where=where, output=text)
    lines = [line for line in text.splitlines() if line.strip()]
    what = lines[0] if lines else "the compiler failed without a message"
    return HostCompileError(what, where=str(tree.paths[0]), output=text)


def failing_entry(output: str, tree: SourceTree) -> int | None:
    """Return the number of the entry that the first error is about, if it is about one.

    The entries' lines follow the source, so an error of the source itself comes first. An entry is
    handed on to the shim's templates, where the compiler may place the error.
    """
    first = _ERROR.search(output)
    if first is None or tree.is_source(first[1]):
        return None
    entry = re.search(rf"\b{ENTRY}:(\d+):", output[first.start() :])
    return int(entry[1]) - 1 if entry else None
