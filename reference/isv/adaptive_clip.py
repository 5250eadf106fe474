"""Clipping of the gradient by a threshold that follows its running norm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.adaptive_clip"
MULTIPLE = 2.0
LEAST = float(np.float32(1e-3))
INITIAL = 1.0
EPS = float(np.float32(1e-12))

READINGS = ("global",)
WRONG_FORMULAS = {
    "per_element": "each element limited to the threshold",
    "threshold_unmultiplied": "fast itself",
    "floor_missing": "a tiny average freezes training",
    "sentinel_ignored": "before the first update the threshold is the floor",
    "always_scaled": "small gradients are scaled up to the threshold",
}
WRONG = tuple(WRONG_FORMULAS)


def _at(**given: float) -> Make:
    """Make the family in which some inputs have given values."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {name: np.full(1, value) for name, value in given.items()}

    return make


def _zero(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"g": 0.0 * np.asarray(values["g"]), "norm": np.zeros(1)}


FAMILIES = (
    Family("spike", "a norm far above the threshold: scaled down", _at(norm=50.0, fast=1.5)),
    Family("calm", "below the threshold: not one bit changes", _at(norm=1.0, fast=1.5)),
    Family("unset", "no average yet: the initial threshold", _at(norm=7.0, fast=0.0)),
    Family("tiny_average", "the floor holds", _at(norm=1.0, fast=1e-6)),
    Family("zero", "a gradient of 0 stays 0", _zero),
    Family("nan_norm", "a NaN norm makes the gradient NaN", _at(norm=np.nan)),
)


def adaptive_clip_by_reciprocal(
    g: F64,
    norm: F64,
    fast: F64,
    multiple: float = MULTIPLE,
    least: float = LEAST,
    initial: float = INITIAL,
) -> F64:
    """Write the scale as thr times the rounded 1 / norm."""
    wanted = multiple * fast
    wanted = np.where(wanted < least, least, wanted)
    scale = np.where(fast <= 0.0, initial, wanted) * (1.0 / (norm + EPS))
    return np.where(scale > 1.0, g, g * scale)


@equation(
    ID,
    title="Adaptive gradient clip",
    source="ISV programme, adaptive clip",
    grade="existence fixed by the programme; formula and constants proposed",
    formula="thr = fast > 0 ? max(c_min, c_mult fast) : c_init, g = g min(1, thr / (norm + 1e-12))",
    axes=("n",),
    inputs=(
        Symbol("g", ("n",), Domain("real", -2.0, 2.0), "gradient"),
        Symbol("norm", ("1",), Domain("nonnegative", 4.0, 12.0), "its norm over all parameters"),
        Symbol("fast", ("1",), Domain("sentinel", 0.5, 1.5), "fast average before this step"),
        Symbol("multiple", (), Domain("positive", 1.5, 3.0), "threshold / average, c_mult", True),
        Symbol("least", (), Domain("positive", 5e-4, 2e-3), "least threshold c_min", True),
        Symbol("initial", (), Domain("positive", 0.5, 2.0), "threshold before any, c_init", True),
    ),
    outputs=(Symbol("g_clipped", ("n",), Domain("real"), "gradient after the clip"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"global": (adaptive_clip_by_reciprocal,)},
    families=FAMILIES,
    notes="The average is the one before this step's update: a spike must not raise its own "
    "threshold. A scale of 1 leaves every bit as it is. Without the 1e-12 a norm of "
    "0 gives an infinite ratio, hence a scale of 1 as well: that variant is no other equation.",
)
def adaptive_clip(
    g: F64,
    norm: F64,
    fast: F64,
    multiple: float = MULTIPLE,
    least: float = LEAST,
    initial: float = INITIAL,
    *,
    reading: str = "global",
) -> F64:
    """Scale a gradient down to the threshold.

    Equation: ISV programme, adaptive clip [proposed]
        thr = max(c_min, c_mult fast) where fast > 0, else c_init
        g = g scale,   scale = min(1, thr / (norm + 1e-12))
    Shapes: g (n,); norm, fast (1,); constants are scalars, by default the float32 that a kernel
    holds. A NaN norm gives NaN.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    wanted = fast if reading == "threshold_unmultiplied" else multiple * fast
    if reading != "floor_missing":
        wanted = np.where(wanted < least, least, wanted)
    thr = wanted if reading == "sentinel_ignored" else np.where(fast <= 0.0, initial, wanted)
    if reading == "per_element":
        return np.where(g > thr, thr, np.where(g < -thr, -thr, g))
    scale = thr / (norm + EPS)
    if reading == "always_scaled":
        return g * scale
    return np.where(scale > 1.0, g, g * scale)
