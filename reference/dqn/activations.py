"""Elementwise functions of the blocks: sigmoid, softplus, ELU; and softmax over the last axis."""

from __future__ import annotations

import numpy as np

from trueup.reference.symbols import F64


def sigmoid(z: F64) -> F64:
    """Give 1 / (1 + exp(-z)); exp(-z) may overflow, and the quotient is 0 there, as it should."""
    with np.errstate(over="ignore"):
        result: F64 = 1.0 / (1.0 + np.exp(-z))
    return result


def softplus(z: F64) -> F64:
    """Give log(1 + exp(z)), of the larger of z and 0: nothing overflows."""
    result: F64 = np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    return result


def elu(z: F64) -> F64:
    """Give z where it is positive, expm1(z) elsewhere: continuous, of slope 1 at 0."""
    result: F64 = np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0)))
    return result


def softmax(z: F64, axis: int = -1) -> F64:
    """Give exp(z) over its sum, the largest z taken off first."""
    weight = np.exp(z - np.max(z, axis=axis, keepdims=True))
    result: F64 = weight / np.sum(weight, axis=axis, keepdims=True)
    return result
