"""`trueup verify`: hold kernels to the equations that their contracts claim."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from trueup.cli.guard import CANNOT_JUDGE, NOT_PASSED, PASSED, complain
from trueup.cli.options import BackendName, Format, PrintedAs, unknown

if TYPE_CHECKING:
    from trueup.oracle.contract import Contract
    from trueup.oracle.verdict import Verification

Contracts = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="CONTRACT",
        help="Contract files, or directories searched for them; the shipped kernels if none.",
        show_default=False,
    ),
]
Backend = Annotated[
    BackendName, typer.Option(help="Where to run; auto: cuda if a device answers, else host.")
]
Lanes = Annotated[
    list[str] | None,
    typer.Option(
        "--lane",
        metavar="LANE",
        help="Run this lane only; may be given several times.",
        show_default=False,
    ),
]
Case = Annotated[
    str | None, typer.Option("--case", metavar="ID", help="Run this case only.", show_default=False)
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the inputs.")]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="DIR", help="Write DIR/verify.html as well.", show_default=False
    ),
]
Evidence = Annotated[
    Path, typer.Option(metavar="FILE", help="Where the record of this verification goes.")
]
ListCases = Annotated[
    bool, typer.Option("--list-cases", help="Print the cases instead of running them.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Contracts verified at once; by default one for each processor, and one on a GPU.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option("--time-limit", min=0.1, metavar="S", help="Seconds one run of a case may take."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print findings and the verdict only.")]


def verify(
    contracts: Contracts = None,
    backend: Backend = BackendName.AUTO,
    lane: Lanes = None,
    case: Case = None,
    seed: Seed = 0,
    format: PrintedAs = Format.TEXT,
    report: Report = None,
    evidence: Evidence = Path(".trueup/evidence.json"),
    list_cases: ListCases = False,
    jobs: Jobs = None,
    time_limit: TimeLimit = 20.0,
    quiet: Quiet = False,
) -> None:
    """Hold kernels to the equations their contracts claim.

    Every lane runs over boundary sizes and input families; each element is held to an allowed error
    that is derived from the equation, never typed in.
    """
    lanes = _lanes(lane)
    with redirect_stdout(sys.stderr):  # what user code prints must not break a format
        loaded, errors = _load(contracts)
    for message in errors:
        complain(message)
    if list_cases:
        from trueup.cli.cases import print_cases

        errors += print_cases(loaded, backend.value, lanes, as_json=format is Format.JSON)
        raise typer.Exit(CANNOT_JUDGE if errors else PASSED)
    with redirect_stdout(sys.stderr):
        verification = _run(loaded, backend, lanes, case, seed, quiet, jobs, time_limit)
    for message in verification.errors:
        complain(message)
    verification = _with_errors(verification, errors)
    try:
        _print(verification, format, quiet)
        sys.stdout.flush()
    finally:  # printed first: a place that cannot be written must not cost the judgement
        recorded = _record(verification, evidence, report)
    code = exit_code(verification) if recorded else CANNOT_JUDGE
    if verification.hung:
        leave(code)
    raise typer.Exit(code)


def leave(code: int) -> NoReturn:
    """Leave at once: a kernel still holds the device, and an orderly exit would wait for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def exit_code(verification: Verification) -> int:
    """Map a verification to its exit code: one contract that cannot be judged outweighs all."""
    from trueup.oracle.verdict import Outcome

    if verification.errors:
        return CANNOT_JUDGE
    lanes = [lane for contract in verification.contracts for lane in contract.lanes]
    if all(lane.verdict is Outcome.SKIPPED for lane in lanes):
        why = [f"{skip.contract}: {skip.reason}" for skip in verification.skipped]
        complain("; ".join(["nothing was checked", *dict.fromkeys(why)]))
        return CANNOT_JUDGE
    return PASSED if verification.verdict is Outcome.PASS else NOT_PASSED


def _lanes(names: list[str] | None) -> list[str] | None:
    from trueup.oracle.verify import LANES

    for name in names or ():
        if name not in LANES:
            raise typer.BadParameter(unknown("lane", name, LANES), param_hint="--lane")
    return names or None


def _load(paths: list[Path] | None) -> tuple[list[Contract], list[str]]:
    """Load every contract that can be loaded; the others' messages are kept."""
    from trueup.oracle.contract import find_contracts, load_contract
    from trueup.oracle.errors import OracleError
    from trueup.shipped import shipped_kernels

    contracts: list[Contract] = []
    errors: list[str] = []
    found: dict[Path, Path] = {}  # a file that is named twice is verified once
    for given in paths or [shipped_kernels()]:
        try:
            for path in find_contracts([given]):
                found.setdefault(path.resolve(), path)
        except OracleError as error:
            errors.append(str(error))
    for path in found.values():
        try:
            contracts.append(load_contract(path))
        except OracleError as error:
            errors.append(str(error))
    return contracts, list(dict.fromkeys(errors))


def _run(
    contracts: list[Contract],
    backend: BackendName,
    lanes: list[str] | None,
    case: str | None,
    seed: int,
    quiet: bool,
    jobs: int | None,
    time_limit: float,
) -> Verification:
    from trueup.cli.progress import verify_progress
    from trueup.oracle.verdict import Outcome, Verification
    from trueup.oracle.verify import verify as run

    if not contracts:
        return Verification(Outcome.INCONCLUSIVE, backend.value, ())
    with verify_progress(not quiet) as progress:
        return run(
            contracts,
            backend=backend.value,
            lanes=lanes,
            case=case,
            seed=seed,
            progress=progress,
            jobs=jobs or _jobs(contracts, backend),
            time_limit=time_limit,
        )


def _jobs(contracts: list[Contract], backend: BackendName) -> int:
    """Use every processor, but one process for one device: its kernels would take turns anyway."""
    from trueup.oracle.backends.choose import choose
    from trueup.oracle.errors import OracleError
    from trueup.oracle.isolate import processors

    try:
        names = {choose(backend.value, contract.backends).name for contract in contracts}
    except OracleError:
        return 1
    return 1 if "cuda" in names else processors()


def _with_errors(verification: Verification, errors: list[str]) -> Verification:
    """Add the contracts that could not even be loaded; with one of them nothing is a pass."""
    from dataclasses import replace

    from trueup.oracle.verdict import Outcome

    verdict = verification.verdict
    if errors and verdict is Outcome.PASS:
        verdict = Outcome.INCONCLUSIVE
    return replace(verification, verdict=verdict, errors=(*errors, *verification.errors))


def _record(verification: Verification, evidence: Path, report: Path | None) -> bool:
    """Write evidence and report; say which could not be written, and whether all were."""
    from trueup.errors import FaceError, writing
    from trueup.oracle.errors import OracleError
    from trueup.oracle.evidence import write_evidence

    recorded = True
    try:
        with writing(evidence):
            write_evidence(verification, evidence)
    except (FaceError, OracleError) as error:
        complain(str(error))
        recorded = False
    if report is not None:
        from trueup.render.files import write_report
        from trueup.render.html import verify_page

        try:
            write_report(report, "verify.html", verify_page(verification))
        except FaceError as error:
            complain(str(error))
            recorded = False
    return recorded


def _print(verification: Verification, format: Format, quiet: bool) -> None:
    if format is Format.JSON:
        from trueup.render.json import dumps, verify_document

        print(dumps(verify_document(verification)))
    elif format is Format.JUNIT:
        from trueup.render.junit import verify_junit

        print(verify_junit(verification))
    else:
        from trueup.render.console import console
        from trueup.render.text import show_verification

        show_verification(verification, console(), quiet=quiet)
