"""The weight of the conservative term, from the share of seeded samples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.cql_alpha"
ONLINE = float(np.float32(0.1))
SEED = 1.0

READINGS = ("affine",)
WRONG_FORMULAS = {
    "inverted": "1 - s: conservative on the agent's own data",
    "unclipped": "the share is not clipped to [0, 1]",
    "online_missing": "a_seed s",
    "span_missing": "a_online + a_seed s",
    "nan_hidden": "a NaN share counts as 0",
}
WRONG = tuple(WRONG_FORMULAS)


def _share(value: float) -> Make:
    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {"seed_fraction": np.full(1, value)}

    return make


FAMILIES = (
    Family("none", "no seeded sample: exactly the online weight", _share(0.0)),
    Family("all", "only seeded samples: exactly the seed weight", _share(1.0)),
    Family("above_one", "an average above 1 counts as 1", _share(1.25)),
    Family("below_zero", "an average below 0 counts as 0", _share(-0.25)),
    Family("nan", "a NaN average is passed on", _share(np.nan)),
)


def cql_alpha_by_lerp(seed_fraction: F64, online: float = ONLINE, seed: float = SEED) -> F64:
    """Write the weight as (1 - s) a_online + s a_seed."""
    s = clip(seed_fraction, 0.0, 1.0)
    return (1.0 - s) * online + s * seed


@equation(
    ID,
    title="Weight of the conservative term",
    source="ISV programme, cql_alpha coupled to the seed phase",
    grade="coupling fixed by the programme; formula and constants proposed",
    formula="alpha = a_online + (a_seed - a_online) clip(s, 0, 1)",
    axes=(),
    inputs=(
        Symbol(
            "seed_fraction", ("1",), Domain("real", 0.05, 0.95),
            "running average of the share of seeded samples in a batch, s",
        ),
        Symbol("online", (), Domain("unit", 0.05, 0.3), "weight on the agent's own data", True),
        Symbol("seed", (), Domain("positive", 0.5, 2.0), "weight on seeded data", True),
    ),
    outputs=(Symbol("alpha", ("1",), Domain("nonnegative"), "weight of the term"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"affine": (cql_alpha_by_lerp,)},
    families=FAMILIES,
    notes="s is the share in the batch, not in the buffer.",
)  # fmt: skip
def cql_alpha(
    seed_fraction: F64, online: float = ONLINE, seed: float = SEED, *, reading: str = "affine"
) -> F64:
    """Give the weight of the conservative term.

    Equation: ISV programme, cql_alpha seed-coupled [proposed]
        alpha = a_online + (a_seed - a_online) clip(s, 0, 1)
    Shapes: seed_fraction, alpha (1,); constants are scalars, by default the float32 that a kernel
    holds. A NaN share gives NaN.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "nan_hidden":
        seed_fraction = np.where(np.isnan(seed_fraction), 0.0, seed_fraction)
    s = seed_fraction if reading == "unclipped" else clip(seed_fraction, 0.0, 1.0)
    if reading == "inverted":
        s = 1.0 - s
    if reading == "online_missing":
        return seed * s
    span = seed if reading == "span_missing" else seed - online
    return online + span * s
