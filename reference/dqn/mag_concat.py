"""Input of the magnitude branch: the trunk's features and the direction's values."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

CONCAT_ID, CONCAT_BACKWARD_ID = "dqn.mag_concat", "dqn.mag_concat_backward"
LEAST_RMS = 1e-6
LARGEST_SCALE = 100.0
WRONG_CONCAT = {
    "rms_per_row": "the rms of each sample's four values",
    "rectified": "the trunk's features through a ReLU first, as before they were signed",
    "unmatched": "c = 1",
    "unclipped": "no upper limit of c",
    "mean_absolute": "mean |Q| in place of the rms",
    "scaled_features": "the features scaled as well",
}
WRONG_CONCAT_BACKWARD = {
    "c_differentiated": "the rms differentiated as well",
    "unscaled": "dQ without c",
    "features_scaled": "dh times c",
}


def matched_scale(q: F64, h_rms: F64, c_max: float = LARGEST_SCALE) -> F64:
    """Give c: the features' rms over that of the whole block of values, at most c_max."""
    rms = np.sqrt(np.mean(q * q))
    result: F64 = np.minimum(h_rms / np.maximum(rms, LEAST_RMS), c_max)
    return result


def mag_concat_by_reciprocal(
    h: F64, q_dir: F64, h_rms: F64, c_max: float = LARGEST_SCALE
) -> tuple[F64, F64]:
    """Sum the squares and divide once."""
    count = q_dir.shape[0] * q_dir.shape[1]
    squares = np.sum(q_dir * q_dir) * (1.0 / np.asarray(float(count)))
    c = np.minimum(h_rms / np.maximum(np.sqrt(squares), LEAST_RMS), c_max)
    return np.concatenate([h, c * q_dir], axis=1), c


def _tiny_values(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"q_dir": 1e-4 * np.asarray(values["q_dir"])}


def _uneven_rows(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    q = np.array(values["q_dir"])
    return values | {"q_dir": q * (3.0 ** np.arange(q.shape[0])[:, np.newaxis] % 50.0)}


_MAG_INPUTS = (
    Symbol("h", ("B", "D"), Domain("real", -2.0, 2.0), "features of the trunk, signed"),
    Symbol("q_dir", ("B", "4"), Domain("real", -2.0, 2.0), "shifted expected values"),
    Symbol("h_rms", ("1",), Domain("positive", 0.5, 2.0), "running rms of the features"),
    Symbol("c_max", (), Domain("positive", 50.0, 200.0), "largest scale, 100", True),
)


@equation(
    CONCAT_ID,
    title="Input of the magnitude branch",
    source="DQN programme, 6: features and direction values, matched by rms",
    grade="fixed by the programme; limits proposed",
    formula="[h, c Q_dir],  c = min(h_rms / max(rms(Q_dir), 1e-6), c_max)",
    axes=("B", "D"),
    inputs=_MAG_INPUTS,
    outputs=(
        Symbol("mag_in", ("B", "D + 4"), Domain("real"), "features, then scaled values"),
        Symbol("c", ("1",), Domain("positive"), "the scale"),
    ),
    wrong=WRONG_CONCAT,
    forms={"default": (mag_concat_by_reciprocal,)},
    families=(
        Family("tiny_values", "the scale runs into its limit", _tiny_values),
        Family("uneven_rows", "samples of different scale: a rms per row shows", _uneven_rows),
    ),
    notes="Q_dir must be the shifted expected value; c is a constant in the backward pass.",
)
def mag_concat(
    h: F64, q_dir: F64, h_rms: F64, c_max: float = LARGEST_SCALE, *, reading: str = "default"
) -> tuple[F64, F64]:
    """Append the direction's values, scaled to the size of the features.

    Equation: mag_in = [h, c Q_dir], c = min(h_rms / max(rms(Q_dir), 1e-6), c_max), the rms over
    the whole block (B, 4).
    Shapes: h (B, D); q_dir (B, 4); h_rms (1,). Returns (mag_in (B, D + 4), c (1,)).
    """
    if reading not in ("default", *WRONG_CONCAT):
        raise UnknownReading(CONCAT_ID, reading, ("default", *WRONG_CONCAT))
    c = matched_scale(q_dir, h_rms, c_max)
    scale = c
    if reading == "rms_per_row":
        rms = np.sqrt(np.mean(q_dir * q_dir, axis=1, keepdims=True))
        scale = np.minimum(h_rms / np.maximum(rms, LEAST_RMS), c_max)
    elif reading == "unmatched":
        scale = c = 1.0 + 0.0 * c
    elif reading == "unclipped":
        scale = c = h_rms / np.maximum(np.sqrt(np.mean(q_dir * q_dir)), LEAST_RMS)
    elif reading == "mean_absolute":
        size = np.mean(np.abs(q_dir))
        scale = c = np.minimum(h_rms / np.maximum(size, LEAST_RMS), c_max)
    left = h
    if reading == "rectified":
        left = np.maximum(h, 0.0)
    elif reading == "scaled_features":
        left = c * h
    return np.concatenate([left, scale * q_dir], axis=1), c


def mag_concat_backward_in_turn(
    d_mag: F64, q_dir: F64, h_rms: F64, c_max: float = LARGEST_SCALE
) -> tuple[F64, F64]:
    """Divide by the sum of squares' root once more."""
    size = np.asarray(float(q_dir.shape[0] * q_dir.shape[1]))
    rms = np.sqrt(np.sum(q_dir * q_dir) / size)
    c = np.minimum(h_rms / np.maximum(rms, LEAST_RMS), c_max)
    return d_mag[:, :-4] + 0.0, d_mag[:, -4:] * c


@equation(
    CONCAT_BACKWARD_ID,
    title="Input of the magnitude branch, backward",
    source="DQN programme, 6",
    grade="proposed by the programme: the scale is a constant",
    formula="dh = d[:, :D],  dQ_dir = c d[:, D:]",
    axes=("B", "D"),
    inputs=(
        Symbol("d_mag", ("B", "D + 4"), Domain("real", -2.0, 2.0), "gradient at the input"),
        *_MAG_INPUTS[1:],
    ),
    outputs=(
        Symbol("d_h", ("B", "D"), Domain("real"), "gradient of the features"),
        Symbol("d_q", ("B", "4"), Domain("real"), "gradient of the direction values"),
    ),
    wrong=WRONG_CONCAT_BACKWARD,
    forms={"default": (mag_concat_backward_in_turn,)},
    families=(Family("uneven_rows", "samples of different scale", _uneven_rows),),
)
def mag_concat_backward(
    d_mag: F64,
    q_dir: F64,
    h_rms: F64,
    c_max: float = LARGEST_SCALE,
    *,
    reading: str = "default",
) -> tuple[F64, F64]:
    """Take a gradient back through the concatenation.

    Equation: dh = d[:, :D], dQ_dir = c d[:, D:] with c as in the forward pass, held constant.
    Shapes: d_mag (B, D + 4); q_dir (B, 4); h_rms (1,). Returns (d_h (B, D), d_q (B, 4)).
    """
    if reading not in ("default", *WRONG_CONCAT_BACKWARD):
        raise UnknownReading(CONCAT_BACKWARD_ID, reading, ("default", *WRONG_CONCAT_BACKWARD))
    c = matched_scale(q_dir, h_rms, c_max)
    d_h, d_q = d_mag[:, :-4], d_mag[:, -4:]
    if reading == "features_scaled":
        return c * d_h, c * d_q
    if reading == "unscaled":
        return d_h + 0.0, d_q + 0.0
    if reading == "c_differentiated":
        along = np.sum(d_q * q_dir) / np.maximum(np.sum(q_dir * q_dir), LEAST_RMS)
        return d_h + 0.0, c * (d_q - along * q_dir)
    return d_h + 0.0, c * d_q
