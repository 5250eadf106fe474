"""Errors of the bounds engine."""

from __future__ import annotations

from trueup.oracle.errors import OracleError


class BoundsError(OracleError):
    """A bound cannot be derived; the message says what, where and what to do."""


class Unsupported(BoundsError):
    """The reference does something the array types cannot follow.

    Inside an evaluation this makes the engine fall back to perturbing the inputs.
    """


class Oversized(Unsupported):
    """An intermediate of the reference is too large to be kept once per sample."""
