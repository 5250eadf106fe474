"""What the branches hand to the shared trunk, and values decomposed by horizon."""

from __future__ import annotations

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol

TRUNK_ID, HORIZON_ID = "dqn.trunk_gradient", "dqn.horizon_value"
TRUNK_SCALE_C51 = 0.2
TRUNK_SCALE_IQN = 0.25
WRONG_TRUNK = {
    "unscaled": "the plain sum: four times the accumulation",
    "scaled_twice": "the factor in the branches and on the trunk again",
    "heads_scaled": "the heads' gradients scaled as well",
    "mean_only": "the mean over the branches without the trunk's factor",
}
WRONG_HORIZON = {
    "averaged": "V_long = (V_short + W) / 2",
    "short_bootstrap": "W bootstraps with g_s",
    "difference_missing": "W = g_l W(s')",
    "gammas_swapped": "(g_s - g_l) V_short(s')",
}


def trunk_gradient_in_turn(
    gradients: F64,
    trunk_scale_c51: float = TRUNK_SCALE_C51,
    trunk_scale_iqn: float = TRUNK_SCALE_IQN,
    *,
    reading: str = "c51",
) -> tuple[F64, F64]:
    """Scale each branch and add them in order."""
    scale = trunk_scale_c51 if reading == "c51" else trunk_scale_iqn
    weight = 0.25 if reading == "c51" else 1.0
    heads = weight * gradients
    total = scale * heads[0]
    for k in range(1, gradients.shape[0]):
        total = total + scale * heads[k]
    return heads, total


def _trunk_in_turn_iqn(
    gradients: F64,
    trunk_scale_c51: float = TRUNK_SCALE_C51,
    trunk_scale_iqn: float = TRUNK_SCALE_IQN,
) -> tuple[F64, F64]:
    """Scale each branch's full gradient by the factor of the quantile heads, in order."""
    return trunk_gradient_in_turn(gradients, trunk_scale_c51, trunk_scale_iqn, reading="iqn")


@equation(
    TRUNK_ID,
    title="Gradient of the heads and of the shared trunk",
    source="branching, arXiv:1711.08946 (1 / (branches + 1)); DQN programme, 6 and 10",
    grade="c51 as in the published code; iqn fixed by the programme",
    formula="heads = w g_k,  trunk = s sum_k w g_k: w = 1/4, s = 1/5 (c51); w = 1, s = 1/4 (iqn)",
    axes=("n",),
    inputs=(
        Symbol("gradients", ("4", "n"), Domain("real", -2.0, 2.0), "of each branch's own loss"),
        Symbol("trunk_scale_c51", (), Domain("positive", 0.1, 0.5), "1/5", True),
        Symbol("trunk_scale_iqn", (), Domain("positive", 0.1, 0.5), "1/4", True),
    ),
    outputs=(
        Symbol("heads", ("4", "n"), Domain("real"), "what the branches' own layers receive"),
        Symbol("trunk", ("n",), Domain("real"), "what the shared layers receive"),
    ),
    readings={
        "c51": "the loss is the mean over the branches, the trunk's factor on top of it",
        "iqn": "heads unscaled, the trunk receives the mean",
    },
    wrong=WRONG_TRUNK,
    forms={"c51": (trunk_gradient_in_turn,), "iqn": (_trunk_in_turn_iqn,)},
    families=(Family("running", "as drawn", lambda rng, sizes, values: values),),
    notes="A factor in the branches' loss and again on the trunk is 1/16, the known defect of the "
    "other kind; none at all is the historical fourfold accumulation.",
)
def trunk_gradient(
    gradients: F64,
    trunk_scale_c51: float = TRUNK_SCALE_C51,
    trunk_scale_iqn: float = TRUNK_SCALE_IQN,
    *,
    reading: str = "c51",
) -> tuple[F64, F64]:
    """Weigh the gradients of the branches.

    Equation: with g_k the gradient of branch k's own loss
        heads_k = w g_k,  trunk = s sum_k heads_k
    Shapes: gradients, heads (4, n); trunk (n,).
    Readings: ``c51`` w = 1/4, s = 1/5; ``iqn`` w = 1, s = 1/4.
    """
    known = ("c51", "iqn", *WRONG_TRUNK)
    if reading not in known:
        raise UnknownReading(TRUNK_ID, reading, known)
    weight = 1.0 if reading in ("iqn", "unscaled") else 0.25
    scale = trunk_scale_iqn if reading == "iqn" else trunk_scale_c51
    if reading in ("unscaled", "mean_only"):
        scale = 1.0
    elif reading == "scaled_twice":
        scale = trunk_scale_c51 * trunk_scale_c51
    heads = weight * gradients
    trunk = scale * np.sum(heads, axis=0)
    return scale * heads if reading == "heads_scaled" else heads, trunk


def horizon_value_regrouped(
    v_short: F64, v_short_next: F64, w_next: F64, gamma_short: float, gamma_long: float
) -> tuple[F64, F64]:
    """Write W as g_l (V_short(s') + W(s')) - g_s V_short(s')."""
    w = gamma_long * (v_short_next + w_next) - gamma_short * v_short_next
    return w, v_short + w


@equation(
    HORIZON_ID,
    title="Value decomposed by horizon",
    source="Separating value functions across time-scales, arXiv:1902.01883",
    grade="as published; the names fixed by the programme",
    formula="W = (g_l - g_s) V_short(s') + g_l W(s');  V_long = V_short + W",
    axes=("B",),
    inputs=(
        Symbol("v_short", ("B",), Domain("real", -2.0, 2.0), "value of the short horizon at s"),
        Symbol("v_short_next", ("B",), Domain("real", -2.0, 2.0), "the same at s'"),
        Symbol("w_next", ("B",), Domain("real", -2.0, 2.0), "W at s'"),
        Symbol("gamma_short", (), Domain("unit", 0.7, 0.9), "discount of the short horizon"),
        Symbol("gamma_long", (), Domain("unit", 0.95, 0.999), "discount of the long horizon"),
    ),
    outputs=(
        Symbol("w", ("B",), Domain("real"), "what the long horizon adds"),
        Symbol("v_long", ("B",), Domain("real"), "value of the long horizon"),
    ),
    wrong=WRONG_HORIZON,
    forms={"default": (horizon_value_regrouped,)},
    families=(Family("running", "as drawn", lambda rng, sizes, values: values),),
)
def horizon_value(
    v_short: F64,
    v_short_next: F64,
    w_next: F64,
    gamma_short: float,
    gamma_long: float,
    *,
    reading: str = "default",
) -> tuple[F64, F64]:
    """Give what the long horizon adds to the short one, and their sum.

    Equation: W(s) = (g_l - g_s) V_short(s') + g_l W(s'),  V_long(s) = V_short(s) + W(s)
    Shapes: every array (B,); the discounts are scalars. Returns (w, v_long).
    """
    if reading not in ("default", *WRONG_HORIZON):
        raise UnknownReading(HORIZON_ID, reading, ("default", *WRONG_HORIZON))
    bootstrap = gamma_short if reading == "short_bootstrap" else gamma_long
    w = (gamma_long - gamma_short) * v_short_next + bootstrap * w_next
    if reading == "difference_missing":
        w = bootstrap * w_next
    elif reading == "gammas_swapped":
        w = (gamma_short - gamma_long) * v_short_next + bootstrap * w_next
    v_long = v_short + w
    return w, 0.5 * v_long if reading == "averaged" else v_long
