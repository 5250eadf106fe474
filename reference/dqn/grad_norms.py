"""Gradient norms by loss and branch: eight numbers that say where a gradient goes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.slices import disjoint, inside, length
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "dqn.grad_norms"
COMPONENTS = ("C51", "IQN", "CQL", "ENT")
BRANCHES = ("mag", "dir")
READINGS = ("l2",)
WRONG = {
    "swapped": "dir before mag",
    "whole_vector": "the norm of the whole gradient in both places",
    "squared": "the sum of squares, without the root",
    "root_mean_square": "divided by the length of the slice",
    "cumulative": "component c holds those before it: snapshots not differenced",
    "pad_included": "a slice goes on to the end of the vector",
    "absolute": "the sum of magnitudes",
    "by_branch": "four mag norms, then four dir norms",
    "last_missing": "the last element of a slice is left out",
}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"slices": disjoint(np.asarray(values["slices"]), sizes["n"])}


def _halves(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"slices": np.array([[0.0, 0.5], [0.5, 1.0]])}


def _one_slice(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"slices": np.array([[0.0, 0.99], [0.99, 0.99]])}


def _apart(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    scale = np.array([1.0, 30.0, 0.01, 300.0])
    return values | {"g": scale[:, np.newaxis] * np.asarray(values["g"])}


FAMILIES = (
    Family("halves", "the two slices share the vector", _halves),
    Family("one_slice", "an empty slice has norm 0; the other begins at 0", _one_slice),
    Family("components_apart", "losses of very different size: none shows in another", _apart),
)


def grad_norms_of_parts(g: F64, slices: F64) -> F64:
    """Sum the squares of the whole vector up to both ends of a slice's places, one at a time."""
    square = g * g
    out = []
    for component in range(4):
        for branch in range(2):
            place = inside(g.shape[1], slices[branch])
            out.append(np.sqrt(np.sum(np.where(place, square[component], 0.0))))
    return np.stack(out)


@equation(
    ID,
    title="Gradient norms by loss and branch",
    source="DQN programme, gradient decomposition",
    grade="eight floats fixed by the programme; layout and order of sums proposed",
    formula="out[2 c + s] = sqrt(sum over slice s of g[c]^2); s = 0 magnitude, 1 direction",
    axes=("n",),
    inputs=(
        Symbol("g", ("4", "n"), Domain("real", -2.0, 2.0), "gradients of C51, IQN, CQL, ENT"),
        Symbol("slices", ("2", "2"), Domain("nonnegative", 0.0, 1.0), "[start, end) of mag, dir"),
    ),
    outputs=(Symbol("norms", ("8",), Domain("nonnegative"), "norms, mag and dir in turn"),),
    readings=READINGS,
    wrong=WRONG,
    forms={"l2": (grad_norms_of_parts,)},
    families=FAMILIES,
    notes="A kernel that claims the programme's fixed order adds by a tree of 256 strided sums; "
    "`fixed_tree` gives its bits.",
    prepare=_prepare,
)
def grad_norms(g: F64, slices: F64, *, reading: str = "l2") -> F64:
    """Take the L2 norms of four gradients over the slices of two branches.

    Equation: DQN programme, gradient decomposition
        out[2 c] = |g[c][magnitude slice]|,   out[2 c + 1] = |g[c][direction slice]|
    Shapes: g (4, n); slices (2, 2), whole numbers; returns (8,).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    if reading == "cumulative":
        g = np.cumsum(g, axis=0)
    mag, dir_ = (_norm(g, slices[branch], reading) for branch in range(2))
    if reading == "by_branch":
        return np.concatenate([mag, dir_])
    pair = (dir_, mag) if reading == "swapped" else (mag, dir_)
    return np.reshape(np.stack(pair, axis=1), (8,))


def _norm(g: F64, bounds: F64, reading: str) -> F64:
    size = g.shape[1]
    place = inside(size, bounds)
    if reading == "whole_vector":
        place = np.ones(size, dtype=bool)
    elif reading == "pad_included":
        place = np.arange(size) >= bounds[0]
    elif reading == "last_missing":
        place = place & (np.arange(size) < bounds[1] - 1)
    chosen = np.where(place, g, 0.0)
    if reading == "absolute":
        magnitude: F64 = np.sum(np.abs(chosen), axis=1)
        return magnitude
    total: F64 = np.sum(chosen * chosen, axis=1)
    if reading == "root_mean_square":
        count: Scalar = length(bounds)
        total = total / np.where(count > 0, count, 1.0)
    return total if reading == "squared" else np.sqrt(total)
