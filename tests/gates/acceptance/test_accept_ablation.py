"""Ablations and counts of tests: paired, complete, and decided by what was agreed on."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.gates.acceptance.errors import AcceptanceError

CONTROL = {1: 20.0, 2: 21.0, 3: 22.0}
WORSE = {1: 18.0, 2: 19.5, 3: 21.0}
BETTER = {1: 20.5, 2: 21.5, 3: 22.5}
APPROVED = {"approval": {"role": "lead", "reference": "minutes 14"}}
ENTROPY = """
[[ablation]]
id = "entropy"
file = "ablation.json"

[[ablation.metric]]
name = "entropy"
path = "entropy"
threshold = 0.1

[[ablation.metric]]
name = "sharpe"
path = "folds[*].sharpe"

[[ablation.outcome]]
when = { nan = "appears" }
decision = "KEEP-as-safety-net"

[[ablation.outcome]]
when = { sharpe = "regresses" }
decision = "KEEP"

[[ablation.outcome]]
when = { sharpe = "holds", entropy = "regresses" }
decision = "KEEP-as-safety-net"

[[ablation.outcome]]
when = { sharpe = "holds", entropy = "holds" }
decision = "DELETE"
"""


def arms(control: Any, ablated: Any, decision: str, **more: Any) -> dict[str, Any]:
    both = {
        name: [{"seed": seed, "metrics": {"sharpe": value}} for seed, value in arm.items()]
        for name, arm in (("control", control), ("ablated", ablated))
    }
    return {"arms": both, "decision": decision, **more}


@pytest.mark.parametrize(
    ("ablated", "decision", "more", "rules"),
    [
        pytest.param(WORSE, "KEEP", {}, [], id="loses-in-every-seed"),
        pytest.param(BETTER, "DELETE", APPROVED, [], id="never-loses-and-approved"),
        pytest.param(CONTROL, "DELETE", APPROVED, [], id="no-difference-at-all"),
        pytest.param(BETTER, "DELETE", {}, ["ACC506"], id="never-loses-not-approved"),
        pytest.param(BETTER, "KEEP", {"reason": "repaired instead"}, [], id="more-careful"),
        pytest.param(BETTER, "KEEP", {"reason": " "}, ["ACC504"], id="more-careful-without-a-word"),
        pytest.param(BETTER, "DELETE-because-inseparable", APPROVED, ["ACC504"],
                     id="inseparable-from-what"),
        pytest.param(BETTER, "DELETE-because-inseparable",
                     {"inseparable_from": "branch noise", **APPROVED}, [], id="inseparable"),
        pytest.param(WORSE, "DELETE", APPROVED, ["ACC504"], id="deleted-although-it-loses"),
        pytest.param(WORSE, "INCONCLUSIVE", {}, ["ACC504"], id="decided-and-called-open"),
        pytest.param(WORSE, "keep", {}, ["ACC503"], id="no-word-of-the-five"),
        pytest.param({1: 18.0, 2: 30.0, 3: 31.0}, "DELETE", APPROVED, ["ACC504"],
                     id="the-mean-would-win"),
        pytest.param({1: 18.0, 2: 30.0, 3: 31.0}, "INCONCLUSIVE", {}, ["ACC505"], id="mixed-signs"),
        pytest.param({1: 18.0, 2: None, 3: 31.0}, "KEEP-as-safety-net", {}, [],
                     id="nan-comes-before-mixed-signs"),
        pytest.param({1: 30.0, 2: None, 3: 31.0}, "DELETE", APPROVED, ["ACC504"],
                     id="nan-comes-before-a-win"),
        pytest.param({1: 18.0, 2: "NaN", 3: 17.0}, "KEEP-as-safety-net", {}, [], id="nan-as-text"),
    ],
)  # fmt: skip
def test_the_decision_is_that_of_the_table(
    accepting: Any, ablated: Any, decision: str, more: Any, rules: list[str]
) -> None:
    data = arms(CONTROL, ablated, decision, **more)
    judgement = accepting.like("passes_ablation", ablation_json=data)
    assert accepting.rules(judgement) == rules
    assert judgement.passed is not rules


def test_a_run_that_says_nan_counts_without_a_null(accepting: Any) -> None:
    data = arms(CONTROL, BETTER, "KEEP-as-safety-net")
    data["arms"]["ablated"][1]["nan"] = True
    assert accepting.like("passes_ablation", ablation_json=data).passed


def test_nan_in_the_control_arm_decides_nothing(accepting: Any) -> None:
    data = arms({**CONTROL, 2: None}, WORSE, "KEEP")
    judgement = accepting.like("passes_ablation", ablation_json=data)
    assert accepting.rules(judgement) == ["ACC504"]
    (finding,) = judgement.findings
    assert finding.expected.startswith("INCONCLUSIVE: NaN in the control arm")


@pytest.mark.parametrize(
    ("control", "ablated", "rules"),
    [
        pytest.param({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0}, ["ACC501"], id="two-seeds"),
        pytest.param(CONTROL, {1: 1.0, 2: 1.0, 4: 1.0}, ["ACC502"], id="other-seeds"),
        pytest.param(CONTROL, {**WORSE, 4: 9.0}, ["ACC502"], id="one-more-in-one-arm"),
        pytest.param({}, {}, ["ACC501"], id="none"),
    ],
)
def test_seeds_are_paired(accepting: Any, control: Any, ablated: Any, rules: list[str]) -> None:
    judgement = accepting.like("passes_ablation", ablation_json=arms(control, ablated, "KEEP"))
    assert accepting.rules(judgement) == rules
    assert accepting.held(judgement)["entropy.decision"] == "undetermined"


def test_a_seed_counts_once(accepting: Any) -> None:
    data = arms(CONTROL, WORSE, "KEEP")
    data["arms"]["ablated"].append({"seed": 3, "metrics": {"sharpe": 40.0}})
    assert accepting.rules(accepting.like("passes_ablation", ablation_json=data)) == ["ACC501"]


def test_a_missing_metric_is_no_nan_and_no_decision(accepting: Any) -> None:
    data = arms(CONTROL, WORSE, "KEEP")
    data["arms"]["ablated"][0]["metrics"] = {}
    judgement = accepting.like("passes_ablation", ablation_json=data)
    assert accepting.rules(judgement) == ["ACC504"]


@pytest.mark.parametrize(
    ("setting", "decision", "rules"),
    [
        ("min_seeds = 4\n", "KEEP", ["ACC501"]),
        ('mixed_sign = "mean"\n', "DELETE", []),
        ("accept_inconclusive = true\n", "INCONCLUSIVE", []),
    ],
)
def test_what_the_programme_proposes_can_be_set(
    accepting: Any, setting: str, decision: str, rules: list[str]
) -> None:
    toml = accepting.fixture("passes_ablation")["acceptance.toml"]
    toml = toml.replace('file = "ablation.json"\n', f'file = "ablation.json"\n{setting}', 1)
    ablated = {1: 18.0, 2: 30.0, 3: 31.0}
    data = arms(CONTROL, ablated, decision, **APPROVED)
    judgement = accepting.like("passes_ablation", acceptance_toml=toml, ablation_json=data)
    assert accepting.rules(judgement) == rules


def entropy(deltas: list[float], sharpes: list[list[float]], decision: str) -> dict[str, Any]:
    """Three seeds, entropy 1.0 and Sharpe 20 in two folds before."""

    def run(seed: int, value: float, folds: list[float]) -> dict[str, Any]:
        told = [{"fold": fold, "sharpe": one} for fold, one in enumerate(folds)]
        return {"seed": seed, "metrics": {"entropy": value, "folds": told}}

    return {
        "arms": {
            "control": [run(seed, 1.0, [20.0, 20.0]) for seed in (1, 2, 3)],
            "ablated": [
                run(seed, 1.0 + delta, folds)
                for seed, delta, folds in zip((1, 2, 3), deltas, sharpes, strict=True)
            ],
        },
        "decision": decision, **APPROVED,
    }  # fmt: skip


SAME = [[20.0, 20.0]] * 3


@pytest.mark.parametrize(
    ("deltas", "sharpes", "decision"),
    [
        pytest.param([-0.5, -0.4, -0.3], [[19.0, 19.5]] * 3, "KEEP", id="sharpe-regresses"),
        pytest.param([-0.5, -0.4, -0.3], SAME, "KEEP-as-safety-net", id="entropy-drops"),
        pytest.param([-0.1, -0.1, -0.1], SAME, "DELETE", id="entropy-drops-by-its-threshold"),
        pytest.param([0.0, 0.1, 0.0], SAME, "DELETE", id="nothing-lost"),
        pytest.param([0.0, 0.0, 0.0], [[21.0, 19.0]] * 3, "INCONCLUSIVE",
                     id="a-fold-that-loses-is-not-averaged-with-one-that-wins"),
    ],
)  # fmt: skip
def test_the_outcome_table_of_the_entropy_ablation(
    accepting: Any, deltas: list[float], sharpes: list[list[float]], decision: str
) -> None:
    for said in ("KEEP", "KEEP-as-safety-net", "DELETE", "INCONCLUSIVE"):
        data = entropy(deltas, sharpes, said)
        judgement = accepting.judged({"acceptance.toml": ENTROPY, "ablation.json": data})
        wrong = [] if said == decision else ["ACC504"]
        if said == decision == "INCONCLUSIVE":
            wrong = ["ACC505"]
        assert accepting.rules(judgement) == wrong


def test_a_table_without_a_fitting_row_decides_nothing(accepting: Any) -> None:
    toml = ENTROPY[: ENTROPY.index('[[ablation.outcome]]\nwhen = { sharpe = "holds"')]
    data = entropy([0.0, 0.0, 0.0], SAME, "INCONCLUSIVE")
    judgement = accepting.judged({"acceptance.toml": toml, "ablation.json": data})
    assert accepting.rules(judgement) == ["ACC505"]


def counts(passed: int = 16, total: int = 16, **more: Any) -> dict[str, Any]:
    suite = {"name": "producer", "passed": passed, "total": total}
    return {"device": "NVIDIA H200", "warnings": 21, "suites": [suite], **more}


@pytest.mark.parametrize(
    ("now", "rules"),
    [
        pytest.param(counts(), [], id="the-same"),
        pytest.param(counts(17, 17), [], id="one-more"),
        pytest.param(counts(15, 16), ["ACC601"], id="one-fails"),
        pytest.param(counts(15, 15), ["ACC602"], id="one-gone"),
        pytest.param(counts(0, 0), ["ACC601", "ACC602"], id="none"),
        pytest.param(counts(17, 16), ["ACC601"], id="more-passed-than-there-are"),
        pytest.param(counts(warnings=20), [], id="fewer-warnings"),
        pytest.param(counts(warnings=22), ["ACC603"], id="more-warnings"),
        pytest.param(counts(errors=1), ["ACC601"], id="an-error"),
        pytest.param(counts(device=" "), ["ACC604"], id="no-device"),
        pytest.param({k: v for k, v in counts().items() if k != "warnings"}, ["ACC603"],
                     id="warnings-not-counted"),
        pytest.param({k: v for k, v in counts().items() if k != "device"}, ["ACC604"],
                     id="device-not-told"),
        pytest.param(counts(suites=[{"name": "other", "passed": 99, "total": 99}]), ["ACC602"],
                     id="another-suite"),
        pytest.param(counts(suites=counts()["suites"] * 2), ["ACC602"], id="one-suite-twice"),
    ],
)  # fmt: skip
def test_counts_against_those_before(accepting: Any, now: Any, rules: list[str]) -> None:
    judgement = accepting.like("passes_tests", tests_json=now, before_json=counts())
    assert accepting.rules(judgement) == rules
    assert judgement.passed is not rules


def test_a_device_may_be_asked_for(accepting: Any) -> None:
    toml = accepting.fixture("passes_tests")["acceptance.toml"] + 'device = "H100"\n'
    judgement = accepting.like("passes_tests", acceptance_toml=toml)
    assert accepting.rules(judgement) == ["ACC604"]


@pytest.mark.parametrize("suites", [[], [{"name": "a", "passed": "11", "total": 11}]])
def test_counts_of_another_form_are_refused(accepting: Any, suites: Any) -> None:
    with pytest.raises(AcceptanceError, match="suites"):
        accepting.like("passes_tests", tests_json=counts(suites=suites))
