"""Newton-Schulz with symmetric products (Triton) on the device, held to the equation's contract."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch

import trueup.kernels
from trueup.oracle.contract.load import load_contract
from trueup.oracle.verify import verify

pytestmark = pytest.mark.gpu

KERNELS = Path(trueup.kernels.__file__).resolve().parent
CALLABLE = """
from trueup.kernels.torch.device.symmetric import newton_schulz_symmetric

def run(G, eps):
    return newton_schulz_symmetric(G, 5, 3.4445, -4.7750, 2.0315, eps, False)
"""
CALL = """
[call]
args = ["G", "eps"]
results = ["O"]
kind = "torch"
device = "cuda"
"""


def test_it_passes_every_lane_of_the_contract_of_its_equation(tmp_path: Path) -> None:
    """The same arguments and precision as the shipped CUDA kernel states, another program."""
    text = (KERNELS / "nl/newton_schulz_bf16.toml").read_text()
    contract = tomllib.loads(text)["contract"]
    head, *rest = text.split("[[arg]]")
    head = head.replace('source = "newton_schulz_bf16.cu"\n', 'python = "run.py:run"\n')
    head = head.replace('include = [".."]\n', "")
    head = head.replace('backends = ["cuda", "host"]', 'backends = ["python"]')
    kept = [part for part in rest if '"workspace"' not in part]
    kept[-1] = kept[-1].split("[[launch]]")[0]
    (tmp_path / "run.py").write_text(CALLABLE)
    (tmp_path / "own.toml").write_text(head + "".join(f"[[arg]]{part}" for part in kept) + CALL)
    result = verify([load_contract(tmp_path / "own.toml")])
    assert contract["reading"] == "quintic5"
    assert result.verdict == "PASS", result


@pytest.mark.parametrize(("n", "k"), [(1, 1), (127, 300), (128, 64), (513, 129), (1024, 2048)])
def test_products_are_symmetric_to_the_bit_and_right(n: int, k: int) -> None:
    from trueup.kernels.torch.device.symmetric import symmetric_product

    torch.manual_seed(n)
    X = torch.randn(n, k, device="cuda").bfloat16()
    out = torch.full((n, n), torch.nan, device="cuda").bfloat16()
    symmetric_product(X, out)
    assert torch.equal(out, out.mT)
    want = X.double() @ X.double().mT
    # Half an ulp of the result, and float32 sums of k products of size 1.
    slack = 2.0**-8 * want.abs() + k * 2.0**-23 * (X.double().abs() @ X.double().abs().mT)
    assert ((out.double() - want).abs() <= slack).all()
    again = symmetric_product(X, torch.empty_like(out))
    assert torch.equal(out, again)
