"""Heads of the agent in plain torch, in every lane of the shipped contracts.

The contract of a kernel states arguments, precision and reading; here the operator on CPU tensors
takes the kernel's place, and is held to the derived bounds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import trueup.kernels
from trueup.oracle.contract.load import load_contract
from trueup.oracle.verify import verify

KERNELS = Path(trueup.kernels.__file__).resolve().parent / "dqn"
# Contract: its operator as a call; what it returns goes to the outputs in turn, _ is left out.
CALLS = {
    "expected_q": ("o.expected_q(logits, support, None, None)", "q, invalid"),
    "expected_q_positions": ("o.expected_q(logits, support, positions, shift)", "q, invalid"),
    "iqn_loss": ("o.iqn_loss(theta, target, tau, weight, kappa)", "_, loss, d_theta"),
    "dueling_forward": ("[o.dueling(value, advantage, [4, 3, 3, 3])]", "logits"),
    "dueling_backward": ("o.dueling_backward(d_logits, [4, 3, 3, 3])", "d_value, d_advantage"),
}
# Judged by two lanes alone: values within their bounds, and infinity, NaN and subnormal numbers.
TERMS = {
    "symlog": ("[o.symlog(x)]", "y"),
    "conservative": ("o.conservative(Q, a_data, w, alpha, branch_weight)", "loss, dQ"),
    "expectile": ("o.expectile(Q, a_data, V, w, tau, branch_weight)", "loss, dV"),
    "entropy_term": ("o.entropy_term(Q, w, strength, T, branch_weight)", "loss, dQ"),
    "aux_direction": ("[o.aux_direction(logits)]", "s121"),
    "sum_tree_sample": ("o.sum_tree_sample(tree, u)", "index, probability"),
}
# Sizes that say no more here than smaller ones do, and cost seconds.
TRIED = {
    "iqn_loss": "{ B = 9, n_tau = 9, n_target = 34 }",
    "expected_q": "{ B = 9, n_actions = 9, n_atoms = 34 }",
    "expected_q_positions": "{ B = 9, n_actions = 9, n_atoms = 34 }",
}
MODULE = """
import torch

import trueup.kernels.torch.dqn

o, _ = torch.ops.trueup, None


def run({names}):
    with torch.no_grad():
        for result, output in zip({call}, [{outputs}], strict=True):
            if output is not None:
                output.copy_(result)
"""


def as_python(name: str, folder: Path) -> Path:
    """Write the contract with the operator for its code; workspace and launches are left out."""
    given = load_contract(KERNELS / f"{name}.toml")
    head, *rest = (KERNELS / f"{name}.toml").read_text().split("[[arg]]")
    dropped = ("source", "include", "defines", "backends")
    kept = [line for line in head.splitlines() if not line.startswith(dropped)]
    if name in TRIED and not any(line.startswith("tried") for line in kept):
        kept.append(f"tried = {TRIED[name]}")
    kept += ['python = "run.py:run"', 'backends = ["python"]', ""]
    arguments = [part.split("[[launch]]")[0] for part in rest]
    arguments = [
        part for part in arguments if '"workspace"' not in part and 'role = "axis"' not in part
    ]
    names = [arg.name for arg in given.args if arg.role not in ("workspace", "axis")]
    call, outputs = (CALLS | TERMS)[name]
    called = f'[call]\nargs = {names}\nkind = "torch"\ndevice = "cpu"\n'.replace("'", '"')
    text = "\n".join(kept) + "".join(f"[[arg]]{part}" for part in arguments) + called
    module = MODULE.format(names=", ".join(names), call=call, outputs=outputs)
    (folder / "run.py").write_text(module)
    (folder / "own.toml").write_text(text)
    return folder / "own.toml"


@pytest.mark.parametrize("name", CALLS)
def test_an_operator_passes_every_lane_of_its_contract(name: str, tmp_path: Path) -> None:
    result = verify([load_contract(as_python(name, tmp_path))])
    assert result.verdict == "PASS", result


@pytest.mark.parametrize("name", TERMS)
def test_an_operator_keeps_the_bounds_of_its_contract(name: str, tmp_path: Path) -> None:
    result = verify([load_contract(as_python(name, tmp_path))], lanes=("numeric", "special"))
    assert result.verdict == "PASS", result
