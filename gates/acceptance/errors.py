"""Why an acceptance could not be judged at all (exit code 2)."""

from __future__ import annotations

from trueup.gates.errors import GateError


class AcceptanceError(GateError):
    """An acceptance file, or something it names, is not fit to judge by."""


class Incomparable(GateError):
    """Two measurements that must not be compared: another GPU, other clocks, other epochs."""


class EngineMissing(GateError):
    """Great Expectations is not installed."""
