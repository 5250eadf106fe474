"""The committed wrong kernels are the shipped ones with the one edit each that they say."""

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "wrong_kernels"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("derive", FOLDER / "derive.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


derive = _load()
FOLDERS = derive.folders()
DERIVED = [folder for folder in FOLDERS if (folder / "edit.toml").exists()]


@pytest.mark.parametrize("folder", DERIVED, ids=lambda folder: folder.name)
def test_committed_files_are_what_the_edits_make_of_the_shipped_kernel(folder: Path) -> None:
    made = derive.derive(folder)
    assert {path.name for path in folder.iterdir()} == {*made, "edit.toml", "expect.toml"}
    for name, text in made.items():
        assert (folder / name).read_text() == text, f"run {FOLDER.name}/derive.py"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_says_what_must_find_it(folder: Path) -> None:
    expect = tomllib.loads((folder / "expect.toml").read_text())
    assert set(expect) <= {"why", "lane", "says", "matches"}
    assert expect["lane"]
    assert expect["why"]
    contract = tomllib.loads((folder / "contract.toml").read_text())["contract"]
    assert contract["id"] == f"wrong.{folder.name}"


def test_an_edit_that_no_longer_fits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "expect.toml").write_text('why = "nothing"\nlane = ["numeric"]\n')
    (tmp_path / "edit.toml").write_text(
        'base = "nl/projected_descent"\n'
        '[[edit]]\nfile = "kernel.cu"\nfind = "no such text"\nreplace = ""\n'
    )
    with pytest.raises(derive.EditError, match=r"occurs 0 times in kernel\.cu"):
        derive.derive(tmp_path)
