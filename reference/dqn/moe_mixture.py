"""Mixture of experts: the weighted sum of what experts give, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import softmax
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

READINGS = ("weighted",)
FORWARD_WRONG = {
    "top_one": "the expert of the largest weight alone",
    "averaged": "divided by the number of experts",
    "unweighted": "the plain sum",
    "last_expert_dropped": "the sum stops one expert early",
}
BACKWARD_WRONG = {
    "gate_missing": "dEx_k = d",
    "averaged": "dg divided by the width",
    "dg_of_next_row": "dg with another row's experts",
    "last_element_dropped": "dg sums one element too few",
}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"g": softmax(4.0 * np.asarray(values["g"]))}


def _one_hot(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    g = np.zeros_like(values["g"])
    g[:, 0] = 400.0
    return values | {"g": g}


def _identical(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    experts = np.asarray(values["experts"])
    return values | {"experts": np.repeat(experts[:, :1], experts.shape[1], axis=1)}


FAMILIES = (
    Family("one_hot", "one expert is chosen: the output is that expert", _one_hot, True),
    Family("identical", "all experts agree: any gate gives the same", _identical, True),
)
_G = Symbol("g", ("B", "E"), Domain("simplex"), "weights of the experts")
_EXPERTS = Symbol("experts", ("B", "E", "D"), Domain("real", -2.0, 2.0), "what each expert gives")
_SOURCE = "DQN programme, mixture of experts"


def moe_mixture_one_by_one(g: F64, experts: F64) -> F64:
    """Add one expert after the other."""
    out = g[:, :1] * experts[:, 0]
    for k in range(1, g.shape[1]):
        out = out + g[:, k : k + 1] * experts[:, k]
    return out


def moe_mixture_backward_by_products(d_out: F64, g: F64, experts: F64) -> tuple[F64, F64]:
    """Write dg as a product of each sample's matrix of experts with its gradient."""
    dg = (experts @ d_out[:, :, np.newaxis])[:, :, 0]
    return g[:, :, np.newaxis] * d_out[:, np.newaxis], dg


@equation(
    "dqn.moe_mixture_forward",
    title="Mixture of experts, forward",
    source=_SOURCE,
    grade="fixed by the programme",
    formula="out = sum_k g_k experts_k",
    axes=("B", "E", "D"),
    inputs=(_G, _EXPERTS),
    outputs=(Symbol("out", ("B", "D"), Domain("real"), "their weighted sum"),),
    readings=READINGS,
    wrong=FORWARD_WRONG,
    forms={"weighted": (moe_mixture_one_by_one,)},
    families=FAMILIES,
    notes="The same sum joins the groups of the full variable selection network.",
    prepare=_prepare,
)
def moe_mixture_forward(g: F64, experts: F64, *, reading: str = "weighted") -> F64:
    """Join what the experts give.

    Equation: DQN programme, mixture of experts: out_b = sum_k g_{b,k} experts_{b,k}
    Shapes: g (B, E); experts (B, E, D). Returns out (B, D).
    """
    if reading not in READINGS + tuple(FORWARD_WRONG):
        raise UnknownReading("dqn.moe_mixture_forward", reading, READINGS + tuple(FORWARD_WRONG))
    weight = g
    if reading == "top_one":
        weight = np.where(g == np.max(g, axis=1, keepdims=True), 1.0, 0.0)
    elif reading == "averaged":
        weight = g / g.shape[1]
    elif reading == "unweighted":
        weight = np.ones_like(g)
    elif reading == "last_expert_dropped":
        weight = np.where(np.arange(g.shape[1]) < g.shape[1] - 1, g, 0.0)
    out: F64 = np.sum(weight[:, :, np.newaxis] * experts, axis=1)
    return out


@equation(
    "dqn.moe_mixture_backward",
    title="Mixture of experts, backward",
    source=_SOURCE,
    grade="fixed by the programme",
    formula="dexperts_k = g_k d;  dg_k = <d, experts_k>",
    axes=("B", "E", "D"),
    inputs=(Symbol("d_out", ("B", "D"), Domain("real", -2.0, 2.0), "gradient"), _G, _EXPERTS),
    outputs=(
        Symbol("dexperts", ("B", "E", "D"), Domain("real"), "gradient of each expert"),
        Symbol("dg", ("B", "E"), Domain("real"), "gradient of the weights"),
    ),
    readings=READINGS,
    wrong=BACKWARD_WRONG,
    forms={"weighted": (moe_mixture_backward_by_products,)},
    families=FAMILIES,
    notes="Where experts agree, dg is the same for all of them, and the logits get no gradient.",
    prepare=_prepare,
)
def moe_mixture_backward(
    d_out: F64, g: F64, experts: F64, *, reading: str = "weighted"
) -> tuple[F64, F64]:
    """Take a gradient back to the experts and to their weights.

    Equation: DQN programme, mixture of experts: dexperts_k = g_k d;  dg_k = sum_i d_i experts_k,i
    Shapes: d_out (B, D); g (B, E); experts (B, E, D). Returns (dexperts, dg).
    """
    if reading not in READINGS + tuple(BACKWARD_WRONG):
        raise UnknownReading("dqn.moe_mixture_backward", reading, READINGS + tuple(BACKWARD_WRONG))
    d = d_out[:, np.newaxis]
    seen = experts
    if reading == "dg_of_next_row":
        seen = np.concatenate([experts[1:], experts[:1]])
    product = d * seen
    if reading == "last_element_dropped":
        product = product[..., :-1]
    dg = np.sum(product, axis=2)
    weight = np.ones_like(g) if reading == "gate_missing" else g
    return weight[:, :, np.newaxis] * d, dg / d_out.shape[1] if reading == "averaged" else dg
