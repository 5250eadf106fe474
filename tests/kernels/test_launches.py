"""The shipped kernels under launches that their contracts do not choose, on the host backend.

A small block makes a row longer than its registers, and a small grid gives a block several rows:
paths that the launches of the contracts reach at large shapes only.
"""

import re
from pathlib import Path

import pytest

import trueup.kernels
from trueup.oracle.contract import load_contract
from trueup.oracle.verdict import Outcome
from trueup.oracle.verify import open_session

KERNELS = Path(trueup.kernels.__file__).resolve().parent


def contract_with(tmp_path: Path, kernel: str, grid: str, block: str) -> Path:
    """Write the kernel's contract with another grid and block for its first launch."""
    text = (KERNELS / f"{kernel}.toml").read_text()
    source = (KERNELS / kernel).with_suffix(".cu")
    for key, value in (
        ("source", f'"{source}"'),
        ("include", f'["{KERNELS}"]'),
        ("grid", grid),
        ("block", block),
    ):
        text, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.M)
        assert count == 1
    path = tmp_path / "contract.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "case"),
    [
        pytest.param("nl/delta_momentum_rank1", "2", "32", "d_out=5,d_in=601", id="rank1-long"),
        pytest.param("nl/delta_momentum_rank1", "2", "32", "d_out=5,d_in=600", id="rank1-quads"),
        pytest.param("nl/delta_momentum_rank1", "3", "160", "d_out=7,d_in=700", id="rank1-rows"),
        pytest.param("nl/projected_descent", "2", "32", "d_out=5,d_in=601", id="descent-long"),
        pytest.param("nl/projected_descent", "2", "32", "d_out=5,d_in=600", id="descent-quads"),
        pytest.param("nl/projected_descent", "3", "160", "d_out=7,d_in=700", id="descent-rows"),
        pytest.param(
            "nl/preconditioned_momentum_hadamard",
            '"ceil(d_out * d_in / 384)"',
            "96",
            "d_out=13,d_in=61",
            id="hadamard",
        ),
        pytest.param(
            "nl/preconditioned_momentum_hadamard_bf16",
            '"ceil(d_out * d_in / 4096)"',
            "1024",
            "d_out=11,d_in=516",
            id="hadamard-bf16",
        ),
        pytest.param("nl/adam_memory", "60", "32", "d_out=7,d_in=129", id="adam-blocks-left-over"),
        pytest.param("dqn/layer_norm_backward", '"min(B, 2)"', "64", "B=5,D=521", id="norm-long"),
        pytest.param("dqn/layer_norm_backward", '"min(B, 2)"', "64", "B=5,D=520", id="norm-quads"),
        pytest.param("dqn/layer_norm_backward", '"min(B, 2)"', "224", "B=37,D=264", id="norm-left"),
        pytest.param("dqn/layer_norm_backward", '"min(B, 2)"', "256", "B=37,D=36", id="norm-rows"),
        pytest.param("dqn/nan_flags", "2", "32", "n=521", id="flags-turns"),
        pytest.param("dqn/nan_flags", "3", "64", "n=2048", id="flags-quads"),
        pytest.param("dqn/importance_weights", "1", "64", "B=300", id="weights-turns"),
        pytest.param("dqn/grad_norms", "128", "64", "n=1300", id="norms-one-mover"),
        pytest.param("dqn/sum_tree_update", '"ceil(n / 2)"', "64", "C=4500,n=15", id="tree-blocks"),
    ],
)
def test_other_launches_are_as_right(
    tmp_path: Path, kernel: str, grid: str, block: str, case: str
) -> None:
    contract = load_contract(contract_with(tmp_path, kernel, grid, block))
    opened = open_session(contract, "host")
    for lane in ("numeric", "poison", "canary", "order"):
        verdict = opened.run(lane, case=f"{case}/unit")
        assert verdict.verdict is Outcome.PASS, (lane, verdict.findings, verdict.reason)
        assert verdict.launches
