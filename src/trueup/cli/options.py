"""The words that several commands' options share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How a judgement is printed."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


class GateFormat(StrEnum):
    """How a gate's judgement is printed."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    GITHUB = "github"
    MARKDOWN = "markdown"


PrintedAs = Annotated[Format, typer.Option(help="How to print the judgement.")]


class TableFormat(StrEnum):
    """How a listing is printed."""

    TEXT = "text"
    JSON = "json"


class BackendName(StrEnum):
    """Where kernels run; auto takes cuda where a device answers, else host."""

    AUTO = "auto"
    CUDA = "cuda"
    HOST = "host"
    PYTHON = "python"


ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME|FILE",
        help="The rules: a shipped profile or your own; else that of trueup.toml, else nl.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The settings; else the nearest trueup.toml from here upward.",
        show_default=False,
    ),
]
NoConfigOption = Annotated[bool, typer.Option("--no-config", help="Without any settings.")]


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that a name is not one of the known ones, and which it may have meant."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"no {kind} is called '{name}'; {hint}known: {', '.join(names)}"
