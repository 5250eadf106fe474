"""The ticket's own form: schema, template, page, and the words of its refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from trueup.gates.closure.close import close
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.evidence_form import schema as evidence_schema
from trueup.gates.closure.record_form import schema as record_schema
from trueup.gates.closure.ticket import pointer_of, read_ticket, schema
from trueup.gates.profile.load import built_in
from trueup.gates.settings.templates import templates

ROOT = Path(__file__).parents[2]
PASSES = ROOT / "fixtures" / "closures" / "passes"


@pytest.mark.parametrize("load", [schema, evidence_schema, record_schema])
def test_schemas_are_schemas(load: object) -> None:
    assert callable(load)
    Draft202012Validator.check_schema(load())


def test_every_key_of_a_ticket_is_described() -> None:
    def undescribed(part: object, way: str = "") -> list[str]:
        if not isinstance(part, dict):
            return []
        found = []
        for name, inner in part.get("properties", {}).items():
            where = f"{way}.{name}"
            refers = str(inner.get("$ref", "")).startswith("#/$defs/source/properties/")
            if not inner.get("description") and not refers:
                found.append(where)
            found += undescribed(inner, where)
        for inner in part.get("$defs", {}).values():
            found += undescribed(inner, f"{way}$defs")
        return found + undescribed(part.get("items"), f"{way}[]")

    assert undescribed(schema()) == []


@pytest.mark.parametrize("profile", built_in())
def test_the_template_is_of_the_right_form(profile: str, tmp_path: Path) -> None:
    path = tmp_path / "ticket.toml"
    path.write_text(templates(profile)["ticket.toml"])
    ticket, _ = read_ticket(path)
    assert ticket.profile == profile


def test_no_ticket_closes_with_the_template(tmp_path: Path) -> None:
    path = tmp_path / "ticket.toml"
    path.write_text(templates("nl")["ticket.toml"])
    closure = close(path, equations=["nl.delta_momentum"])
    assert not closure.passed
    found = {finding.rule for finding in closure.findings}
    assert {"CLO004", "CLO011", "CLO021", "CLO031"} <= found


def test_what_the_template_leaves_out_is_of_the_right_form_too(tmp_path: Path) -> None:
    """Each line that is commented out is TOML of the ticket once its # is taken away."""
    text = templates("nl")["ticket.toml"]
    keys = (
        "phase|runs|ledger|repository|url|closure|previous|env|blocker|criterion|reason|documented"
    )
    begins = rf"\[|(?:{keys}|documented|approved_by|run|name|path|sha256|export) ="
    whole = re.sub(rf"(?m)^# (?={begins})", "", text)
    path = tmp_path / "ticket.toml"
    path.write_text(whole)
    ticket, _ = read_ticket(path)
    assert ticket.phase == "1"
    assert [one.target for one in ticket.deviations] == ["final-loss"]
    assert [one.run for one in ticket.reruns] == ["run_seed0"]
    assert {one.kind for one in ticket.files} == {"checkpoint", "eval", "telemetry", "document"}


def test_the_page_has_the_keys_of_the_schema() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "closing_keys.py"), "--check"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_example_of_the_page_is_that_of_the_fixture() -> None:
    page = (ROOT / "docs" / "closing.md").read_text("utf-8")
    example = re.search(r"```toml\n(\[ticket\].*?)```", page, re.DOTALL)
    assert example is not None
    shown, real = tomllib.loads(example[1]), tomllib.loads((PASSES / "ticket.toml").read_text())
    for name, part in shown.items():
        held = real[name]
        assert part == held or (isinstance(held, list) and all(one in held for one in part)), name


def test_the_page_names_every_option_of_the_record() -> None:
    page = (ROOT / "docs" / "closing.md").read_text("utf-8")
    for name in record_schema()["properties"]:
        assert f"`{name}`" in page


def test_a_refusal_names_file_line_and_key(tmp_path: Path) -> None:
    text = (PASSES / "ticket.toml").read_text().replace("exit_code = 0", "exit_cod = 0")
    path = tmp_path / "ticket.toml"
    path.write_text(text)
    line = text[: text.index("[[command]]")].count("\n") + 1
    with pytest.raises(ClosureError) as refusal:
        read_ticket(path, "tickets/x.toml")
    said = str(refusal.value)
    assert said.startswith(f"tickets/x.toml:{line}: command[0] unknown key")
    assert "did you mean exit_code" in said


def test_a_fault_of_the_text_names_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "ticket.toml"
    path.write_bytes(b'[ticket]\nid = "a"\nid = "b"\n')
    with pytest.raises(ClosureError, match=r"ticket\.toml:3:23:ticket\.id"):
        read_ticket(path)


@pytest.mark.parametrize(
    ("place", "pointer"),
    [("criterion[0].value", ("criterion", 0, "value")), ("ticket", ("ticket",)), ("", ())],
)
def test_a_place_is_a_pointer(place: str, pointer: tuple[str | int, ...]) -> None:
    assert pointer_of(place) == pointer


def test_numbers_keep_the_decimals_they_were_written_with(tmp_path: Path) -> None:
    text = (PASSES / "ticket.toml").read_text().replace("value = 0.9\n", "value = 0.90\n")
    path = tmp_path / "ticket.toml"
    path.write_text(text)
    ticket, _ = read_ticket(path)
    assert str(ticket.criteria[0].value) == "0.90"


def test_closure_json_holds_to_its_schema(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "fixtures" / "closures"))
    import laid

    schema_text = (ROOT / "gates" / "closure" / "closure.schema.json").read_text()
    validator = Draft202012Validator(json.loads(schema_text))
    for name in ("passes", "metric_not_a_number", "passes_waived"):
        folder = tmp_path / name
        folder.mkdir()
        closure = close(laid.lay_out(name, folder), equations=["nl.delta_momentum"])
        validator.validate(json.loads(closure.to_json()))
    laid.forget()
