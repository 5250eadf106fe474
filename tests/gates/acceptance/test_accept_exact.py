"""Decimals are compared as rationals; doubles agree with them wherever a double can."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.gates.acceptance.config import Band
from trueup.gates.acceptance.exact import Number, decimal_text, from_text, number
from trueup.gates.acceptance.expectations import float_bounds
from trueup.gates.acceptance.model import Measure
from trueup.gates.acceptance.paths import PathError, follow, leaves, parse_path


def test_a_double_gets_the_band_wrong_and_a_rational_does_not() -> None:
    assert not abs(0.85 - 1.0) <= 0.15  # the trap
    measure = Measure(from_text("0.85"), Fraction(85, 100), Fraction(115, 100))
    assert measure.holds()


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        pytest.param(None, "null", id="null"),
        pytest.param(math.nan, "not finite", id="nan"),
        pytest.param(math.inf, "not finite", id="inf"),
        pytest.param("1.0", "not a number", id="text"),
        pytest.param(True, "not a number", id="boolean"),
        pytest.param([1.0], "not a number", id="list"),
        pytest.param(Decimal("NaN"), "not finite", id="decimal-nan"),
    ],
)
def test_what_is_no_finite_number_has_no_exact_value(value: Any, flaw: str) -> None:
    assert (number(value).exact, number(value).flaw) == (None, flaw)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)), ("1e3", Fraction(1000)), ("-2.50", Fraction(-5, 2)),
        ("1_000.5", Fraction(2001, 2)), ("9007199254740993", Fraction(9007199254740993)),
        ("1e999999999", None), ("0x10", None), ("1" * 500, None), ("", None), ("nan", None),
    ],
)  # fmt: skip
def test_a_literal_is_the_rational_it_is_written_as(text: str, value: Fraction | None) -> None:
    assert from_text(text) == value


def test_an_integer_past_the_doubles_stays_exact() -> None:
    assert number(2**53 + 1).exact == 2**53 + 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(Fraction(23, 20), "1.15"), (Fraction(20), "20"), (Fraction(1, 3), "0.333333333333")],
)
def test_a_rational_is_shown_as_people_write_it(value: Fraction, text: str) -> None:
    assert decimal_text(value) == text


decimals = st.decimals(-1000, 1000, places=4, allow_nan=False)


def _in_doubles(value: float, measure: Measure) -> bool:
    low, high = float_bounds(measure)
    return (low is None or value >= low) and (high is None or value <= high)


@given(base=decimals, relative=st.decimals(0, 1, places=3), offset=st.integers(-3, 3))
def test_the_bounds_in_doubles_judge_as_the_exact_ones(
    base: Decimal, relative: Decimal, offset: int
) -> None:
    """Around both edges, a few units of the last place to each side."""
    center, allowed = Fraction(base), Fraction(relative) * abs(Fraction(base))
    measure = Measure(None, center - allowed, center + allowed)
    for edge in (center - allowed, center + allowed):
        value = float(edge)
        for _ in range(abs(offset)):
            value = math.nextafter(value, math.inf * offset)
        exact = from_text(repr(value))
        assert _in_doubles(value, measure) is Measure(exact, measure.low, measure.high).holds()


@given(value=st.floats(allow_nan=False, allow_infinity=False), low=decimals)
def test_any_double_is_judged_as_its_decimal(value: float, low: Decimal) -> None:
    measure = Measure(from_text(repr(value)), Fraction(low), None)
    assert _in_doubles(value, measure) is measure.holds()


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("0.85", "0.85", "1.15"), ("1.15", "0.85", "1.15"), ("20", "20", None), ("0.05", "0.05", None),
     ("0.1", "0.1", None)],
)  # fmt: skip
def test_the_boundaries_of_the_programme_hold_in_both(
    text: str, low: str, high: str | None
) -> None:
    measure = Measure(Fraction(text), Fraction(low), None if high is None else Fraction(high))
    assert measure.holds()
    assert _in_doubles(float(text), measure)


def test_a_band_of_a_negative_base_lies_around_it() -> None:
    from trueup.gates.acceptance.bands import bounds
    from trueup.gates.acceptance.baseline import Locked

    base = Locked("x", {}, Number(Fraction(-2), "-2"), ())
    band = Band(id="x", path="x", relative=Decimal("0.15"))
    assert bounds(band, base) == (Fraction("-2.3"), Fraction("-1.7"))


DATA: dict[str, Any] = {
    "cells": [
        {"seed": 1, "fold": 0, "val": 1.0, "layer0.norm": 7},
        {"seed": 1, "fold": 1, "val": 2.0, "layer0.norm": 8},
    ],
    "mix": [0.25, 0.75],
    "flag": True,
}


@pytest.mark.parametrize(
    ("path", "hits"),
    [
        ("cells[*].val", {"[seed=1,fold=0]": 1.0, "[seed=1,fold=1]": 2.0}),
        ("cells[fold=1].val", {"[seed=1,fold=1]": 2.0}),
        ('cells[fold=0]."layer0.norm"', {"[seed=1,fold=0]": 7}),
        ("cells[1].val", {"": 2.0}),
        ("mix[*]", {"[index=0]": 0.25, "[index=1]": 0.75}),
    ],
)
def test_a_path_leads_to_values_by_what_they_are_of(path: str, hits: dict[str, Any]) -> None:
    found = {hit.label: hit.value for hit in follow(DATA, parse_path(path))}
    assert found == hits


@pytest.mark.parametrize("path", ["cells[*].loss", "cells[fold=9].val", "none", "mix.a", "flag[*]"])
def test_a_path_to_nothing_is_a_hit_that_found_nothing(path: str) -> None:
    hits = list(follow(DATA, parse_path(path)))
    assert hits
    assert not any(hit.found for hit in hits)


def test_an_empty_list_is_not_passed_over() -> None:
    (hit,) = follow({"cells": []}, parse_path("cells[*].val"))
    assert not hit.found


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[x]", ".a", "a[fold=]", 'a."', "a b", "a]"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        parse_path(path)


def test_every_number_of_a_document_is_a_leaf_and_identities_are_not() -> None:
    found = [f"{path}{hit.label}" for path, hit in leaves(DATA)]
    assert found == [
        "cells[*].val[seed=1,fold=0]", 'cells[*]."layer0.norm"[seed=1,fold=0]',
        "cells[*].val[seed=1,fold=1]", 'cells[*]."layer0.norm"[seed=1,fold=1]',
        "mix[*][index=0]", "mix[*][index=1]",
    ]  # fmt: skip


@given(
    st.recursive(
        st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_every_leaf_is_found_again_by_its_path(data: Any) -> None:
    document = {"top": data}
    for path, hit in leaves(document):
        again = [one for one in follow(document, parse_path(path)) if one.pointer == hit.pointer]
        assert [(one.value, dict(one.of)) for one in again] == [(hit.value, dict(hit.of))]
