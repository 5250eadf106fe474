"""The two running averages of the gradient norm behind the adaptive clip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

Mask: TypeAlias = NDArray[np.bool_]

ID = "isv.grad_norm_emas"
FAST_ALPHA = float(np.float32(0.1))
SLOW_ALPHA = float(np.float32(0.001))

READINGS = ("guarded",)
WRONG_FORMULAS = {
    "alphas_swapped": "the fast average moves slowly and the other way round",
    "alpha_on_prev": "alpha prev + (1 - alpha) obs",
    "sentinel_strict": "prev < 0: an average that starts at zero warms up from zero",
    "sentinel_zero_only": "prev == 0: a negative start is blended",
    "no_sentinel": "always blended",
    "bias_corrected": "divided by 1 - (1 - alpha)^t, at t = 1",
    "nonfinite_accepted": "the guard lets NaN and infinity through",
    "nonpositive_accepted": "the guard lets obs <= 0 through",
    "unguarded": "no guard at all",
    "slow_follows_fast": "the slow average is fed with the new fast one",
    "fast_only": "the slow average is never written",
}
WRONG = tuple(WRONG_FORMULAS)


def _set(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    scale = 10.0 ** rng.uniform(-3.0, 3.0)
    return values | {
        "obs": np.full(1, scale * rng.uniform(2.0, 8.0)),
        "fast": np.full(1, scale * rng.uniform(0.5, 1.5)),
        "slow": np.full(1, scale * rng.uniform(0.5, 1.5)),
    }


def _unset_zero(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _set(rng, sizes, values) | {"fast": np.zeros(1), "slow": np.full(1, -0.0)}


def _unset_negative(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    start = -rng.uniform(0.5, 2.0, size=2)
    return _set(rng, sizes, values) | {"fast": start[:1], "slow": start[1:]}


def _fast_unset(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _set(rng, sizes, values) | {"fast": np.full(1, -1.0)}


def _slow_unset(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _set(rng, sizes, values) | {"slow": np.zeros(1)}


def _observing(obs: float) -> Make:
    """Make the family in which the observation has one given value."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return _set(rng, sizes, values) | {"obs": np.full(1, obs)}

    return make


def _steady(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    values = _set(rng, sizes, values)
    return values | {"fast": np.array(values["obs"]), "slow": np.array(values["obs"])}


FAMILIES = (
    Family("set", "both averages set, the observation well away from them", _set),
    Family("unset_zero", "0 and -0 mean 'not set': assigned, not blended", _unset_zero),
    Family("unset_negative", "a negative average means 'not set' as well", _unset_negative),
    Family("fast_unset", "the two averages decide on their own", _fast_unset),
    Family("slow_unset", "the two averages decide on their own", _slow_unset),
    Family("obs_nan", "a NaN observation leaves both averages bit-unchanged", _observing(np.nan)),
    Family("obs_inf", "so does an infinite one", _observing(np.inf)),
    Family("obs_minus_inf", "and minus infinity", _observing(-np.inf)),
    Family("obs_zero", "and 0", _observing(0.0)),
    Family("obs_minus_zero", "and -0", _observing(-0.0)),
    Family("obs_negative", "and a negative one", _observing(-1.5)),
    Family("obs_tiny", "a subnormal observation is valid: it is above 0", _observing(1e-42)),
    Family(
        "steady",
        "the observation equals the averages: every alpha gives the same, rounding is systematic",
        _steady,
        right_kernel_only=True,
    ),
)


def grad_norm_emas_by_difference(
    obs: F64,
    fast: F64,
    slow: F64,
    fast_alpha: float = FAST_ALPHA,
    slow_alpha: float = SLOW_ALPHA,
) -> tuple[F64, F64]:
    """Write the blend as prev + alpha (obs - prev)."""
    valid = np.isfinite(obs) & (obs > 0)
    seen = np.where(valid, obs, 1.0)
    fast_next = np.where(fast <= 0, seen, fast + fast_alpha * (seen - fast))
    slow_next = np.where(slow <= 0, seen, slow + slow_alpha * (seen - slow))
    return np.where(valid, fast_next, fast), np.where(valid, slow_next, slow)


@equation(
    ID,
    title="Fast and slow average of the gradient norm",
    source="ISV programme, update_grad_norm_emas",
    grade="fixed by the programme; the guard inside the kernel is proposed",
    formula="prev <= 0 ? obs : (1 - alpha) prev + alpha obs,  only where 0 < obs < inf",
    axes=(),
    inputs=(
        Symbol("obs", ("1",), Domain("positive", 0.1, 10.0), "gradient norm of this step"),
        Symbol("fast", ("1",), Domain("sentinel", 0.1, 10.0), "fast average so far"),
        Symbol("slow", ("1",), Domain("sentinel", 0.1, 10.0), "slow average so far"),
        Symbol("fast_alpha", (), Domain("unit", 0.05, 0.3), "fast rate, float32(0.1)", True),
        Symbol("slow_alpha", (), Domain("unit", 0.0005, 0.005), "slow rate, float32(0.001)", True),
    ),
    outputs=(
        Symbol("fast_next", ("1",), Domain("sentinel"), "fast average after the step"),
        Symbol("slow_next", ("1",), Domain("sentinel"), "slow average after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"guarded": (grad_norm_emas_by_difference,)},
    families=FAMILIES,
    notes="A NaN average would stay NaN for ever, since prev <= 0 is false: it must never be the "
    "initial value. Judge the slow average one step at a time; in float32 it stalls in a dead "
    "band that depends on how the blend is written.",
)
def grad_norm_emas(
    obs: F64,
    fast: F64,
    slow: F64,
    fast_alpha: float = FAST_ALPHA,
    slow_alpha: float = SLOW_ALPHA,
    *,
    reading: str = "guarded",
) -> tuple[F64, F64]:
    """Update the fast and the slow average of the gradient norm.

    Equation: ISV programme, update_grad_norm_emas; for each of the two averages
        new = obs                               where prev <= 0 (not set yet)
        new = (1 - alpha) prev + alpha obs      elsewhere
    and nothing is written unless obs is finite and greater than 0.
    Shapes: obs, fast, slow (1,); the rates are scalars, by default the float32 nearest to 0.1
    and to 0.001, which is what a kernel holds.
    Returns (fast, slow); the arguments are left as they were.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "alphas_swapped":
        fast_alpha, slow_alpha = slow_alpha, fast_alpha
    valid = _valid(obs, reading)
    # An observation that is not used must not enter the arithmetic either (inf - inf).
    seen = np.where(valid, obs, 1.0)
    fast_next = np.where(valid, _average(fast, seen, fast_alpha, reading), fast)
    if reading == "fast_only":
        return fast_next, np.where(valid, slow, slow)
    slow_seen = fast_next if reading == "slow_follows_fast" else seen
    return fast_next, np.where(valid, _average(slow, slow_seen, slow_alpha, reading), slow)


def _valid(obs: F64, reading: str) -> Mask:
    finite, positive = np.isfinite(obs), obs > 0
    valid: Mask = finite & positive
    if reading == "unguarded":
        valid = finite | ~finite
    elif reading == "nonfinite_accepted":
        valid = positive | np.isnan(obs)
    elif reading == "nonpositive_accepted":
        valid = finite
    return valid


def _average(prev: F64, obs: F64, alpha: float, reading: str) -> F64:
    blend: F64
    if reading == "alpha_on_prev":
        blend = alpha * prev + (1 - alpha) * obs
    elif reading == "bias_corrected":
        blend = ((1 - alpha) * prev + alpha * obs) / (1 - (1 - alpha))
    else:
        blend = (1 - alpha) * prev + alpha * obs
    if reading == "no_sentinel":
        return blend
    return np.where(_unset(prev, reading), obs, blend)


def _unset(prev: F64, reading: str) -> Mask:
    unset: Mask = prev <= 0
    if reading == "sentinel_strict":
        unset = prev < 0
    elif reading == "sentinel_zero_only":
        unset = prev == 0
    return unset
