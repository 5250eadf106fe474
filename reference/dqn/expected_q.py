"""Expected value of a distributional head, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.atoms import (
    DEGENERATE,
    FAR,
    PEAKED,
    POSITIONS,
    SUPPORT,
    atoms,
    is_valid,
    prepared_positions,
    prepared_support,
    softmax,
)
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.expected_q"
BACKWARD_ID = "dqn.expected_q_backward"
WRONG = {
    "unshifted": "sum p z without the shift of the atoms",
    "shift_on_logits": "the shift added to the logits: it cancels in the softmax",
    "half_atom": "atoms in the middle of their cells",
    "mode": "the atom of the largest probability",
    "logits_unnormalised": "sum exp(l - max) z, not divided by the sum",
    "support_of_first_row": "one support for all",
    "step_over_n": "atoms (v_max - v_min) / n_atoms apart",
    "softmax_over_actions": "probabilities normalised over the actions",
}
WRONG_BACKWARD = {
    "centre_missing": "dlogits = d p z",
    "support_centre": "dlogits = d p (z - middle of the support)",
    "unweighted": "dlogits = p (z - Q), the upstream gradient left out",
    "shift_gradient_zero": "d_shift = 0",
    "unshifted": "dlogits from unshifted atoms and a shifted Q",
}


def prepare(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Make supports and positions that can be used, and some shifts of exactly 0."""
    n = np.shape(values["logits"])[-1]
    changed: Values = {"support": prepared_support(np.asarray(values["support"]), n)}
    if "positions" in values:
        changed["positions"] = prepared_positions(np.asarray(values["positions"]))
    return values | changed


def _no_shift(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    changed = {"shift": np.zeros_like(values["shift"])} if "shift" in values else {}
    return values | changed


NO_SHIFT = Family("no_shift", "a shift of 0 changes no bit", _no_shift, right_kernel_only=True)
FAMILIES = (FAR, PEAKED, DEGENERATE, NO_SHIFT)


def expected_q_from_v_min(
    logits: F64, support: F64, positions: F64 | None = None, shift: F64 | None = None
) -> tuple[F64, Any]:
    """Write Q as v_min + shift + sum p (z - v_min), the sum first: it does not cancel."""
    n = logits.shape[-1]
    valid = is_valid(support, n)
    relative = _relative(support, n, positions)
    weight = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    rise = np.sum(weight * relative, axis=-1) / np.sum(weight, axis=-1)
    return _shifted_first(support, shift) + np.where(valid, rise, 0.0), _flags(valid)


def _relative(support: F64, n: int, positions: F64 | None) -> F64:
    if positions is None:
        return np.arange(n) * support[..., 2:3]
    return positions * (support[..., 1:2] - support[..., 0:1])


def _shifted_first(support: F64, shift: F64 | None) -> F64:
    first = support[..., 0]
    return first if shift is None else np.where(shift == 0.0, first, first + shift)


def expected_q_counted(
    logits: F64, support: F64, positions: F64 | None = None, shift: F64 | None = None
) -> tuple[F64, Any]:
    """Write Q as v_min + shift + step sum i p, with positions for i / (n - 1)."""
    n = logits.shape[-1]
    valid = is_valid(support, n)
    places = np.arange(n) if positions is None else positions
    step = support[..., 2] if positions is None else support[..., 1] - support[..., 0]
    weight = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    share = np.sum(weight * places, axis=-1) / np.sum(weight, axis=-1)
    return _shifted_first(support, shift) + np.where(valid, step * share, 0.0), _flags(valid)


def _flags(valid: Any) -> Any:
    """Give 1 where a support is degenerate."""
    return np.where(valid, 0, 1)


_ROWS = ("B", "n_actions")
_INPUTS = (
    Symbol("logits", (*_ROWS, "n_atoms"), Domain("real", -2.0, 2.0), "logits of the atoms"),
    Symbol("support", (*_ROWS, "3"), SUPPORT, "v_min, v_max, delta_z of every row"),
    POSITIONS,
    Symbol(
        "shift",
        _ROWS,
        Domain("real", -1.0, 1.0),
        "moves all atoms of a row; none if left out",
        optional=True,
    ),
)


@equation(
    ID,
    title="Expected value of a distributional head",
    source="C51, arXiv:1707.06887; supports of every sample: DQN programme, 7.1, 7.2, 7.4",
    grade="as published; degenerate supports and positions proposed by the programme",
    formula="Q = sum_i p_i z_i,  p = softmax(logits),  z_i = v_min + i delta_z + shift",
    axes=("B", "n_actions", "n_atoms"),
    inputs=_INPUTS,
    outputs=(
        Symbol("q", _ROWS, Domain("real"), "expected value"),
        Symbol("invalid", _ROWS, Domain("mask"), "1 where the support is degenerate"),
    ),
    wrong=WRONG,
    forms={"default": (expected_q_from_v_min, expected_q_counted)},
    families=FAMILIES,
    prepare=prepare,
    notes="Where v_min is far above the range the plain sum cancels; a kernel sums p (z - v_min).",
)
def expected_q(
    logits: F64,
    support: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    *,
    reading: str = "default",
) -> tuple[F64, Any]:
    """Give the expected value of every action.

    Equation: C51 with a support for every sample and action
        p = softmax(logits),  z_i = v_min + i delta_z  (or v_min + positions_i (v_max - v_min)),
        Q = sum_i p_i (z_i + shift)
    A degenerate support (v_max <= v_min, delta_z <= 0, a delta_z that does not fit, NaN) puts all
    mass on atom 0, Q = z_0, and is flagged.
    Shapes: logits (B, n_actions, n_atoms); support (B, n_actions, 3); positions (n_atoms,); shift
    (B, n_actions). Returns (q, invalid), both (B, n_actions).
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    n = logits.shape[-1]
    if reading == "support_of_first_row":
        support = support[:1] + np.zeros_like(support)
    if reading == "shift_on_logits" and shift is not None:
        logits = logits + shift[..., np.newaxis]
    if reading in ("unshifted", "shift_on_logits"):
        if shift is None:
            raise NotApplicable(ID, reading, "a shift")
        shift = None
    valid = is_valid(support, n)
    z, p = atoms(support, n, positions, shift), softmax(logits)
    if reading == "softmax_over_actions":
        p = np.moveaxis(softmax(np.moveaxis(logits, 1, 2)), 2, 1)
    elif reading == "logits_unnormalised":
        p = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    elif reading == "half_atom":
        z = z + 0.5 * support[..., 2:3]
    elif reading == "step_over_n":
        z = z[..., :1] + (z - z[..., :1]) * ((n - 1) / n)
    total = np.sum(p * z, axis=-1)
    if reading == "mode":
        best = np.argmax(logits, axis=-1)
        total = np.take_along_axis(z, best[..., np.newaxis], axis=-1)[..., 0]
    return np.where(valid, total, z[..., 0]), _flags(valid)


def expected_q_backward_centred(
    d_q: F64,
    logits: F64,
    support: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
) -> tuple[F64, F64]:
    """Take atoms and Q relative to v_min, where the difference does not cancel."""
    n = logits.shape[-1]
    relative, p = _relative(support, n, positions), softmax(logits)
    rise = np.sum(p * relative, axis=-1, keepdims=True)
    valid = is_valid(support, n)[..., np.newaxis]
    d = np.where(valid, d_q[..., np.newaxis] * (p * (relative - rise)), 0.0)
    return d, d_q + 0.0


@equation(
    BACKWARD_ID,
    title="Expected value of a distributional head, backward",
    source="C51, arXiv:1707.06887; DQN programme, 7.2 and 7.4",
    grade="derived",
    formula="dQ/dlogit_i = p_i (z_i - Q);  dQ/dshift = 1",
    axes=("B", "n_actions", "n_atoms"),
    inputs=(Symbol("d_q", _ROWS, Domain("real", -2.0, 2.0), "gradient at Q"), *_INPUTS),
    outputs=(
        Symbol("d_logits", (*_ROWS, "n_atoms"), Domain("real"), "gradient at the logits"),
        Symbol("d_shift", _ROWS, Domain("real"), "gradient at the shift of the atoms"),
    ),
    wrong=WRONG_BACKWARD,
    forms={"default": (expected_q_backward_centred,)},
    families=FAMILIES,
    prepare=prepare,
    notes="Sums to 0 over the atoms. The shift moves Q and leaves d_logits as it is. A degenerate "
    "support has no gradient at its logits.",
)
def expected_q_backward(
    d_q: F64,
    logits: F64,
    support: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    *,
    reading: str = "default",
) -> tuple[F64, F64]:
    """Take a gradient back through the expected value.

    Equation: d_logits_i = d_q p_i (z_i - Q),  d_shift = d_q.
    Shapes: d_q, shift (B, n_actions); logits (B, n_actions, n_atoms); support (B, n_actions, 3);
    positions (n_atoms,). Returns (d_logits, d_shift).
    """
    if reading not in ("default", *WRONG_BACKWARD):
        raise UnknownReading(BACKWARD_ID, reading, ("default", *WRONG_BACKWARD))
    if reading == "unshifted" and shift is None:
        raise NotApplicable(BACKWARD_ID, reading, "a shift")
    n = logits.shape[-1]
    z, p = atoms(support, n, positions, shift), softmax(logits)
    q = np.sum(p * z, axis=-1, keepdims=True)
    if reading == "unshifted":
        z = atoms(support, n, positions)
    elif reading == "centre_missing":
        q = 0.0 * q
    elif reading == "support_centre":
        q = 0.5 * (z[..., :1] + z[..., -1:])
    upstream = 1.0 + 0.0 * d_q if reading == "unweighted" else d_q
    d = upstream[..., np.newaxis] * (p * (z - q))
    d = np.where(is_valid(support, n)[..., np.newaxis], d, 0.0)
    return d, 0.0 * d_q if reading == "shift_gradient_zero" else d_q + 0.0
