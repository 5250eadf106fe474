"""What closing a ticket raises when it cannot judge."""

from __future__ import annotations

from trueup.gates.errors import GateError


class ClosureError(GateError):
    """The ticket or the statement itself is not fit to be judged."""
