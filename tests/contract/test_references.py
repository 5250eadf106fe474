"""Resolving the reference a contract names: the catalogue's, or the user's own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.oracle.contract import load_contract
from trueup.oracle.errors import ContractError
from trueup.oracle.references import resolve


def with_reference(folder: Path, name: str, text: str | None = None) -> Path:
    path = folder / "scale.toml"
    path.write_text(path.read_text().replace("ref.py:scale", name))
    if text is not None:
        (folder / "ref.py").write_text(text)
    return path


def test_a_users_function_works_without_any_declaration(folder: Path) -> None:
    reference = resolve(load_contract(folder / "scale.toml"))
    assert reference.reading == "default"
    assert reference.forms[0](x=3.0, a=2.0) == 6.0
    assert reference.others() == ()


def test_a_users_function_may_declare_readings_and_wrong_variants(folder: Path) -> None:
    text = """\
from trueup.reference import Domain, Symbol, equation

real = Domain("real")

@equation(
    "user.scale", title="Scale", source="the user", axes=("k",),
    inputs=(Symbol("x", ("k",), real, "input"), Symbol("a", (), real, "factor")),
    outputs=(Symbol("y", ("k",), real, "output"),),
    readings=("times", "plus"), wrong=("square",), register=False,
)
def scale(x, a, *, reading="times"):
    return {"times": a * x, "plus": a + x, "square": a * x * x}[reading]
"""
    reference = resolve(load_contract(with_reference(folder, "ref.py:scale", text)))
    assert reference.reading == "times"
    assert reference.others() == ("plus", "square")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        pytest.param("nl.delta_momentun", None, r"did you mean nl\.delta_momentum", id="close-id"),
        pytest.param("no.py:f", None, r"no such file.*no\.py", id="file"),
        pytest.param("ref.py:scael", None, r"no function `scael`.*scale", id="function"),
        pytest.param("ref.py:scale", "def scale(x:\n", r"ref\.py:1: .*SyntaxError", id="syntax"),
        pytest.param(
            "ref.py:scale",
            "import nothing_of_this_name\n",
            r"ref\.py:1: .*ModuleNotFound",
            id="import",
        ),
        pytest.param("ref.py:scale", "def scale(x): ...\n", r"takes no a", id="strange-argument"),
        pytest.param(
            "ref.py:scale", "def scale(x, a, b): ...\n", r"needs b", id="missing-argument"
        ),
    ],
)
def test_what_does_not_fit_is_named(folder: Path, name: str, text: str | None, says: str) -> None:
    with pytest.raises(ContractError, match=says):
        resolve(load_contract(with_reference(folder, name, text)))


def test_a_wrong_variant_cannot_be_claimed_as_a_reading(folder: Path) -> None:
    path = folder / "scale.toml"
    path.write_text(
        path.read_text().replace(
            'reference = "ref.py:scale"', 'reference = "nl.momentum"\nreading = "sideways"'
        )
    )
    with pytest.raises(ContractError, match="no such reading"):
        resolve(load_contract(path))
