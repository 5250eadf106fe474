"""Each kernel under tests/wrong_kernels has one defect: the right lane must fail and name it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from trueup.oracle.backends.host import HostBackend
from trueup.oracle.contract import load_contract
from trueup.oracle.verdict import LaneVerdict, Outcome
from trueup.oracle.verify import applicable_lanes, open_session

FOLDER = Path(__file__).parents[1] / "wrong_kernels"
EXPECTATIONS = sorted(FOLDER.glob("*/expect.toml"))


@cache
def host() -> HostBackend:
    return HostBackend()


def expectation(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def words(verdict: LaneVerdict) -> str:
    """Everything a person would read about the lane."""
    return "\n".join(
        f"{f.rule} {f.where}: got {f.got}, expected {f.expected}; {f.fix} [{f.case}]"
        for f in verdict.findings
    )


def missing(want: dict[str, Any], text: str) -> list[str]:
    """What should have been said and was not."""
    patterns = [*want.get("says", [])]
    if "matches" in want:
        patterns.append(rf"matches [^,]*`{want['matches']}`")
    return [pattern for pattern in patterns if not re.search(pattern, text)]


@pytest.mark.parametrize("path", EXPECTATIONS, ids=lambda path: path.parent.name)
def test_the_defect_is_found_and_named(path: Path) -> None:
    want = expectation(path)
    contract = load_contract(path.parent / "contract.toml")
    assert set(want["lane"]) <= set(applicable_lanes(contract, "host"))
    opened = open_session(contract, host(), time_limit=2.0 if "hangs" in path.parent.name else 20.0)
    seen, text = [], ""
    for lane in want["lane"]:
        verdict = opened.run(lane, stop_after=2)
        seen.append(f"{lane} {verdict.verdict} ({verdict.cases} cases)")
        if verdict.verdict is Outcome.FAIL:
            text += words(verdict)
            if not missing(want, text):
                return
    assert text, f"{want['why']}: no lane failed: {', '.join(seen)}"
    assert not missing(want, text), text


def test_the_defects_the_project_promises_to_find_are_there() -> None:
    """At least one wrong kernel for each kind of check, and every expectation is complete."""
    wants = [expectation(path) for path in EXPECTATIONS]
    assert len(wants) >= 20
    assert {"numeric", "special", "poison", "canary", "order"} <= {
        lane for want in wants for lane in want["lane"]
    }
    for path, want in zip(EXPECTATIONS, wants, strict=True):
        assert want["why"], path
        assert want["lane"], path
