"""The rules of the nl profile against numbers worked out by hand from the definitions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from trueup.gates import Verdict, judge
from trueup.gates.read.limits import Limits

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PART = "layer0.cms.cms_fast."
Row = dict[str, Any]


def config(**changes: Any) -> Row:
    return {"step": -1, "model.surprise_threshold": None, "train.online_updates": True, **changes}


def step(number: int, **changes: Any) -> Row:
    """One row; names without a dot that the level has are put under its prefix."""
    row: Row = {"step": number, "loss": 0.0, "ppl": 1.0, "teach_signal_norm": 0.5 + number}
    level = {"grad_norm": 1.0 + number, "chunk_tokens": 8, "gate_hit": 4}
    for key, value in changes.items():
        (level if key not in ("loss", "ppl", "teach_signal_norm", "extra") else row)[key] = value
    row.update(row.pop("extra", {}))
    return {**row, **{PART + key: value for key, value in level.items()}}


def found(tmp_path: Path, rows: list[Row], limits: Limits | None = None) -> set[str]:
    return {finding.rule for finding in verdict_of(tmp_path, rows, limits).findings}


def verdict_of(tmp_path: Path, rows: list[Row], limits: Limits | None = None) -> Verdict:
    path = tmp_path / "telemetry.json"
    path.write_text(json.dumps(rows))
    return judge(path, limits=limits)


def counts(tokens: int, updates: int, flushed: int, pending: int) -> Row:
    return {
        "chunk_tokens": tokens,
        "gate_hit": updates,
        "updates_applied": updates,
        "tokens_flushed": flushed,
        "pending_tokens": pending,
    }


@pytest.mark.parametrize(
    ("rows", "right"),
    [
        # nine tokens, periods 2 and 4, without and with a flush of the last one
        pytest.param([(8, 4, 0, 1)], True, id="C2"),
        pytest.param([(9, 5, 1, 0)], True, id="C2-flush"),
        pytest.param([(8, 2, 0, 1)], True, id="C4"),
        pytest.param([(9, 3, 1, 0)], True, id="C4-flush"),
        pytest.param([(8, 4, 0, 1), (9, 5, 1, 0), (0, 0, 0, 1)], True, id="C2-several"),
        pytest.param([(8, 4, 0, 1), (8, 2, 0, 1)], False, id="period-changes"),
        pytest.param([(9, 4, 0, 0)], False, id="period-is-no-integer"),
        pytest.param([(8, 4, 0, 1), (9, 4, 1, 0)], False, id="flush-not-counted"),
        pytest.param([(8, 4, 0, 2)], False, id="pending-is-a-chunk"),
        pytest.param([(8, 2, 0, 1), (12, 3, 4, 0)], False, id="flush-is-a-chunk"),
        pytest.param([(1, 1, 1, 0), (8, 4, 0, 1), (9, 5, 1, 0)], True, id="flush-first"),
    ],
)
def test_chunk_tokens_fit_one_period(
    rows: list[tuple[int, int, int, int]], right: bool, tmp_path: Path
) -> None:
    log = [config(), *(step(i, **counts(*row)) for i, row in enumerate(rows))]
    for row, (_, updates, _, _) in zip(log[1:], rows, strict=True):
        row[PART + "grad_norm"] *= updates > 0
    for limits in (None, Limits(first_piece=50, piece=50)):
        assert ("TEL014" not in found(tmp_path, log, limits)) == right


@pytest.mark.parametrize(
    ("loss", "ppl", "right"),
    [
        pytest.param(0.0, 1.0, True, id="zero"),
        pytest.param(math.log(256), 256.0, True, id="uniform-over-bytes"),
        pytest.param(7.12, 1236.4504, True, id="exact"),
        pytest.param(7.12, 1234.5, False, id="rounded-by-hand"),
        pytest.param(5.0, 148.4132 * (1 + 0.9e-5), True, id="inside"),
        pytest.param(5.0, 148.4132 * (1 + 1.2e-5), False, id="outside"),
        pytest.param(88.0, 1e38, True, id="clamped"),
        pytest.param(88.0, 1e37, False, id="clamped-too-low"),
        pytest.param(87.0, 1e38, False, id="clamped-too-early"),
    ],
)
def test_ppl_is_exp_of_loss(loss: float, ppl: float, right: bool, tmp_path: Path) -> None:
    rows = [config(), step(0, loss=loss, ppl=ppl)]
    assert ("TEL009" not in found(tmp_path, rows)) == right


@pytest.mark.parametrize(
    ("threshold", "value", "hits", "right"),
    [
        pytest.param(0.5, 0.5, 4, True, id="equal-opens"),
        pytest.param(0.5, 0.4, 4, False, id="below-and-open"),
        pytest.param(0.5, 0.4, 0, True, id="below-and-closed"),
        pytest.param(0.5, 0.9, 0, True, id="above-and-masked"),
        pytest.param(None, 0.1, 4, True, id="no-threshold"),
        pytest.param(-0.5, -0.6, 4, False, id="negative-threshold"),
    ],
)
def test_open_gate_reaches_the_threshold(
    threshold: float | None, value: float, hits: int, right: bool, tmp_path: Path
) -> None:
    row = step(0, surprise_value=value, gate_hit=hits, chunk_tokens=2 * hits, grad_norm=1.0 * hits)
    row.update({"surprise_metric": "l2", "surprise_value": 0.5})
    rows = [config(**{"model.surprise_threshold": threshold}), row]
    assert ("TEL020" not in found(tmp_path, rows)) == right


def test_absent_record_is_not_zero(tmp_path: Path) -> None:
    """A level that had nothing to do leaves its whole record out."""
    quiet = {key: value for key, value in step(1).items() if not key.startswith(PART)}
    assert found(tmp_path, [config(), step(0), quiet, step(2)]) == set()


def test_titan_and_gate_records_need_no_chunk_tokens(tmp_path: Path) -> None:
    extra = {
        "layer0.titan.titan.grad_norm": 0.25,
        "layer0.titan.titan.gate_hit": 1,
        "layer0.gate.cms_slow.gate_hit": 0,
    }
    assert found(tmp_path, [config(), step(0, extra=extra)]) == set()


def test_dead_signal_needs_enough_rows(tmp_path: Path) -> None:
    rows = [config(), *(step(i, teach_signal_norm=0.5) for i in range(19))]
    assert found(tmp_path, rows) == set()
    assert found(tmp_path, [*rows, step(19, teach_signal_norm=0.5)]) == {"TEL027"}


def test_dead_signal_is_seen_over_all_batches(tmp_path: Path) -> None:
    rows = [config(), *(step(i, teach_signal_norm=0.5, loss=0.0) for i in range(200))]
    small = Limits(first_piece=2_000, piece=2_000)
    assert found(tmp_path, rows, small) == {"TEL027"}
    rows[-1]["teach_signal_norm"] = 0.75
    alive = verdict_of(tmp_path, rows, small).findings
    assert [finding.where.key for finding in alive] == ["loss"]


def test_rows_of_several_configurations_are_joined(tmp_path: Path) -> None:
    """The threshold of the second row counts; the first says nothing of it."""
    first, second = {"step": -1, "device": "cpu"}, config(**{"model.surprise_threshold": 0.25})
    assert "TEL017" in found(tmp_path, [first, second, step(0)])


def test_threshold_that_is_only_in_a_step_row_is_not_recorded(tmp_path: Path) -> None:
    start = {"step": -1, "train.online_updates": True}
    rows = [start, step(0, extra={"model.surprise_threshold": 0.25})]
    status = {rule.id: rule.status for rule in verdict_of(tmp_path, rows).rules}
    assert (status["TEL017"], status["TEL019"]) == ("not_applied", "false")


def test_steps_are_compared_across_batches(tmp_path: Path) -> None:
    rows = [config(), *(step(i) for i in range(30)), step(29)]
    for row in rows[1:]:
        row["loss"], row["ppl"] = 1.0 / (1 + row["step"]), math.exp(1.0 / (1 + row["step"]))
    verdict = verdict_of(tmp_path, rows, Limits(first_piece=300, piece=300))
    (finding,) = verdict.findings
    assert (finding.rule, finding.where.row, finding.got) == ("TEL003", 32, "29")


RULE_FIXTURES = [
    path.parent
    for path in sorted(FIXTURES.glob("telemetry/*/telemetry.json"))
    if '"TEL' in (path.parent / "expected.toml").read_text() or path.parent.name[:6] == "passes"
]


@pytest.mark.parametrize(
    ("folders", "size"),
    [
        pytest.param(RULE_FIXTURES, 1_500, id="fixtures"),
        pytest.param([FIXTURES / "runs" / "cms_small"], 20_000, id="real-run"),
    ],
)
def test_batches_never_change_a_verdict(folders: list[Path], size: int) -> None:
    """Faults that are in the values, with the file cut into pieces of a few rows."""
    assert folders
    for folder in folders:
        whole, pieces = judge(folder), judge(folder, limits=Limits(first_piece=size, piece=size))
        assert said(whole) == said(pieces), folder.name
        assert [(r.id, r.status) for r in whole.rules] == [(r.id, r.status) for r in pieces.rules]


def said(verdict: Verdict) -> list[str]:
    """What was found, in an order that does not depend on which batch it was found in."""
    return sorted(str((f.rule, f.where.key, f.count, f.got)) for f in verdict.findings)
