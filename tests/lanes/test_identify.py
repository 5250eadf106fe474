"""Which form of the equation a kernel follows: ranked, and told where forms cannot be told apart.

The reference of these tests has the readings `shifted` (a x + 1) and `plain` (a x) and the wrong
variant `squared` (a x^2 + 1).
"""

from __future__ import annotations

import math

import pytest

from tests.lanes.conftest import REFERENCE, Make
from trueup.oracle.contract import Contract
from trueup.oracle.errors import OracleError
from trueup.oracle.identify import Identification, identify
from trueup.oracle.verdict import Outcome
from trueup.oracle.verify import open_session, verify

SHIFTED = "y[...] = a * x + np.float32(1)"
PLAIN = "y[...] = a * x"
SQUARED = "y[...] = a * x * x + np.float32(1)"
NEITHER = "y[...] = a * x + np.float32(5)"


def found(contract: Contract, case: str | None = None, seed: int = 0) -> Identification:
    return identify(open_session(contract, "python").session, case, seed)


@pytest.mark.parametrize(
    ("body", "best", "kind"),
    [
        pytest.param(SHIFTED, "shifted", "reading", id="declared"),
        pytest.param(PLAIN, "plain", "reading", id="another-reading"),
        pytest.param(SQUARED, "squared", "wrong variant", id="wrong-variant"),
    ],
)
def test_a_kernel_is_recognised_by_its_form(make: Make, body: str, best: str, kind: str) -> None:
    result = found(make(body))
    first, *others = result.ranking
    assert (result.best, first.form, first.kind) == (best, best, kind)
    assert result.fitting == (best,)
    assert first.ratio <= 1
    assert first.explained == first.cases == len(result.cases) > 10
    assert all(fit.ratio > 1e3 for fit in others)
    assert result.declared_fits is (best == "shifted")


def test_a_kernel_of_no_known_form_has_a_nearest_one_that_does_not_fit(make: Make) -> None:
    result = found(make(NEITHER))
    assert result.fitting == ()
    assert not result.declared_fits
    assert result.best == result.ranking[0].form
    assert result.ranking[0].ratio > 1e3
    order = [(-fit.explained, fit.ratio) for fit in result.ranking]
    assert order == sorted(order)


def test_forms_that_coincide_on_the_inputs_are_all_named_the_declared_one_first(
    make: Make,
) -> None:
    """Where x is 0 or 1, x^2 = x: `squared` and `shifted` are the same numbers."""
    blind = REFERENCE.replace('real = Domain("real", -2.0, 2.0)', 'real = Domain("mask")')
    result = found(make(SHIFTED, reference=blind))
    assert result.fitting == ("shifted", "squared")
    result = found(make(SHIFTED, reference=blind.replace('("shifted", "plain")', '("plain",)')
        .replace('wrong=("squared",)', 'wrong=("squared", "shifted")')
        .replace('reading="shifted"', 'reading="plain"')))  # fmt: skip
    assert set(result.fitting) == {"shifted", "squared"}
    assert result.declared == "plain"
    assert not result.declared_fits


def test_a_form_without_meaning_explains_nothing(make: Make) -> None:
    """`squared` refuses everything but one element: it is not counted as a match elsewhere."""
    reference = REFERENCE.replace(
        'if reading == "squared":',
        'if reading == "squared" and x.size != 5:\n'
        "        from trueup.reference import NotApplicable\n"
        '        raise NotApplicable("user.scale", reading, "5 elements")\n'
        '    if reading == "squared":',
    )
    result = found(make(SQUARED, reference=reference))
    squared = next(fit for fit in result.ranking if fit.form == "squared")
    assert squared.explained == squared.cases == 1
    assert result.fitting == ()
    only = found(make(SHIFTED, reference=reference), case="n=7/unit")
    absent = next(fit for fit in only.ranking if fit.form == "squared")
    assert (absent.cases, absent.ratio) == (0, math.inf)


def test_a_form_that_explains_most_cases_is_ahead_of_nearer_ones(make: Make) -> None:
    """`plain` everywhere but where the first element is exactly 0, where it says 1e9."""
    result = found(make(f"{PLAIN}\nif (x == 0).any(): y[:1] = 1e9"))
    first, *others = result.ranking
    assert first.form == "plain"
    assert len(result.cases) / 2 < first.explained < len(result.cases)
    assert first.ratio > max(fit.ratio for fit in others if math.isfinite(fit.ratio))
    assert result.fitting == ()


def test_one_case_and_seed_can_be_chosen(make: Make) -> None:
    result = found(make(PLAIN), case="n=33/unit", seed=7)
    assert result.cases == ("n=33/unit",)
    assert result.elements == 33
    assert result.best == "plain"
    with pytest.raises(OracleError, match="case"):
        found(make(PLAIN), case="n=33/nosuch")


def test_a_kernel_that_faults_everywhere_cannot_be_identified(make: Make) -> None:
    with pytest.raises(OracleError, match="no run ended without a fault") as caught:
        found(make("raise ValueError('no')"))
    assert "trueup verify" in str(caught.value)


def test_faults_in_some_cases_leave_those_out_and_are_noted(make: Make) -> None:
    body = f"{PLAIN}\nif x.size == 5: x[:1] = 0"
    result = found(make(body))
    assert result.best == "plain"
    assert all("n=5/" not in case for case in result.cases)
    assert any("ended in a fault" in note for note in result.notes)


def test_a_form_that_breaks_is_the_references_fault_with_its_line(make: Make) -> None:
    broken = REFERENCE.replace("return a * x * x + 1.0", "return a / {}")
    with pytest.raises(OracleError, match=r"ref\.py:18: the reference raised TypeError"):
        found(make(SHIFTED, reference=broken))


def test_a_reference_of_one_form_says_that_there_is_nothing_to_compare(make: Make) -> None:
    result = found(make(SHIFTED, reference="def scale(x, a):\n    return a * x + 1.0\n"))
    assert [fit.form for fit in result.ranking] == ["default"]
    assert result.declared_fits
    assert any("no other reading" in note for note in result.notes)


def test_progress_counts_cases_then_forms(make: Make) -> None:
    told: list[tuple[str, int, int]] = []
    session = open_session(make(PLAIN), "python").session
    result = identify(session, progress=lambda *words: told.append(words))
    names = [name for name, _, _ in told]
    assert names == [*result.cases, "shifted", "plain", "squared"]
    assert [done for _, done, _ in told] == list(range(len(told)))
    assert {total for _, _, total in told} == {len(told)}


@pytest.mark.parametrize("name", ["numeric", "exact"])
def test_a_failing_lane_names_the_form_and_keeps_it_as_data(make: Make, name: str) -> None:
    (lane,) = verify([make(PLAIN)], "python", [name]).contracts[0].lanes
    assert lane.verdict is Outcome.FAIL
    assert lane.matches == ("plain",)
    assert "matches `plain`" in lane.findings[0].fix


def test_a_failing_verification_names_the_nearest_form_where_none_explains_it(make: Make) -> None:
    """a x + 1e-3 is nearer to `plain` than to the declared `shifted`, and is neither."""
    contract = make("y[...] = a * x + np.float32(1e-3)")
    (lane,) = verify([contract], "python", ["numeric"]).contracts[0].lanes
    assert lane.matches == ()
    assert "matches" not in lane.findings[0].fix
    note = next(note for note in lane.notes if "nearest" in note)
    assert "nearest: `plain`" in note
    assert "declared `shifted`" in note
    (lane,) = verify([make(NEITHER)], "python", ["numeric"]).contracts[0].lanes
    assert not any("nearest" in note for note in lane.notes)
