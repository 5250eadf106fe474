"""The tensor-core path of the bf16 kernels on the host, its fragments emulated lane by lane.

What runs on the GPU is the same source with `ldmatrix` and `mma.sync` in the place of two small
functions, whose emulation follows the layouts of the PTX manual: an address, a swizzle or a lane
that is wrong shows here without a device.
"""

import re
from pathlib import Path

import pytest

import trueup.kernels
from trueup.oracle.contract import load_contract
from trueup.oracle.verdict import Outcome
from trueup.oracle.verify import open_session

KERNELS = Path(trueup.kernels.__file__).resolve().parent


def emulated(tmp_path: Path, kernel: str) -> Path:
    """Write the kernel's contract with the emulation switched on."""
    text = (KERNELS / f"{kernel}.toml").read_text()
    source = (KERNELS / kernel).with_suffix(".cu")
    lines = f'source = "{source}"\ndefines = {{ TRUEUP_EMULATE_TENSOR = "1" }}'
    text, count = re.subn(r"^source = .*$", lines, text, count=1, flags=re.M)
    assert count == 1
    text, count = re.subn(r"^include = .*$", f'include = ["{KERNELS}"]', text, count=1, flags=re.M)
    assert count == 1
    path = tmp_path / "contract.toml"
    path.write_text(text)
    return path


NEWTON_SCHULZ, PRECONDITIONED = "nl/newton_schulz_bf16", "nl/preconditioned_momentum_bf16"


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        pytest.param(NEWTON_SCHULZ, "r=9,c=14", id="ragged"),
        pytest.param(NEWTON_SCHULZ, "r=40,c=72", id="wide-in-chunks"),
        pytest.param(NEWTON_SCHULZ, "r=72,c=40", id="tall-in-chunks"),
        pytest.param(NEWTON_SCHULZ, "r=35,c=67", id="two-depths"),
        pytest.param(PRECONDITIONED, "d_out=40,d_in=72", id="momentum-in-chunks"),
        pytest.param(PRECONDITIONED, "d_out=67,d_in=13", id="momentum-ragged"),
    ],
)
def test_fragments_give_the_product(tmp_path: Path, kernel: str, case: str) -> None:
    contract = load_contract(emulated(tmp_path, kernel))
    verdict = open_session(contract, "host").run("numeric", case=f"{case}/unit")
    assert verdict.verdict is Outcome.PASS, (verdict.findings, verdict.reason)
    assert verdict.launches
