"""Two independent judges of the same rows: Great Expectations, and aggregates written by hand.

They must agree with the gate where they are honest, and the gate must fail where Great
Expectations is known to pass without a word: a NaN inside a range, no rows, no expectations.
The rows come from the standard library's JSON parser and from pandas, not from our reader.
"""

from __future__ import annotations

import importlib.util
import json
import math
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from trueup.gates import judge

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FAST = "layer0.cms.cms_fast."
# Fixtures that differ from a good log in their values only, and the rules all judges can state.
VALUES = [
    "passes_list",
    "passes_lines",
    "passes_fork_keys",
    "passes_long",
    "step_repeats",
    "step_goes_back",
    "loss_missing",
    "loss_negative",
    "ppl_of_other_loss",
    "counter_negative",
    "open_below_threshold",
    "grad_norm_zero",
    "surprise_metric_unknown",
    "surprise_value_missing",
    "teach_signal_missing",
]
STATED = {"TEL003", "TEL005", "TEL006", "TEL008", "TEL009", "TEL012", "TEL016", "TEL017", "TEL018"}

Rows = list[dict[str, Any]]


def rows_of(name: str) -> Rows:
    """The step rows of a fixture."""
    (path,) = (FIXTURES / "telemetry" / name).glob("telemetry.*")
    text = path.read_text()
    rows = json.loads(text) if text[0] == "[" else [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if row.get("step") != -1]


def ours(name: str) -> bool:
    """Whether the gate found nothing against the rules that all judges state."""
    found = {finding.rule for finding in judge(FIXTURES / "telemetry" / name).findings}
    return not found & STATED


def by_hand(rows: Rows) -> bool:
    """The same rules as plain Python over plain values."""

    def numbers(key: str) -> list[float]:
        return [row[key] for row in rows if key in row]

    required = ("loss", "ppl", "teach_signal_norm", "surprise_metric", "surprise_value")
    steps = [row["step"] for row in rows]
    everything = [v for row in rows for v in row.values() if isinstance(v, int | float)]
    return (
        all(key in row for row in rows for key in required)
        and all(math.isfinite(value) for value in everything)
        and all(one < two for one, two in pairwise(steps))
        and all(value >= 0 for value in numbers("loss") + numbers("teach_signal_norm"))
        and all(value >= 0 for value in numbers("tokens_seen_total"))
        and all(
            abs(row["ppl"] / math.exp(row["loss"]) - 1) <= 1e-5
            for row in rows
            if "loss" in row and "ppl" in row
        )
        and all(row[f"{FAST}grad_norm"] > 0 for row in rows if row.get(f"{FAST}gate_hit", 0) > 0)
        and all(row.get("surprise_metric") in ("l2", "loss", "logit_entropy") for row in rows)
        and bool(rows)
    )


def by_aggregate(rows: Rows) -> bool:
    """The same rules as one query over a table that polars itself made."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    required = ("loss", "ppl", "teach_signal_norm", "surprise_metric", "surprise_value")
    if not set(required) <= set(frame.columns):
        return False
    floats = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    ratio = pl.col("ppl") / pl.col("loss").exp()
    tests = [
        *(pl.col(name).is_not_null().all() for name in required),
        *(pl.col(name).is_finite().all() for name in floats),
        (pl.col("step").diff() > 0).all(),
        *((pl.col(n) >= 0).all() for n in ("loss", "teach_signal_norm", "tokens_seen_total")),
        ((ratio - 1).abs() <= 1e-5).all(),
        pl.col("surprise_metric").is_in(["l2", "loss", "logit_entropy"]).all(),
    ]
    if f"{FAST}grad_norm" in frame.columns:
        tests.append(((pl.col(f"{FAST}gate_hit") == 0) | (pl.col(f"{FAST}grad_norm") > 0)).all())
    verdicts = frame.select(test.alias(str(i)) for i, test in enumerate(tests)).row(0)
    return frame.height > 0 and all(verdicts)


@pytest.mark.parametrize("other", [by_hand, by_aggregate])
@pytest.mark.parametrize("name", VALUES)
def test_gate_agrees_with_rules_written_by_hand(name: str, other: Callable[[Rows], bool]) -> None:
    assert ours(name) == other(rows_of(name))


def test_values_hold_passing_and_failing_fixtures() -> None:
    verdicts = [by_hand(rows_of(name)) for name in VALUES]
    assert 3 < sum(verdicts) < len(verdicts) - 3


needs_gx = pytest.mark.skipif(
    importlib.util.find_spec("great_expectations") is None,
    reason="Great Expectations is not installed (extra: accept)",
)


class Gx:
    """One context for the module: importing and starting it takes seconds."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # raised while third-party modules are imported
            import great_expectations as gx
            import great_expectations.expectations as gxe
            from great_expectations.data_context.types.base import ProgressBarsConfig
        self.gxe, self._gx = gxe, gx
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(
            globally=False, metric_calculations=False
        )
        asset = context.data_sources.add_pandas("p").add_dataframe_asset("telemetry")
        self._batches = asset.add_batch_definition_whole_dataframe("all")

    def passes(self, rows: Rows, expectations: list[Any]) -> bool:
        """Whether the suite succeeds; an expectation that raised is a failure of the test."""
        import pandas as pd

        suite = self._gx.ExpectationSuite(name="s", expectations=expectations)
        frame = pd.DataFrame(rows)
        if {"ppl", "loss"} <= set(frame.columns):
            frame["ppl over exp loss"] = frame["ppl"].astype(float) / frame["loss"].map(math.exp)
        batch = self._batches.get_batch(batch_parameters={"dataframe": frame})
        result = batch.validate(suite, result_format="BASIC")
        for one in result.results:
            for info in (one.exception_info or {}).values():
                assert not (isinstance(info, dict) and info.get("raised_exception")), info
        return bool(result.success)

    def rules(self, rows: Rows) -> list[Any]:
        """The rules that can be said as expectations, for the columns that are there."""
        gxe, columns = self.gxe, {key for row in rows for key in row}
        out = [gxe.ExpectColumnValuesToBeIncreasing(column="step", strictly=True)]
        for key in ("loss", "ppl", "teach_signal_norm", "surprise_metric", "surprise_value"):
            out.append(gxe.ExpectColumnToExist(column=key))
            if key in columns:
                out.append(gxe.ExpectColumnValuesToNotBeNull(column=key))
        for key in {"loss", "teach_signal_norm", "tokens_seen_total"} & columns:
            out.append(gxe.ExpectColumnValuesToBeBetween(column=key, min_value=0))
        metrics = ["l2", "loss", "logit_entropy"]
        out.append(gxe.ExpectColumnValuesToBeInSet(column="surprise_metric", value_set=metrics))
        out.append(
            gxe.ExpectColumnValuesToBeBetween(
                column="ppl over exp loss", min_value=1 - 1e-5, max_value=1 + 1e-5
            )
        )
        if f"{FAST}grad_norm" in columns:  # in these fixtures the record is there only when open
            norm = f"{FAST}grad_norm"
            out.append(gxe.ExpectColumnValuesToBeBetween(column=norm, min_value=0, strict_min=True))
        return out


@pytest.fixture(scope="module")
def gx() -> Gx:
    return Gx()


@needs_gx
@pytest.mark.parametrize("name", VALUES)
def test_gate_agrees_with_great_expectations(name: str, gx: Gx) -> None:
    rows = rows_of(name)
    assert gx.passes(rows, gx.rules(rows)) == ours(name)


PROFILE = """
[profile]
id = "range"
summary = "one range"
[[artifact]]
kind = "telemetry"
patterns = ["*.json"]
[[rule]]
id = "OWN001"
severity = "error"
summary = "loss is in range"
why = "the same rule as the expectation"
check = "between"
keys = ["loss"]
params = { min = 0, max = 100 }
expected = "0..100"
fix = "find the NaN"
"""


@pytest.fixture
def in_range(tmp_path: Path) -> str:
    path = tmp_path / "range.toml"
    path.write_text(PROFILE)
    return str(path)


@needs_gx
def test_nan_in_a_range_passes_there_and_fails_here(gx: Gx, in_range: str, tmp_path: Path) -> None:
    rows: Rows = [{"step": i, "loss": float("nan") if i == 2 else 2.5} for i in range(4)]
    between = gx.gxe.ExpectColumnValuesToBeBetween(column="loss", min_value=0, max_value=100)
    assert gx.passes(rows, [between])
    path = tmp_path / "telemetry.json"
    path.write_text(json.dumps(rows))
    verdict = judge(path, in_range)
    assert not verdict.passed
    assert "OWN001" in {finding.rule for finding in verdict.findings}


@needs_gx
def test_no_rows_pass_there_and_fail_here(gx: Gx, in_range: str, tmp_path: Path) -> None:
    import pandas as pd

    between = gx.gxe.ExpectColumnValuesToBeBetween(column="loss", min_value=0, max_value=100)
    empty = pd.DataFrame({"loss": pd.Series([], dtype="float64")})
    batch = gx._batches.get_batch(batch_parameters={"dataframe": empty})
    suite = gx._gx.ExpectationSuite(name="s", expectations=[between])
    assert batch.validate(suite).success
    path = tmp_path / "telemetry.json"
    path.write_text("[]")
    verdict = judge(path, in_range)
    assert {"GAT001", "GAT002"} <= {finding.rule for finding in verdict.findings}


@needs_gx
def test_no_expectations_pass_there_and_no_checks_fail_here(
    gx: Gx, in_range: str, tmp_path: Path
) -> None:
    rows: Rows = [{"step": 0, "other": 2.5}]
    assert gx.passes(rows, [])
    path = tmp_path / "telemetry.json"
    path.write_text(json.dumps(rows))
    verdict = judge(path, in_range)
    assert {"GAT002", "GAT003"} <= {finding.rule for finding in verdict.findings}
    assert not verdict.passed
