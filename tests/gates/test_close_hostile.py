"""Whatever stands in the documents of a ticket: a judgement or a refusal, never a crash."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates.closure.close import close
from trueup.gates.errors import GateError

CLOSURES = Path(__file__).parents[2] / "fixtures" / "closures"
sys.path.insert(0, str(CLOSURES))
import laid  # noqa: E402

NOW = datetime(2026, 3, 10, tzinfo=UTC)
EXAMPLES = 20

HYPOTHESIS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SCALARS = st.sampled_from(
    [None, True, False, 0, -1, 1, 2**70, 1e308, 0.5, "", "x" * 3000, "\u202e", "\x00", "TBD",
     "2026-03-01T09:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "../..",
     "/etc/passwd", "nl.d\u0435lta", "`", "\ud83d\ude00"]
)  # fmt: skip
ODD = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["login", "name", "a", "verdict"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The closing that passes, with a record, which each example changes and puts back."""
    made = tmp_path_factory.mktemp("hostile")
    laid.lay_out("passes_record", made)
    yield made
    laid.forget()


def ways(data: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document but the whole."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    found = []
    for key, value in pairs:
        found.append((*way, key))
        if isinstance(value, dict | list):
            found += ways(value, (*way, key))
    return found


def changed(data: Any, way: tuple[Any, ...], value: Any, remove: bool) -> Any:
    copied = copy.deepcopy(data)
    holder = copied
    for step in way[:-1]:
        holder = holder[step]
    if remove:
        del holder[way[-1]]
    else:
        holder[way[-1]] = value
    return copied


def judged(folder: Path) -> Any:
    """The closure, as strict JSON; None for a refusal."""
    try:
        closure = close(folder / "ticket.toml", equations=["nl.delta_momentum"], now=NOW)
    except GateError:
        return None
    return json.loads(closure.to_json())


def test_unchanged_it_passes(folder: Path) -> None:
    assert judged(folder)["verdict"] == "pass"


# What a closing rests on: with any other value there, or without it, no ticket closes.
DECISIVE: dict[str, list[tuple[Any, ...]]] = {
    "thread.json": [
        ("number",), ("createdAt",), ("assignees",), ("assignees", 0, "login"), ("comments",),
        ("comments", 0, "author"), ("comments", 0, "author", "login"), ("comments", 0, "body"),
        ("comments", 0, "createdAt"), ("comments", 0, "includesCreatedEdit"),
    ],
    "board.json": [(0,), (0, "number"), (0, "state"), (0, "labels"), (0, "labels", 0, "name")],
    "evidence.json": [
        ("format",), ("created",), ("verdict",), ("errors",), ("contracts",), ("scope", "backend"),
        ("scope", "lanes"), ("scope", "case"), *(
            ("contracts", 0, *way) for way in [
                ("id",), ("verdict",), ("backend",), ("lanes",), ("lanes", 0), ("lanes", 0, "lane"),
                ("lanes", 0, "verdict"), ("lanes", 1, "verdict"), ("lanes", 0, "findings"),
                ("digests",), ("digests", "kernel"), ("digests", "contract"),
                ("digests", "reference"), ("findings",),
            ]
        ),
    ],
    "record.json": [
        ("item",), ("commit",), ("verdict",), ("commands",), ("commands", 0, "cmd"),
        ("commands", 0, "exit_code"), ("commands", 0, "log_sha256"), ("acceptance",),
        ("acceptance", 0, "criterion_id"), ("acceptance", 0, "value"), ("acceptance", 0, "verdict"),
        ("checkpoints",), ("checkpoints", 0, "sha256"), ("evals",), ("evals", 0, "sha256"),
        ("tests",), ("tests", "passed"), ("warnings",),
    ],
}  # fmt: skip


def written(path: Path, data: Any, folder: Path) -> Any:
    """What is judged of another document, which is then put back."""
    before = path.read_bytes()
    try:
        path.write_text(json.dumps(data))
        return judged(folder)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("name", DECISIVE)
@HYPOTHESIS
@given(data=st.data())
def test_what_a_closing_rests_on_cannot_be_another(
    name: str, folder: Path, data: st.DataObject
) -> None:
    whole = json.loads((folder / name).read_bytes())
    way = data.draw(st.sampled_from(DECISIVE[name]))
    value, remove = data.draw(ODD), data.draw(st.booleans())
    now = changed(whole, way, value, remove)
    if now == whole:
        return
    found = written(folder / name, now, folder)
    assert found is None or found["verdict"] == "fail", (way, value, remove)


@pytest.mark.parametrize("name", DECISIVE)
@HYPOTHESIS
@given(data=st.data())
def test_any_change_of_a_document_is_judged(name: str, folder: Path, data: st.DataObject) -> None:
    whole = json.loads((folder / name).read_bytes())
    way = data.draw(st.sampled_from(ways(whole)))
    written(folder / name, changed(whole, way, data.draw(ODD), data.draw(st.booleans())), folder)


@HYPOTHESIS
@given(
    name=st.sampled_from([*DECISIVE, "ticket.toml", "profile.toml", "run/telemetry.json"]),
    at=st.floats(0, 1, exclude_max=True),
    put=st.binary(min_size=0, max_size=4),
    cut=st.booleans(),
)
def test_damaged_bytes_crash_nothing(
    name: str, at: float, put: bytes, cut: bool, folder: Path
) -> None:
    path = folder / name
    before = path.read_bytes()
    place = int(at * len(before))
    try:
        path.write_bytes(before[:place] + put + (b"" if cut else before[place + len(put) :]))
        judged(folder)
    finally:
        path.write_bytes(before)


@HYPOTHESIS
@given(body=st.text(max_size=300))
def test_any_plan_is_read(body: str, folder: Path) -> None:
    from trueup.gates.closure.deviations import anchors_of
    from trueup.gates.closure.parts import equation_ids, parts_of, paths_in

    for part in parts_of(body).values():
        assert part.text in body.replace("\r\n", "\n") or "<!--" in body
    assert not equation_ids(body, ["nl.delta_momentum"])[0] or "nl.delta_momentum" in body
    assert all(path in body for path in paths_in(body))
    assert all(isinstance(anchor, str) for anchor in anchors_of(body))


@settings(max_examples=200, deadline=None)
@given(line=st.text(alphabet=st.sampled_from("ab $'\"`(){}[]<>|&;#\\\n=*?!-…<path>"), max_size=40))
def test_any_command_line_is_read(line: str) -> None:
    from trueup.gates.closure.shell import faults

    assert isinstance(faults(line), list)
