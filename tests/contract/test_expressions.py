"""The arithmetic of contracts: what it computes and what it refuses."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.contracts.expressions import ExpressionError, evaluate
from trueup.oracle.contract.expressions import parse
from trueup.oracle.errors import ContractError

NAMES = frozenset({"n", "m"})


@pytest.mark.parametrize(
    ("text", "sizes", "want"),
    [
        pytest.param("7", {}, 7, id="integer"),
        pytest.param(7, {}, 7, id="toml-integer"),
        pytest.param("ceil(n / 32)", {"n": 33}, 2, id="ceil"),
        pytest.param("n // 4 + n % 4", {"n": 11}, 5, id="floor-and-remainder"),
        pytest.param("max(1, min(n, m) - 2)", {"n": 9, "m": 4}, 2, id="min-max"),
        pytest.param("-n + 2 * m", {"n": 3, "m": 5}, 7, id="minus"),
        pytest.param("4 * ceil(n / 3) / 2", {"n": 4}, 4, id="exact-division"),
        pytest.param(
            "ceil(n / 3)", {"n": 3 * 2**60 + 1}, 2**60 + 1, id="no-rounding-beyond-float64"
        ),
    ],
)
def test_value(text: str | int, sizes: dict[str, int], want: int) -> None:
    assert parse(text, NAMES, "here").value(sizes) == want


@given(n=st.integers(1, 10**12), tile=st.integers(1, 4096))
def test_ceil_agrees_with_integer_arithmetic(n: int, tile: int) -> None:
    assert parse(f"ceil(n / {tile})", NAMES, "here").value({"n": n}) == -(-n // tile)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "n.bit_length()",
        "n ** 9999999",
        "[n][0]",
        "n if n else m",
        "'n'",
        "1.5",
        "True",
        "floor(n)",
        "ceil(n, 2)",
        "max()",
        "ceil(x=n)",
        "lambda: 1",
        "n;m",
        "",
        "(",
        "9" * 500,
    ],
)
def test_refuses_what_is_not_arithmetic(text: str) -> None:
    with pytest.raises(ContractError, match="here"):
        parse(text, NAMES, "here")


def test_unknown_name_says_which_names_there_are() -> None:
    with pytest.raises(ContractError, match=r"uses d_inn.*expected one of m, n"):
        parse("d_inn + n", NAMES, "here")


def test_fraction_and_division_by_zero_are_errors_of_the_contract() -> None:
    with pytest.raises(ContractError, match="not a whole number"):
        parse("n / 2", NAMES, "here").value({"n": 3})
    with pytest.raises(ContractError, match="divides by zero"):
        parse("n // m", NAMES, "here").value({"n": 3, "m": 0})


def test_constants_are_found_for_boundary_shapes() -> None:
    assert sorted(parse("ceil(n / 32) * 8", NAMES, "here").constants()) == [8, 32]


def test_value_is_rational_until_the_end() -> None:
    assert parse("n / 3 * 3", NAMES, "here").value({"n": 10}) == 10
    assert math.ceil(10 / 3) == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [("ceil(n / 4)", 2), ("min(n, 3) * -2", -6), ("n // 2 + n % 3", 4), ("max(1, n - 9)", 1)],
)
def test_without_a_contract_by_hand(text: str, value: int) -> None:
    assert evaluate(text, {"n": 7}) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("n / 4", "not a whole number: got 7/4"),
        ("m + n", "nothing gives `m \\+ n` a m"),
        ("n // (n - 7)", "divides by zero"),
        ("n ** 2", "expected integers, axes"),
        ("1 +", "cannot parse"),
        ("True", "expected integers, axes"),
    ],
)
def test_without_a_contract_a_refusal_tells_the_same(text: str, told: str) -> None:
    with pytest.raises(ExpressionError, match=told):
        evaluate(text, {"n": 7})
