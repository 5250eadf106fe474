"""Discrete steps: a close decision may go either way, a clear one may not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trueup.oracle.bounds import Evaluation, Evaluator, Precision, judge
from trueup.oracle.bounds.tape import Tape

Array = Any
F32 = np.float32
U = 2.0**-24
RNG = np.random.default_rng(0)


def evaluation(form: Callable[..., Any], dtypes: Any = ("f32",), **inputs: Any) -> Evaluation:
    return Evaluator([form], inputs, Precision(), dtypes, seed=0).evaluation()


def best(q: Array, w: Array) -> Array:
    return np.argmax(q @ w, axis=-1)


def test_a_near_tie_of_argmax_may_go_either_way() -> None:
    q = np.array([0.1, 1.1, 2.3]).astype(F32).astype(float)

    def first(q: Array) -> Array:
        return np.argmax(np.stack([q * 0.1 + q, q * 1.1, q]), axis=0)

    tie = evaluation(first, ("i32",), q=q)
    for index in (0, 1):
        (judged,) = judge(tie, [np.full(3, index)])
        assert judged.passed
    assert judge(tie, [np.full(3, 2)])[0].failed.all()


def test_a_clear_argmax_has_one_answer() -> None:
    q = RNG.normal(size=(9, 5)).astype(F32).astype(float)
    w = RNG.normal(size=(5, 4)).astype(F32).astype(float)
    e = evaluation(best, ("i32",), q=q, w=w)
    right = best(q, w)
    assert judge(e, [right])[0].passed
    assert judge(e, [(right + 1) % 4])[0].failed.all()


def test_exact_ties_keep_the_lowest_index() -> None:
    q = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]])
    e = evaluation(lambda q: np.argmax(q, axis=1), ("i32",), q=q)
    assert judge(e, [np.array([1, 0])])[0].passed
    assert judge(e, [np.array([2, 0])])[0].failed.tolist() == [True, False]


def test_floor_at_a_step() -> None:
    x = np.array([0.3, 0.35, 0.7]).astype(F32).astype(float)
    tenth = float(F32(0.1))
    e = evaluation(lambda x, tenth: np.floor(x / tenth), ("i32",), x=x, tenth=tenth)
    single = np.floor(x.astype(F32) / F32(0.1))
    assert judge(e, [single.astype(np.int64)])[0].passed
    for either in ([3, 3, 7], [2, 3, 6], [2, 3, 7]):
        assert judge(e, [np.array(either)])[0].passed
    assert judge(e, [np.array([3, 4, 7])])[0].failed[1]


def gate(x: Array, w: Array) -> tuple[Array, Array]:
    h = x @ w
    return np.maximum(h, 0.0), np.where(h > 0, w.sum(axis=0), 0.0)


def test_a_mask_on_the_kink_may_be_open_or_shut() -> None:
    """x·w is 0 exactly in real numbers and not in float32."""
    x = np.array([[0.1, 0.2, -0.3]]).astype(F32).astype(float)
    w = np.array([[3.0], [0.0], [0.0]])
    w[1, 0] = float(F32(-3.0 * x[0, 0] / x[0, 1]))
    e = evaluation(gate, ("f32", "f32"), x=x, w=w)
    slope = w.sum(axis=0)[None]
    h = np.maximum(x @ w, 0.0)
    for gradient in (0.0 * slope, slope):
        judged = judge(e, [h.astype(F32).astype(float), gradient.astype(F32).astype(float)])
        assert judged[1].passed
    judged = judge(e, [h.astype(F32).astype(float), 0.5 * slope])
    assert judged[1].failed.all()


def test_an_if_is_taken_both_ways() -> None:
    def clipped(x: Array) -> Array:
        total = x.sum()
        if total > 0:
            return x * 2.0
        return x * 3.0

    x = np.array([0.1, 0.2, -0.3]).astype(F32).astype(float)
    x[2] = -float(F32(x[0] + x[1]))
    e = evaluation(clipped, x=x)
    for factor in (2.0, 3.0):
        assert judge(e, [(factor * x).astype(F32).astype(float)])[0].passed
    assert judge(e, [2.5 * x])[0].failed.any()


def test_the_place_in_a_cumulative_sum() -> None:
    p = np.full(10, 0.1).astype(F32).astype(float)
    u = np.array([0.05, 0.3, 0.55]).astype(F32).astype(float)

    def sample(p: Array, u: Array) -> Array:
        return np.searchsorted(np.cumsum(p), u, side="right")

    e = evaluation(sample, ("i32",), p=p, u=u)
    single = np.searchsorted(np.add.accumulate(p.astype(F32)), u.astype(F32), side="right")
    assert judge(e, [single])[0].passed
    for middle in (2, 3):
        assert judge(e, [np.array([0, middle, 5])])[0].passed
    assert judge(e, [np.array([0, 4, 5])])[0].failed.tolist() == [False, True, False]


def test_order_of_near_equal_keys() -> None:
    x = np.array([0.3, 0.1, 0.2]).astype(F32).astype(float)

    def order(x: Array) -> Array:
        return np.argsort(np.concatenate([x * 3.0, x * 0.1 + x * 2.9]))

    e = evaluation(order, ("i32",), x=x)
    natural = order(x)
    swapped = natural.reshape(3, 2)[:, ::-1].reshape(-1)
    assert judge(e, [natural])[0].passed
    assert judge(e, [swapped])[0].passed
    assert judge(e, [natural[::-1].copy()])[0].failed.any()


def test_sorted_values_need_no_decision() -> None:
    x = RNG.normal(size=(3, 20)).astype(F32).astype(float)
    e = evaluation(lambda x: np.sort(x * 1.1, axis=1), x=x)
    single = np.sort(x.astype(F32) * F32(1.1), axis=1)
    assert e.outcomes == 1
    assert judge(e, [single.astype(float)])[0].passed


def test_more_close_decisions_than_outcomes_are_not_judged() -> None:
    """Twelve independent coin flips feed one integer: 64 outcomes cannot try all sums."""
    x = np.full(12, 0.3).astype(F32).astype(float)

    def code(x: Array) -> Array:
        bits = (x * 3.0 > x * 0.1 + x * 2.9).astype(np.int64)
        return np.sum(bits * 2 ** np.arange(12))

    e = Evaluator([code], {"x": x}, Precision(), ["i32"], seed=0)
    confirmed = e.confirmed()
    assert not confirmed.exhaustive
    assert any("close decisions" in note for note in confirmed.notes)
    tried = {int(a.value) for a in confirmed.outputs[0]}
    untried = next(n for n in range(4096) if n not in tried)
    (judged,) = judge(confirmed, [np.array(untried)])
    assert judged.not_judged.all()
    assert not judged.passed
    assert not judged.failed.any()


@pytest.mark.parametrize("kinds", [(2, 3), (2, 2, 2)])
def test_few_decisions_are_tried_in_every_combination(kinds: tuple[int, ...]) -> None:
    seen = set()
    for outcome in range(math.prod(kinds)):
        tape = Tape(outcome, every=True)
        taken: list[Any] = [tape.choose(np.array([kind, 1])) for kind in kinds]
        seen.add(tuple(0 if t is None else t.tolist()[0] for t in taken))
    assert len(seen) == math.prod(kinds)


def test_a_tape_repeats_what_it_took() -> None:
    tape = Tape(3, seed=4)
    options = np.full(50, 2)
    first = tape.choose(options)
    second = tape.choose(options)
    tape.replay()
    np.testing.assert_array_equal(tape.choose(np.ones(50, dtype=int)), first)
    np.testing.assert_array_equal(tape.choose(options), second)


def test_a_flipped_decision_that_leaves_the_array_is_noted() -> None:
    z = np.full(3, 0.1).astype(F32).astype(float)

    def cell(z: Array, t: Array) -> Array:
        place = np.searchsorted(np.cumsum(z * 1.1), t)
        return z[place] * 0.7

    t = np.array([float(np.cumsum(z * 1.1)[-1])])
    t = t.astype(F32).astype(float) - 2.0**-24
    e = evaluation(cell, z=z, t=t)
    assert e.outcomes == 2
    assert any("outcome 1" in note and "IndexError" in note for note in e.notes)
    assert judge(e, [z[2:] * 0.7])[0].passed
