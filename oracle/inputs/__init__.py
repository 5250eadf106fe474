"""Cases: the sizes, input families and seeds under which a kernel is compared."""

from trueup.oracle.inputs.cases import (
    Case,
    Draw,
    all_sizes,
    draw,
    few_cases,
    long_cases,
    numeric_cases,
    parse_case,
    with_native,
)

__all__ = [
    "Case",
    "Draw",
    "all_sizes",
    "draw",
    "few_cases",
    "long_cases",
    "numeric_cases",
    "parse_case",
    "with_native",
]
