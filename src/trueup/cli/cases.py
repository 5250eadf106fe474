"""`trueup verify --list-cases`: the ids that `--case` takes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from trueup.cli.guard import complain

if TYPE_CHECKING:
    from trueup.oracle.contract import Contract


def print_cases(
    contracts: Iterable[Contract], backend: str, lanes: list[str] | None, *, as_json: bool
) -> list[str]:
    """Print contract, lane and case; returns the messages of contracts that cannot be opened."""
    from trueup.oracle.errors import OracleError
    from trueup.oracle.verify import applicable_lanes, open_session

    listed: dict[str, dict[str, list[str]]] = {}
    errors = []
    for contract in contracts:
        try:
            with redirect_stdout(sys.stderr):  # of what a kernel or a reference prints
                session = open_session(contract, backend)
                wanted = applicable_lanes(contract, session.backend.name)
                listed[contract.id] = {
                    lane: session.cases(lane) for lane in wanted if lanes is None or lane in lanes
                }
        except OracleError as error:
            errors.append(str(error))
            complain(str(error))
    if as_json:
        from trueup.render.json import dumps

        print(dumps(listed))
    else:
        for id, by_lane in listed.items():
            for lane, cases in by_lane.items():
                print("\n".join(f"{id} {lane} {case}" for case in cases))
    return errors
