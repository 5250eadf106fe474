"""Adding a component's gradient with one factor for the trunk and one for each branch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.slices import disjoint, inside
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.saxpy_correction"
READINGS = ("corrected",)
WRONG = {
    "correction_with_beta": "acc + (trunk + beta_k) g in a branch",
    "scalar_budget": "acc + trunk g everywhere, the behaviour before the correction",
    "offset_by_256_bytes": "slices begin and end 64 floats late",
    "value_head_corrected": "what belongs to no branch is corrected as the first branch",
    "applied_twice": "the correction is added again, as by a replay",
    "order_of_branches": "each branch takes its neighbour's budget",
    "accumulator_replaced": "acc is overwritten, not added to",
}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"slices": disjoint(np.asarray(values["slices"]), sizes["n"])}


def _whole(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    edges = np.linspace(0.0, 1.0, 5)
    return values | {"slices": np.stack([edges[:-1], edges[1:]], axis=1)}


def _quarter(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """The first quarter belongs to no branch; the branches share the rest."""
    edges = np.linspace(0.25, 1.0, 5)
    return values | {"slices": np.stack([edges[:-1], edges[1:]], axis=1)}


def _equal(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"beta": np.full(4, 0.3), "trunk": np.full(1, 0.3)}


def _far(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"beta": np.array([1.0, 0.0, 1.0, 0.0]), "trunk": np.full(1, 0.5)}


FAMILIES = (
    Family("all_branches", "the four slices cover the vector", _whole),
    Family("shared_first", "a quarter of trunk, then four slices", _quarter),
    Family("budgets_apart", "budgets at 0 and 1: the correction is as large as the trunk", _far),
    Family("equal_budgets", "budgets equal to the trunk's: nothing to correct", _equal, True),
)


def saxpy_correction_by_factor(acc: F64, g: F64, beta: F64, trunk: F64, slices: F64) -> F64:
    """Choose each element's factor, and add once."""
    factor = trunk + 0.0 * acc
    for branch in range(4):
        factor = np.where(inside(g.shape[0], slices[branch]), beta[branch], factor)
    return acc + factor * g


@equation(
    ID,
    title="Correction of a gradient by branch",
    source="DQN programme, branch correction by SAXPY",
    grade="fixed by the programme",
    formula="acc += trunk g; then in slice k: acc += (beta_k - trunk) g",
    axes=("n",),
    inputs=(
        Symbol("acc", ("n",), Domain("real", -2.0, 2.0), "gradient gathered so far"),
        Symbol("g", ("n",), Domain("real", -2.0, 2.0), "gradient of one component"),
        Symbol("beta", ("4",), Domain("unit"), "budget of each branch"),
        Symbol("trunk", ("1",), Domain("unit"), "budget of the trunk, the mean of the four"),
        Symbol("slices", ("4", "2"), Domain("nonnegative", 0.0, 1.0), "[start, end) of branches"),
    ),
    outputs=(Symbol("acc_next", ("n",), Domain("real"), "gradient with the component in it"),),
    readings=READINGS,
    wrong=WRONG,
    forms={"corrected": (saxpy_correction_by_factor,)},
    families=FAMILIES,
    notes="The result scales trunk entries by trunk and branch entries by beta_k. Where beta_k "
    "equals trunk nothing is corrected, bit for bit. Slices are disjoint.",
    prepare=_prepare,
)
def saxpy_correction(
    acc: F64, g: F64, beta: F64, trunk: F64, slices: F64, *, reading: str = "corrected"
) -> F64:
    """Add a component's gradient: the trunk's share everywhere, then each branch's correction.

    Equation: DQN programme, branch correction
        acc = acc + trunk g,   then for i in slice k, where beta_k differs from trunk:
        acc_i = acc_i + (beta_k - trunk) g_i
    Shapes: acc, g (n,); beta (4,); trunk (1,); slices (4, 2), whole numbers, disjoint.
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    out = trunk * g if reading == "accumulator_replaced" else acc + trunk * g
    if reading == "scalar_budget":
        return out
    shift = 64 if reading == "offset_by_256_bytes" else 0
    anywhere = np.zeros(g.shape[0], dtype=bool)
    for branch in range(4):
        place = inside(g.shape[0], slices[branch] + shift)
        anywhere = anywhere | place
        out = np.where(place, _corrected(out, g, beta, trunk, branch, reading), out)
    if reading == "value_head_corrected":
        out = np.where(anywhere, out, out + (beta[0] - trunk) * g)
    return out


def _corrected(out: F64, g: F64, beta: F64, trunk: F64, branch: int, reading: str) -> F64:
    own = beta[(branch + 1) % 4] if reading == "order_of_branches" else beta[branch]
    if reading == "correction_with_beta":
        doubled: F64 = out + own * g
        return doubled
    corrected: F64 = out + (own - trunk) * g
    if reading == "applied_twice":
        corrected = corrected + (own - trunk) * g
    return np.where(own == trunk, out, corrected)
