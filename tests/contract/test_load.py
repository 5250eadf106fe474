"""Reading contracts: what a good one gives, and one clear message for each kind of bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.oracle.contract import find_contracts, load_contract
from trueup.oracle.errors import ContractError
from trueup.oracle.inputs.sizes import boundary_sizes
from trueup.oracle.lanes.numeric import claims


def edit(folder: Path, old: str, new: str) -> Path:
    path = folder / "scale.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def test_a_good_contract_is_read_whole(folder: Path) -> None:
    contract = load_contract(folder / "scale.toml")
    assert contract.id == "user.scale"
    assert [a.name for a in contract.outputs] == ["y"]
    assert contract.entries == ("scale",)
    assert contract.launches[0].grid[0].value({"n": 129}) == 2
    assert contract.backends == ("cuda", "host")
    assert contract.precision.storage == "f32"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param("axes =", "axis =", r"unknown key `axis` \(did you mean `axes`\?\)", id="key"),
        pytest.param('role = "in"', 'role = "input"', r"arg\[0\]\.role: got 'input'", id="role"),
        pytest.param('dtype = "f32"', 'dtype = "float"', r"expected one of f64, f32", id="dtype"),
        pytest.param('shape = ["n"]', 'shape = ["N"]', r"uses N.*expected one of n", id="shape"),
        pytest.param('shape = ["n"]', "", r"missing key `shape`", id="no-shape"),
        pytest.param('"x", "y"', '"x", "yy"', r"(?s)`yy` is no .*did you mean `y`", id="arg"),
        pytest.param('"x", "y"', '"x", "x"', r"no launch uses y", id="unused"),
        pytest.param('role = "out"', 'role = "in"', r"no argument is an output", id="no-output"),
        pytest.param(
            'source = "scale.cu"', 'source = "no.cu"', r"no such file.*no\.cu", id="source"
        ),
        pytest.param('source = "scale.cu"', "", r"say where the code is", id="no-source"),
        pytest.param('name = "a"', 'name = "x"', r"two arguments have this name", id="twice"),
        pytest.param('id = "user.scale"', 'id = "9 lives"', r"contract\.id", id="id"),
        pytest.param('id = "user.scale"', 'id = "user.scale\\n"', r"contract\.id", id="id-newline"),
        pytest.param("[contract]", "[contract", r"not valid TOML.*line 1", id="toml"),
        pytest.param("block = 128", "block = [1, 1, 1, 1]", r"launch\[0\]\.block", id="block"),
        pytest.param("grid =", "gird =", r"missing key `grid`|unknown key `gird`", id="grid"),
        pytest.param(
            'axes = ["n"]',
            'axes = ["n"]\nbackends = ["python"]',
            r"cannot run on python",
            id="where",
        ),
        pytest.param(
            'axes = ["n"]',
            'axes = ["n"]\nlimits = { m = { max = 4 } }',
            r"`m`, which is no axis",
            id="limits",
        ),
        pytest.param(
            'axes = ["n"]', 'axes = ["n"]\ntried = { m = 4 }', r"`m`, which is no axis", id="tried"
        ),
        pytest.param(
            'axes = ["n"]',
            'axes = ["n"]\nlimits = { n = { min = 5, multiple = 4 } }\ntried = { n = 7 }',
            r"no legal size of n would be tried",
            id="tried-none",
        ),
    ],
)
def test_each_mistake_is_named(folder: Path, old: str, new: str, says: str) -> None:
    path = edit(folder, old, new)
    with pytest.raises(ContractError, match=says) as caught:
        load_contract(path)
    assert str(path) in str(caught.value)


def test_missing_file_directory_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no such contract"):
        load_contract(tmp_path / "no.toml")
    with pytest.raises(ContractError, match="no contract in this directory"):
        find_contracts([tmp_path])
    with pytest.raises(ContractError, match="no such file or directory"):
        find_contracts([tmp_path / "no"])
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff\xfe[\x00c\x00")
    with pytest.raises(ContractError, match="not UTF-8"):
        load_contract(bad)
    bad.write_text("a = " + "[" * 100_000)
    with pytest.raises(ContractError, match="not valid TOML"):
        load_contract(bad)
    bad.write_text("#" * (2 << 20))
    with pytest.raises(ContractError, match="too large"):
        load_contract(bad)


def test_sizes_beyond_those_tried_are_legal_and_are_not_drawn(folder: Path) -> None:
    contract = load_contract(edit(folder, 'axes = ["n"]', 'axes = ["n"]\ntried = { n = 40 }'))
    sizes = [one["n"] for one in boundary_sizes(contract)]
    assert max(sizes) == 40
    assert min(sizes) == 1
    assert contract.limits == {}
    assert "sizes of n tried: up to 40" in claims(contract)


def test_a_directory_is_searched_for_contracts_only(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    inner = folder / "deep"
    inner.mkdir()
    (inner / "other.toml").write_text("[contract]\n")
    assert find_contracts([folder]) == [inner / "other.toml", folder / "scale.toml"]
