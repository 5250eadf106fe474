"""Quantiles of the values of every branch, and the supports that follow from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.dueling import BRANCHES, offsets
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID, SUPPORT_ID = "dqn.q_quantiles", "dqn.atom_support"
LEVELS = tuple(float(np.float32(level)).as_integer_ratio() for level in (0.05, 0.95))
"""The levels as fractions of integers: the float32 nearest to 0.05 and to 0.95."""
MARGIN = float(np.float32(0.2))
HALF_MIN = 0.5
WRONG = {
    "nearest_rank": "the nearest order statistic, not between two",
    "over_count": "place q M in place of q (M - 1)",
    "unsorted": "interpolated in the order of the samples",
    "branches_crossed": "every branch reads its neighbour's values",
    "ends": "the smallest and the largest",
    "over_all": "the quantiles of all branches together",
}
WRONG_SUPPORT = {
    "one_sided": "the margin on the upper side only",
    "margin_missing": "no margin",
    "floor_missing": "no least width",
    "step_over_n": "delta_z = 2 half / n",
    "branches_crossed": "every branch takes its neighbour's quantiles",
    "sample_variance": "std with M - 1",
}


def _place(level: tuple[int, int], count: int) -> tuple[int, int, float]:
    """Give the places of the order statistics around a quantile, and its share of the upper one.

    In integers: a place that is a product of rounded numbers falls into the wrong gap.
    """
    above, below = level
    place = above * (count - 1)
    left = place // below
    return left, min(left + 1, count - 1), (place % below) / below


def q_quantiles_by_shares(q: F64, branches: tuple[int, ...] = BRANCHES) -> F64:
    """Weigh both order statistics: (1 - share) left + share right."""
    at, out = offsets(branches), []
    for level in LEVELS:
        for k in range(len(branches)):
            ordered = np.sort(np.reshape(q[:, at[k] : at[k + 1]], (-1,)))
            left, right, share = _place(level, ordered.shape[0])
            out.append((1.0 - share) * ordered[left] + share * ordered[right])
    return np.stack(out)


def _uneven(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    scale = np.repeat([1.0, 10.0, 100.0, 0.01], BRANCHES)
    return values | {"q": np.asarray(values["q"]) * scale}


def _constant(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"q": 0.75 + 0.0 * np.asarray(values["q"])}


@equation(
    ID,
    title="Quantiles of the values of every branch",
    source="DQN programme, 9",
    grade="eight slots fixed by the programme; their order and the levels proposed",
    formula="h = (M - 1) q;  x[floor h] + frac(h) (x[floor h + 1] - x[floor h]), x sorted",
    axes=("B",),
    inputs=(Symbol("q", ("B", "13"), Domain("real", -2.0, 2.0), "values of all actions"),),
    outputs=(Symbol("quantiles", ("8",), Domain("real"), "0.05 of the four branches, then 0.95"),),
    wrong=WRONG,
    forms={"default": (q_quantiles_by_shares,)},
    families=(
        Family("uneven", "branches of different scale: crossed ones show", _uneven),
        Family("constant_values", "equal values", _constant, right_kernel_only=True),
    ),
    notes="Order statistics are exact; h in integers or double, since a float32 h loses its "
    "fraction at large M.",
)
def q_quantiles(q: F64, branches: tuple[int, ...] = BRANCHES, *, reading: str = "default") -> F64:
    """Give the 0.05 and 0.95 quantiles of each branch's values.

    Equation: over the M = B b_k values x of branch k, sorted, h = (M - 1) level,
        x[floor h] + (h - floor h) (x[min(floor h + 1, M - 1)] - x[floor h])
    Shapes: q (B, 13); returns (8,): the four branches at 0.05, then the four at 0.95.
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    at, out = offsets(branches), []
    for level in LEVELS:
        for k in range(len(branches)):
            own = slice(at[k], at[k + 1])
            if reading == "branches_crossed":
                other = (k + 1) % len(branches)
                own = slice(at[other], at[other + 1])
            x = np.reshape(q if reading == "over_all" else q[:, own], (-1,))
            out.append(_quantile(x, level, reading))
    return np.stack(out)


def _quantile(x: F64, level: tuple[int, int], reading: str) -> F64:
    count = x.shape[0]
    ordered = x if reading == "unsorted" else np.sort(x)
    left, right, share = _place(level, count)
    if reading == "ends":
        left = right = 0 if level == LEVELS[0] else count - 1
    elif reading == "nearest_rank":
        left = right = right if share > 0.5 else left
    elif reading == "over_count":
        left, right, share = _place(level, count + 1)
        left, right = min(left, count - 1), min(right, count - 1)
    result: F64 = ordered[left] + share * (ordered[right] - ordered[left])
    return result


def _narrow(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    quantiles = np.array(values["quantiles"])
    quantiles[4:] = quantiles[:4] + 0.1
    return values | {"quantiles": quantiles}


def _prepare(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    pairs = np.sort(np.reshape(np.asarray(values["quantiles"]), (2, 4)), axis=0)
    return values | {"quantiles": pairs.reshape(8)}


def atom_support_by_edges(
    quantiles: F64,
    q: F64,
    n_atoms: int = 51,
    widening: float = 0.0,
    margin: float = MARGIN,
    half_min: float = HALF_MIN,
    branches: tuple[int, ...] = BRANCHES,
) -> F64:
    """Take the middle from one end: lo + (hi - lo) / 2."""
    at, parts = offsets(branches), []
    for k in range(len(branches)):
        low, high = quantiles[k], quantiles[k + 4]
        middle = low + (high - low) * 0.5
        half = np.maximum(half_min, (0.5 + 0.5 * margin) * (high - low))
        wide = half * (1.0 + widening * np.std(q[:, at[k] : at[k + 1]], axis=1))
        step = wide * (2.0 / np.asarray(float(n_atoms - 1)))
        parts.append(np.stack([middle - wide, middle + wide, step], axis=-1))
    return np.stack(parts, axis=1)


@equation(
    SUPPORT_ID,
    title="Support of every sample and branch",
    source="DQN programme, 9",
    grade="proposed by the programme",
    formula="mid -+ half (1 + k std_b), half = max(half_min, (1 + margin)(hi - lo) / 2)",
    axes=("B",),
    inputs=(
        Symbol("quantiles", ("8",), Domain("real", -2.0, 2.0), "0.05 of the branches, then 0.95"),
        Symbol("q", ("B", "13"), Domain("real", -2.0, 2.0), "values of all actions"),
        Symbol("widening", (), Domain("nonnegative", 0.1, 0.5), "k, 0", optional=True),
        Symbol("margin", (), Domain("nonnegative", 0.1, 0.3), "0.2", optional=True),
        Symbol("half_min", (), Domain("positive", 0.4, 0.6), "0.5", optional=True),
    ),
    outputs=(Symbol("support", ("B", "4", "3"), Domain("real"), "v_min, v_max, delta_z"),),
    wrong=WRONG_SUPPORT,
    forms={"default": (atom_support_by_edges,)},
    families=(Family("narrow", "quantiles closer than the least width", _narrow),),
    prepare=_prepare,
)
def atom_support(
    quantiles: F64,
    q: F64,
    n_atoms: int = 51,
    widening: float = 0.0,
    margin: float = MARGIN,
    half_min: float = HALF_MIN,
    branches: tuple[int, ...] = BRANCHES,
    *,
    reading: str = "default",
) -> F64:
    """Give each sample the support of its branches.

    Equation: mid = (lo + hi)/2, half = max(half_min, (1 + margin)(hi - lo)/2), widened to
    half (1 + widening std_b) with the population standard deviation of the sample's values in the
    branch; v_min = mid - half, v_max = mid + half, delta_z = 2 half / (n_atoms - 1).
    Shapes: quantiles (8,); q (B, 13). Returns (B, 4, 3).
    """
    if reading not in ("default", *WRONG_SUPPORT):
        raise UnknownReading(SUPPORT_ID, reading, ("default", *WRONG_SUPPORT))
    at, parts = offsets(branches), []
    for k in range(len(branches)):
        j = (k + 1) % 4 if reading == "branches_crossed" else k
        low, high = quantiles[j], quantiles[j + 4]
        own = q[:, at[k] : at[k + 1]]
        factor = 1.0 if reading == "margin_missing" else 1.0 + margin
        half = factor * (high - low) / 2.0
        if reading != "floor_missing":
            half = np.maximum(half_min, half)
        spread = np.std(own, axis=1)
        if reading == "sample_variance":
            spread = spread * np.sqrt(own.shape[1] / np.asarray(own.shape[1] - 1.0))
        wide = half * (1.0 + widening * spread)
        middle = (low + high) / 2.0
        below = middle - (wide / factor if reading == "one_sided" else wide)
        steps = n_atoms if reading == "step_over_n" else n_atoms - 1
        parts.append(np.stack([below, middle + wide, 2.0 * wide / steps], axis=-1))
    return np.stack(parts, axis=1)
