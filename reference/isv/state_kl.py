"""Divergence of a batch's features from their reference, and the amplification it causes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "isv.state_kl"
ALPHA = float(np.float32(0.05))
FLOOR = float(np.float32(1e-6))

READINGS = ("gaussian",)
WRONG_FORMULAS = {
    "swapped": "the divergence of the reference from the batch",
    "trail_first": "the trailing average takes this divergence before it is compared",
    "deviation_for_variance": "sqrt(v) where v belongs",
    "not_halved": "without the factor 1/2",
    "means_missing": "variances alone",
    "log_sign": "+ ln(v / vr)",
    "unclipped": "amplified without limit",
    "first_compared": "the first observation is compared with an empty average",
    "mean_for_sum": "averaged over the features",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """The trailing average is of the order of the divergence, so that either can be larger."""
    mean, var, mean_ref, var_ref = (
        np.asarray(values[name]) for name in ("mean", "var", "mean_ref", "var_ref")
    )
    kl = _divergence(mean, var, mean_ref, var_ref)
    count = np.floor(np.asarray(values["count"]))
    return values | {"count": count, "trail": float(kl) * np.asarray(values["trail"])}


def _running(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"trail": rng.uniform(0.55, 0.9, size=1)}


def _falling(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"trail": rng.uniform(1.5, 3.0, size=1)}


def _jump(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"trail": rng.uniform(0.05, 0.3, size=1)}


def _first(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"trail": np.zeros(1), "count": np.zeros(1)}


def _near(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    var, mean = np.asarray(values["var"]), np.asarray(values["mean"])
    return values | {
        "var_ref": var * (1.0 + rng.uniform(0.02, 0.2, size=var.shape)),
        "mean_ref": mean + 0.1 * rng.uniform(-1.0, 1.0, size=mean.shape),
    }


def _floored(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    var = np.array(values["var"])
    var[::3] = 0.0
    return values | {"var": var}


FAMILIES = (
    Family("running", "somewhat above its trailing average: amplified between 1 and 2", _running),
    Family("falling", "below its trailing average: not amplified", _falling),
    Family("jump", "far above it: the amplification stops at 2", _jump),
    Family("first", "the first divergence becomes the average, amplification 1", _first),
    Family("near", "batch and reference nearly agree: differences of near-equal terms", _near),
    Family("floored", "a constant feature has the least variance", _floored),
)


def state_kl_direct(
    mean: F64, var: F64, mean_ref: F64, var_ref: F64, trail: F64, count: F64, alpha: float = ALPHA
) -> tuple[F64, F64, F64]:
    """Write each feature as (v + d^2) / vr - 1 - ln(v / vr), as it is printed."""
    v = np.where(var < FLOOR, FLOOR, var)
    vr = np.where(var_ref < FLOOR, FLOOR, var_ref)
    d = mean - mean_ref
    kl = 0.5 * np.sum((v + d * d) / vr - 1.0 - np.log(v / vr))
    return _amplified(kl, trail, count, alpha, "gaussian")


@equation(
    ID,
    title="State divergence and its amplification",
    source="ISV programme, state-KL",
    grade="trailing average of itself fixed by the programme; formula proposed",
    formula="KL = 1/2 sum((v + (m - mr)^2) / vr - 1 - ln(v / vr)), "
    "amp = 1 + clip((KL - trail) / max(trail, 1e-6), 0, 1), then trail = EMA(KL)",
    axes=("S",),
    inputs=(
        Symbol("mean", ("S",), Domain("real", -1.0, 1.0), "batch mean of each feature"),
        Symbol("var", ("S",), Domain("nonnegative", 0.5, 2.0), "batch variance of each feature"),
        Symbol("mean_ref", ("S",), Domain("real", -1.0, 1.0), "reference mean"),
        Symbol("var_ref", ("S",), Domain("nonnegative", 0.5, 2.0), "reference variance"),
        Symbol("trail", ("1",), Domain("nonnegative", 0.5, 2.0), "trailing average so far"),
        Symbol("count", ("1",), Domain("nonnegative", 1.0, 100.0), "observations so far"),
        Symbol("alpha", (), Domain("unit", 0.02, 0.2), "rate, float32(0.05)", True),
    ),
    outputs=(
        Symbol("amp", ("1",), Domain("positive"), "amplification, 1 to 2"),
        Symbol("trail_next", ("1",), Domain("nonnegative"), "trailing average after the step"),
        Symbol("count_next", ("1",), Domain("positive"), "observations after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"gaussian": (state_kl_direct,)},
    families=FAMILIES,
    prepare=_prepare,
    notes="Near v = vr the printed form cancels; with x = (v - vr) / vr the term x - ln(1 + x) "
    "keeps its digits. The trailing average lives with the kernel, not on the bus.",
)
def state_kl(
    mean: F64,
    var: F64,
    mean_ref: F64,
    var_ref: F64,
    trail: F64,
    count: F64,
    alpha: float = ALPHA,
    *,
    reading: str = "gaussian",
) -> tuple[F64, F64, F64]:
    """Give the amplification, and the trailing average after the step.

    Equation: ISV programme, state-KL [proposed], variances not below 1e-6
        KL = 1/2 sum_i [(v_i + (m_i - mr_i)^2) / vr_i - 1 - ln(v_i / vr_i)]
        amp = 1 + clip((KL - trail) / max(trail, 1e-6), 0, 1);   then trail = (1 - a) trail + a KL
        first observation: amp = 1, trail = KL
    Shapes: mean, var, mean_ref, var_ref (S,); trail, count (1,); alpha a scalar, by default the
    float32 nearest to 0.05. Returns (amp, trail, count).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    kl = _divergence(mean, var, mean_ref, var_ref, reading)
    return _amplified(kl, trail, count, alpha, reading)


def _divergence(
    mean: F64, var: F64, mean_ref: F64, var_ref: F64, reading: str = "gaussian"
) -> Scalar:
    v = np.where(var < FLOOR, FLOOR, var)
    vr = np.where(var_ref < FLOOR, FLOOR, var_ref)
    if reading == "swapped":
        v, vr = vr, v
    if reading == "deviation_for_variance":
        v, vr = np.sqrt(v), np.sqrt(vr)
    d = mean - mean_ref
    x = (v - vr) / vr
    terms = x + np.log1p(x) if reading == "log_sign" else x - np.log1p(x)
    if reading != "means_missing":
        terms = terms + d * d / vr
    total: Scalar = np.sum(terms)
    if reading == "mean_for_sum":
        total = total / terms.shape[0]
    return total if reading == "not_halved" else 0.5 * total


def _amplified(
    kl: Scalar, trail: F64, count: F64, alpha: float, reading: str
) -> tuple[F64, F64, F64]:
    first = count < 0.0 if reading == "first_compared" else count <= 0.0
    updated = np.where(first, kl, (1.0 - alpha) * trail + alpha * kl)
    used = updated if reading == "trail_first" else trail
    over = np.where(used < FLOOR, FLOOR, used)
    excess = (kl - used) / over
    if reading != "unclipped":
        excess = clip(excess, 0.0, 1.0)
    return np.where(first, 1.0, 1.0 + excess), updated, count + 1.0
