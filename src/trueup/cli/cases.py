"""`trueup verify --list-cases`: the ids that `--case` takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trueup.cli.guard import complain

if TYPE_CHECKING:
    from trueup.oracle.contract import Contract


def print_cases(contracts: Iterable[Contract], *, as_json: bool) -> list[str]:
    """Print every contract's cases; returns the messages of those that have none to list."""
    from trueup.oracle.errors import OracleError
    from trueup.oracle.inputs import numeric_cases
    from trueup.oracle.references import resolve

    listed: dict[str, list[str]] = {}
    errors = []
    for contract in contracts:
        try:
            listed[contract.id] = [case.id for case in numeric_cases(contract, resolve(contract))]
        except OracleError as error:
            errors.append(str(error))
            complain(str(error))
    if as_json:
        from trueup.render.json import dumps

        print(dumps(listed))
    else:
        for id, cases in listed.items():
            print("\n".join(f"{id} {case}" for case in cases))
    return errors
