from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from trueup.oracle.bounds.formats import format_of
from trueup.oracle.bounds.orders import ORDERS, ordered_matmul, ordered_sum

F32 = np.float32
SINGLE = format_of("f32")
RNG = np.random.default_rng(1)


def sequential(x: list[np.float32]) -> np.float32:
    total = x[0]
    for term in x[1:]:
        total = F32(total + term)
    return total


def tree(x: list[np.float32]) -> np.float32:
    while len(x) > 1:
        half = len(x) // 2
        rest = x[2 * half :]
        x = [F32(a + b) for a, b in zip(x[:half], x[half : 2 * half], strict=True)] + rest
    return x[0]


def lanes(count: int) -> Callable[[list[np.float32]], np.float32]:
    def add(x: list[np.float32]) -> np.float32:
        if len(x) <= count:
            return tree(x)
        padded = x + [F32(0)] * (-len(x) % count)
        return tree([sequential(padded[i::count]) for i in range(count)])

    return add


BY_HAND = {
    "sequential": sequential,
    "reversed": lambda x: sequential(x[::-1]),
    "pairwise": tree,
    "lanes32": lanes(32),
    "lanes256": lanes(256),
}


@pytest.mark.parametrize("outputs", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [1, 2, 31, 33, 300])
@pytest.mark.parametrize("order", BY_HAND)
def test_sums_are_those_of_a_float32_loop(order: str, n: int, outputs: int) -> None:
    terms = RNG.normal(size=(outputs, n)).astype(F32)
    got = ordered_sum(terms.astype(np.float64), order, SINGLE)
    assert got.tolist() == [float(BY_HAND[order](list(row))) for row in terms]


def test_the_orders_differ() -> None:
    terms = RNG.normal(size=(1, 1000)).astype(F32).astype(np.float64)
    sums = {order: float(ordered_sum(terms, order, SINGLE, seed=3)[0]) for order in ORDERS}
    assert len(set(sums.values())) >= 5


@pytest.mark.parametrize("order", ["sequential", "pairwise", "lanes32"])
def test_bf16_sums_round_after_every_addition(order: str) -> None:
    fmt = format_of("bf16")
    terms = fmt.round(RNG.normal(size=(3, 40)))
    got = ordered_sum(terms, order, fmt)
    assert fmt.represents(got).all()
    if order == "sequential":
        total = terms[:, 0]
        for column in terms[:, 1:].T:
            total = fmt.round(total + column)
        np.testing.assert_array_equal(got, total)


def by_hand(a: NDArray[np.float32], b: NDArray[np.float32], order: str) -> NDArray[np.float64]:
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = BY_HAND[order]([F32(x * y) for x, y in zip(a[i], b[:, j], strict=True)])
    return out


@pytest.mark.parametrize("order", ["sequential", "reversed", "lanes32"])
@pytest.mark.parametrize("small", [True, False])
def test_products_are_those_of_float32_loops(
    order: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trueup.oracle.bounds import orders

    if not small:  # the way that large products take
        monkeypatch.setattr(orders, "ALL_PRODUCTS", 0)
    a, b = RNG.normal(size=(3, 70)).astype(F32), RNG.normal(size=(70, 2)).astype(F32)
    got = ordered_matmul(a.astype(float), b.astype(float), order, SINGLE)
    np.testing.assert_array_equal(got, by_hand(a, b, order))


def test_fused_products_round_once_a_step() -> None:
    a, b = RNG.normal(size=(1, 50)).astype(F32), RNG.normal(size=(50, 1)).astype(F32)
    total = Fraction(0)
    for x, y in zip(a[0], b[:, 0], strict=True):
        exact = total + Fraction(float(x)) * Fraction(float(y))
        total = Fraction(float(F32(float(exact))))
    got = ordered_matmul(a.astype(float), b.astype(float), "fma", SINGLE)
    assert Fraction(float(got[0, 0])) == total


def test_an_empty_sum_is_zero() -> None:
    assert ordered_sum(np.zeros((3, 0)), "lanes32", SINGLE).tolist() == [0, 0, 0]
    assert ordered_matmul(np.zeros((2, 0)), np.zeros((0, 3)), "blas", SINGLE).shape == (2, 3)
