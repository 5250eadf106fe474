"""Contracts of Python callables, so that each lane meets a kernel with exactly one fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.oracle.contract import Contract, load_contract

TEMPLATE = """\
[contract]
id = "user.scale"
reference = "ref.py:scale"
python = "kernel.py:kernel"
axes = ["n"]
{extra}

[[arg]]
name = "x"
role = "in"
dtype = "f32"
shape = ["n"]

[[arg]]
name = "y"
role = "out"
dtype = "f32"
shape = ["n"]
{written}

[[arg]]
name = "a"
role = "scalar"
dtype = "f32"

[call]
args = ["x", "a", "y"]
"""

REFERENCE = """\
from trueup.reference import Domain, Symbol, equation

real = Domain("real", -2.0, 2.0)

@equation(
    "user.scale", title="Scale and shift", source="the user", axes=("n",),
    inputs=(
        Symbol("x", ("n",), real, "input"),
        Symbol("a", (), Domain("positive", 0.1, 0.9), "factor"),
    ),
    outputs=(Symbol("y", ("n",), real, "output"),),
    readings=("shifted", "plain"), wrong=("squared",), register=False,
)
def scale(x, a, *, reading="shifted"):
    if reading == "plain":
        return a * x
    if reading == "squared":
        return a * x * x + 1.0
    return a * x + 1.0
"""

Make = Callable[..., Contract]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a contract, its reference and the body of its kernel; return the contract."""

    def made(
        body: str, *, extra: str = "", written: str = "", reference: str = REFERENCE
    ) -> Contract:
        (tmp_path / "ref.py").write_text(reference)
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        (tmp_path / "kernel.py").write_text(
            f"import numpy as np\n\ndef kernel(x, a, y):\n    a = np.float32(a)\n{lines}\n"
        )
        path = tmp_path / "contract.toml"
        path.write_text(TEMPLATE.format(extra=extra, written=written))
        return load_contract(path)

    return made
