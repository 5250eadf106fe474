"""References as users write them are followed: nothing computes in plain floats unseen."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy
import numpy as np
import pytest
from numpy import exp, zeros

from trueup.oracle.bounds import Evaluation, Evaluator, Precision

Array = Any
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32).astype(np.float64)
DECAY = 0.9
TABLE = np.array([0.1, 0.2, 0.3, 0.4, 0.7, 0.6])


def evaluation(form: Callable[..., Any], outputs: int = 1, **inputs: Any) -> Evaluation:
    inputs = inputs or {"x": X}
    return Evaluator([form], inputs, Precision(), ["f32"] * outputs, seed=0).evaluation()


def rounded(e: Evaluation) -> bool:
    """Every element of every output carries more than the rounding of the output."""
    return all(bool((a.spread > 0).all()) for output in e.outputs for a in output)


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def helper(x: Array) -> Array:
    return x * DECAY


@logged
def decorated(x: Array) -> Array:
    return helper(x) + np.float64(0.1) * x


def closing(scale: float) -> Callable[..., Any]:
    def inner(x: Array) -> Array:
        return (1.0 - scale) * x

    return inner


def by_name(x: Array) -> Array:
    out = zeros(x.shape[1])
    for row in x:
        out += exp(row)
    return out


def by_module(x: Array) -> Array:
    out = numpy.empty_like(x)
    for i in range(len(x)):
        out[i] = numpy.tanh(x[i])
    return out


def through_float(x: Array) -> Array:
    e = np.exp(x)
    return np.asarray(math.log(float(e.sum()))) + np.zeros(1)


def through_max(x: Array) -> Array:
    return np.array([max(float(x[0, 0]) * 0.1, -3.0), min(x[0, 1] * 0.1, 3.0)])


def typed(x: Array) -> Array:
    out = np.zeros(x.shape, dtype=np.float64)
    out[:] = np.asarray(x, dtype=float) * np.float64(0.1)
    assert isinstance(out, np.ndarray)
    assert isinstance(float(out[0, 0]), float)
    return out.astype(np.float64)


def lists(x: Array) -> Array:
    rows = [x[i] * 0.1 for i in range(len(x))]
    total = sum(rows)
    return np.concatenate([np.stack(rows), [total], [[float(x[0, 0] * 0.3)] * 6]])


def slices(x: Array) -> Array:
    out = np.ones((4, 6))
    out[1:, ::2] *= 0.3 * x[1:, ::2]
    out[0] += 0.1 * x[0]
    out[1:, 1::2] -= 0.1 * x[1:, 1::2]
    return np.sort(out, axis=1)[:, ::-1]


def table(x: Array) -> Array:
    return x * TABLE


def counted(x: Array) -> Array:
    share = np.mean(x > 0) / 3.0
    count = np.arange(6) / 7.0
    return share * np.ones(6) + count * 0.1 + (x > 0).sum() / 3.0


def scalar_only(alpha: float) -> Array:
    return np.array([(1 - alpha) * 3.0, alpha / 3.0])


def default_argument(x: Array, eps: float = 0.1) -> Array:
    return x + (1.0 + eps) / 3.0


def recursive(x: Array, depth: int = 3) -> Array:
    return x * 1.1 if depth == 0 else recursive(x * 1.1, depth - 1)


def comprehension(x: Array) -> Array:
    return np.array([[float(v) * 0.1 for v in row] for row in x])


def iterated(x: Array) -> Array:
    return np.vectorize(lambda v: v * v)(x)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(decorated, id="decorator, helper, global"),
        pytest.param(closing(0.1), id="closure"),
        pytest.param(by_name, id="from numpy import"),
        pytest.param(by_module, id="import numpy"),
        pytest.param(through_float, id="float and math.log"),
        pytest.param(through_max, id="max and min"),
        pytest.param(typed, id="dtypes and isinstance"),
        pytest.param(lists, id="lists and sum"),
        pytest.param(slices, id="in-place slices"),
        pytest.param(table, id="array of the module"),
        pytest.param(counted, id="counts"),
        pytest.param(default_argument, id="default argument"),
        pytest.param(recursive, id="recursion"),
        pytest.param(comprehension, id="comprehension"),
        pytest.param(iterated, id="vectorize"),
        pytest.param(lambda x: x * 0.1, id="lambda"),
    ],
)
def test_a_reference_is_followed(form: Callable[..., Any]) -> None:
    e = evaluation(form)
    assert not any("inputs only" in note for note in e.notes), e.notes
    assert rounded(e)
    plain = form(x=X.copy())
    np.testing.assert_array_equal(e.values[0], plain)


def test_scalars_carry_rounding() -> None:
    assert rounded(evaluation(scalar_only, alpha=float(np.float32(0.1))))


def test_a_partial_with_a_float_is_followed() -> None:
    form = functools.partial(lambda x, alpha, power: (1 - alpha) * x**power, alpha=0.1, power=2)
    e = evaluation(form)
    assert rounded(e)


def test_integers_stay_indices() -> None:
    def gather(x: Array, n: int, i: Array) -> Array:
        out = np.zeros(n)
        for k in range(n):
            out[k] = x[i[k] % 4, k + 1] * 0.1
        return out[np.argsort(i)[::-1]]

    e = evaluation(gather, x=X, n=3, i=np.array([2, 0, 5]))
    assert rounded(e)


def test_several_outputs() -> None:
    e = evaluation(lambda x: (x * 0.1, np.exp(x)), 2)
    assert rounded(e)
    assert len(e.outputs) == 2


def test_inputs_are_left_alone() -> None:
    def writes(x: Array) -> Array:
        x *= 2.0
        return x * 0.1

    kept = X.copy()
    evaluation(writes, x=X)
    np.testing.assert_array_equal(X, kept)


def test_numpy_is_not_patched() -> None:
    before = (np.zeros, np.exp, math.log, float, max)
    evaluation(decorated)
    assert before == (np.zeros, np.exp, math.log, float, max)
    assert type(np.zeros(2)) is np.ndarray


def test_a_reference_may_round_by_itself() -> None:
    def form(x: Array) -> Array:
        eps = np.finfo(np.float64).eps
        return (x * 0.1).astype(np.float32).astype(np.float64) * 3.0 + eps

    e = evaluation(form)
    assert not e.notes
    np.testing.assert_array_equal(e.values[0], form(X))


def test_a_module_that_shares_its_name_with_pythons_is_followed() -> None:
    names: dict[str, Any] = {"__name__": "code"}
    exec("import numpy as np\ndef form(x):\n    return np.full(x.shape, 0.1) * x\n", names)
    e = evaluation(names["form"])
    assert not e.notes
    assert rounded(e)
