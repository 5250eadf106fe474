"""Judgements made by hand, with everything in them that a renderer must not trip over."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from trueup.gates.findings import (
    ArtifactInfo,
    Example,
    RuleOutcome,
    Severity,
    SeverityChange,
    Verdict,
    WaiverUse,
    Where,
)
from trueup.gates.findings import Finding as GateFinding
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


# What an artifact may hold to be taken for a command, for markup or for a link.
HOSTILE = (
    EVIL,
    "\n::error::forged\n##[error]forged",
    "%0A::add-mask::x,line=9::",
    "`` ``` [x](https://evil.example) ![y](z) @someone #12 www.evil.example | a {0}",
    "]]>&#0;</code></details><img src=x onerror=alert(1)>",
)


def _found(rule: str, number: int, hostile: str, severity: Severity = "error") -> GateFinding:
    where = Where(number + 1, 10, number + 1, number, f"layer{number}.{hostile}", (number, number))
    return GateFinding(
        rule=rule,
        severity=severity,
        artifact=f"runs/{hostile}/telemetry.jsonl",
        where=where,
        got=hostile,
        expected=hostile,
        fix=hostile,
        summary=hostile,
        count=3,
        examples=(Example(where, hostile), Example(Where(key=hostile), hostile)),
    )


@pytest.fixture
def hostile_verdict() -> Verdict:
    """A verdict in which everything that an artifact or a settings file can say is hostile."""
    findings = [
        _found(f"OWN{number:03}", number, text) for number, text in enumerate(HOSTILE, start=1)
    ]
    waivers = [
        WaiverUse(
            rule="OWN900",
            reason=text,
            expires="2026-12-31",
            status="used",
            place=text,
            approved_by=text,
            ticket=text,
            findings=(_found("OWN900", 1, text),),
        )
        for text in HOSTILE
    ]
    changes = [SeverityChange("OWN901", "error", "note", text, text, text, 1) for text in HOSTILE]
    infos = [ArtifactInfo(text, "metadata", "JSON", 5, 0, 0, document=True) for text in HOSTILE]
    rules = [RuleOutcome(f"OWN{n:03}", "false", 1, 1, t, t) for n, t in enumerate(HOSTILE, start=1)]
    return Verdict(
        verdict="fail",
        profile="mine",
        rows=5,
        checks=9,
        findings=tuple(findings),
        artifacts=tuple(infos),
        rules=tuple(rules),
        waivers=tuple(waivers),
        severity_changes=tuple(changes),
        settings=EVIL,
        settings_digest="sha256:" + "0" * 64,
        engines={"polars": "2"},
        profile_digest="sha256:" + "1" * 64,
    )


@pytest.fixture
def large_verdict() -> Verdict:
    """48 layers with one fault each, in 30 rules, and one more at another key."""
    findings = []
    for rule in range(30):
        for layer in range(48):
            where = Where(line=9, step=3, key=f"layer{layer}.cms.fast.grad_norm", steps=(3, 8))
            findings.append(
                GateFinding(
                    f"OWN{rule:03}", "error", "runs/a/telemetry.jsonl", where, "0.0", "above 0",
                    "look at the gradient", f"rule {rule}", 6, (Example(where, "0.0"),),
                )
            )  # fmt: skip
    other = Where(line=7, key="loss", step=1, steps=(1, 1))
    findings.append(
        GateFinding("OWN000", "error", "runs/a/telemetry.jsonl", other, "-1.0", "above 0", "x")
    )
    return Verdict("fail", "mine", 60, 900, tuple(findings))
