"""Every closing in `fixtures/closures` leads to exactly the findings that are stated there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trueup.gates.closure.close import close
from trueup.gates.closure.errors import ClosureError

CLOSURES = Path(__file__).parents[2] / "fixtures" / "closures"
sys.path.insert(0, str(CLOSURES))
import laid  # noqa: E402

NOW = datetime(2026, 3, 10, tzinfo=UTC)
EQUATIONS = ("nl.delta_momentum", "nl.muon_step", "dqn.c51_projection")


@pytest.fixture(scope="module", autouse=True)
def _repositories() -> Iterator[None]:
    yield
    laid.forget()


@pytest.mark.parametrize("name", laid.names())
def test_closing_comes_to_what_is_stated(name: str, tmp_path: Path) -> None:
    ticket = laid.lay_out(name, tmp_path)
    wanted = laid.expectation(name)
    if wanted["verdict"] == "refused":
        with pytest.raises(ClosureError) as refusal:
            close(ticket, equations=EQUATIONS, now=NOW)
        assert wanted["message"] in str(refusal.value)
        return
    closure = close(ticket, equations=EQUATIONS, now=NOW)
    assert sorted({finding.rule for finding in closure.all_findings}) == wanted["rules"]
    assert closure.verdict == wanted["verdict"]
    assert bool(closure.statement) == (wanted["verdict"] == "pass")


def test_there_are_enough_kinds_of_fault() -> None:
    assert len(laid.names()) >= 40


def test_files_are_what_the_script_writes() -> None:
    done = subprocess.run(
        [sys.executable, str(CLOSURES / "make.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_kind_of_a_closing_is_found_in_a_fixture() -> None:
    """But for those that only a later look, a settings file or a writer meanwhile can show."""
    from trueup.gates.catalogue.kinds import families

    found = {rule for name in laid.names() for rule in laid.expectation(name).get("rules", ())}
    elsewhere = {"CLO005", "CLO032", "CLO120", "CLO121", "CLO122", "CLO123", "CLO124", "CLO125"}
    assert {kind.id for kind in families()["closure"]} - found == elsewhere
