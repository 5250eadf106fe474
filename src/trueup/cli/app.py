"""The command line: commands and their options; what a command needs is imported inside it."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup import __version__
from trueup.cli.accept import accept
from trueup.cli.bundle import bundle
from trueup.cli.close import close
from trueup.cli.doctor import doctor
from trueup.cli.equations import equations
from trueup.cli.explain import explain
from trueup.cli.fingerprint import fingerprint
from trueup.cli.gate import gate
from trueup.cli.guard import Guarded, GuardedGroup
from trueup.cli.identify import identify
from trueup.cli.init import init
from trueup.cli.lint import lint
from trueup.cli.registry import registry
from trueup.cli.verify import verify

EPILOG = (
    "Exit codes: 0 passed; 1 judged and not passed; 2 could not judge (usage, unreadable input, "
    "nothing to check); 3 a fault of trueup itself."
)

app = typer.Typer(
    cls=GuardedGroup,
    help="Prove that a kernel computes its equation, and that a run is fit to close its ticket.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    # Rich's help costs start-up time and changes with the terminal; plain help is greppable.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"trueup {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options of the whole command; what they ask for is done while they are read."""


# Each with its line in the listing, which is cut off where it is longer.
for _command, _line in (
    (verify, "Hold kernels to the equations their contracts claim."),
    (identify, "Tell which reading of its equation a kernel follows."),
    (gate, "Judge runs' artifacts by the rules of a profile."),
    (close, "Hold a ticket to its evidence; write its statement."),
    (bundle, "Bundle runs' artifacts with their digests."),
    (explain, "Tell what a rule asks, why, and how to fix it."),
    (lint, "Judge source code by structural rules."),
    (registry, "Hold the reset registry, and state, to the layout."),
    (equations, "List the equations, their sources and readings."),
    (init, "Write a trueup.toml and a ticket.toml to start from."),
    (doctor, "Say what this machine can do, and what it lacks."),
):
    app.command(cls=Guarded, short_help=_line)(_command)
app.add_typer(accept, name="accept", short_help="Hold a run to its locked baseline.")
app.add_typer(
    fingerprint, name="fingerprint", short_help="Print, compare or check a layout's fingerprint."
)
