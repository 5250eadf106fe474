"""The shift of the atoms that an auxiliary head gives to the direction's values."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.atom_shift"
GRADIENT_ID = "dqn.atom_shift_gradient"
PRIOR = (-0.5, 0.0, 0.5, 0.0)
"""W at the start: Short, Hold, Long, Flat."""
BRANCH_WEIGHT = 0.25
WRONG = {
    "not_recentred": "s taken as a probability, (s + 1) / 2",
    "recentred_again": "2 s - 1: the producer has recentred it already",
    "one_weight": "the weight of the first action for all",
    "neighbour_weight": "W of the next action",
}
WRONG_GRADIENT = {
    "sign_flipped": "both with the other sign",
    "overwritten": "dstate written over what was there, not added to it",
    "of_other_action": "the action after the taken one",
    "weight_missing": "the importance weight left out",
    "batch_missing": "not divided by the batch",
    "all_actions": "every action's row receives every sample",
    "signal_missing": "dW without s",
    "last_sample_missing": "the sum stops one sample early",
}


def _no_signal(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"signal": np.zeros_like(values["signal"])}


def _never_taken(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"action": np.zeros_like(values["action"])}


def atom_shift_by_columns(W: F64, signal: F64) -> F64:
    """Give one action after the other."""
    return np.stack([W[a] * signal for a in range(W.shape[0])], axis=1)


@equation(
    ID,
    title="Shift of the direction's atoms",
    source="DQN programme, 7.4",
    grade="fixed by the programme",
    formula="shift[b,a] = W[a] s[b]",
    axes=("B", "n_actions"),
    inputs=(
        Symbol("W", ("n_actions",), Domain("real", -0.5, 0.5), "weight of every action"),
        Symbol("signal", ("B",), Domain("real", -1.0, 1.0), "state[:, 121], 2 p_up - 1"),
    ),
    outputs=(Symbol("shift", ("B", "n_actions"), Domain("real"), "moves all atoms of a row"),),
    wrong=WRONG,
    forms={"default": (atom_shift_by_columns,)},
    families=(Family("no_signal", "s = 0 moves nothing", _no_signal, right_kernel_only=True),),
    notes="Every reader of the atoms must take it: expected value, loss on both sides, gradient, "
    "the magnitude branch's input, and selection.",
)
def atom_shift(W: F64, signal: F64, *, reading: str = "default") -> F64:
    """Give how far the atoms of every action move.

    Equation: shift[b,a] = W[a] s[b]; s is recentred to [-1, 1] by its producer.
    Shapes: W (n_actions,); signal (B,). Returns (B, n_actions).
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    if reading == "not_recentred":
        signal = 0.5 * (signal + 1.0)
    elif reading == "recentred_again":
        signal = 2.0 * signal - 1.0
    elif reading == "one_weight":
        W = W[:1] + np.zeros_like(W)
    elif reading == "neighbour_weight":
        W = np.roll(W, -1)
    return W * signal[:, np.newaxis]


def atom_shift_gradient_by_rows(
    d_shift: F64,
    action: Any,
    signal: F64,
    weight: F64,
    W: F64,
    d_state: F64,
    branch_weight: float = BRANCH_WEIGHT,
) -> tuple[F64, F64]:
    """Weigh the gradients first, then give each action its own."""
    g = d_shift * (weight * (branch_weight / np.asarray(float(weight.shape[0]))))
    own = np.where(action[:, np.newaxis] == np.arange(W.shape[0]), 1.0, 0.0)
    picked = np.sum(own * W, axis=1)
    return np.sum(own * (g * signal)[:, np.newaxis], axis=0), d_state + g * picked


@equation(
    GRADIENT_ID,
    title="Gradient of the shift's weights and of its signal",
    source="DQN programme, 7.4",
    grade="derived; the target side detached as proposed by the programme",
    formula="dW[a] = sum_{b: a_b = a} omega_b g_b s_b;  dstate_b += omega_b g_b W[a_b]",
    axes=("B", "n_actions"),
    inputs=(
        Symbol("d_shift", ("B",), Domain("real", -2.0, 2.0), "dL_b/dshift of the taken action"),
        Symbol("action", ("B",), Domain("index", axis="n_actions"), "taken direction"),
        Symbol("signal", ("B",), Domain("real", -1.0, 1.0), "state[:, 121]"),
        Symbol("weight", ("B",), Domain("positive", 0.3, 1.0), "importance weight"),
        Symbol("W", ("n_actions",), Domain("real", -0.5, 0.5), "weight of every action"),
        Symbol("d_state", ("B",), Domain("real", -0.5, 0.5), "gradient of the signal so far"),
        Symbol("branch_weight", (), Domain("positive", 0.1, 0.5), "1/4", optional=True),
    ),
    outputs=(
        Symbol("d_W", ("n_actions",), Domain("real"), "gradient of the weights"),
        Symbol("d_state_next", ("B",), Domain("real"), "gradient of the signal, added to"),
    ),
    wrong=WRONG_GRADIENT,
    forms={"default": (atom_shift_gradient_by_rows,)},
    families=(Family("never_taken", "one action alone: the others get exactly 0", _never_taken),),
    notes="omega_b = weight_b branch_weight / B. An action never taken has a gradient of 0.",
)
def atom_shift_gradient(
    d_shift: F64,
    action: Any,
    signal: F64,
    weight: F64,
    W: F64,
    d_state: F64,
    branch_weight: float = BRANCH_WEIGHT,
    *,
    reading: str = "default",
) -> tuple[F64, F64]:
    """Take dL/dshift back to the weights and to the state.

    Equation: with omega_b = weight_b branch_weight / B
        dW[a] = sum_{b: a_b = a} omega_b g_b s_b,   dstate_b += omega_b g_b W[a_b]
    Shapes: d_shift, action, signal, weight, d_state (B,); W (n_actions,).
    Returns (d_W (n_actions,), d_state (B,)).
    """
    if reading not in ("default", *WRONG_GRADIENT):
        raise UnknownReading(GRADIENT_ID, reading, ("default", *WRONG_GRADIENT))
    count = 1 if reading == "batch_missing" else weight.shape[0]
    omega = weight / count * branch_weight
    if reading == "weight_missing":
        omega = 0.0 * omega + branch_weight / count
    g = -omega * d_shift if reading == "sign_flipped" else omega * d_shift
    actions = np.arange(W.shape[0])
    taken = action + 1 if reading == "of_other_action" else action
    own = taken[:, np.newaxis] == actions
    if reading == "all_actions":
        own = own | ~own
    picked = np.sum(np.where(own, W, 0.0), axis=1)
    term = g if reading == "signal_missing" else g * signal
    terms = np.where(own, term[:, np.newaxis], 0.0)
    d_W = np.sum(terms[:-1] if reading == "last_sample_missing" else terms, axis=0)
    change = g * picked
    return d_W, change if reading == "overwritten" else d_state + change
