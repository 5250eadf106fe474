"""Rules on evaluations as laws: what is computed by hand holds, whatever the numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trueup.gates.documents.model import Answer, Document, Subject
from trueup.gates.documents.run import Run
from trueup.gates.errors import ProfileError
from trueup.gates.evals.checks import CHECKS
from trueup.gates.evals.numbers import decimals
from trueup.gates.profile.load import parse_profile
from trueup.gates.profile.rules import Profile, Rule

PROFILE = """
[profile]
id = "mine"
summary = "evaluations"
include = ["evals"]
"""


def profile(text: str = "") -> Profile:
    return parse_profile((PROFILE + text).encode(), "mine.toml")


OWN = profile()
LAW = settings(deadline=None)
RULES = {rule.check: rule for rule in OWN.rules}
RUN = {check.name: check.run for check in CHECKS}
NOWHERE = Path("/nonexistent")
unit = st.floats(0, 1)
counts = st.integers(1, 10**6)


def ask(check: str, data: Any, **params: Any) -> Answer:
    """One rule over one document that is in no run directory."""
    rule: Rule = RULES[check]
    if params:
        rule = replace(rule, params={**rule.params, **params})
    run = Run(NOWHERE, "nowhere", OWN)
    subject = Subject("it.json", "eval", NOWHERE / "it.json", Document(data, "JSON", 1), run)
    run.subjects.append(subject)
    return RUN[check](subject, rule)


def said(answer: Answer) -> str:
    """true, false, undetermined, or why it did not apply."""
    if not answer.read:
        return "not_applied"
    statuses = {flaw.status for flaw in answer.flaws}
    return "false" if "false" in statuses else next(iter(statuses), "true")


def own(kind: str, results: dict[str, Any], **head: Any) -> dict[str, Any]:
    return {"kind": kind, "results": results, **head}


def task(**parts: Any) -> dict[str, Any]:
    return own("zeroshot", {"tasks": [{"name": "piqa", **parts}]})


@LAW
@given(n=counts, data=st.data(), places=st.integers(4, 16))
def test_a_rounded_share_holds_and_one_answer_more_does_not(
    n: int, data: st.DataObject, places: int
) -> None:
    correct = data.draw(st.integers(0, n))
    accuracy = round(correct / n, places)
    holds = said(ask("eval_accuracy", task(n=n, correct=correct, accuracy=accuracy)))
    shown = max(4, decimals(accuracy))  # a trailing zero is not printed
    tells = Fraction(1, 2 * 10**shown) + Fraction(1, 1 << 24) < Fraction(1, 2 * n)
    assert holds == "true" if tells else holds in ("true", "undetermined")
    assume(tells)
    other = correct + 1 if correct < n else correct - 1
    assert said(ask("eval_accuracy", task(n=n, correct=other, accuracy=accuracy))) == "false"


@LAW
@given(n=st.integers(1, 10**5), data=st.data())
def test_a_share_in_single_precision_holds(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n))
    accuracy = float(np.float32(correct / n))
    assert said(ask("eval_accuracy", task(n=n, correct=correct, accuracy=accuracy))) == "true"


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        pytest.param({"n": 256, "correct": 127, "accuracy": 0.49609375}, "true", id="exact"),
        pytest.param({"n": 256, "correct": 127, "accuracy": 0.4961}, "true", id="four-decimals"),
        pytest.param({"n": 256, "correct": 127, "accuracy": 0.496}, "false", id="three-decimals"),
        pytest.param({"n": 256, "correct": 120, "accuracy": 0.5}, "false", id="half-is-not-0.47"),
        pytest.param({"n": 256, "correct": 128, "accuracy": 0.5}, "true", id="half"),
        pytest.param({"n": 10**5, "correct": 50_003, "accuracy": 0.5}, "undetermined", id="coarse"),
        pytest.param({"n": 3, "accuracy": 0.3333}, "true", id="uncounted-third"),
        pytest.param({"n": 3, "accuracy": 0.4}, "false", id="uncounted-0.4-of-3"),
        pytest.param({"n": 10**6, "accuracy": 0.4}, "not_applied", id="uncounted-too-coarse"),
        pytest.param({"n": 4, "correct": 2, "accuracy": 50.0}, "not_applied", id="percent"),
        pytest.param({"n": 0, "correct": 0, "accuracy": 0.0}, "not_applied", id="no-samples"),
    ],
)
def test_accuracy_against_counts(parts: dict[str, Any], status: str) -> None:
    assert said(ask("eval_accuracy", task(**parts))) == status


def test_decimals_can_be_declared() -> None:
    three = {"n": 256, "correct": 127, "accuracy": 0.496}
    assert said(ask("eval_accuracy", task(**three), decimals=3)) == "true"
    two = {"n": 256, "correct": 127, "accuracy": 0.5}
    assert said(ask("eval_accuracy", task(**two), decimals=2)) == "undetermined"


@LAW
@given(base=unit, after=unit, places=st.integers(4, 17))
def test_a_delta_holds_however_it_is_rounded_and_turned_it_does_not(
    base: float, after: float, places: int
) -> None:
    values = {"baseline": round(base, places), "memorized": round(after, places)}
    values["accuracy"] = values["memorized"]
    delta = round(after - base, places)
    assert said(ask("eval_delta", task(**values, delta=delta))) == "true"
    assume(abs(delta) > 4 * 10.0**-places + 1e-6)
    turned = ask("eval_delta", task(**values, delta=-delta))
    assert said(turned) == "false"
    assert "sign" in turned.flaws[0].got


@LAW
@given(base=st.floats(0, 20), after=st.floats(0, 20))
def test_less_is_an_improvement_of_a_loss(base: float, after: float) -> None:
    entry = {"checkpoint": "a.pt", "segment_losses": {"x": after}}
    pair = {"segment_baseline_losses": {"x": base}, "segment_memorize_delta": {"x": base - after}}
    assert said(ask("eval_delta", [{**entry, **pair}])) == "true"
    assume(abs(base - after) > 1e-3)
    pair["segment_memorize_delta"] = {"x": after - base}
    assert said(ask("eval_delta", [{**entry, **pair}])) == "false"


def test_what_is_reported_is_what_was_memorized() -> None:
    data = {"niah_2048": 0.5, "niah_2048_baseline_accuracy": 0.25,
            "niah_2048_memorize_accuracy": 0.5, "niah_2048_memorize_delta": 0.25}  # fmt: skip
    assert said(ask("eval_delta", data)) == "true"
    assert said(ask("eval_delta", data | {"niah_2048": 0.25})) == "false"


@LAW
@given(n=st.integers(2, 10**5), data=st.data(), by=st.sampled_from([0, 1]))
def test_a_standard_error_by_n_or_one_less_holds(n: int, data: st.DataObject, by: int) -> None:
    correct = data.draw(st.integers(0, n))
    p = correct / n
    stderr = math.sqrt(p * (1 - p) / (n - by))
    parts = {"n": n, "correct": correct, "accuracy": p}
    assert said(ask("eval_stderr", task(**parts, stderr=stderr))) == "true"
    assume(stderr > 1e-3)
    assert said(ask("eval_stderr", task(**parts, stderr=stderr * 1.5))) == "false"


@LAW
@given(counts=st.lists(st.tuples(st.integers(1, 500), unit), min_size=1, max_size=8))
def test_means_and_totals_are_those_of_numpy(counts: list[tuple[int, float]]) -> None:
    ns = np.array([n for n, _ in counts])
    right = np.array([round(share * n) for n, share in counts])
    tasks = [
        {"name": f"t{i}", "n": int(n), "correct": int(c), "accuracy": float(c / n)}
        for i, (n, c) in enumerate(zip(ns, right, strict=True))
    ]
    total = {"n": int(ns.sum()), "correct": int(right.sum())}
    by_task, by_sample = float(np.mean(right / ns)), float(right.sum() / ns.sum())
    for accuracy, weighting in ((by_task, "task"), (by_sample, "sample")):
        mean = {"accuracy": accuracy, "weighting": weighting}
        data = own("zeroshot", {"tasks": tasks, "total": total, "mean": mean})
        assert said(ask("eval_mean", data)) == said(ask("eval_counts", data)) == "true"
        assume(abs(by_task - by_sample) > 1e-3)
        mean["weighting"] = {"task": "sample", "sample": "task"}[weighting]
        assert said(ask("eval_mean", data)) == "false"
    data["results"]["total"] = {**total, "n": total["n"] + 1}
    assert said(ask("eval_counts", data)) == "false"


@LAW
@given(loss=st.floats(1, 80), tokens=st.integers(1, 10**9), width=st.floats(0.5, 8))
def test_perplexity_bits_and_total_follow_from_the_loss(
    loss: float, tokens: int, width: float
) -> None:
    length = math.ceil(tokens * width)
    loss += math.e / 1000  # so that it has many decimals
    values = {
        "loss": loss, "ppl": math.exp(loss), "tokens": tokens, "bytes": length,
        "nll": loss * tokens, "bits_per_token": loss / math.log(2),
        "bits_per_byte": loss * tokens / math.log(2) / length,
    }  # fmt: skip
    assert said(ask("eval_perplexity", own("pg19", values))) == "true"
    for key in ("ppl", "nll", "bits_per_token", "bits_per_byte"):
        assume(values[key] > 1)
        wrong = own("pg19", values | {key: values[key] * 1.001})
        assert said(ask("eval_perplexity", wrong)) == "false", key


@pytest.mark.parametrize(
    ("values", "status"),
    [
        pytest.param({"loss": 7.12, "ppl": 1236.45}, "true", id="rounded"),
        pytest.param({"loss": 7.12, "ppl": 1234.5}, "false", id="typed-by-hand"),
        pytest.param({"loss": 2.0, "ppl": 4.0}, "false", id="base-two"),
        pytest.param({"loss": 800.0, "ppl": 1e300}, "false", id="past-every-double"),
        pytest.param({"loss": 0.0, "ppl": 1.0}, "true", id="certain"),
        pytest.param({"loss": 2.0}, "not_applied", id="alone"),
        pytest.param({"loss": "2.0", "ppl": 4.0}, "not_applied", id="text"),
    ],
)
def test_perplexity(values: dict[str, Any], status: str) -> None:
    assert said(ask("eval_perplexity", own("pg19", values))) == status


@LAW
@given(
    count=st.integers(2, 5),
    metric=st.sampled_from(["accuracy", "loss"]),
    seed=st.integers(0, 10**6),
)
def test_transfer_is_that_of_numpy(count: int, metric: str, seed: int) -> None:
    """By arrays: forgetting after Chaudhry et al., transfer after Lopez-Paz and Ranzato."""
    rng = np.random.default_rng(seed)
    r, initial = rng.uniform(0, 1, (count, count)), rng.uniform(0, 1, count)
    sign = 1 if metric == "accuracy" else -1
    best = r[:-1].max(0) if sign > 0 else r[:-1].min(0)
    claims = {
        "average": r[-1].mean(),
        "forgetting": (sign * (best - r[-1]))[:-1].mean(),
        "backward_transfer": (sign * (r[-1] - np.diag(r)))[:-1].mean(),
        "forward_transfer": (sign * (np.diag(r, 1) - initial[1:])).mean(),
    }
    results = {
        "tasks": [f"t{j}" for j in range(count)], "metric": metric, "matrix": r.tolist(),
        "initial": initial.tolist(), **{name: float(value) for name, value in claims.items()},
    }  # fmt: skip
    assert said(ask("eval_transfer", own("continual", results))) == "true"
    for name in claims:
        wrong = own("continual", results | {name: results[name] + 0.001})
        assert said(ask("eval_transfer", wrong)) == "false", name


def test_one_stage_forgets_nothing_and_may_not_say_so() -> None:
    results = {"tasks": ["a"], "metric": "loss", "matrix": [[1.0]], "average": 1.0}
    assert said(ask("eval_transfer", own("continual", results))) == "true"
    claimed = ask("eval_transfer", own("continual", results | {"forgetting": 0.0}))
    assert said(claimed) == "false"
    assert "one stage only" in claimed.flaws[0].got


def test_forgetting_needs_what_each_task_had_from_its_own_stage_on() -> None:
    """What a task had before its own stage may be missing; the best after it may not."""
    matrix = [[0.9, None, None], [0.8, 0.7, None], [0.6, 0.5, 0.4]]
    results = {"tasks": ["a", "b", "c"], "metric": "accuracy", "matrix": matrix, "forgetting": 0.25}
    assert said(ask("eval_transfer", own("continual", results))) == "true"
    matrix[1][0] = None  # the best of `a` may have been here
    missing = ask("eval_transfer", own("continual", results))
    assert said(missing) == "false"
    assert "not every value it needs" in missing.flaws[0].got


@pytest.mark.parametrize(
    ("value", "places"),
    [(0.0156, 4), (1e-7, 7), (12, 0), (12.0, 0), (1.5e300, 0), (0.1 + 0.2, 17), (-0.25, 2)],
)
def test_decimals_are_those_that_are_printed(value: float, places: int) -> None:
    assert decimals(value) == places


def passkey(base: float, after: float, events: list[float], **more: Any) -> dict[str, Any]:
    stats = {f"level{i}_update_events": one for i, one in enumerate(events)}
    return {"samples": 4, "accuracy_base": base, "accuracy_memorize": after,
            "accuracy_delta": after - base, "path_stats": stats, "memorize_paths": "all",
            **more}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(passkey(0.5, 0.5, [3.0]), "not_applied", id="one-accuracy-tells-nothing"),
        pytest.param(passkey(0.5, 0.75, [3.0]), "true", id="moved"),
        pytest.param(passkey(1.0, 1.0, [3.0]), "undetermined", id="full-before"),
        pytest.param(
            {"samples": 1, "tokens": 9, "ppl_base": 7.5, "ppl_memorize": 7.5, "ppl_delta": 0.0},
            "not_applied", id="off",
        ),
    ],
)  # fmt: skip
def test_memorisation_that_moves_nothing(data: dict[str, Any], status: str) -> None:
    assert said(ask("eval_moved", data)) == status


def test_two_accuracies_that_stay_are_enough_and_the_profile_may_ask_for_more() -> None:
    part = {"n": 4, "correct": 2, "accuracy": 0.5, "baseline": 0.5, "memorized": 0.5}
    tasks = [{"name": "a", **part}, {"name": "b", **part}]
    data = own("zeroshot", {"tasks": tasks}, memorize={"enabled": True})
    assert said(ask("eval_moved", data)) == "false"
    assert said(ask("eval_moved", data, least=3)) == "not_applied"
    assert said(ask("eval_moved", {**data, "memorize": {"enabled": False}})) == "not_applied"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(passkey(0.5, 0.5, [0.0, 0.0]), "false", id="none"),
        pytest.param(passkey(0.5, 0.5, [0.0, 2.0]), "true", id="one-level"),
        pytest.param(passkey(0.5, 0.5, []), "not_applied", id="no-counts"),
        pytest.param(
            passkey(0.5, 0.5, [], path_stats={"cms_fast_updates": 0.0}), "false", id="norms-only"
        ),
        pytest.param(
            {"samples": 4, "accuracy_base": 0.5, "path_stats": {}}, "not_applied", id="off"
        ),
    ],
)
def test_updates(data: dict[str, Any], status: str) -> None:
    assert said(ask("eval_updates", data)) == status


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("check = 'eval_kinds'\nparams = { kinds = [] }", "expected a list of names"),
        ("check = 'eval_kinds'\nparams = { kinds = [1] }", "expected a list of names"),
        ("check = 'eval_not_training'\nparams = { columns = [''] }", "expected a list of names"),
        ("check = 'eval_delta'\nparams = { decimals = -1 }", "expected a number of 0 or more"),
        ("check = 'eval_delta'\nparams = { decimals = 4.5 }", "decimals, got 4.5"),
        ("check = 'eval_kinds'", "kinds, got nothing"),
        ("check = 'eval_kind'", "did you mean eval_kinds"),
    ],
)
def test_a_rule_with_unfit_parameters_is_refused(change: str, message: str) -> None:
    head = "[[rule]]\nid = 'OWN001'\non = 'eval'\nseverity = 'error'\nsummary = 's'\nwhy = 'w'\n"
    with pytest.raises(ProfileError, match=message):
        profile(f"{head}expected = 'e'\nfix = 'f'\n{change}\n")


def test_the_profile_can_ask_for_other_kinds() -> None:
    one = {"niah_2048": 0.5}
    assert said(ask("eval_kinds", one, kinds=["niah"])) == "true"
    assert said(ask("eval_kinds", one, kinds=["niah", "pg19"])) == "false"
