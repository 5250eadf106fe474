"""The sum tree's kernels on trees of many levels: bit for bit, by both of their launches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import trueup.kernels
from trueup.oracle.backends.base import RunOptions
from trueup.oracle.contract import load_contract
from trueup.oracle.inputs import Case, draw, with_native
from trueup.oracle.verify import open_session
from trueup.reference.dqn.sum_tree import rebuilt

DQN = Path(trueup.kernels.__file__).resolve().parent / "dqn"
F32 = NDArray[np.float32]


def run(kernel: str, sizes: dict[str, int], order: int, **inputs: Any) -> Any:
    contract = load_contract(DQN / f"{kernel}.toml")
    session = open_session(contract, "host").session
    drawn = draw(contract, session.reference, Case(tuple(sizes.items()), "unit"), 0)
    result = session.run(with_native(drawn, contract, inputs), RunOptions(order=order))
    assert result.faults == ()
    return result.buffers


def tree_over(leaves: F32) -> F32:
    return np.asarray(rebuilt(leaves, np.zeros(1, np.float32)), dtype=np.float32)


@pytest.mark.parametrize("order", [0, 5])
@pytest.mark.parametrize(
    ("capacity", "n"), [(2**13, 90), (2**15, 70), (12_345, 64), (4096, 40), (4097, 40)]
)
def test_an_update_leaves_the_bits_of_a_rebuild(capacity: int, n: int, order: int) -> None:
    rng = np.random.default_rng(capacity)
    leaves = rng.uniform(0.0, 2.0, capacity).astype(np.float32)
    index = rng.integers(0, capacity, n).astype(np.int32)
    index[: n // 2] = index[0] // 64 * 64 + rng.integers(0, 64, n // 2)  # many below one node
    index %= capacity
    written = rng.uniform(0.0, 2.0, n).astype(np.float32)
    got = run(
        "sum_tree_update", {"C": capacity, "n": n}, order,
        tree=tree_over(leaves), index=index, leaf=written,
    )["tree"]  # fmt: skip
    for i, p in zip(index, written, strict=True):
        leaves[i] = p
    want = tree_over(leaves)
    np.testing.assert_array_equal(got[1:].view(np.uint32), want[1:].view(np.uint32))


@pytest.mark.parametrize("capacity", [2**13, 12_345, 4097, 4096, 2**15])
def test_a_rebuild_repairs_every_parent(capacity: int) -> None:
    leaves = np.random.default_rng(capacity).uniform(0.0, 2.0, capacity).astype(np.float32)
    want = tree_over(leaves)
    broken = want.copy()
    broken[:capacity] = 7.0
    got = run("sum_tree_rebuild", {"C": capacity}, 3, tree=broken)["tree"]
    np.testing.assert_array_equal(got[1:].view(np.uint32), want[1:].view(np.uint32))
    assert got[0] == 7.0


def test_an_index_that_is_none_writes_nothing() -> None:
    tree = tree_over(np.arange(1, 8193, dtype=np.float32))
    index = np.array([-1, 8192, 2**31 - 1, -(2**31)], dtype=np.int32)
    got = run(
        "sum_tree_update", {"C": 8192, "n": 4}, 0,
        tree=tree, index=index, leaf=np.full(4, 7.0, np.float32),
    )["tree"]  # fmt: skip
    np.testing.assert_array_equal(got, tree)


@pytest.mark.parametrize("capacity", [2**14, 2**13, 9001])
def test_samples_are_the_leaves_of_a_plain_descent(capacity: int) -> None:
    """Level by level in float32, as the programme writes it; four levels at a time are the same."""
    rng = np.random.default_rng(capacity)
    leaves = (rng.uniform(0.1, 2.0, capacity) * (rng.random(capacity) < 0.7)).astype(np.float32)
    tree, u = tree_over(leaves), rng.random(200).astype(np.float32)
    got = run("sum_tree_sample", {"C": capacity, "B": 200}, 0, tree=tree, u=u)
    for b in range(200):
        v = np.float32(np.float32(np.float32(b) + u[b]) * tree[1]) / np.float32(200)
        node = 1
        while node < capacity:
            left = tree[2 * node]
            node, v = (2 * node, v) if v < left else (2 * node + 1, np.float32(v - left))
        if leaves[node - capacity] > 0:
            assert got["index"][b] == node - capacity
            assert got["probability"][b] == leaves[node - capacity] / tree[1]
        assert leaves[got["index"][b]] > 0
