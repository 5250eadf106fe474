"""Ways to judge one table, each as a program: `run(path)` says whether the table passes.

All hold the same rules, as far as they can state them: no value is missing, every number is finite
and within 0..1000, steps rise. Each program is run by `gate.py` in a process of its own.
"""

from __future__ import annotations

from typing import NamedTuple

PROFILE = """
[profile]
id = "bench"
summary = "nothing missing, finite, in range, steps rise"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl", "*.json", "*.parquet"]
"""
RULE = """
[[rule]]
id = "BEN00{number}"
severity = "error"
summary = "{check}"
why = "to be compared with the same rule in other tools"
check = "{check}"
expected = "{check}"
fix = "none"
{target}
"""
TARGETS = [
    ("present", "pattern = '^.*$'"),
    ("finite", "pattern = '^.*$'"),
    ("between", "pattern = '^(?!step$).*$'\nparams = { min = 0, max = 1000 }"),
    ("increasing", 'keys = ["step"]'),
]


def profile() -> str:
    """The rules as a profile."""
    rules = (
        RULE.format(number=number, check=check, target=target)
        for number, (check, target) in enumerate(TARGETS, 1)
    )
    return PROFILE + "".join(rules)


READER = """
from pathlib import Path
from trueup.gates.read.tables import open_table
def run(path):
    faults = []
    for batch in open_table(Path(path), report=faults.append).batches():
        pass
    return not faults
"""
GATE = """
from trueup.gates import judge
def run(path):
    return judge(path, profile).passed
"""
LOOP = """
def run(path):
    last, passed = -1, True
    for line in open(path, "rb"):
        step = decode(line)["step"]
        passed, last = passed and step > last, step
    return passed
"""
ORJSON = "import orjson\ndecode = orjson.loads\n" + LOOP
MSGSPEC = "import msgspec\ndecode = msgspec.json.Decoder().decode\n" + LOOP
READ_LINES = "read = lambda path: pl.read_ndjson(path, infer_schema_length=None)\n"
READ_PARQUET = "read = lambda path: pl.read_parquet(path)\n"
POLARS = """
import polars as pl
def run(path):
    frame = read(path)
    floats = [name for name in frame.columns if name != "step"]
    tests = [test for name in floats for test in (
        pl.col(name).is_not_null().all(), pl.col(name).is_finite().all(),
        pl.col(name).is_between(0, 1000).all())]
    tests += [pl.col("step").is_not_null().all(), (pl.col("step").diff() > 0).all()]
    row = frame.select(test.alias(str(i)) for i, test in enumerate(tests)).row(0)
    return all(row)
"""
PANDERA = """
import polars as pl, pandera.polars as pa
from pandera.config import ValidationDepth, config_context
def run(path):
    frame = read(path)
    one = lambda d: d.lazyframe.select(pl.col(d.key).is_finite())
    finite = lambda: pa.Check(one, ignore_na=False)
    rises = pa.Check(lambda d: d.lazyframe.select((pl.col(d.key).diff() > 0).fill_null(True)))
    columns = {name: pa.Column(pl.Float64, [finite(), pa.Check.in_range(0, 1000)])
               for name in frame.columns if name != "step"}
    schema = pa.DataFrameSchema({"step": pa.Column(pl.Int64, rises), **columns})
    with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
        try:
            schema.validate(frame, lazy=True)
        except pa.errors.SchemaErrors:
            return False
    return True
"""
GX = """
import pandas as pd, great_expectations as gx, great_expectations.expectations as gxe
from great_expectations.data_context.types.base import ProgressBarsConfig
def run(path):
    frame = read(path)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_pandas("p").add_dataframe_asset("t")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    floats = [name for name in frame.columns if name != "step"]
    suite = gx.ExpectationSuite(name="s", expectations=[
        gxe.ExpectColumnValuesToNotBeNull(column="step"),
        gxe.ExpectColumnValuesToBeIncreasing(column="step", strictly=True),
        *(gxe.ExpectColumnValuesToNotBeNull(column=name) for name in floats),
        *(gxe.ExpectColumnValuesToBeBetween(column=name, min_value=0, max_value=1000)
          for name in floats)])
    return bool(batch.validate(suite, result_format="BASIC").success)
"""
GX_LINES = "read = lambda path: pd.read_json(path, lines=True)\n"
GX_PARQUET = "read = lambda path: pd.read_parquet(path)\n"
JSONSCHEMA = """
import itertools, json
from jsonschema import Draft202012Validator
def run(path):
    last, passed, validator = -1, True, None
    with open(path) as lines:
        for line in itertools.islice(lines, sample):
            row = json.loads(line)
            if validator is None:
                number = {"type": "number", "minimum": 0, "maximum": 1000}
                validator = Draft202012Validator({
                    "type": "object", "required": list(row), "properties": {
                        name: {"type": "integer"} if name == "step" else number for name in row}})
            passed = passed and validator.is_valid(row) and row["step"] > last
            last = row["step"]
    return passed
"""


class Way(NamedTuple):
    """One program. `sample`: how many rows it is given, where all of them would take too long."""

    name: str
    code: str
    form: str
    sample: int = 0


WAYS = [
    Way("trueup: reader alone, every strict check", READER, "jsonl"),
    Way("trueup: whole gate", GATE, "jsonl"),
    Way("orjson loop, steps only", ORJSON, "jsonl"),
    Way("msgspec loop, steps only", MSGSPEC, "jsonl"),
    Way("polars, full inference, one query", READ_LINES + POLARS, "jsonl"),
    Way("pandera alone (polars, full inference)", READ_LINES + PANDERA, "jsonl"),
    Way("Great Expectations (pandas)", GX + GX_LINES, "jsonl"),
    Way("jsonschema, row by row", JSONSCHEMA, "jsonl", sample=20_000),
    Way("trueup: reader alone", READER, "json"),
    Way("trueup: whole gate", GATE, "json"),
    Way("trueup: reader alone", READER, "parquet"),
    Way("trueup: whole gate", GATE, "parquet"),
    Way("polars, one query", READ_PARQUET + POLARS, "parquet"),
    Way("pandera alone (polars)", READ_PARQUET + PANDERA, "parquet"),
    Way("Great Expectations (pandas)", GX + GX_PARQUET, "parquet"),
]
