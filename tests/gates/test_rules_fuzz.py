"""Logs broken at random: every rule of both profiles answers, and none of them crashes.

Rows of passing fixtures are mutated: values of any type and size, keys lost, rows lost, doubled,
shuffled, resumes declared anywhere. A verdict must come out, and where the reader itself found
nothing, the same one however the file is cut into batches.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates.collector import Collector
from trueup.gates.errors import Unreadable
from trueup.gates.profile.load import load_profile
from trueup.gates.profile.rules import Profile
from trueup.gates.read.limits import Limits
from trueup.gates.read.rows.reader import Reader
from trueup.gates.telemetry.table import TableJudge

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
Row = dict[str, Any]
VALUES: list[Any] = [
    0, 0.0, -0.0, 1, -1, 2, 0.5, -1.5, 7, 100, 1e308, -1e308, 1e-300, 2**53 + 1, 2**63, 2**70,
    True, False, "x", "", "nan", None, [], [1], {"a": 1}, {},
]  # fmt: skip


def _rows(path: Path) -> list[Row]:
    text = path.read_text()
    whole: list[Row] = (
        json.loads(text) if text[0] == "[" else [json.loads(line) for line in text.splitlines()]
    )
    return whole


BASES = {
    "nl": [
        _rows(FIXTURES / "telemetry" / name / "telemetry.json")
        for name in ("passes_fast_state", "passes_titan", "passes_resumed", "passes_memorised",
                     "passes_entropy", "passes_evaluated", "passes_warned_shared")
    ],
    "dqn": [
        _rows(FIXTURES / "health_diag" / name / "health_diag.jsonl")
        for name in ("passes", "passes_resumed", "passes_ratio_null", "hard_stop")
    ],
}  # fmt: skip
PROFILES = {name: load_profile(name) for name in BASES}


def mutated(rows: list[Row], seed: int) -> list[Row]:
    """A few random edits."""
    rng = random.Random(seed)
    rows = copy.deepcopy(rows)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(rows))
        place = rows[at]
        key = rng.choice(list(place) or ["x"])
        while isinstance(place.get(key), dict) and place[key]:
            place = place[key]
            key = rng.choice(list(place))
        match rng.randrange(8):
            case 0 | 1:
                place[key] = rng.choice(VALUES)
            case 2:
                value = rng.choice(VALUES)
                for row in rows:
                    row.update({key: value} if key in row else {})
            case 3:
                place.pop(key, None)
            case 4:
                rows.insert(rng.randrange(len(rows) + 1), copy.deepcopy(rng.choice(rows)))
            case 5:
                rows.pop(at) if len(rows) > 1 else None
            case 6:
                rng.shuffle(rows)
            case _:
                step = rng.choice([0, 1, 5, 44, 300, None, 1.5, "x"])
                rows.insert(at, {"step": -1, "resume_from_step": step, "run_id": "a1", "fold": 0})
    return rows


def judged(profile: Profile, path: Path, limits: Limits | None) -> tuple[Any, list[Any], set[str]]:
    """Statuses, findings of rules, and what the reader found."""
    collector = Collector()
    reader = Reader(
        path, report=lambda fault: collector.of_fault(path.name, fault), limits=limits,
        nullable=profile.nullable, step_key=profile.step, nesting=profile.nesting,
    )  # fmt: skip
    table = TableJudge(profile, path.name, collector)
    for batch in reader.batches():
        table.batch(batch, reader.engine.table.null_keys)
    statuses = [(one.id, one.status) for one in table.finish()]
    found = collector.findings()
    ours = sorted((f.rule, str(f.where.key), f.count) for f in found if f.rule[:3] != "RDR")
    return statuses, ours, {f.rule for f in found if f.rule[:3] == "RDR"}


@pytest.mark.parametrize("name", BASES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=8
)
def test_broken_logs_are_judged(name: str, seed: int, tmp_path: Path) -> None:
    base = BASES[name][seed % len(BASES[name])]
    rows = mutated(base, seed)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        whole = judged(PROFILES[name], path, None)
        parts = judged(PROFILES[name], path, Limits(first_piece=4_000, piece=4_000))
    except Unreadable:
        return
    # Types are settled, and configuration is learned, from the rows that come first.
    steps = [row.get("step") for row in rows]
    started = next((at for at, step in enumerate(steps) if step != -1), len(steps))
    if not whole[2] and not parts[2] and -1 not in steps[started:]:
        assert whole == parts
