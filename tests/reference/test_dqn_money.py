"""Money in millionths: goldens, decimal and rational arithmetic as third sources, mutants."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import BadInputs
from trueup.reference.dqn.money import (
    LARGEST,
    UNIT,
    add,
    divide,
    from_float,
    multiply,
    negate,
    parse,
    subtract,
    to_text,
)
from trueup.reference.dqn.money_mutants import (
    float_ledger,
    half_up,
    in_float32,
    multiply_in_64_bits,
    parse_through_float,
    through_float32,
    truncated,
)

PROFILE = settings(derandomize=True, deadline=None, max_examples=200)
amounts = st.integers(-LARGEST, LARGEST)
small = st.integers(-(10**12), 10**12)


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("0.0000005", 0),
        ("0.0000015", 2),
        ("1.0000005", 1000000),
        ("-0.0000025", -2),
        ("9223372036854.775807", LARGEST),
        ("-9223372036854.775807", -LARGEST),
        ("+12.5", 12500000),
        ("0.00000150000000000000000000000000000001", 2),
    ],
)
def test_golden_amounts(text: str, micro: int) -> None:
    assert parse(text) == micro


@pytest.mark.parametrize(
    ("a", "b", "product"),
    [(1500000, 333333, 500000), (-1, 500000, 0), (3, 500000, 2), (2500000, -1, -2)],
)
def test_golden_products(a: int, b: int, product: int) -> None:
    assert multiply(a, b) == product


def test_a_float_parse_is_one_micro_off_and_overflows() -> None:
    assert parse_through_float("1.0000005") == 1000001
    assert parse_through_float("9223372036854.775807") == 9223372036854775808
    with pytest.raises(BadInputs, match="out of range"):
        from_float(9.223372036854775e12)


@PROFILE
@given(micro=amounts)
def test_text_brings_every_amount_back(micro: int) -> None:
    assert parse(to_text(micro)) == micro
    assert Decimal(to_text(micro)) * UNIT == micro


@PROFILE
@given(a=amounts, b=amounts)
def test_products_and_quotients_are_the_rounded_rationals(a: int, b: int) -> None:
    """Python rounds a Fraction half to even."""
    for operation, exact in (
        (multiply, Fraction(a * b, UNIT)),
        (divide, Fraction(a * UNIT, b) if b else None),
    ):
        if exact is None or abs(round(exact)) > LARGEST:
            with pytest.raises(BadInputs):
                operation(a, b)
        else:
            assert operation(a, b) == round(exact)


@PROFILE
@given(a=small, b=small)
def test_ledger_laws(a: int, b: int) -> None:
    assert subtract(add(a, b), b) == a
    assert negate(negate(a)) == a
    assert multiply(negate(a), b) == -multiply(a, b)  # rounding is symmetric
    assert negate(LARGEST) == -LARGEST


@PROFILE
@given(fills=st.lists(small, max_size=30))
def test_fills_sum_to_the_cash_exactly(fills: list[int]) -> None:
    cash = 0
    for fill in fills:
        cash = add(cash, fill)
    assert Decimal(to_text(cash)) == sum((Decimal(f) / UNIT for f in fills), Decimal(0))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: add(LARGEST, 1), id="add"),
        pytest.param(lambda: subtract(-LARGEST, 1), id="subtract"),
        pytest.param(lambda: negate(-(2**63)), id="lowest"),
        pytest.param(lambda: multiply(LARGEST, 2 * UNIT), id="multiply"),
        pytest.param(lambda: divide(1, 0), id="by-zero"),
        pytest.param(lambda: parse("9223372036854.775808"), id="parse"),
        pytest.param(lambda: parse("1e3"), id="exponent"),
        pytest.param(lambda: parse(" 1"), id="blank"),
        pytest.param(lambda: parse("nan"), id="nan"),
        pytest.param(lambda: from_float(float("nan")), id="float-nan"),
        pytest.param(lambda: from_float(float("inf")), id="float-inf"),
    ],
)
def test_what_does_not_fit_is_an_error(call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInputs):
        call()


def test_floats_round_half_to_even() -> None:
    assert [from_float(x) for x in (0.5e-6, 1.5e-6, 2.5e-6, -2.5e-6, 12.25)] == [
        0,
        2,
        2,
        -2,
        12250000,
    ]


def test_float32_loses_its_first_micro() -> None:
    """Every amount below the first one that is lost survives: all sixteen million are tried."""
    micro = np.arange(1, 16_000_002)
    unit = np.float32(UNIT)
    stored = np.rint((micro / UNIT).astype(np.float32).astype(np.float64) * UNIT)
    wholly = np.rint((micro.astype(np.float32) / unit * unit).astype(np.float64))
    assert micro[stored != micro].tolist() == [16000001]
    assert micro[wholly != micro][0] == 8000007
    assert through_float32(16000001) != 16000001 != in_float32(16000001)
    assert through_float32(16000000) == 16000000 == through_float32(8000007) + 7999993
    assert in_float32(8000007) != 8000007
    assert in_float32(8000006) == 8000006


def test_mutants_of_rounding_and_width_are_told() -> None:
    assert half_up(1, 2) == 1
    assert half_up(-5, 2) == -3
    assert truncated(7, 4) == 1
    assert multiply(1, 500000) == 0 != half_up(1 * 500000, UNIT)
    assert multiply(3, 500000) == 2 != truncated(3 * 500000, UNIT)
    wide = (5 * 10**12, 4 * 10**6)
    assert multiply(*wide) == 2 * 10**13 != multiply_in_64_bits(*wide)
    fills = [16_000_001, -16_000_000]
    assert sum(fills) == 1 != round(float_ledger(fills) * UNIT)
