"""Errata and coincidences beside the equations: well formed, and true on the inputs they name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.reference.test_power import SHAPES, flat, inputs
from trueup.reference import (
    BadDeclaration,
    Coincidence,
    Domain,
    Equation,
    Erratum,
    Family,
    NotApplicable,
    Symbol,
    catalogue,
    equation,
)
from trueup.reference.nl.errata import ERRATA, errata

EQUATIONS = catalogue()
COINCIDE = [
    pytest.param(entry, told, id=f"{entry.id}-{'='.join(told.forms)}-{told.family}")
    for entry in EQUATIONS
    for told in entry.coincide
    if told.family is not None
]
REAL = Domain("real")


def declare(**changes: Any) -> Any:
    fields: dict[str, Any] = {
        "title": "Doubling",
        "source": "a test",
        "axes": ("n",),
        "inputs": (Symbol("x", ("n",), REAL, "a vector"),),
        "outputs": (Symbol("y", ("n",), REAL, "twice the vector"),),
        "readings": {"twice": "2 x", "sum": "x + x"},
        "wrong": {"thrice": "3 x"},
        "families": (Family("zero", "0", lambda rng, sizes, values: values),),
        "register": False,
    }

    def double(x: Any, *, reading: str = "twice") -> Any:
        return 3 * x if reading == "thrice" else 2 * x

    return equation("test.double", **(fields | changes))(double)


def test_all_errata_of_the_paper_are_there_with_their_severity() -> None:
    severe = {"E5", "E7", "E9", "E14", "E16", "E17", "E18", "E19", "E20", "S-a", "S-b"}
    assert {entry.id for entry in ERRATA.values() if entry.severity == "A"} == severe
    assert {f"E{number}" for number in range(1, 26)} <= set(ERRATA)
    assert errata("E9", "E1") == (ERRATA["E9"], ERRATA["E1"])
    with pytest.raises(KeyError):
        errata("E26")


def test_every_erratum_of_the_print_stands_at_an_equation() -> None:
    used = {entry.id for declared in EQUATIONS for entry in declared.errata}
    assert used >= {f"E{number}" for number in range(1, 26)}


def test_every_numbered_equation_of_the_print_is_listed() -> None:
    """Eq. 2 is a definition without an algorithm: it is listed with its first step, Eq. 3-4."""
    print_ = [entry for entry in EQUATIONS if entry.source == "Nested Learning, NeurIPS 2025"]
    numbers = {number for entry in print_ for number in entry.numbers}
    assert numbers == {str(number) for number in range(1, 32)}


def test_what_only_the_preprint_has_says_so_in_source_and_grade() -> None:
    for entry in EQUATIONS:
        assert ("preprint" in entry.source) == (entry.grade.startswith("preprint")), entry.id


@pytest.mark.parametrize(("entry", "told"), COINCIDE)
def test_forms_coincide_on_the_family_that_is_said_to_draw_it(
    entry: Equation, told: Coincidence, draw: Any
) -> None:
    family = next(family for family in entry.families if family.name == told.family)
    compared = 0
    for shape in SHAPES:
        values = inputs(entry, family, shape, draw)
        results = []
        for name in told.forms:
            try:
                results.append(flat(entry.call(name, **values)))
            except NotApplicable:
                continue
        for one, two in pairwise(results):
            scale = 1.0 + float(np.max(np.abs(one)))
            np.testing.assert_allclose(one, two, atol=1e-9 * scale)
            compared += 1
    assert compared


def test_names_may_come_with_their_formulas() -> None:
    entry = declare().__equation__
    assert entry.readings == ("twice", "sum")
    assert entry.wrong == ("thrice",)
    assert entry.default_reading == "twice"
    assert dict(entry.formulas) == {"twice": "2 x", "sum": "x + x", "thrice": "3 x"}
    assert dict(declare(wrong=("thrice",)).__equation__.formulas) == {
        "twice": "2 x",
        "sum": "x + x",
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: Erratum("E1", "D", "x"), "no such severity", id="severity"),
        pytest.param(lambda: Erratum("E1", "A", " "), "without words", id="no-words"),
        pytest.param(
            lambda: declare(errata=(Erratum("E1", "A", "x"), Erratum("E1", "B", "y"))),
            "twice",
            id="erratum-twice",
        ),
        pytest.param(
            lambda: declare(coincide=(Coincidence(("twice", "half"), "x = 0"),)),
            "half",
            id="unknown-form",
        ),
        pytest.param(
            lambda: declare(coincide=(Coincidence(("twice",), "x = 0"),)),
            "two known forms",
            id="one-form",
        ),
        pytest.param(
            lambda: declare(coincide=(Coincidence(("twice", "thrice"), "x = 0", "none"),)),
            "undeclared family",
            id="unknown-family",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(make: Any, message: str) -> None:
    with pytest.raises(BadDeclaration, match=message):
        make()


def test_a_coincidence_on_a_declared_family_is_kept() -> None:
    told = Coincidence(("twice", "thrice"), "x = 0", "zero")
    assert declare(coincide=(told,)).__equation__.coincide == (told,)


@pytest.mark.parametrize("entry", EQUATIONS, ids=[entry.id for entry in EQUATIONS])
def test_every_wrong_variant_says_what_it_computes(entry: Equation) -> None:
    assert [name for name in entry.wrong if not entry.formulas.get(name, "").strip()] == []
