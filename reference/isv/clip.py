"""Clipping that keeps NaN, as every clip of the programme has to."""

from __future__ import annotations

import numpy as np

from trueup.reference.symbols import F64, Scalar


def clip(x: F64, low: Scalar, high: Scalar) -> F64:
    """Limit to [low, high] by comparisons: a NaN is below and above nothing, so it stays."""
    return np.where(x < low, low, np.where(x > high, high, x))
