"""`trueup identify`: which reading of its equation a kernel follows, or which known wrong form."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.guard import NOT_PASSED, PASSED
from trueup.cli.options import BackendName, TableFormat
from trueup.cli.verify import Backend, Case, Quiet, Seed, TimeLimit, leave

if TYPE_CHECKING:
    from trueup.oracle.contract import Contract
    from trueup.oracle.identify import Identification

ContractFile = Annotated[
    Path, typer.Argument(metavar="CONTRACT", help="The contract of the kernel.")
]


def identify(
    contract: ContractFile,
    backend: Backend = BackendName.AUTO,
    case: Case = None,
    seed: Seed = 0,
    format: Annotated[TableFormat, typer.Option(help="How to print it.")] = TableFormat.TEXT,
    time_limit: TimeLimit = 20.0,
    quiet: Quiet = False,
) -> None:
    """Rank the readings and known wrong forms of an equation by how well they explain a kernel.

    The ratio is the largest error over what is allowed if the kernel followed that form; at 1 or
    less the two cannot be told apart. Exits with 0 where the kernel follows the reading that its
    contract declares, with 1 where it does not.
    """
    with redirect_stdout(sys.stderr):  # what user code prints must not break a format
        found, hung = _identified(contract, backend, case, seed, quiet, time_limit)
    if format is TableFormat.JSON:
        from trueup.render.identify import identification_document
        from trueup.render.json import dumps

        print(dumps(identification_document(found)))
    else:
        from trueup.render.console import console
        from trueup.render.identify import show_identification

        show_identification(found, console(), quiet=quiet)
    code = PASSED if found.declared_fits else NOT_PASSED
    if hung:
        leave(code)
    raise typer.Exit(code)


def _identified(
    path: Path, backend: BackendName, case: str | None, seed: int, quiet: bool, time_limit: float
) -> tuple[Identification, bool]:
    """Run the kernel and rank the forms; tell whether a launch still holds the device."""
    from trueup.cli.progress import identify_progress
    from trueup.oracle.identify import identify as run
    from trueup.oracle.verify import open_session

    opened = open_session(_contract(path), backend.value, time_limit)
    with identify_progress(path.name, not quiet) as progress:
        found = run(opened.session, case, seed, progress)
    return found, bool(getattr(opened.backend, "hung", False))


def _contract(path: Path) -> Contract:
    """Load the one contract of a file, or of a directory that holds one."""
    from trueup.errors import FaceError
    from trueup.oracle.contract import find_contracts, load_contract

    found = find_contracts([path])
    if len(found) != 1:
        raise FaceError(
            f"{len(found)} contracts, of which one is to be named",
            where=str(path),
            fix="give the contract's file, such as " + str(found[0]),
        )
    return load_contract(found[0])
