"""Every shipped kernel compiles for every supported architecture; no driver is touched.

Only `compile("cubin")` is called: PTX compilation and everything after it ask the driver.
"""

import io
import re
import tomllib
from pathlib import Path

import pytest

import trueup.kernels
from trueup.oracle.contract import find_contracts

KERNELS = Path(trueup.kernels.__file__).resolve().parent
CONTRACTS = find_contracts([KERNELS])
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]


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


def test_each_kernel_has_a_contract_and_each_contract_a_kernel() -> None:
    sources = {path.with_suffix("") for path in KERNELS.glob("*/*.cu")}
    assert sources
    assert sources == {path.with_suffix("") for path in CONTRACTS}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda path: path.stem)
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


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda path: path.stem)
def test_registers_let_the_largest_block_launch_and_two_blocks_share_an_sm(contract: Path) -> None:
    """An SM has 65536 registers: 64 for each of 1024 threads, 128 for each of twice 256.

    It has 227 KiB of shared memory for blocks: one that asks for more than half is alone there.
    """
    _, log = compile_to_cubin(contract, "sm_90")
    used = dict(re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", log, re.S))
    launches = tomllib.loads(contract.read_text())["launch"]
    assert set(used) == {launch["entry"] for launch in launches}
    for launch in launches:
        block = launch["block"]
        threads = block if isinstance(block, int) else 1024 if "1024" in str(block) else 256
        shared = launch.get("shared", 0)
        alone = str(shared).isdigit() and int(shared) > 227 * 1024 // 2
        together = threads if alone else min(2 * threads, 1024)
        assert int(used[launch["entry"]]) <= 65536 // together
