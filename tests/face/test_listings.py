"""`trueup equations` and `trueup doctor`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trueup import __version__
from trueup.cli.app import app
from trueup.reference import catalogue


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_every_equation_is_listed_with_its_readings_and_kernels() -> None:
    result = _run("equations")
    assert result.exit_code == 0
    for equation in catalogue():
        assert equation.id in result.stdout
        assert f"{equation.default_reading}*" in result.stdout
    assert "(preprint, seen in two transcriptions" in result.stdout
    assert "(as printed, corrected)" in result.stdout
    assert "nl.delta_momentum (derived)" in result.stdout


def test_a_prefix_lists_what_begins_with_it() -> None:
    result = _run("equations", "nl.", "--format", "json")
    ids = [equation["id"] for equation in json.loads(result.stdout)]
    assert "nl.delta_momentum" in ids
    assert all(id.startswith("nl.") for id in ids)


def test_a_whole_id_shows_formula_symbols_and_notes() -> None:
    result = _run("equations", "nl.delta_momentum")
    assert result.exit_code == 0
    for title in ("formula", "inputs", "outputs", "readings", "wrong forms", "notes"):
        assert f"\n{title}" in result.stdout
    assert "momentum factor" in result.stdout


@pytest.mark.parametrize("id", ["nl.delta_momentun", "delta", "\x1b[31m", "nl.delta_momentum."])
def test_an_unknown_id_is_2_and_names_what_there_is(id: str) -> None:
    result = _run("equations", id)
    assert result.exit_code == 2
    assert "nl.delta_momentum" in result.stderr
    assert "\x1b" not in result.stderr
    assert result.stdout == ""


def test_an_equation_as_json_has_what_the_table_has() -> None:
    (document,) = json.loads(_run("equations", "nl.delta_momentum", "--format", "json").stdout)
    assert document["default_reading"] == "derived"
    claimed = {(kernel["id"], kernel["reading"]) for kernel in document["kernels"]}
    assert ("nl.delta_momentum", "derived") in claimed
    assert {symbol["name"] for symbol in document["inputs"]} >= {"m", "g", "alpha", "eta"}


def test_doctor_says_what_is_here() -> None:
    result = _run("doctor", "--format", "json")
    document = json.loads(result.stdout)
    names = {row["name"] for row in document["backends"]}
    assert names == {"cuda", "host", "python"}
    assert document["trueup"] == __version__


def test_doctor_without_compiler_and_gpu_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("CXX", raising=False)
    result = _run("doctor")
    assert "Traceback" not in result.output
    if not os.path.exists("/dev/nvidiactl"):
        assert result.exit_code == 2
        assert "g++" in result.stdout
        assert "no .cu, cubin or PTX kernel can be verified here" in result.stdout


def test_version_and_help() -> None:
    assert _run("--version").stdout == f"trueup {__version__}\n"
    for words in (["--help"], ["-h"], ["verify", "--help"]):
        result = _run(*words)
        assert result.exit_code == 0
        assert "Usage: " in result.stdout


@pytest.mark.parametrize("words", [["verfy"], ["--nonsense"], ["gate"], []])
def test_a_malformed_call_is_2(words: list[str]) -> None:
    assert _run(*words).exit_code == 2


def test_an_equation_tells_its_errata_and_where_its_readings_coincide() -> None:
    text = _run("equations", "nl.delta_momentum").stdout
    assert "\nerrata of the source\n  E14, severity A (changes the direction of" in text
    assert "\n  derived = literal_right: eta = 1\n" in text
    assert " d_in = 1\n" in text
    assert "(input family repeated_sample)\n" in text
    assert "\n  p_transposed        m (alpha I - eta g^T g) - eta P^T g\n" in text
    assert "literal_left            (alpha I - g^T g) m - eta P g        needs d_out" in text


def test_an_equation_tells_how_to_find_out_what_a_kernel_follows() -> None:
    text = _run("equations", "nl.delta_momentum").stdout
    command = next(line.strip() for line in text.splitlines() if "trueup identify " in line)
    path = command.split()[2]
    assert path.endswith("delta_momentum.toml")
    assert Path(path).is_file()
    assert f"nl.delta_momentum (derived): {path}" in text
    assert "without it, `derived`" in text


@pytest.mark.parametrize("id", [equation.id for equation in catalogue()])
def test_every_equation_is_explained_with_everything_it_declares(id: str) -> None:
    (declared,) = (equation for equation in catalogue() if equation.id == id)
    text = _run("explain", id).stdout
    assert text.startswith(f"{id}: {declared.title}\n")
    assert f"grade: {declared.grade}\n" in text
    for name in declared.known():
        assert name in text
    for erratum in declared.errata:
        assert f"{erratum.id}, severity {erratum.severity} (" in text
        assert erratum.text in text
    for told in declared.coincide:
        assert f"{' = '.join(told.forms)}: {told.where}" in text


def test_the_json_of_an_equation_holds_errata_formulas_and_coincidences() -> None:
    (document,) = json.loads(_run("equations", "nl.delta_momentum", "--format", "json").stdout)
    (erratum,) = document["errata"]
    assert (erratum["id"], erratum["severity"]) == ("E14", "A")
    assert document["formulas"]["ascent"] == "W' = W - m'"
    assert {"forms": ["derived", "literal_right"], "where": "eta = 1", "family": None} in document[
        "coincide"
    ]
