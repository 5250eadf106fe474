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


def lanes_of(folder: Path, names: list[str]) -> list[LaneVerdict]:
    contract = load_contract(folder / "contract.toml")
    assert set(names) <= set(applicable_lanes(contract, "host"))
    opened = open_session(contract, host())
    return [opened.run(name) for name in names]


def words(verdict: LaneVerdict) -> str:
    """Everything a person would read about the lane."""
    return "\n".join(
        f"{f.rule} {f.where}: got {f.got}, expected {f.expected}; {f.fix} [{f.case}]"
        for f in verdict.findings
    )


@pytest.mark.parametrize("path", EXPECTATIONS, ids=lambda path: path.parent.name)
def test_the_defect_is_found_and_named(path: Path) -> None:
    want = expectation(path)
    verdicts = lanes_of(path.parent, want["lane"])
    failed = [verdict for verdict in verdicts if verdict.verdict is Outcome.FAIL]
    assert failed, f"{want['why']}: " + ", ".join(f"{v.lane} {v.verdict}" for v in verdicts)
    text = "\n".join(map(words, failed))
    for pattern in want.get("says", []):
        assert re.search(pattern, text), f"no `{pattern}` in:\n{text}"
    if "matches" in want:
        assert re.search(rf"matches [^,]*`{want['matches']}`", text), text


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
