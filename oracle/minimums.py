"""Too little checked is a failure of its own: what a contract demands at least."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.oracle.contract import Contract
from trueup.oracle.verdict import Finding, LaneVerdict, Outcome


def minimums(contract: Contract, lanes: Sequence[LaneVerdict]) -> tuple[Finding, ...]:
    """Hold the numeric lane's counts against what the contract demands at least."""
    found = []
    for lane in lanes:
        if lane.lane != "numeric" or lane.verdict is Outcome.FAIL:
            continue
        for what, got, least in (
            ("cases", lane.cases, contract.minimum_cases),
            ("elements", lane.elements, contract.minimum_elements),
        ):
            if got < least:
                found.append(
                    Finding(
                        f"minimum.{what}",
                        "error",
                        contract.id,
                        str(contract.path),
                        f"{got} {what} judged",
                        f"at least {least}",
                        "too little was checked to call it verified: widen [contract] limits, "
                        "or correct `minimum`",
                    )
                )
    return tuple(found)
