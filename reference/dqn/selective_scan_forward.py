"""Selective scan (Mamba-2) with bar durations, forward."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import softplus
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.selective_scan_forward"
CHUNK = 3
READINGS = ("discrete",)
WRONG_FORMULAS = {
    "input_without_delta": "h = a h + x B",
    "euler": "a = 1 + Delta A",
    "growing": "A = +exp(A_log)",
    "skip_dropped": "y = C h",
    "first_step_skipped": "the scan starts at t = 1",
    "read_before_write": "y reads h_{t-1}",
    "duration_on_x": "the duration multiplies x, not Delta",
    "duration_dropped": "Delta = softplus(.)",
    "softplus_dropped": "Delta = dt_raw + dt_bias",
    "bias_dropped": "Delta = softplus(dt_raw) dur",
    "b_c_exchanged": "B and C exchanged",
}
WRONG = tuple(WRONG_FORMULAS)


def _forgets(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"A_log": 2.0 + np.asarray(values["A_log"])}


def _freezes(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"dt_raw": np.asarray(values["dt_raw"]) - 12.0}


def _long_bars(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    dur = np.asarray(values["dur"])
    return values | {"dur": dur * np.exp(rng.uniform(-2.0, 2.0, dur.shape))}


def _one_pulse(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    x = np.zeros_like(values["x"])
    x[:, 0] = 1.0
    return values | {"x": x}


FAMILIES = (
    Family("forgets", "A far below 0: nothing is kept", _forgets),
    Family("freezes", "Delta near 0: the state stands still", _freezes, True),
    Family("long_bars", "durations over four orders", _long_bars),
    Family("one_pulse", "an input at t = 0 only: its decay is all there is", _one_pulse),
)


def steps(dt_raw: F64, dt_bias: F64, A_log: F64, dur: F64) -> tuple[F64, F64, F64]:
    """Give (Delta, A, a): step sizes (B, T, H), rates (H,), decays (B, T, H)."""
    delta = softplus(dt_raw + dt_bias) * dur[:, :, np.newaxis]
    A = -np.exp(A_log)
    with np.errstate(under="ignore"):
        return delta, A, np.exp(delta * A)


def selective_scan_dual(
    x: F64, dt_raw: F64, dt_bias: F64, A_log: F64, Bm: F64, Cm: F64, D: F64, dur: F64
) -> F64:
    """Write y without a state, as a matrix over pairs of steps: the dual, quadratic form."""
    delta, A, _ = steps(dt_raw, dt_bias, A_log, dur)
    y = []
    for t in range(x.shape[1]):
        total = D[:, np.newaxis] * x[:, t]
        decay = np.zeros_like(delta[:, t])
        for s in range(t, -1, -1):
            score = np.sum(Cm[:, t] * Bm[:, s], axis=1)[:, np.newaxis]
            weight = score * np.exp(decay) * delta[:, s]  # (B, H)
            total = total + weight[:, :, np.newaxis] * x[:, s]
            decay = decay + delta[:, s] * A
        y.append(total)
    return np.stack(y, axis=1)


def selective_scan_chunked(
    x: F64, dt_raw: F64, dt_bias: F64, A_log: F64, Bm: F64, Cm: F64, D: F64, dur: F64
) -> F64:
    """Scan chunks from a state of zero, then let the states between chunks flow in."""
    return scan_in_chunks(x, dt_raw, dt_bias, A_log, Bm, Cm, D, dur, CHUNK)


def scan_in_chunks(
    x: F64, dt_raw: F64, dt_bias: F64, A_log: F64, Bm: F64, Cm: F64, D: F64, dur: F64, chunk: int
) -> F64:
    """Scan with chunks of any length; each chunk's own states and decays know nothing before it."""
    delta, _, a = steps(dt_raw, dt_bias, A_log, dur)
    a, write = a[..., np.newaxis, np.newaxis], written(delta, x, Bm)
    h = []
    entering = np.zeros_like(write[:, 0])
    for first in range(0, x.shape[1], chunk):
        own, kept = np.zeros_like(entering), np.ones_like(a[:, 0])
        for t in range(first, min(first + chunk, x.shape[1])):
            own = a[:, t] * own + write[:, t]
            kept = kept * a[:, t]
            h.append(own + kept * entering)
        entering = h[-1]
    return read(np.stack(h, axis=1), Cm) + D[:, np.newaxis] * x


def written(delta: F64, x: F64, Bm: F64) -> F64:
    """Give (Delta x) outer B of all steps, (B, T, H, P, M)."""
    u = delta[..., np.newaxis] * x
    return u[..., np.newaxis] * Bm[:, :, np.newaxis, np.newaxis]


def states(a: F64, write: F64) -> F64:
    """Give h_t = a_t h_{t-1} + write_t of all steps, (B, T, H, P, M)."""
    decay = a[..., np.newaxis, np.newaxis]
    h = np.zeros_like(write[:, 0])
    every = []
    for t in range(write.shape[1]):
        h = decay[:, t] * h + write[:, t]
        every.append(h)
    return np.stack(every, axis=1)


def read(h: F64, Cm: F64) -> F64:
    """Give sum_m h C, (B, T, H, P)."""
    seen: F64 = np.sum(h * Cm[:, :, np.newaxis, np.newaxis], axis=-1)
    return seen


_STEPS = ("B", "T", "H")
_STATE = ("B", "T", "M")
INPUTS = (
    Symbol("x", ("B", "T", "H", "P"), Domain("real", -2.0, 2.0), "inputs"),
    Symbol("dt_raw", _STEPS, Domain("real", -2.0, 2.0), "step sizes before bias and softplus"),
    Symbol("dt_bias", ("H",), Domain("real", -1.0, 1.0), "bias of the step sizes"),
    Symbol("A_log", ("H",), Domain("real", -1.0, 1.0), "log of the decay rates"),
    Symbol("Bm", _STATE, Domain("real", -2.0, 2.0), "what is written, shared by the heads"),
    Symbol("Cm", _STATE, Domain("real", -2.0, 2.0), "what is read, shared by the heads"),
    Symbol("D", ("H",), Domain("real", -2.0, 2.0), "skip"),
    Symbol("dur", ("B", "T"), Domain("positive", 0.5, 2.0), "bar duration over the reference's"),
)


@equation(
    ID,
    title="Selective scan with bar durations, forward",
    source="DQN programme, temporal core; Mamba-2, arXiv:2405.21060",
    grade="published, duration term proposed",
    formula="h' = exp(Delta A) h + Delta x B^T;  y = h' C + D x;  Delta = softplus(dt) dur",
    axes=("B", "T", "H", "P", "M"),
    inputs=INPUTS,
    outputs=(Symbol("y", ("B", "T", "H", "P"), Domain("real"), "outputs"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"discrete": (selective_scan_chunked,)},
    families=FAMILIES,
    notes="One group: B and C are shared by all heads. dur = 1 switches durations off. y_t does "
    "not depend on anything later than t.",
)
def selective_scan_forward(
    x: F64,
    dt_raw: F64,
    dt_bias: F64,
    A_log: F64,
    Bm: F64,
    Cm: F64,
    D: F64,
    dur: F64,
    *,
    reading: str = "discrete",
) -> F64:
    """Scan a sequence with input-dependent decays.

    Equation: DQN programme, temporal core (Mamba-2, arXiv:2405.21060)
        Delta_t = softplus(dt_raw + dt_bias) dur;  A = -exp(A_log);  a_t = exp(Delta_t A)
        h_t = a_t h_{t-1} + Delta_t x_t outer B_t;  y_t = sum_m h_t C_t + D x_t;  h_0 = 0
    Shapes: x (B, T, H, P); dt_raw (B, T, H); dt_bias, A_log, D (H,); Bm, Cm (B, T, M);
    dur (B, T). The state is (B, H, P, M). Returns y (B, T, H, P).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    delta, a = _discretised(dt_raw, dt_bias, A_log, dur, reading)
    into, out = (Cm, Bm) if reading == "b_c_exchanged" else (Bm, Cm)
    size = np.ones_like(delta) if reading == "input_without_delta" else delta
    write = written(size, x, into)
    if reading == "duration_on_x":
        write = write * dur[:, :, np.newaxis, np.newaxis, np.newaxis]
    elif reading == "first_step_skipped":
        write = np.concatenate([np.zeros_like(write[:, :1]), write[:, 1:]], axis=1)
    h = states(a, write)
    if reading == "read_before_write":
        h = np.concatenate([np.zeros_like(h[:, :1]), h[:, :-1]], axis=1)
    y = read(h, out)
    return y if reading == "skip_dropped" else y + D[:, np.newaxis] * x


def _discretised(dt_raw: F64, dt_bias: F64, A_log: F64, dur: F64, reading: str) -> tuple[F64, F64]:
    """Give (Delta, a), or what the wrong variants make of them."""
    if reading in ("duration_on_x", "duration_dropped"):
        dur = np.ones_like(dur)
    if reading == "bias_dropped":
        dt_bias = np.zeros_like(dt_bias)
    delta, A, a = steps(dt_raw, dt_bias, A_log, dur)
    if reading == "softplus_dropped":
        delta = (dt_raw + dt_bias) * dur[:, :, np.newaxis]
        a = np.exp(np.minimum(delta * A, 700.0))
    elif reading == "euler":
        a = 1.0 + delta * A
    elif reading == "growing":
        a = np.exp(np.minimum(-delta * A, 700.0))
    return delta, a


def retention(dt_raw: F64, dt_bias: F64, A_log: F64, dur: F64) -> F64:
    """Give the mean decay over batch, steps and heads: how much a state keeps of itself."""
    _, _, a = steps(dt_raw, dt_bias, A_log, dur)
    kept: F64 = np.asarray(np.mean(a))
    return kept
