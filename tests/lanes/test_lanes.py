"""Each lane: what it lets through, what it must find, and how it words it."""

from __future__ import annotations

import math

import pytest

from tests.lanes.conftest import REFERENCE, Make
from trueup.oracle.contract import Contract
from trueup.oracle.errors import OracleError
from trueup.oracle.lanes.registry import LANES
from trueup.oracle.verdict import LaneVerdict, Outcome
from trueup.oracle.verify import applicable_lanes, open_session, verify

RIGHT = "y[...] = a * x + np.float32(1)"


def run(contract: Contract, lane: str, case: str | None = None) -> LaneVerdict:
    return open_session(contract, "python").run(lane, case=case)


@pytest.mark.parametrize("lane", [lane for lane in LANES if lane != "order"])
def test_a_right_kernel_passes_every_lane(make: Make, lane: str) -> None:
    verdict = run(make(RIGHT), lane)
    assert verdict.verdict is Outcome.PASS, verdict.findings
    assert verdict.cases > 0
    assert verdict.elements > 0
    assert verdict.launches > 0


def test_thread_orders_are_for_the_host_only(make: Make) -> None:
    assert "order" not in applicable_lanes(make(RIGHT), "python")
    assert "order" in applicable_lanes(make(RIGHT), "host")


@pytest.mark.parametrize(
    ("lane", "body", "rule"),
    [
        pytest.param("numeric", "y[...] = a * x", "numeric.bound", id="other-reading"),
        pytest.param("numeric", "y[...] = np.float32(0)", "numeric.bound", id="zeros"),
        pytest.param(
            "numeric", "y[...] = (a * x + 1) * np.float32(1.0001)", "numeric.bound", id="scaled"
        ),
        pytest.param(
            "numeric",
            "y[...] = a * x + np.float32(1)\ny[-1:] += np.float32(1e-4)",
            "numeric.bound",
            id="last-element",
        ),
        pytest.param(
            "exact",
            "y[...] = np.nextafter(a * x + np.float32(1), np.float32(9))",
            "exact.bits",
            id="one-ulp",
        ),
        pytest.param(
            "special",
            "y[...] = np.fmax(a * x + np.float32(1), np.float32(-1e30))",
            "special.nonfinite",
            id="nan-swallowed",
        ),
        pytest.param(
            "special",
            "x = np.where(np.abs(x) < 1.2e-38, np.float32(0), x)\n"
            "y[...] = np.where(x == 0, np.float32(2), a * x + np.float32(1))",
            "special.bound",
            id="subnormals-flushed",
        ),
        pytest.param("poison", "y[:-1] = a * x[:-1]", "poison.unwritten", id="unwritten-tail"),
        pytest.param("poison", "y[...] = y + a * x", "poison.uninitialised", id="reads-output"),
        pytest.param(
            "canary", "y[...] = a * x\nx[:1] = 0", "canary.input_changed", id="input-changed"
        ),
        pytest.param(
            "repeat",
            "y[...] = a * x + np.float32(np.random.default_rng().random())",
            "repeat.repeat",
            id="random",
        ),
        pytest.param(
            "repeat",
            "y[...] = np.where(np.abs(y) < 1e9, np.float32(7), a * x)",
            "repeat.dirty",
            id="dirty",
        ),
    ],
)
def test_each_fault_is_found_by_its_lane(make: Make, lane: str, body: str, rule: str) -> None:
    verdict = run(make(body), lane)
    assert verdict.verdict is Outcome.FAIL
    assert rule in {finding.rule for finding in verdict.findings}
    for finding in verdict.findings:
        assert finding.where
        assert finding.got
        assert finding.expected
        assert finding.fix


def test_a_failure_says_element_error_bound_and_reading(make: Make) -> None:
    verdict = run(make("y[...] = a * x"), "numeric")
    finding = verdict.findings[0]
    assert finding.where.startswith("y[")
    assert "error" in finding.got
    assert "within" in finding.expected
    assert "matches `plain`, the contract declares `shifted`" in finding.fix
    assert "proven" in finding.fix
    assert verdict.worst is not None
    assert verdict.worst.ratio > 1e3


def test_a_case_is_replayed_by_its_id_and_seed(make: Make) -> None:
    contract = make("y[...] = a * x")
    first = run(contract, "numeric").findings[0]
    assert first.case is not None
    again = run(contract, "numeric", case=first.case)
    assert again.cases == 1
    assert again.findings[0].got.split(";")[0] == first.got.split(";")[0]


@pytest.mark.parametrize("case", ["n=5", "n=x/unit", "m=5/unit", "n=5/nosuch", "n=-1/unit", ""])
def test_a_malformed_case_is_an_error(make: Make, case: str) -> None:
    with pytest.raises(OracleError, match="case"):
        run(make(RIGHT), "numeric", case=case)


def test_a_wrong_variant_that_nothing_tells_apart_is_inconclusive(make: Make) -> None:
    """`squared` is the right thing wherever the input is 0 or 1, and here it always is."""
    blind = REFERENCE.replace('real = Domain("real", -2.0, 2.0)', 'real = Domain("mask")')
    verdict = run(make(RIGHT, reference=blind), "numeric")
    assert verdict.verdict is Outcome.PASS
    assert any("never different" in note and "squared" in note for note in verdict.notes)
    hidden = blind.replace("return a * x * x + 1.0", "return a * x + 1.0 + 2e-8 * (x > 0)")
    verdict = run(make(RIGHT, reference=hidden), "numeric")
    assert verdict.verdict is Outcome.INCONCLUSIVE
    assert "squared" in (verdict.reason or "")


def test_determinism_may_be_declared_as_tolerance(make: Make) -> None:
    body = (
        "s = np.float32(np.random.default_rng().integers(2))\n"
        "y[...] = np.where(s > 0, a * x + np.float32(1), (a * x * 2 + np.float32(2)) / 2)"
    )
    contract = make(body, extra='determinism = "tolerance"')
    assert run(contract, "repeat").verdict is Outcome.PASS


def test_what_is_declared_unwritten_must_stay_and_is_not_judged(make: Make) -> None:
    declared = 'written = ["0:n - 1"]'
    extra = "limits = { n = { min = 2 } }"
    right = make("y[:-1] = a * x[:-1] + np.float32(1)", written=declared, extra=extra)
    for lane in ("numeric", "poison"):
        assert run(right, lane).verdict is Outcome.PASS
    greedy = run(make(RIGHT, written=declared, extra=extra), "poison")
    assert {finding.rule for finding in greedy.findings} == {"poison.overwritten"}


def test_nan_may_be_out_of_contract(make: Make) -> None:
    body = "y[...] = np.fmax(a * x + np.float32(1), np.float32(-1e30))"
    assert run(make(body, extra='nan = "ignore"'), "special").verdict is Outcome.PASS


def test_below_the_declared_minimum_it_fails(make: Make) -> None:
    contract = make(RIGHT, extra="minimum = { cases = 5000, elements = 10 }")
    verification = verify([contract], "python", lanes=["numeric"])
    assert verification.verdict is Outcome.FAIL
    (finding,) = verification.contracts[0].findings
    assert finding.rule == "minimum.cases"
    assert finding.expected == "at least 5000"


def test_only_legal_sizes_are_tried(make: Make) -> None:
    contract = make(RIGHT, extra="limits = { n = { min = 8, max = 64, multiple = 4 } }")
    sizes = {
        int(case.split("=")[1].split("/")[0])
        for case in open_session(contract, "python").cases("numeric")
    }
    assert min(sizes) == 8
    assert max(sizes) == 64
    assert all(size % 4 == 0 for size in sizes)


def test_a_lane_stops_once_it_has_made_its_point(make: Make) -> None:
    verdict = run(make("y[...] = 0"), "numeric")
    assert verdict.cases < 10
    assert any("stopped" in note for note in verdict.notes)


def test_what_cannot_be_judged_is_a_message_and_the_others_go_on(make: Make) -> None:
    broken = REFERENCE.replace("return a * x + 1.0", 'raise ValueError("too late")')
    verification = verify([make(RIGHT, reference=broken)], "python", lanes=["numeric"])
    assert verification.verdict is Outcome.INCONCLUSIVE
    assert "ValueError: too late" in verification.errors[0]
    assert "ref.py:" in verification.errors[0]


def test_nothing_to_verify_unknown_lane_and_equal_ids_are_errors(make: Make) -> None:
    contract = make(RIGHT)
    with pytest.raises(OracleError, match="nothing to verify"):
        verify([])
    with pytest.raises(OracleError, match="no such lane: numreic"):
        verify([contract], lanes=["numreic"])
    with pytest.raises(OracleError, match="same id"):
        verify([contract, make(RIGHT)], "python")


def test_a_backend_the_contract_does_not_allow_is_a_counted_skip(make: Make) -> None:
    verification = verify([make(RIGHT)], "host")
    assert verification.verdict is Outcome.INCONCLUSIVE
    assert verification.skipped[0].reason == "the contract does not run on host"


def test_several_jobs_give_the_same_verdicts_as_one(make: Make) -> None:
    contract = make(RIGHT)
    one = verify([contract], "python", lanes=["numeric", "exact"])
    from trueup.oracle.isolate import many
    from trueup.oracle.verify import Task

    (child,) = many([contract], Task("python", ("numeric", "exact")), 2, None)
    assert child.verdict is not None
    mine = one.contracts[0]
    assert [(v.lane, v.verdict, v.cases, v.elements) for v in child.verdict.lanes] == [
        (v.lane, v.verdict, v.cases, v.elements) for v in mine.lanes
    ]
    assert child.verdict.lanes[0].worst is not None
    assert mine.lanes[0].worst is not None
    assert math.isclose(child.verdict.lanes[0].worst.ratio, mine.lanes[0].worst.ratio)
