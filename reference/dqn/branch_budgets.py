"""Budgets of auxiliary losses: how much of each gradient a branch, and the trunk, may take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.branch_budgets"
FLOOR = float(np.float32(1e-12))
READINGS = ("per_branch",)
WRONG = {
    "trunk_sum": "trunk = sum of the four",
    "trunk_max": "trunk = the largest of the four",
    "trunk_of_direction": "trunk = the first branch's budget",
    "ratio_inverted": "frac n_c / n_ref",
    "not_clipped": "without lo and hi",
    "frac_missing": "n_ref / n_c",
    "scalar_budget": "one budget of the summed norms for every branch",
    "component_shifted": "the norms of the component before",
}


def _loud(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"norm": 0.05 * np.asarray(values["norm"])}


def _silent(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    norm = np.array(values["norm"])
    norm[:, 1] = 0.0
    return values | {"norm": norm}


def _equal(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"norm": np.ones((sizes["c"], 4)), "reference": np.ones(4)}


FAMILIES = (
    Family("at_the_ceiling", "quiet components: the ratio is beyond hi", _loud),
    Family("silent_branch", "a norm of 0 is floored before the division", _silent),
    Family("equal_norms", "four equal budgets: the trunk's is the same", _equal, True),
)


def branch_budgets_by_quotient(
    norm: F64, reference: F64, frac: F64, lo: F64, hi: F64
) -> tuple[F64, F64]:
    """Divide first: frac (n_ref / n)."""
    raw = frac[:, np.newaxis] * (reference / np.where(norm > FLOOR, norm, FLOOR))
    beta = _clip(raw, lo[:, np.newaxis], hi[:, np.newaxis])
    trunk = 0.25 * (((beta[:, 0] + beta[:, 1]) + beta[:, 2]) + beta[:, 3])
    return beta, trunk


@equation(
    ID,
    title="Budgets by branch",
    source="DQN programme, per-branch adaptive budgets",
    grade="shapes and trunk mean fixed by the programme; rule proposed",
    formula="beta[c,k] = clip(frac_c n_ref[k] / max(n[c,k], 1e-12), lo_c, hi_c); "
    "trunk_c = (beta[c,0] + beta[c,1] + beta[c,2] + beta[c,3]) / 4",
    axes=("c",),
    inputs=(
        Symbol("norm", ("c", "4"), Domain("nonnegative", 0.3, 3.0), "gradient norms by branch"),
        Symbol("reference", ("4",), Domain("nonnegative", 0.5, 2.0), "the same of the C51 loss"),
        Symbol("frac", ("c",), Domain("positive", 0.1, 0.5), "fraction of the reference"),
        Symbol("lo", ("c",), Domain("nonnegative", 0.0, 0.1), "least budget"),
        Symbol("hi", ("c",), Domain("positive", 0.8, 1.2), "largest budget"),
    ),
    outputs=(
        Symbol("beta", ("c", "4"), Domain("nonnegative"), "budget of each branch"),
        Symbol("trunk", ("c",), Domain("nonnegative"), "budget of the trunk"),
    ),
    readings=READINGS,
    wrong=WRONG,
    forms={"per_branch": (branch_budgets_by_quotient,)},
    families=FAMILIES,
    notes="The programme's defaults are frac 0.25, lo 0, hi 1. Four equal budgets give the trunk "
    "the same bits.",
)
def branch_budgets(
    norm: F64,
    reference: F64,
    frac: F64,
    lo: F64,
    hi: F64,
    *,
    reading: str = "per_branch",
) -> tuple[F64, F64]:
    """Give each branch, and the trunk, its budget of every auxiliary component.

    Equation: DQN programme, per-branch adaptive budgets
        beta[c,k] = clip(frac_c n_ref[k] / max(n[c,k], 1e-12), lo_c, hi_c)
        trunk_c   = (((beta[c,0] + beta[c,1]) + beta[c,2]) + beta[c,3]) / 4
    Shapes: norm (c, 4); reference (4,); frac, lo, hi (c,). Returns beta (c, 4), trunk (c,).
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    if reading == "component_shifted":
        norm = np.concatenate([norm[-1:], norm[:-1]])
    ratio = _ratio(norm, reference, reading)
    raw = ratio if reading == "frac_missing" else frac[:, np.newaxis] * ratio
    clipped = _clip(raw, lo[:, np.newaxis], hi[:, np.newaxis])
    beta = raw if reading == "not_clipped" else clipped
    total = ((beta[:, 0] + beta[:, 1]) + beta[:, 2]) + beta[:, 3]
    if reading == "trunk_sum":
        return beta, total
    if reading == "trunk_max":
        return beta, np.max(beta, axis=1)
    return beta, beta[:, 0] if reading == "trunk_of_direction" else total / 4.0


def _ratio(norm: F64, reference: F64, reading: str) -> F64:
    if reading == "scalar_budget":
        summed = np.sum(norm, axis=1, keepdims=True) + 0.0 * norm
        return np.sum(reference) / np.where(summed > FLOOR, summed, FLOOR)
    floored = np.where(norm > FLOOR, norm, FLOOR)
    return norm / reference if reading == "ratio_inverted" else reference / floored


def _clip(x: F64, low: F64, high: F64) -> F64:
    """Limit by comparisons, so that NaN stays."""
    return np.where(x < low, low, np.where(x > high, high, x))
