"""Inputs on which the readings of projected descent part, and on which they must coincide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.symbols import F64, Family, Values


def _rows(values: Values) -> tuple[str, F64, str, F64]:
    """Give the input and the surprise (or target), vectors or rows of a batch, with names."""
    x = "x" if "x" in values else "X"
    u = next(name for name in ("u", "U", "v") if name in values)
    return x, np.asarray(values[x]), u, np.asarray(values[u])


def _with_norm(values: Values, squared: float) -> Values:
    """Scale the inputs so that |X|_F^2 is as asked; all-zero inputs are left alone."""
    name, x, _, _ = _rows(values)
    norm = float(np.linalg.norm(x))
    return values | {name: x * (np.sqrt(squared) / norm)} if norm > 0.0 else values


def _balanced(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    values = _with_norm(values, float(rng.uniform(0.3, 0.8)) / float(np.mean(values["eta"])))
    _, x, name, u = _rows(values)
    read = x @ np.asarray(values["W"]).T
    size, signal = float(np.linalg.norm(u)), float(np.linalg.norm(read))
    return values | {name: u * (signal / size)} if size > 0.0 and signal > 0.0 else values


def _no_surprise(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    _, _, name, u = _rows(values)
    return values | {name: np.zeros_like(u)}


def _long_input(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _with_norm(values, float(rng.uniform(20.0, 60.0)))


def _short_input(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _with_norm(values, float(10.0 ** rng.uniform(-3.0, -1.5)))


def _no_input(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    name, x, _, _ = _rows(values)
    return values | {name: np.zeros_like(x)}


def _unit_input(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _with_norm(values, 1.0)


def _unit_eta(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"eta": 1.0}


def _fixed_point(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    _, x, name, _ = _rows(values)
    return values | {name: -(x @ np.asarray(values["W"]).T)}


def _duplicate_rows(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    x, u = np.asarray(values["X"]), np.asarray(values["U"])
    return values | {
        "X": np.repeat(x[:1], len(x), axis=0) / np.sqrt(len(x)),
        "U": np.repeat(u[:1], len(u), axis=0),
    }


def _orthogonal_rows(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    q = np.linalg.qr(rng.standard_normal((sizes["d_in"], sizes["d_in"])))[0]
    x = np.zeros((sizes["B"], sizes["d_in"]))
    count = min(x.shape)
    x[:count] = q[:count] * rng.uniform(0.5, 2.0, size=(count, 1))
    return values | {"X": x}


def _learned(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"v": np.asarray(values["W"]) @ np.asarray(values["x"])}


def _strong_gates(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"alpha": 0.3 * np.asarray(values["alpha"])} if "alpha" in values else values


def _orthogonal_tokens(
    rng: np.random.Generator, sizes: Mapping[str, int], values: Values
) -> Values:
    q = np.linalg.qr(rng.standard_normal((sizes["d_in"], sizes["d_in"])))[0]
    x = np.zeros((sizes["C"], sizes["d_in"]))
    count = min(x.shape)
    x[:count] = q[:count] * rng.uniform(0.5, 2.0, size=(count, 1))
    values = values | {"X": x}
    return values | {"alpha": np.ones_like(values["alpha"])} if "alpha" in values else values


BALANCED = Family(
    "balanced",
    "0.3 <= eta |x|^2 <= 0.8 and |u| = |W x|: neither term hides behind the other",
    _balanced,
)
NO_SURPRISE = Family(
    "no_surprise", "u = 0: W still decays along x, unlike under plain descent", _no_surprise
)
NO_INPUT = Family(
    "no_input", "x = 0: W is unchanged in every reading", _no_input, right_kernel_only=True
)
FIXED_POINT = Family(
    "fixed_point",
    "u = -W x: derived and prox leave W alone, up to the rounding of W x",
    _fixed_point,
    right_kernel_only=True,
)

SINGLE = (
    BALANCED,
    NO_SURPRISE,
    Family("long_input", "|x|^2 of tens, as after layer normalisation", _long_input),
    Family("short_input", "|x|^2 far below 1: normalising it divides by little", _short_input),
    NO_INPUT,
    Family(
        "unit_input",
        "|x| = 1: literal and normalized coincide, prox and prox_unit too",
        _unit_input,
        right_kernel_only=True,
    ),
    Family("unit_eta", "eta = 1: derived and literal coincide", _unit_eta, right_kernel_only=True),
    FIXED_POINT,
)

BATCH = (
    BALANCED,
    NO_SURPRISE,
    NO_INPUT,
    FIXED_POINT,
    Family(
        "orthogonal_rows",
        "orthogonal samples: one batch step equals the token loop",
        _orthogonal_rows,
        right_kernel_only=True,
    ),
    Family(
        "duplicate_rows",
        "equal samples: sums over the batch round systematically",
        _duplicate_rows,
        right_kernel_only=True,
    ),
)

ORDER = (
    Family(
        "short_input",
        "|x|^2 far below 1: the projection divides by little",
        _short_input,
    ),
    Family("long_input", "|x|^2 of tens, as after layer normalisation", _long_input),
    Family("learned", "v = W x: the surprise is 0, the decay is not", _learned),
    NO_INPUT,
)

CHUNK = (
    BALANCED,
    NO_SURPRISE,
    Family(
        "repeated_token",
        "one token again and again: every write meets the one before it",
        _duplicate_rows,
    ),
    Family("strong_gates", "alpha below 0.3: where it belongs shows", _strong_gates),
    NO_INPUT,
    Family(
        "orthogonal_rows",
        "orthogonal tokens at alpha = 1: one batch step does the same",
        _orthogonal_tokens,
        right_kernel_only=True,
    ),
)
