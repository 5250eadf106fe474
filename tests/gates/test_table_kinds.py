"""Every kind that the readers of tables find: its own examples prove it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.catalogue.kinds import Kind, families
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.tables import open_table

ROWS = b'{"step": 0, "loss": 5.5}\n{"step": 1, "loss": 5.4}\n'
MORE = b'{"step": 2, "loss": 5.3}\n{"step": 3, "loss": 5.2}\n'
REMOTE = {"remote_name", "remote_link"}  # of folders at a URL: test_remote.py
KINDS = [kind for kind in families()["table"] if kind.name not in REMOTE]


def make(example: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], Any]]:
    """The files of an example, in the folder; and what is to happen while they are read."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    later: list[Callable[[], Any]] = []
    text = example.removeprefix("\n")
    if text.startswith("--- "):
        name, _, content = text.removeprefix("--- ").partition("\n")
        Path(name).write_text(content)
    else:
        code = "\n".join(line.removeprefix(">>> ") for line in text.splitlines())
        exec(code, {"Path": Path, "ROWS": ROWS, "MORE": MORE, "while_read": later.append})
    return later


def read(kind: Kind, folder: Path, later: list[Callable[[], Any]]) -> list[Fault]:
    """What is found in the table of an example."""
    (path,) = folder.iterdir()
    faults: list[Fault] = []
    table = open_table(
        path, report=faults.append, limits=Limits(**kind.limits), live=kind.name == "unfinished",
        timestamps=["^time$"],
    )  # fmt: skip
    for _ in table.batches():
        for step in later:
            step()
    return faults


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_examples_of_a_kind_are_true(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = make(kind.passes, tmp_path / "passes", monkeypatch)
    assert read(kind, tmp_path / "passes", later) == []
    later = make(kind.fails, tmp_path / "fails", monkeypatch)
    assert kind.name in {fault.kind for fault in read(kind, tmp_path / "fails", later)}


def test_every_kind_has_examples() -> None:
    assert all(kind.passes and kind.fails for kind in families()["table"])
    assert len(KINDS) > 10
