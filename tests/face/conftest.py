"""A verification made by hand, with everything in it that a renderer must not trip over."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from trueup.oracle.verdict import (
    CaseScore,
    ContractVerdict,
    Finding,
    LaneVerdict,
    Outcome,
    Skip,
    Verification,
    Worst,
)

EVIL = "<script>alert(1)</script>&\"'\x1b[31m\x00\u202e\ud800"


@pytest.fixture
def evil() -> str:
    return EVIL


def _numeric() -> LaneVerdict:
    finding = Finding(
        rule="numeric.bound",
        severity="error",
        artifact="nl.delta_momentum",
        where="m_next[3, 5]",
        got="1.0023, off by 3.1e-05: 41 times the allowed error\nmatches the reading literal_left",
        expected="1.00227 ± 7.6e-07, by the reading derived",
        fix="correct the delta term, or declare reading = 'literal_left'",
        case="d_out=33,d_in=7/it's near eps",
        seed=5,
    )
    return LaneVerdict(
        lane="numeric",
        verdict=Outcome.FAIL,
        cases=96,
        elements=812_544,
        launches=192,
        worst=Worst(41.0, "m_next[3, 5]", 3.1e-5, 7.6e-7, "d_out=33,d_in=7/it's near eps"),
        findings=(finding,),
        scores=(
            CaseScore("d_out=1,d_in=1/unit", "unit", 0.0, (0.0, 0.0, 0.0, 0.0, 0.0)),
            CaseScore("d_out=33,d_in=7/unit", "unit", 0.4, (0.0, 0.1, 0.2, 0.3, 0.4)),
            CaseScore("d_out=33,d_in=7/near eps", "near eps", 41.0),
            CaseScore("d_out=33,d_in=7/huge", "huge", math.inf),
            CaseScore("d_out=33,d_in=9/huge", "huge", math.nan),
        ),
        notes=("bound: inputs only",),
        seconds=1.25,
    )


def _evil() -> ContractVerdict:
    return ContractVerdict(
        id=EVIL,
        verdict=Outcome.FAIL,
        reading=EVIL,
        backend="host",
        device=EVIL,
        lanes=(
            LaneVerdict(
                EVIL,
                Outcome.FAIL,
                worst=Worst(2.0, EVIL, 2.0, 1.0, EVIL),
                findings=(Finding(EVIL, "error", EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, 1),),
                scores=(CaseScore(EVIL, EVIL, 2.0),),
                reason=EVIL,
                notes=(EVIL,),
            ),
        ),
        path=EVIL,
        digests={EVIL: EVIL},
        findings=(Finding("minimum", "error", EVIL, EVIL, EVIL, EVIL, EVIL),),
    )


@pytest.fixture
def failed() -> Verification:
    exact = LaneVerdict(
        "exact",
        Outcome.FAIL,
        cases=3,
        elements=99,
        launches=3,
        worst=Worst(math.inf, "m_next[0, 0]", math.nan, 0.0, "d_out=1,d_in=1/integer"),
    )
    order = LaneVerdict("order", Outcome.SKIPPED, reason="the cuda backend has no thread orders")
    unsure = LaneVerdict(
        "special", Outcome.INCONCLUSIVE, cases=1, elements=1, launches=1, reason="no signal"
    )
    return Verification(
        verdict=Outcome.FAIL,
        backend="host",
        contracts=(
            ContractVerdict(
                id="nl.delta_momentum",
                verdict=Outcome.FAIL,
                reading="derived",
                backend="host",
                device="g++ 12",
                lanes=(_numeric(), exact, order, unsure),
                path="kernels/nl/delta momentum.toml",
                digests={"kernel": "ab12"},
            ),
            _evil(),
        ),
        skipped=(Skip("nl.other", None, "runs on cuda only"), Skip(EVIL, EVIL, EVIL)),
        errors=("broken.toml: not valid TOML", EVIL),
        environment={"python": "3.11", "threads": 2, "evil": [EVIL, math.inf], "none": None},
    )


@pytest.fixture
def passed() -> Verification:
    lane = LaneVerdict(
        "numeric",
        Outcome.PASS,
        cases=20,
        elements=1000,
        launches=20,
        worst=Worst(0.41, "m_next[3, 5]", 4e-7, 1e-6, "d_out=33,d_in=7/unit"),
    )
    contract = ContractVerdict(
        "nl.delta_momentum", Outcome.PASS, "derived", "host", "g++ 12", (lane,), "x.toml"
    )
    return Verification(Outcome.PASS, "host", (contract,))


_CONTRACT = """
[contract]
id = "{id}"
reference = "ref.py:scale"
python = "kernels.py:{kernel}"
axes = ["n"]
limits = {{ n = {{ max = 40 }} }}

[[arg]]
name = "x"
role = "in"
dtype = "f32"
shape = ["n"]

[[arg]]
name = "a"
role = "scalar"
dtype = "f32"

[[arg]]
name = "y"
role = "out"
dtype = "f32"
shape = ["n"]

[call]
args = ["x", "a"]
results = ["y"]
"""

_KERNELS = """
def right(x, a):
    return a * x

def wrong(x, a):
    y = a * x
    y[-1:] += 1
    return y
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A directory with a right and a wrong kernel, each with its contract."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "ref.py").write_text("def scale(x, a):\n    return a * x\n")
    (folder / "kernels.py").write_text(_KERNELS)
    for kernel in ("right", "wrong"):
        text = _CONTRACT.format(id=f"my.{kernel}", kernel=kernel)
        (folder / f"{kernel}.toml").write_text(text)
    (folder / "other.toml").write_text("[tool]\nname = 'no contract'\n")
    return folder
