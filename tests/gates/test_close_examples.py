"""Every example in the catalogue of closing is true, whether it passes or fails."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trueup.gates.catalogue.kinds import Kind, families
from trueup.gates.closure.close import close
from trueup.gates.closure.verify import verify_statement
from trueup.gates.settings.load import load_settings
from trueup.gates.settings.model import Settings

CLOSURES = Path(__file__).parents[2] / "fixtures" / "closures"
sys.path.insert(0, str(CLOSURES))
import overlay  # noqa: E402

NOW = datetime(2026, 3, 10, tzinfo=UTC)
EQUATIONS = ("nl.delta_momentum", "nl.muon_step")
KINDS = families()["closure"]
LATER = ("CLO120", "CLO121", "CLO122", "CLO123", "CLO124", "CLO125")  # found in a statement
MEANWHILE = ("CLO005",)  # needs a writer: see test_close_files.py


def closing(example: str, folder: Path) -> set[str]:
    """The ids of what is found of an example."""
    ticket = overlay.lay(example, folder)
    settings = folder / "trueup.toml"
    closure = close(
        ticket,
        equations=EQUATIONS,
        now=NOW,
        settings=load_settings(settings) if settings.exists() else Settings(),
    )
    return {finding.rule for finding in closure.findings}


def looking_again(example: str, folder: Path) -> set[str]:
    """The same, where the example is laid over a closing that has its statement."""
    ticket = overlay.lay("", folder)
    statement = folder / "ticket.statement.json"
    text = close(ticket, equations=EQUATIONS, now=NOW).statement
    assert text
    statement.write_text(text)
    for name, given in overlay.sections(example):
        if name.endswith(" (deleted)"):
            (folder / name.removesuffix(" (deleted)")).unlink()
        elif name == statement.name:
            statement.write_text(json.dumps(overlay.merged(json.loads(text), json.loads(given))))
        elif name == ticket.name:
            overlay.lay(f"== {name} ==\n{given}", folder / "again")
            ticket.write_bytes((folder / "again" / name).read_bytes())
        else:
            (folder / name).write_text(given)
    return {finding.rule for finding in verify_statement(statement).findings}


def found(kind: Kind, example: str, folder: Path) -> set[str]:
    look = looking_again if kind.id in LATER else closing
    return look(example, folder)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_what_passes_does_not_lead_to_the_kind(kind: Kind, tmp_path: Path) -> None:
    assert kind.passes
    assert kind.id not in found(kind, kind.passes, tmp_path)


@pytest.mark.parametrize(
    "kind", [one for one in KINDS if one.id not in MEANWHILE], ids=lambda kind: kind.id
)
def test_what_fails_leads_to_the_kind(kind: Kind, tmp_path: Path) -> None:
    assert overlay.sections(kind.fails), "an example that fails shows what does"
    assert kind.id in found(kind, kind.fails, tmp_path)


def test_no_settings_can_waive_what_closing_finds() -> None:
    assert not any(kind.waivable for kind in KINDS)
