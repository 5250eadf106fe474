"""`trueup accept`: hold a run to its locked baseline; lock one; keep the ledger of runs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from trueup.cli.guard import NOT_PASSED, PASSED, Guarded
from trueup.errors import FaceError

if TYPE_CHECKING:
    from trueup.gates.acceptance.ledger_add import Added
    from trueup.gates.acceptance.model import Judgement


class AcceptFormat(StrEnum):
    """How an acceptance is printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"


class LedgerOutcome(StrEnum):
    """How a run ended."""

    PASS = "PASS"
    FAIL = "FAIL"
    ABORTED = "ABORTED"


class _JudgeByDefault(TyperGroup):
    """`trueup accept acceptance.toml` is `trueup accept judge acceptance.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take first words that are no command as those of `judge`."""
        known = args and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return list(super().parse_args(ctx, args if known else ["judge", *args]))


accept = typer.Typer(
    cls=_JudgeByDefault,
    help="Hold a run to its locked baseline: bands, smoke, profile, final run, ablations.",
    rich_markup_mode=None,
    add_completion=False,
)
ledger = typer.Typer(
    help="Keep the append-only ledger of runs: one line before a run, one after it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)
accept.add_typer(ledger, name="ledger")

_As = Annotated[AcceptFormat, typer.Option("--format", help="How to print the judgement.")]
_LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="A file of JSON lines.")]


@accept.command(cls=Guarded)
def judge(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="ACCEPTANCE", help="An acceptance file, or a folder with acceptance.toml."
        ),
    ] = Path("."),
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="What the run left; else the acceptance's own folder.",
            show_default=False,
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write Great Expectations' Data Docs there as well.",
            show_default=False,
        ),
    ] = None,
    format: _As = AcceptFormat.TEXT,
    lock: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULTS", help="Lock these results as a baseline instead (with -o).",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Where --lock writes: .toml or .json.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--path", metavar="PATH", show_default=False,
            help="Lock this metric only, for example cells[*].metrics.val. Repeatable.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Judge a run by an acceptance file (the default); with --lock, lock a baseline."""
    if lock is not None or output is not None or metric:
        _lock(lock, output, tuple(metric or ()), judging=path != Path(".") or run or docs)
        return
    from trueup.gates.acceptance.judge import judge_acceptance

    judgement = judge_acceptance(path, run, docs=docs, show=lambda one: _print(one, format))
    raise typer.Exit(PASSED if judgement.passed else NOT_PASSED)


def _lock(
    results: Path | None, output: Path | None, metrics: tuple[str, ...], *, judging: object
) -> None:
    if results is None or output is None:
        raise FaceError(
            "locking needs both --lock and -o", fix="trueup accept --lock results.json -o FILE"
        )
    if judging:
        raise FaceError("--lock judges nothing", fix="leave out ACCEPTANCE, --run and --docs")
    from trueup.gates.acceptance.lock import lock as write
    from trueup.render.clean import one_line

    count = write(results, output, paths=metrics)
    print(one_line(f"locked {count:,} numbers of {results} in {output}"))


def _print(judgement: Judgement, format: AcceptFormat) -> None:
    if format is AcceptFormat.JSON:
        print(judgement.to_json())
    elif format is AcceptFormat.TEXT:
        from trueup.render.accept_text import show_acceptance
        from trueup.render.console import console

        show_acceptance(judgement, console())
    else:
        from trueup.render import accept_markup

        as_markdown = format is AcceptFormat.MARKDOWN
        render = (
            accept_markup.acceptance_markdown if as_markdown else accept_markup.acceptance_junit
        )
        print(render(judgement))
    sys.stdout.flush()


@ledger.command(cls=Guarded)
def add(
    file: _LedgerFile,
    manifest: Annotated[
        Path, typer.Option(metavar="FILE", help="The run's manifest.", show_default=False)
    ],
    outcome: Annotated[
        LedgerOutcome | None,
        typer.Option(help="How the run ended; without it, that it starts.", show_default=False),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What it was judged by.", show_default=False),
    ] = None,
    void: Annotated[
        Path | None,
        typer.Option(
            metavar="EVIDENCE", show_default=False,
            help="It broke before its first training step, as this document shows.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Record that a run starts, ended, or is void; prints the ledger's new head."""
    from trueup.gates.acceptance import ledger_add

    if void is not None and (outcome is not None or results is not None):
        raise FaceError("--void stands alone", fix="leave out --outcome and --results")
    if results is not None and outcome is None:
        raise FaceError("--results needs --outcome", fix="--outcome PASS, FAIL or ABORTED")
    if void is not None:
        added = ledger_add.add_void(file, manifest, void)
    elif outcome is not None:
        added = ledger_add.add_outcome(file, manifest, outcome.value, results)
    else:
        added = ledger_add.add_start(file, manifest)
    _told(added)
    raise typer.Exit(NOT_PASSED if added.refused else PASSED)


def _told(added: Added) -> None:
    from trueup.render.clean import one_line

    record = added.record
    said = record.get("outcome", record["event"])
    print(one_line(f"record {record['seq']}: {record['run_id']} {said}"))
    if added.refused:
        print(one_line(f"REJECTED_RERUN: {added.refused}"))
    print(f"head {added.head}")


@ledger.command(cls=Guarded)
def check(
    file: _LedgerFile,
    head: Annotated[
        str,
        typer.Option(
            metavar="SHA256", help="The digest of a line that it must still hold.",
            show_default=False,
        ),
    ] = "",
    format: _As = AcceptFormat.TEXT,
) -> None:  # fmt: skip
    """Judge a ledger: its chain, reruns, diagnoses, and the evidence of void runs."""
    from trueup.gates.acceptance.check_ledger import judge_ledger

    judgement = judge_ledger(file, head)
    _print(judgement, format)
    raise typer.Exit(PASSED if judgement.passed else NOT_PASSED)
