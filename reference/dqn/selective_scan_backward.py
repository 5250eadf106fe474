"""Selective scan (Mamba-2) with bar durations, backward."""

from __future__ import annotations

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import sigmoid, softplus
from trueup.reference.dqn.selective_scan_forward import (
    FAMILIES,
    INPUTS,
    read,
    states,
    steps,
    written,
)
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Symbol

ID = "dqn.selective_scan_backward"
READINGS = ("adjoint",)
WRONG_FORMULAS = {
    "decay_of_same_step": "G_t = dy C + a_t G_{t+1}",
    "state_of_same_step": "da_t from h_t, not from h_{t-1}",
    "softplus_slope_missing": "ddt_raw = dDelta dur",
    "duration_missing": "ddt_raw = dDelta sigmoid(.)",
    "input_path_missing": "dDelta from the decay only",
    "decay_path_missing": "dDelta from the input only",
    "skip_dropped": "dx without D dy",
    "A_slope_missing": "dA_log = dA",
    "delta_missing_in_dx": "dx = G B + D dy",
    "first_step_skipped": "the adjoint stops at t = 1",
    "carried_over": "the adjoint is not carried from step to step",
}
WRONG = tuple(WRONG_FORMULAS)
Gradients = tuple[F64, F64, F64, F64, F64, F64, F64, F64]


def selective_scan_backward_by_sums(
    dy: F64, x: F64, dt_raw: F64, dt_bias: F64, A_log: F64, Bm: F64, Cm: F64, D: F64, dur: F64
) -> Gradients:
    """Give da a without a product of G and h: what flows out of a step less what flows in.

    G_t h_t = a_t G_t h_{t-1} + Delta x (G B) and G_t h_t = dy C h_t + a_{t+1} G_{t+1} h_t, so
    da_t a_t = sum over s >= t of [dy_s (y_s - D x_s) - Delta_s x_s (G_s B_s)]: two scans that
    never meet.
    """
    size, A, a = steps(dt_raw, dt_bias, A_log, dur)
    h, G = states(a, written(size, x, Bm)), _adjoints(a, dy, Cm)
    back = read(G, Bm)
    inner = np.sum(x * back, axis=-1)  # (B, T, H)
    net = np.sum(dy * read(h, Cm), axis=-1) - size * inner
    flow = np.zeros_like(net[:, 0])
    flows = []
    for t in range(x.shape[1] - 1, -1, -1):
        flow = flow + net[:, t]
        flows.append(flow)
    decay = np.stack(flows[::-1], axis=1)
    dx = size[..., np.newaxis] * back + D[:, np.newaxis] * dy
    dA = np.sum(np.sum(decay * size, axis=1), axis=0)
    of_states = _of_states(dy, x, size, h, G)
    return _gathered(dy, x, dt_raw, dt_bias, dur, inner + decay * A, dA * A, dx, of_states)


def _adjoints(a: F64, dy: F64, Cm: F64, reading: str = "adjoint") -> F64:
    """Give G_t = dy_t outer C_t + a_{t+1} G_{t+1} of all steps, (B, T, H, P, M)."""
    decay = a[..., np.newaxis, np.newaxis]
    into = dy[..., np.newaxis] * Cm[:, :, np.newaxis, np.newaxis]
    if reading == "carried_over":
        decay = np.zeros_like(decay)
    last = dy.shape[1] - 1
    G = into[:, last]
    every = [G]
    for t in range(last - 1, -1, -1):
        G = into[:, t] + decay[:, t if reading == "decay_of_same_step" else t + 1] * G
        every.append(G)
    if reading == "first_step_skipped":
        every[-1] = np.zeros_like(G)
    return np.stack(every[::-1], axis=1)


def _of_states(dy: F64, x: F64, size: F64, h: F64, G: F64) -> tuple[F64, F64]:
    """Give (dB, dC): sums over heads and their elements."""
    u = size[..., np.newaxis] * x
    dB = np.sum(np.sum(u[..., np.newaxis] * G, axis=3), axis=2)
    return dB, np.sum(np.sum(dy[..., np.newaxis] * h, axis=3), axis=2)


def _gathered(
    dy: F64,
    x: F64,
    dt_raw: F64,
    dt_bias: F64,
    dur: F64,
    d_size: F64,
    dA_log: F64,
    dx: F64,
    of_states: tuple[F64, F64],
    reading: str = "adjoint",
) -> Gradients:
    """Give all eight gradients from that of Delta."""
    z = dt_raw + dt_bias
    longer = np.ones_like(dur) if reading == "duration_missing" else dur
    ddt = d_size * longer[:, :, np.newaxis]
    if reading != "softplus_slope_missing":
        ddt = ddt * sigmoid(z)
    ddur = np.sum(d_size * softplus(z), axis=2)
    dbias = np.sum(np.sum(ddt, axis=1), axis=0)
    dD = np.sum(np.sum(np.sum(dy * x, axis=3), axis=1), axis=0)
    return dx, ddt, dbias, dA_log, *of_states, dD, ddur


@equation(
    ID,
    title="Selective scan with bar durations, backward",
    source="DQN programme, temporal core; Mamba-2, arXiv:2405.21060",
    grade="derived, duration term proposed",
    formula="G_t = dy_t C_t^T + a_{t+1} G_{t+1};  dx = Delta G B + D dy;  dB = sum Delta x G; "
    "dC = sum dy h;  dDelta = sum G x B + A a sum G h_{t-1}",
    axes=("B", "T", "H", "P", "M"),
    inputs=(
        Symbol("dy", ("B", "T", "H", "P"), Domain("real", -2.0, 2.0), "gradient at the outputs"),
        *INPUTS,
    ),
    outputs=(
        Symbol("dx", ("B", "T", "H", "P"), Domain("real"), "gradient of x"),
        Symbol("ddt_raw", ("B", "T", "H"), Domain("real"), "gradient of dt_raw"),
        Symbol("ddt_bias", ("H",), Domain("real"), "gradient of dt_bias"),
        Symbol("dA_log", ("H",), Domain("real"), "gradient of A_log"),
        Symbol("dBm", ("B", "T", "M"), Domain("real"), "gradient of B"),
        Symbol("dCm", ("B", "T", "M"), Domain("real"), "gradient of C"),
        Symbol("dD", ("H",), Domain("real"), "gradient of D"),
        Symbol("ddur", ("B", "T"), Domain("real"), "gradient of the durations"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"adjoint": (selective_scan_backward_by_sums,)},
    families=FAMILIES,
    notes="Sums over the batch are of per-sample partials in one fixed order. dA cancels over t.",
)
def selective_scan_backward(
    dy: F64,
    x: F64,
    dt_raw: F64,
    dt_bias: F64,
    A_log: F64,
    Bm: F64,
    Cm: F64,
    D: F64,
    dur: F64,
    *,
    reading: str = "adjoint",
) -> Gradients:
    """Take a gradient back through the scan.

    Equation: DQN programme, temporal core
        G_t = dy_t outer C_t + a_{t+1} G_{t+1};  dC_t = sum_{h,p} dy h_t;  dB_t = sum Delta x G
        dx_t = Delta sum_m G B + D dy;  da_t = sum_{p,m} G h_{t-1};  dD = sum dy x
        dDelta = sum_{p,m} G x B + da a A;  dA_log = A sum_{b,t} da a Delta
        ddt_raw = dDelta dur sigmoid(dt_raw + dt_bias);  ddt_bias = sum_{b,t} ddt_raw
        ddur = sum_h dDelta softplus(dt_raw + dt_bias)
    Shapes: dy, x (B, T, H, P); dt_raw (B, T, H); dt_bias, A_log, D (H,); Bm, Cm (B, T, M);
    dur (B, T). Returns (dx, ddt_raw, ddt_bias, dA_log, dBm, dCm, dD, ddur).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    size, A, a = steps(dt_raw, dt_bias, A_log, dur)
    h, G = states(a, written(size, x, Bm)), _adjoints(a, dy, Cm, reading)
    before = h
    if reading != "state_of_same_step":
        before = np.concatenate([np.zeros_like(h[:, :1]), h[:, :-1]], axis=1)
    through = read(G, Bm)  # (B, T, H, P)
    decay = np.sum(np.sum(G * before, axis=-1), axis=-1) * a  # (B, T, H)
    dx = through if reading == "delta_missing_in_dx" else size[..., np.newaxis] * through
    if reading != "skip_dropped":
        dx = dx + D[:, np.newaxis] * dy
    inner = np.sum(through * x, axis=-1)
    d_size = inner + decay * A
    if reading == "input_path_missing":
        d_size = decay * A
    elif reading == "decay_path_missing":
        d_size = inner
    dA = np.sum(np.sum(decay * size, axis=1), axis=0)
    dA_log = dA if reading == "A_slope_missing" else dA * A
    of_states = _of_states(dy, x, size, h, G)
    return _gathered(dy, x, dt_raw, dt_bias, dur, d_size, dA_log, dx, of_states, reading)
