"""Mutants of nested rows: what is handed on without a finding is exactly what was written."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates import Unreadable
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.rows.reader import Reader


def _load(name: str) -> ModuleType:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"gate_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"gate_{name}"] = module
    spec.loader.exec_module(module)
    return module


plain = _load("plain_rows")
ROWS = [
    json.dumps(
        {
            "step": step,
            "o": {"x": 0.5 * step, "t": "a:b", "in": {"n": step}},
            "l": [0.25, 1.5 * step],
            "f": [0, step],
            "p": [{"q": 1.5}, {"q": 2.5}],
            "e": {},
        }
    ).encode()
    for step in range(1, 5)
]
TOKENS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\n", b" ", b"NaN", b"null", b"true",
    b"1e999", b"0", b'"x": 3, ', b"[]", b"{}", b"[1]", b'{"x": 1}', b'"o.x": 1, ', b'"l[0]": 1, ',
    b"1e-999", b"9007199254740993", b"9223372036854775808", b'"q": 1, ', b"0.5, ", b"\\u0000",
    b"}, {",
]  # fmt: skip


@st.composite
def mutants(draw: st.DrawFn, separator: bytes = b"\n") -> bytes:
    """Good rows; then a few cuts, copies, insertions and swaps anywhere."""
    text = separator.join(ROWS) + separator
    for _ in range(draw(st.integers(1, 3))):
        at, size = draw(st.integers(0, len(text))), draw(st.integers(1, 30))
        action = draw(st.integers(0, 3))
        if action == 0:
            text = text[:at] + draw(st.sampled_from(TOKENS)) + text[at:]
        elif action == 1:
            text = text[:at] + text[at + size :]
        elif action == 2:
            to = draw(st.integers(0, len(text)))
            text = text[:to] + text[at : at + size] + text[to:]
        else:
            text = text[:at] + draw(st.sampled_from(TOKENS)) + text[at + size :]
    return text


LEARN = b"\n".join(ROWS) + b"\n"
QUICK = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(
    path: Path, limits: Limits, nullable: tuple[str, ...] = ()
) -> tuple[dict[int, dict[str, Any]], list[Fault]]:
    faults: list[Fault] = []
    reader = Reader(
        path, report=faults.append, limits=limits, nullable=nullable, nesting=Nesting(flatten=True)
    )
    rows: dict[int, dict[str, Any]] = {}
    for batch in reader.batches():
        rows.update(zip(batch.rows.tolist(), batch.frame.to_dicts(), strict=True))
    return rows, faults


@QUICK
@given(
    mutant=mutants(),
    size=st.sampled_from([len(LEARN), 64, 1 << 20]),
    nullable=st.sampled_from([(), ("^.*$",), ("^o\\..*$",)]),
)
def test_lines_are_handed_on_exactly_or_named(
    mutant: bytes, size: int, nullable: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LEARN + mutant)
    limits = Limits(first_piece=size, piece=1 << 16, late_after=10**6)
    rows, faults = read(path, limits, nullable)
    flagged = {fault.line for fault in faults if fault.kind not in ("no_newline", "late_key")}
    body = (LEARN + mutant).rstrip(b"\0")
    lines = body.split(b"\n")
    for number, line in enumerate(lines[:-1] if body.endswith(b"\n") else lines, 1):
        if number in flagged:
            continue
        assert number in rows, line
        assert plain.same_row(rows[number], plain.flat(plain.row(line))), line


@QUICK
@given(mutant=mutants(b", "), size=st.sampled_from([64, 300, 1 << 16]))
def test_lists_are_handed_on_exactly_or_named(mutant: bytes, size: int, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    text = b"[" + b", ".join(ROWS) + b", " + mutant.rstrip(b", ") + b"]"
    path.write_bytes(text)
    rows, faults = read(path, Limits(first_piece=size, piece=size, late_after=10**6))
    want = [plain.flat(json.loads(one)) for one in ROWS]
    assert all(plain.same_row(rows[number], want[number - 1]) for number in range(1, 5))
    if not faults:
        rows_said = [plain.flat(one) for one in plain.exact(text)]
        assert len(rows_said) == len(rows)
        assert all(plain.same_row(rows[i], one) for i, one in enumerate(rows_said, 1))


@settings(max_examples=100, deadline=None)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=4)
        | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_nested_value_is_read_or_named(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.jsonl"
    line = json.dumps({"step": 1, "v": value}).encode()
    path.write_bytes(line + b"\n" + line + b"\n")
    try:
        rows, faults = read(path, Limits())
    except Unreadable:
        return
    if not faults:
        assert all(plain.same_row(rows[i], plain.flat(json.loads(line))) for i in (1, 2))
