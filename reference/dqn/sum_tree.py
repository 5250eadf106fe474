"""Prioritised replay: the tree of sums over the leaves, written and rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.sum_tree_update"
REBUILD_ID = "dqn.sum_tree_rebuild"
SOURCE = "DQN programme, prioritised replay; PER, arXiv:1511.05952"
READINGS = ("last_wins",)
WRONG = {
    "first_wins": "of equal indices the lowest batch position wins",
    "duplicates_added": "priorities of equal indices are added up",
    "parents_stale": "leaves are written, parents are not",
    "left_child_only": "a parent is its left child",
    "added_to_leaf": "the new priority is added to the old one",
    "root_stale": "the root is not recomputed",
    "next_leaf": "each priority in the leaf after its own",
}


def levels(capacity: int) -> range:
    """Give the depths that hold parents, the deepest first; the root has depth 0."""
    return range((2 * capacity - 1).bit_length() - 2, -1, -1)


def rebuilt(leaves: F64, unused: F64, reading: str = "last_wins") -> F64:
    """Build the tree over C leaves, level by level from below; (C,), (1,) to (2 C,).

    Node 1 is the root, node i the sum of nodes 2 i and 2 i + 1, leaves stand from C on; where C is
    no power of two the two deepest levels share them. Place 0 keeps ``unused``.
    """
    everywhere = np.ones(leaves.shape[0], dtype=bool)
    return resummed(np.concatenate([leaves, leaves]), leaves, everywhere, unused, reading)


def resummed(
    tree: F64, leaves: F64, written: NDArray[Any], unused: F64, reading: str = "last_wins"
) -> F64:
    """Put leaves into a tree, and add up anew every parent that stands above a written one."""
    capacity = leaves.shape[0]
    first = 2 ** ((2 * capacity - 1).bit_length() - 1)
    below, touched = leaves[first - capacity :], written[first - capacity :]
    rows = [below]
    for depth in levels(capacity):
        first = 2**depth
        parents = min(max(capacity - first, 0), first)
        left, right = below[0 : 2 * parents : 2], below[1 : 2 * parents : 2]
        total = left if reading == "left_child_only" else left + right
        above = touched[0 : 2 * parents : 2] | touched[1 : 2 * parents : 2]
        sums = np.where(above, total, tree[first : first + parents])
        here = slice(first + parents - capacity, 2 * first - capacity)  # leaves of this level
        below = np.concatenate([sums, leaves[here]])
        touched = np.concatenate([above, written[here]])
        rows.append(below)
    return np.concatenate([unused, *rows[::-1]])


def _consistent(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    drawn: NDArray[Any] = np.array(values["tree"], dtype=np.float32)
    capacity = sizes["C"]
    tree = rebuilt(drawn[capacity:], drawn[:1])  # sums as float32 has them
    changed = values | {"tree": tree.astype(np.float64)}
    if "index" in values:
        changed["index"] = np.floor(np.mod(np.asarray(values["index"]), capacity))
    return changed


def _duplicates(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"index": np.full(sizes["n"], float(rng.integers(sizes["C"])))}


def _pairs(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    half = rng.integers(0, sizes["C"], (sizes["n"] + 1) // 2).astype(np.float64)
    return values | {"index": np.concatenate([half, half[::-1]])[: sizes["n"]]}


def _zeros(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"leaf": np.zeros(sizes["n"])}


def _whole(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {
        "leaf": rng.integers(0, 9, sizes["n"]).astype(np.float64),
        "tree": rng.integers(0, 9, 2 * sizes["C"]).astype(np.float64),
    }


def _small_beside_large(
    rng: np.random.Generator, sizes: Mapping[str, int], values: Values
) -> Values:
    tree = np.array(values["tree"])
    tree[rng.integers(tree.size)] = 1e6
    return values | {"tree": tree}


FAMILIES = (
    Family("one_index", "every entry of the batch writes the same leaf", _duplicates),
    Family("pairs", "indices that come twice", _pairs),
    Family("removed", "priorities of 0: a parent of two empty leaves is 0", _zeros),
    Family("whole", "small whole numbers: every parent has exact bits", _whole),
    Family("one_large", "one priority far above the rest", _small_beside_large),
)
_TREE = Symbol("tree", ("2 * C",), Domain("nonnegative", 0.1, 2.0), "sums, then leaves from C on")


def sum_tree_update_one_by_one(tree: F64, index: F64, leaf: F64) -> F64:
    """Write the batch in its order, so that a later entry replaces an earlier one."""
    capacity = tree.shape[0] // 2
    leaves, written = tree[capacity:], np.zeros(capacity, dtype=bool)
    for entry in range(index.shape[0]):
        here = np.arange(capacity) == index[entry]
        leaves, written = np.where(here, leaf[entry], leaves), written | here
    return resummed(tree, leaves, written, tree[:1])


@equation(
    ID,
    title="Sum tree, update",
    source=SOURCE,
    grade="tree proposed by the programme; rule for duplicates proposed",
    formula="leaf[index_j] = p_j, the highest j of equal indices; parent = left + right upwards",
    axes=("C", "n"),
    inputs=(
        _TREE,
        Symbol("index", ("n",), Domain("index", axis="C"), "leaves that are written"),
        Symbol("leaf", ("n",), Domain("nonnegative", 0.1, 2.0), "their raised priorities"),
    ),
    outputs=(Symbol("tree_next", ("2 * C",), Domain("nonnegative"), "tree after the update"),),
    readings=READINGS,
    wrong=WRONG,
    forms={"last_wins": (sum_tree_update_one_by_one,)},
    families=FAMILIES,
    notes="A parent above a written leaf is always the rounded sum of its children, never adjusted "
    "by a difference, so that an update leaves the tree that a rebuild would give.",
    prepare=_consistent,
)
def sum_tree_update(tree: F64, index: F64, leaf: F64, *, reading: str = "last_wins") -> F64:
    """Write a batch of priorities into the leaves, and recompute their ancestors.

    Equation: DQN programme, prioritised replay sum tree
        tree[C + index_j] = leaf_j (of equal indices the highest batch position wins)
        tree[i] = tree[2 i] + tree[2 i + 1] for i = C - 1, ..., 1 above a written leaf
    Shapes: tree (2 C,), whose place 0 is unused; index (n,), whole numbers; leaf (n,).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    capacity = tree.shape[0] // 2
    leaves, written = _written(tree[capacity:], index, leaf, reading)
    if reading == "parents_stale":
        return np.concatenate([tree[:capacity], leaves])
    out = resummed(tree, leaves, written, tree[:1], reading)
    return np.concatenate([tree[:2], out[2:]]) if reading == "root_stale" else out


def _written(leaves: F64, index: F64, leaf: F64, reading: str) -> tuple[F64, NDArray[Any]]:
    """Give the leaves with the batch in them, and which of them it wrote."""
    capacity, count = leaves.shape[0], index.shape[0]
    place = np.arange(capacity)[:, np.newaxis]
    hit = np.equal(np.mod(index + 1, capacity) if reading == "next_leaf" else index, place)
    if reading == "duplicates_added":
        written: NDArray[Any] = np.any(hit, axis=1)
        return np.where(written, np.sum(np.where(hit, leaf, 0.0), axis=1), leaves), written
    order = np.arange(1, count + 1)
    if reading == "first_wins":
        order = order[::-1]
    winner = np.max(np.where(hit, order, 0), axis=1)  # 0 where no entry writes the leaf
    if reading == "first_wins":
        winner = np.where(winner > 0, count + 1 - winner, 0)
    new = np.take(np.concatenate([leaf[:1], leaf]), winner)
    if reading == "added_to_leaf":
        new = new + leaves
    return np.where(winner > 0, new, leaves), winner > 0


@equation(
    REBUILD_ID,
    title="Sum tree, rebuild",
    source=SOURCE,
    grade="proposed by the programme",
    formula="tree[i] = tree[2 i] + tree[2 i + 1] for i = C - 1, ..., 1",
    axes=("C",),
    inputs=(_TREE,),
    outputs=(Symbol("tree_next", ("2 * C",), Domain("nonnegative"), "tree with true sums"),),
    readings=("bottom_up",),
    wrong={
        "left_child_only": "a parent is its left child",
        "root_stale": "the root is not recomputed",
    },
    forms={"bottom_up": (lambda tree: _node_by_node(tree),)},
    families=(
        Family("garbage", "whatever the parents held is replaced", lambda rng, sizes, v: v),
        Family("one_large", "one leaf far above the rest", _small_beside_large),
    ),
    notes="Rebuilding a tree that updates left changes no bit.",
)
def sum_tree_rebuild(tree: F64, *, reading: str = "bottom_up") -> F64:
    """Recompute every parent from the leaves.

    Equation: DQN programme, prioritised replay sum tree
        tree[i] = tree[2 i] + tree[2 i + 1] for i = C - 1, ..., 1
    Shapes: tree (2 C,), whose place 0 is unused.
    """
    known = ("bottom_up", "left_child_only", "root_stale")
    if reading not in known:
        raise UnknownReading(REBUILD_ID, reading, known)
    out = rebuilt(tree[tree.shape[0] // 2 :], tree[:1], reading)
    return np.concatenate([tree[:2], out[2:]]) if reading == "root_stale" else out


def _node_by_node(tree: F64) -> F64:
    """Recompute the parents one at a time, from the last to the root."""
    capacity = tree.shape[0] // 2
    node = [tree[i : i + 1] for i in range(2 * capacity)]
    for parent in range(capacity - 1, 0, -1):
        node[parent] = node[2 * parent] + node[2 * parent + 1]
    return np.concatenate(node)
