"""Inputs on which the readings of linear attention part, and on which they must coincide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.symbols import Family, Values


def _gaps(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    if "mask" not in values:
        return values
    mask = np.asarray(values["mask"])
    spots = np.arange(mask.size).reshape(mask.shape)
    return values | {"mask": (spots % 3 != 1).astype(np.float64)}


def _no_write(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    if "mask" not in values:
        return values
    return values | {"mask": np.zeros_like(values["mask"])}


def _all_write(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    if "mask" not in values:
        return values
    return values | {"mask": np.ones_like(values["mask"])}


def _from_rest(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"M_0": np.zeros_like(values["M_0"])} if "M_0" in values else values


def _unread_writes(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Take from each query its part along the token's own key (a key of one number is dropped)."""
    q, k = np.asarray(values["q"]), np.asarray(values["k"])
    if q.shape[-1] == 1:
        return values | {"k": np.zeros_like(k)}
    # A key with one entry and a query without it: exactly orthogonal, however they are rounded.
    spot = rng.integers(0, q.shape[-1], q.shape[:2])
    chosen = np.arange(q.shape[-1]) == spot[..., None]
    return values | {"q": np.where(chosen, 0.0, q), "k": np.where(chosen, k, 0.0)}


def _recall(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"q": np.array(values["k"], dtype=np.float64)}


FAMILIES = (
    Family("gaps", "every third token is masked: it must read and must not write", _gaps),
    Family("all_write", "no token is masked, as in most calls", _all_write),
    Family("recall", "each token asks for the key it writes: before or after shows most", _recall),
    Family("from_rest", "M_0 = 0, as at the start of a sequence", _from_rest),
    Family(
        "no_write",
        "all tokens masked: y_t = M_0 q_t, and the memory stays as it was",
        _no_write,
        right_kernel_only=True,
    ),
    Family(
        "unread_writes",
        "k_t . q_t = 0: reading before and after the write is the same",
        _unread_writes,
        right_kernel_only=True,
    ),
)
