"""Logs of correct trainers of several kinds pass the nl profile, some with what they declare.

Each log is made by a small loop over chunks, with the counts that such a trainer writes: the
reference code before and after its newer keys, forks that sum over the chunks of a step, trainers
that carry their buffers on, and those that clear them before they are counted.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from trueup.gates import judge

LEVEL = "layer0.cms.cms_fast."
C, T, BATCH = 4, 22, 2
Row = dict[str, Any]

OVERRIDE = """
[profile]
id = "mine"
summary = "nl, for this trainer"
include = ["nl"]
[[artifact]]
kind = "telemetry"
patterns = ["telemetry.json"]
"""
RULE = """
[[rule]]
id = "{id}"
severity = "error"
summary = "s"
why = "w"
expected = "e"
fix = "f"
check = "{check}"
pattern = '^layer\\d+\\.cms\\.[^.]+\\.(?P<field>[^.]+)$'
absent = "skip"
params = {{ {params} }}
"""
CADENCE = (
    'updates = "gate_hit", pending = "pending_tokens", flushed = "tokens_flushed", '
    'length = "seq_len", periods = {{ cms_fast = 4 }}, flush = "{flush}", dense = true{more}'
)


def calls(
    lengths: list[int], flush: str, held: int = 0, *, clears: bool = False
) -> list[dict[str, int]]:
    """What the level counts in each call."""
    out = []
    for length in lengths:
        tokens = updates = flushed = 0
        for _ in range(length):
            held += 1
            if held == C:
                tokens, updates, held = tokens + held, updates + 1, 0
        dropped = 0
        if held and flush == "flush_partial":
            tokens, updates, flushed, held = tokens + held, updates + 1, held, 0
        elif held and clears:
            dropped, held = held, 0
        out.append({"tokens": tokens, "updates": updates, "flushed": flushed, "pending": held,
                    "dropped": dropped})  # fmt: skip
        if flush == "drop":
            held = 0
    return out


def summed(each: list[dict[str, int]]) -> dict[str, int]:
    return {key: sum(one[key] for one in each) for key in each[0]}


def newer(counts: dict[str, int], step: int) -> Row:
    """The keys of the newer reference code."""
    return {
        "grad_norm": (1.0 + step / 16) * (counts["updates"] > 0),
        "chunk_tokens": counts["tokens"], "gate_hit": counts["updates"],
        "gate_hits": counts["updates"], "updates_applied": counts["updates"],
        "tokens_flushed": counts["flushed"], "pending_tokens": counts["pending"],
        "surprise_value": 0.5 + step / 64,
    }  # fmt: skip


def older(counts: dict[str, int], step: int) -> Row:
    """The keys of the offline path, and of forks."""
    whole = newer(counts, step)
    return {k: whole[k] for k in ("grad_norm", "chunk_tokens", "gate_hit", "surprise_value")}


def log(records: list[Row], config: Row, **more: Any) -> list[Row]:
    rows = [{"step": -1, "train.online_updates": True, **config}]
    for step, record in enumerate(records):
        loss = 3.0 - step / 32
        row = {
            "step": step, "loss": loss, "ppl": math.exp(loss), "teach_signal_norm": 1 / (1 + step),
            "seq_len": T, "batch_size": BATCH, "tokens_per_step": T * BATCH,
            "tokens_seen_total": T * BATCH * (step + 1),
        }  # fmt: skip
        row |= {name: value(step) for name, value in more.items()}
        rows.append({**row, **{LEVEL + name: value for name, value in record.items()}})
    return rows


def findings(tmp_path: Path, rows: list[Row], *rules: str) -> set[str]:
    (tmp_path / "mine.toml").write_text(OVERRIDE + "".join(rules))
    (tmp_path / "telemetry.json").write_text(json.dumps(rows))
    profile = str(tmp_path / "mine.toml") if rules else "nl"
    return {finding.rule for finding in judge(tmp_path / "telemetry.json", profile).findings}


STEPS = range(24)


def test_newer_reference_code_logs_the_last_call(tmp_path: Path) -> None:
    """Chunks of 10, 10 and 2 positions: the row holds the one of 2."""
    records = [newer(calls([10, 10, 2], "flush_partial")[-1], step) for step in STEPS]
    assert findings(tmp_path, log(records, {})) == set()
    cadence = RULE.format(
        id="TEL056", check="cadence",
        params=CADENCE.format(flush="flush_partial", more=", call = 10"),
    )  # fmt: skip
    assert findings(tmp_path, log(records, {}), cadence) == set()
    records[7]["gate_hit"] = records[7]["gate_hits"] = records[7]["updates_applied"] = 2
    assert "TEL056" in findings(tmp_path, log(records, {}), cadence)


def test_older_reference_code_without_the_newer_keys(tmp_path: Path) -> None:
    """The offline path: the last partial chunk is always processed."""
    records = [older(calls([T], "flush_partial")[0], step) for step in STEPS]
    assert findings(tmp_path, log(records, {})) == set()
    bounds = RULE.format(
        id="TEL055", check="chunk_bounds",
        params='tokens = "chunk_tokens", updates = "gate_hit", periods = { cms_fast = 4 }',
    )  # fmt: skip
    assert findings(tmp_path, log(records, {}), bounds) == set()
    records[3]["chunk_tokens"] = 20  # exactly five chunks, and six updates
    assert findings(tmp_path, log(records, {}), bounds) == {"TEL055"}


def test_a_fork_sums_over_the_chunks_of_a_step(tmp_path: Path) -> None:
    """Every training chunk is a call that flushes its own remainder; norms and surprises add up."""
    records = [older(summed(calls([7, 7, 7, 1], "flush_partial")), step) for step in STEPS]
    for step, record in enumerate(records):
        record["surprise_value"] = 4 * (0.5 + step / 64)
    config = {
        "model.surprise_metric": "loss", "model.surprise_threshold": 0.25,
        "train.use_fast_state": True, "train.fast_state_batch_mode_resolved": "per_sample_list",
    }  # fmt: skip
    rows = log(
        records, config,
        surprise_metric=lambda _: "loss", surprise_value=lambda step: 3.0 - step / 32,
        **{"fast_state.layer0.cms.cms_fast.delta_norm": lambda step: 0.125 + step / 64},
    )  # fmt: skip
    assert findings(tmp_path, rows) == {"TEL048"}  # a gate that nothing closes: a warning
    bounds = RULE.format(
        id="TEL055", check="chunk_bounds",
        params='tokens = "chunk_tokens", updates = "gate_hit", periods = { cms_fast = 4 }, '
        'agg = "sum"',
    )  # fmt: skip
    assert findings(tmp_path, rows, bounds) == {"TEL048"}


def test_a_fork_that_also_has_the_newer_keys(tmp_path: Path) -> None:
    """A sum of calls is no call: the profile says so, and then holds it to what a sum must keep."""
    records = [newer(summed(calls([7, 7, 7, 1], "flush_partial")), step) for step in STEPS]
    rows = log(records, {})
    assert "TEL014" in findings(tmp_path, rows)
    chunked = RULE.format(
        id="TEL014", check="chunked",
        params='tokens = "chunk_tokens", updates = "updates_applied", flushed = "tokens_flushed", '
        'pending = "pending_tokens", agg = "sum", periods = { cms_fast = 4 }',
    )  # fmt: skip
    cadence = RULE.format(
        id="TEL056",
        check="cadence",
        params=CADENCE.format(flush="flush_partial", more=', call = 7, agg = "sum"'),
    )
    assert findings(tmp_path, rows, chunked, cadence) == set()
    records[5]["chunk_tokens"] -= 1
    found = findings(tmp_path, log(records, {}), chunked, cadence)
    assert found == {"TEL014"}  # what was lost is less than a chunk


def test_buffers_that_outlive_a_call(tmp_path: Path) -> None:
    """A carried remainder: 22 positions make five or six updates in turn."""
    each = calls([T] * len(STEPS), "carry")
    assert {one["updates"] for one in each} == {5, 6}
    rows = log([newer(one, step) for step, one in enumerate(each)], {})
    assert findings(tmp_path, rows) == set()
    carried = RULE.format(
        id="TEL056", check="cadence", params=CADENCE.format(flush="carry", more="")
    )
    dropped = RULE.format(
        id="TEL056", check="cadence", params=CADENCE.format(flush="drop", more="")
    )
    assert findings(tmp_path, rows, carried) == set()
    assert findings(tmp_path, rows, dropped) == {"TEL056"}


@pytest.mark.parametrize(("more", "found"), [("", {"TEL056"}), (", cleared = true", set())])
def test_a_fast_state_that_is_cleared_before_it_is_counted(
    more: str, found: set[str], tmp_path: Path
) -> None:
    """Finalised without flush: pending reads 0 although two positions were dropped."""
    records = [newer(calls([T], "drop", clears=True)[0], step) for step in STEPS]
    cadence = RULE.format(
        id="TEL056", check="cadence", params=CADENCE.format(flush="drop", more=more)
    )
    assert findings(tmp_path, log(records, {}), cadence) == found


def test_dropped_positions_are_conserved_where_they_are_counted(tmp_path: Path) -> None:
    counts = calls([T], "drop", clears=True)[0]
    lost = {"tokens_dropped": counts["dropped"], "tokens_gated": 0, "tokens_masked": 0}
    records = [{**newer(counts, step), **lost} for step in STEPS]
    assert findings(tmp_path, log(records, {})) == set()
    for record in records:
        record["tokens_dropped"] = 0
    assert findings(tmp_path, log(records, {})) == {"TEL057"}


def test_the_sharded_trainers_log_three_keys_only(tmp_path: Path) -> None:
    """Step, loss and ppl: not enough to follow a memory, and the profile says what is missing."""
    rows = [{k: v for k, v in row.items() if k in ("step", "loss", "ppl")} for row in log([{}], {})]
    assert findings(tmp_path, rows) == {"GAT003", "TEL005"}
