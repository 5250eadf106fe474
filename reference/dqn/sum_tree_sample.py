"""Prioritised replay: drawing leaves in proportion to their priorities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.reference.catalogue import equation
from trueup.reference.dqn.sum_tree import SOURCE, rebuilt
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.sum_tree_sample"
READINGS = ("stratified",)
WRONG = {
    "left_on_equality": "v <= left goes left",
    "unstratified": "v = u total",
    "left_not_subtracted": "v keeps its value on the way down the right",
    "unguarded": "no guard: a leaf without priority may be chosen",
    "children_swapped": "v is measured from the right child",
    "node_number": "the place in the tree, not the leaf",
    "probability_of_leaf": "the leaf's priority, not divided by the root",
    "strata_shifted": "sample b is drawn from the stratum after its own",
}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    drawn: NDArray[Any] = np.array(values["tree"], dtype=np.float32)
    tree = rebuilt(drawn[sizes["C"] :], drawn[:1])  # sums as float32 has them
    return values | {"tree": tree.astype(np.float64)}


def _with_leaves(values: Values, leaves: F64) -> Values:
    return values | {"tree": np.concatenate([np.zeros(leaves.size), leaves])}


def _sparse(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    leaves = rng.uniform(0.5, 2.0, sizes["C"]) * (rng.random(sizes["C"]) < 0.5)
    leaves[rng.integers(leaves.size)] = 1.0
    return _with_leaves(values, leaves)


def _boundary(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Put one unit in each half of the tree and draw the middle sample exactly between them."""
    capacity, batch = sizes["C"], sizes["B"]
    node = np.arange(capacity, 2 * capacity)
    top = node // 2 ** np.maximum(np.floor(np.log2(node)) - 1, 0).astype(int)
    leaves = np.zeros(capacity)
    leaves[int(np.argmax(top == 2))] = 1.0
    leaves[int(np.argmax(top == 3))] = 1.0
    u = np.array(values["u"])
    u[batch // 2] = batch / 2 - batch // 2
    return _with_leaves(values, leaves) | {"u": u}


def _end(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Take the priority of the leaf that always going right leads to, and draw at the very end."""
    node, leaves = 1, np.ones(sizes["C"])
    while node < sizes["C"]:
        node = 2 * node + 1
    leaves[node - sizes["C"]] = 0.0
    return _with_leaves(values, leaves) | {"u": np.ones(sizes["B"])}


def _empty(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _with_leaves(values, np.zeros(sizes["C"]))


def _skewed(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _with_leaves(values, 10.0 ** rng.uniform(-3.0, 1.0, sizes["C"]))


FAMILIES = (
    Family("sparse", "half of the leaves have no priority", _sparse),
    Family("skewed", "priorities over four decades", _skewed),
    Family("boundary", "a sample exactly between two leaves goes right", _boundary),
    Family("end", "u = 1: the guard takes the last leaf that has a priority", _end),
    Family("empty", "a root of 0: no sample, index -1", _empty, True),
)


def sum_tree_sample_by_products(tree: F64, u: F64) -> tuple[F64, F64]:
    """Place the sample at (b total + u total) / B."""
    batch = u.shape[0]
    total = tree[1]
    return _drawn(tree, (np.arange(batch) * total + u * total) / batch, "stratified")


@equation(
    ID,
    title="Sum tree, sample",
    source=SOURCE,
    grade="stratified descent from the paper; guard proposed",
    formula="v_b = (b + u_b) total / B; at node i: v < tree[2 i] ? left : (v - tree[2 i], right)",
    axes=("C", "B"),
    inputs=(
        Symbol("tree", ("2 * C",), Domain("nonnegative", 0.1, 2.0), "sums, then leaves from C on"),
        Symbol("u", ("B",), Domain("unit"), "place within the stratum, below 1"),
    ),
    outputs=(
        Symbol("index", ("B",), Domain("real"), "leaf of each sample; -1 where there is none"),
        Symbol("probability", ("B",), Domain("unit"), "leaf / root"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={"stratified": (sum_tree_sample_by_products,)},
    families=FAMILIES,
    notes="Guard: v at or above the root is taken just below it; a leaf without priority gives way "
    "to the nearest one to the left that has one, else to the right. A root that is not positive "
    "and finite gives index -1 and probability 0.",
    prepare=_prepare,
)
def sum_tree_sample(tree: F64, u: F64, *, reading: str = "stratified") -> tuple[F64, F64]:
    """Draw one leaf from each of B strata of the total priority.

    Equation: DQN programme, prioritised replay sum tree
        v_b = ((b + u_b) total) / B, below total;   from the root, while the node is a parent:
        v < tree[left] ? go left : (v = v - tree[left], go right)
    Shapes: tree (2 C,), whose place 0 is unused; u (B,). Returns (index, probability), each (B,).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    batch, total = u.shape[0], tree[1]
    stratum = np.arange(batch) + (1 if reading == "strata_shifted" else 0)
    v = u * total if reading == "unstratified" else (stratum + u) * total / batch
    return _drawn(tree, v, reading)


def _drawn(tree: F64, v: F64, reading: str) -> tuple[F64, F64]:
    capacity, total = tree.shape[0] // 2, tree[1]
    if reading != "unguarded":
        v = np.where(v >= total, total * (1.0 - 2.0**-24), v)
    leaf = _descended(tree, v, reading) - capacity
    leaves = tree[capacity:]
    if reading != "unguarded":
        leaf = _nearest_positive(leaves, leaf)
    usable = np.isfinite(total) & (total > 0.0) & (leaf >= 0)
    chosen = np.take(leaves, np.where(usable, leaf, 0))
    share = chosen if reading == "probability_of_leaf" else chosen / np.where(usable, total, 1.0)
    number = leaf + capacity if reading == "node_number" else leaf
    zero = np.zeros_like(v)
    return np.where(usable, zero + number, zero - 1.0), np.where(usable, share, zero)


def _descended(tree: F64, v: F64, reading: str) -> NDArray[Any]:
    """Give the node that each sample ends at."""
    capacity = tree.shape[0] // 2
    node: NDArray[Any] = np.ones(v.shape, dtype=np.int64)
    for _ in range((2 * capacity - 1).bit_length() - 1):
        parent = node < capacity
        near = np.where(parent, 2 * node + (1 if reading == "children_swapped" else 0), 0)
        left = np.take(tree, near)
        stays = v <= left if reading == "left_on_equality" else v < left
        if reading != "left_not_subtracted":
            v = np.where(parent & ~stays, v - left, v)
        if reading == "children_swapped":
            stays = ~stays
        node = np.where(parent, 2 * node + np.where(stays, 0, 1), node)
    return node


def _nearest_positive(leaves: F64, leaf: NDArray[Any]) -> NDArray[Any]:
    """Keep a leaf that has a priority; else the nearest to the left, else to the right, else -1."""
    capacity = leaves.shape[0]
    place = np.arange(capacity)
    positive = leaves > 0.0
    before = np.maximum.accumulate(np.where(positive, place, -1))
    after = np.minimum.accumulate(np.flip(np.where(positive, place, capacity)))
    left, right = np.take(before, leaf), np.take(np.flip(after), leaf)
    found = np.where(left >= 0, left, right)
    return np.where(found < capacity, found, -1)
