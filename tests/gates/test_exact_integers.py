"""Integers past 2^53 and past 64 bits are compared as they are, never as doubles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trueup.gates import judge

HEAD = """
[profile]
id = "own"
summary = "one rule"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[[rule]]
id = "OWN001"
severity = "error"
summary = "the rule under test"
why = "to be broken by one in the last digit"
expected = "exactness"
fix = "none"
"""
E53, E63, E64 = 2**53, 2**63, 2**64
RISES = 'check = "increasing"\nkeys = ["n"]\n'
SAME = """check = "same"\npattern = '^r\\.(?P<field>[ab])$'\nparams = { fields = ["a", "b"] }\n"""
SUM = 'check = "sum_of"\nkeys = ["s"]\nparams = { value = "s", terms = ["a", "b"] }\n'
PRODUCT = 'check = "product_of"\nkeys = ["p"]\nparams = { value = "p", factors = ["a", "b"] }\n'


def within(low: int, high: int) -> str:
    return f'check = "between"\nkeys = ["n"]\nparams = {{ min = {low}, max = {high} }}\n'


def counted(*values: int) -> list[dict[str, Any]]:
    return [{"step": step, "n": value} for step, value in enumerate(values)]


CASES = [
    pytest.param(RISES, counted(E53, E53 + 1, E53 + 2), True, id="rises by one past 2^53"),
    pytest.param(RISES, counted(E53, E53 + 1, E53 + 1), False, id="repeats past 2^53"),
    pytest.param(RISES, counted(E53 + 2, E53 + 1), False, id="falls by one past 2^53"),
    pytest.param(RISES, counted(E63 - 1, E63, E63 + 1), True, id="rises past 64 bits"),
    pytest.param(RISES, counted(E64 + 1, E64 + 1), False, id="repeats past 64 bits"),
    pytest.param(RISES, counted(E64 + 2, E64 + 1), False, id="falls by one past 64 bits"),
    pytest.param(within(0, E53), counted(1, E53), True, id="at a bound of 2^53"),
    pytest.param(within(0, E53), counted(1, E53 + 1), False, id="one above a bound of 2^53"),
    pytest.param(within(E53 + 1, E63 - 1), counted(E53), False, id="one below a bound"),
    pytest.param(within(0, E63), counted(1, E63), True, id="at a bound past 64 bits"),
    pytest.param(within(0, E63), counted(1, E63 + 1), False, id="one above a bound past 64 bits"),
    pytest.param(within(0, 10**400), counted(1, E63), True, id="a bound past every type"),
    pytest.param(
        f'check = "one_of"\nkeys = ["n"]\nparams = {{ values = [{E53 + 1}, {E63 - 1}] }}\n',
        counted(E53 + 1, E63 - 1), True, id="one of large values",
    ),
    pytest.param(
        f'check = "one_of"\nkeys = ["n"]\nparams = {{ values = [{E53 + 1}, 2.5] }}\n',
        counted(E53), False, id="next to one of the values",
    ),
    pytest.param(
        'check = "one_of"\nkeys = ["n"]\nparams = { values = [true] }\n',
        counted(1, 1), False, id="1 is not true",
    ),
    pytest.param(SAME, [{"step": 0, "r.a": E53 + 1, "r.b": E53 + 1}], True, id="equal"),
    pytest.param(SAME, [{"step": 0, "r.a": E53 + 1, "r.b": E53}], False, id="not equal"),
    pytest.param(SAME, [{"step": 0, "r.a": E64 + 1, "r.b": E64}], False, id="not equal, wide"),
    pytest.param(SUM, [{"step": 0, "s": E53 + 1, "a": E53, "b": 1}], True, id="sum"),
    pytest.param(SUM, [{"step": 0, "s": E53, "a": E53, "b": 1}], False, id="sum off by one"),
    pytest.param(SUM, [{"step": 0, "s": E63, "a": E63 - 1, "b": 1}], True, id="sum past 64 bits"),
    pytest.param(
        SUM, [{"step": 0, "s": -E63, "a": E63 - 1, "b": 1}], False, id="a sum does not wrap"
    ),
    pytest.param(PRODUCT, [{"step": 0, "p": 0, "a": 2**32, "b": 2**32}], False, id="no wrap"),
    pytest.param(
        PRODUCT, [{"step": 0, "p": E53 + 1, "a": 321, "b": 28059810762433}], True, id="product"
    ),
    pytest.param(
        PRODUCT, [{"step": 0, "p": E53, "a": 321, "b": 28059810762433}], False,
        id="product off by one",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "rows", "holds"), CASES)
def test_last_digit_counts(
    rule: str, rows: list[dict[str, Any]], holds: bool, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text(HEAD + rule)
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    verdict = judge(path, str(tmp_path / "own.toml"))
    found = {finding.rule for finding in verdict.findings}
    past = any(not -E63 <= value < E63 for row in rows for value in row.values())
    assert found == ({"RDR012"} if past else set()) | (set() if holds else {"OWN001"})
    assert verdict.rows == len(rows)


def test_product_of_the_examples_is_right() -> None:
    assert E53 + 1 == 321 * 28059810762433


def test_step_past_64_bits_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(HEAD + RISES.replace('"n"', '"step"'))
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"step": {E64 + 2}}}\n{{"step": {E64 + 1}}}\n')
    verdict = judge(path, str(tmp_path / "own.toml"))
    (finding,) = (one for one in verdict.findings if one.rule == "OWN001")
    assert (finding.got, finding.where.step, finding.where.line) == (str(E64 + 1), E64 + 1, 2)


def test_wide_column_is_kept_over_batches(tmp_path: Path) -> None:
    """The last value of one piece is held against the first of the next."""
    from trueup.gates.read.limits import Limits

    (tmp_path / "own.toml").write_text(HEAD + RISES)
    path = tmp_path / "x.jsonl"
    values = [*range(E63 - 200, E63 + 200), E63 + 199]
    path.write_text("".join(json.dumps(row) + "\n" for row in counted(*values)))
    limits = Limits(first_piece=2_000, piece=2_000)
    verdict = judge(path, str(tmp_path / "own.toml"), limits=limits)
    counts = {finding.rule: finding.count for finding in verdict.findings}
    assert counts == {"RDR012": 201, "OWN001": 1}
