"""Every shipped kernel compiles; those with instructions of their own for each architecture.

No driver is touched. CUDA C++ without inline assembly means the same on all of them: one will do.
Only `compile("cubin")` is called: PTX compilation and everything after it ask the driver.
"""

import io
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import trueup.kernels
from trueup.oracle.contract import find_contracts

KERNELS = Path(trueup.kernels.__file__).resolve().parent
CONTRACTS = find_contracts([KERNELS])
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
FITS = "sm_90"


def own_instructions(source: Path) -> bool:
    """Whether a source, or a header it includes, has inline assembly or asks for the machine."""
    text = source.read_text()
    if re.search(r"\basm\b|__CUDA_ARCH__", text):
        return True
    names = re.findall(r'#include "([\w.]+\.cuh)"', text)
    near = [folder / name for name in names for folder in (source.parent, KERNELS)]
    return any(own_instructions(header) for header in near if header.exists())


WANTED = [
    (contract, arch)
    for contract in CONTRACTS
    for arch in (ARCHITECTURES if own_instructions(contract.with_suffix(".cu")) else [FITS])
]


def compile_to_cubin(contract: Path, arch: str) -> tuple[bytes, str]:
    core = pytest.importorskip("cuda.core", reason="the NVRTC wheels are not installed")
    table = tomllib.loads(contract.read_text())["contract"]
    source = contract.parent / table["source"]
    options = core.ProgramOptions(
        name=str(source),
        arch=arch,
        std="c++17",
        include_path=[str((contract.parent / folder).resolve()) for folder in table["include"]]
        if "include" in table
        else None,
        ptxas_options=["-v"],
    )
    log = io.StringIO()
    code = core.Program(source.read_text(), "c++", options).compile("cubin", logs=log)
    return bytes(code.code), log.getvalue()


def test_instructions_are_seen_through_headers() -> None:
    special = {contract.stem for contract, arch in WANTED if arch == "sm_80"}
    assert {"newton_schulz_bf16", "cms_level", "grn_forward_tf32", "grad_norms"} <= special
    assert "symlog" not in special


def test_each_kernel_has_a_contract_and_each_contract_a_kernel() -> None:
    sources = {path.with_suffix("") for path in KERNELS.glob("*/*.cu")}
    assert sources
    assert sources == {path.with_suffix("") for path in CONTRACTS}


@pytest.mark.parametrize(("contract", "arch"), WANTED, ids=lambda x: getattr(x, "stem", x))
def test_compiles_without_a_warning_or_a_spilled_register(contract: Path, arch: str) -> None:
    cubin, log = compile_to_cubin(contract, arch)
    assert cubin.startswith(b"\x7fELF")
    assert "warning" not in log.lower(), log
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log)
    launches = tomllib.loads(contract.read_text())["launch"]
    entries = {launch["entry"] for launch in launches}  # an entry may be launched several times
    assert len(spills) == len(entries), log
    assert set(spills) == {("0", "0")}, log
    for entry in entries:
        assert entry.encode() in cubin
    if arch == FITS:
        blocks_fit(launches, log)


def blocks_fit(launches: list[dict[str, Any]], log: str) -> None:
    """Registers let the largest block launch, and two blocks share an SM.

    An SM has 65536 registers: 64 for each of 1024 threads, 128 for each of twice 256. It has
    227 KiB of shared memory for blocks: one that asks for more than half is alone there.
    """
    used = dict(re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", log, re.S))
    assert set(used) == {launch["entry"] for launch in launches}
    for launch in launches:
        block = launch["block"]
        threads = block if isinstance(block, int) else 1024 if "1024" in str(block) else 256
        shared = launch.get("shared", 0)
        alone = str(shared).isdigit() and int(shared) > 227 * 1024 // 2
        together = threads if alone else min(2 * threads, 1024)
        assert int(used[launch["entry"]]) <= 65536 // together
