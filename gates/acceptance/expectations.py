"""The same bounds as a Great Expectations suite, as a second judge and for its Data Docs.

What the library lets through, and what is done about it here: an empty suite and an empty frame
succeed, so neither is ever handed over; `between` skips NaN and null, so every column is also held
not to be null; an exception inside a check is hidden in its result, so every result is looked at;
results come in another order, so they are found by their column. Exact arithmetic decides; where
the library says otherwise, that is a finding of its own.
"""

from __future__ import annotations

import importlib.util
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from trueup.gates.acceptance.errors import EngineMissing
from trueup.gates.acceptance.exact import from_text, to_float
from trueup.gates.acceptance.model import Criterion, Expected, Measure

_WORDS = {True: "holds", False: "does not hold"}
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;=+\-\[\]()%]")
_INSTALL = "pip install 'trueup[accept]'"
NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"


def require_engine() -> None:
    """Raise `EngineMissing` if Great Expectations is not installed; it is not imported for that."""
    if importlib.util.find_spec("great_expectations") is None:
        raise EngineMissing(
            "Great Expectations is not installed", expected="the packages of the extra `accept`",
            fix=_INSTALL,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """What the library said: of each measure, and how it failed to say it."""

    expectations: tuple[Expected, ...]
    errors: tuple[tuple[Criterion, str], ...]
    disagreements: tuple[tuple[Criterion, str], ...]
    version: str


def float_bounds(measure: Measure) -> tuple[float | None, float | None]:
    """Doubles that let through exactly the doubles whose decimals lie between the exact bounds.

    The decimal of a double is the shortest one that reads back as it, which is what programs print.
    """
    low, high = measure.low, measure.high
    return (
        None if low is None else _least(low),
        None if high is None else _negative(_least(-high)),
    )


def _negative(value: float) -> float:
    return -value if value else 0.0


def _least(low: Fraction) -> float:
    """The least double whose decimal is at least `low`."""
    near = to_float(low)
    for candidate in (math.nextafter(near, -math.inf), near):
        if math.isfinite(candidate) and _decimal(candidate) >= low:
            return candidate
    return math.nextafter(near, math.inf)


def _decimal(value: float) -> Fraction:
    found = from_text(repr(value))
    return Fraction(value) if found is None else found


def ask(criteria: Sequence[Criterion], acceptance: str, docs: Path | None = None) -> Told:
    """Let Great Expectations judge every measure; with `docs`, build its site there."""
    measured = [_Measured(one, one.measure) for one in criteria if one.measure is not None]
    if not measured:
        raise ValueError("an empty suite succeeds, so it is never run")
    require_engine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library and what it imports; none is of our data
        results, version = _validate(measured, plain(acceptance).replace(".", "-"), docs)
    return compare(measured, results, version)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A criterion that has a measure."""

    criterion: Criterion
    measure: Measure

    @property
    def value(self) -> float | None:
        """What the library is given; an empty cell where there is no number."""
        return None if self.measure.value is None else to_float(self.measure.value)


def _columns(measured: Sequence[_Measured]) -> list[str]:
    """Names that can be read and are safe: the library substitutes `$` and writes them in pages."""
    names: dict[str, None] = {}
    for index, one in enumerate(measured):
        name = plain(one.criterion.name)
        names[name if name not in names else f"{name} ({index + 1})"] = None
    return list(names)


def _validate(measured: Sequence[_Measured], name: str, docs: Path | None) -> tuple[list[Any], str]:
    """Run the suite over one row that has a column for each measure."""
    import great_expectations as gx
    import pandas as pd

    context = _context(gx)
    cells = {
        column: pd.Series([one.value], dtype="float64")
        for column, one in zip(_columns(measured), measured, strict=True)
    }
    frame = pd.DataFrame(cells)
    batch = (
        context.data_sources.add_pandas("measures")
        .add_dataframe_asset("run")
        .add_batch_definition_whole_dataframe("all")
    )
    suite = gx.ExpectationSuite(name=name, expectations=_suite(measured))
    definition = gx.ValidationDefinition(name=name, data=batch, suite=context.suites.add(suite))
    checkpoint = gx.Checkpoint(
        name=name,
        validation_definitions=[context.validation_definitions.add(definition)],
        result_format="SUMMARY",
    )
    outcome = checkpoint.run(batch_parameters={"dataframe": frame})
    results = [one for run in outcome.run_results.values() for one in run.results]
    if docs is not None:
        context.add_data_docs_site("local", _site(docs))
        context.build_data_docs(site_names=["local"])
    return results, str(gx.__version__)


def _context(gx: Any) -> Any:
    """A context in memory: no folder of the user's, no site of its own, no bars in the log."""
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
        analytics_enabled=False,
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _site(docs: Path) -> dict[str, Any]:
    return {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "show_cta_footer": False},
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(docs),
        },
    }


def _suite(measured: Sequence[_Measured]) -> list[Any]:
    """Two expectations for each measure: that there is a number, and that it is in its bounds."""
    import great_expectations.expectations as gxe

    found: list[Any] = []
    for column, one in zip(_columns(measured), measured, strict=True):
        low, high = float_bounds(one.measure)
        notes = plain(f"{one.criterion.name}: {one.criterion.threshold}")
        found.append(gxe.ExpectColumnValuesToNotBeNull(column=column, notes=notes))
        if low is not None or high is not None:
            found.append(
                gxe.ExpectColumnValuesToBeBetween(
                    column=column, min_value=low, max_value=high, notes=notes
                )
            )
    return found


def plain(text: str) -> str:
    """Text for the library's pages and names: nothing in it that a template would take up."""
    words = text[:200].replace("<=", "at most").replace(">=", "at least")
    return "".join(char if _PLAIN.fullmatch(char) else "_" for char in words)


def compare(measured: Sequence[_Measured], results: Sequence[Any], version: str) -> Told:
    """Hold what the library said to what exact arithmetic says."""
    by_column: dict[str, list[Any]] = {}
    for result in results:
        by_column.setdefault(result.expectation_config.kwargs.get("column", ""), []).append(result)
    expected: list[Expected] = []
    errors: list[tuple[Criterion, str]] = []
    disagreements: list[tuple[Criterion, str]] = []
    for column, one in zip(_columns(measured), measured, strict=True):
        told, wrong = _told(one, column, by_column.get(column, []))
        expected += told
        exact, said = one.measure.holds(), all(item.success is True for item in told)
        if wrong:
            errors.append((one.criterion, wrong))
        elif exact != said:
            name, value = one.criterion.name, one.criterion.value
            got = f"{name} = {value}: exact {_WORDS[exact]}, Great Expectations {_WORDS[said]}"
            disagreements.append((one.criterion, got))
    return Told(tuple(expected), tuple(errors), tuple(disagreements), version)


def _told(one: _Measured, column: str, results: Sequence[Any]) -> tuple[list[Expected], str]:
    """The library's results for one measure, and what went wrong inside of them."""
    name = one.criterion.name
    low, high = float_bounds(one.measure)
    wanted = [NOT_NULL] + ([BETWEEN] if low is not None or high is not None else [])
    by_type = {result.expectation_config.type: result for result in results}
    if sorted(by_type) != sorted(wanted) or len(results) != len(wanted):
        return [], f"{len(results)} of {len(wanted)} expectations ran for {name}"
    told: list[Expected] = []
    for kind in wanted:
        result = by_type[kind]
        raised = exception_in(result)
        if raised or not isinstance(result.success, bool):
            return told, f"{kind} raised for {name}: {raised or 'no answer'}"
        bounded = (low, high) if kind == BETWEEN else (None, None)
        told.append(
            Expected(name, column, kind, result.success, _finite(one.value),
                     _finite(bounded[0]), _finite(bounded[1]))
        )  # fmt: skip
    return told, ""


def exception_in(result: Any) -> str:
    """The message of an exception that the library kept inside a result; empty if there is none."""
    info = result.exception_info or {}
    entries = [info, *(value for value in info.values() if isinstance(value, dict))]
    for entry in entries:
        if entry.get("raised_exception"):
            return str(entry.get("exception_message") or "an exception")
    return ""


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
