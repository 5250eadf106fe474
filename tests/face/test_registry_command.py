"""`trueup registry`: the registry against the layout, and dumps of state against both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.reference.isv.layout import Layout, Slot, fingerprint, to_lanes

LAYOUT = """
retired = ["ISV_SCHEMA_VERSION"]
[[slot]]
name = "TAU_EFF"
index = 0
length = 1
[[slot]]
name = "Q"
index = 1
length = 3
[[slot]]
name = "STATIC"
index = 4
length = 1
[[slot]]
name = "HAZARD"
index = 5
length = 2
[[slot]]
name = "EPOCH"
index = 7
length = 1
[[slot]]
name = "LAYOUT_FINGERPRINT"
index = 8
length = 2
"""
REGISTRY = """
[[buffer]]
name = "grad_norm_slow_ema"
[[buffer]]
name = "steps"
[[entry]]
name = "ISV_TAU_EFF"
category = "SoftReset"
init = 2.0
kappa = 0.5
[[entry]]
name = "ISV_Q"
category = "HardReset"
init = [1.0, 2.0, -0.0]
[[entry]]
name = "ISV_STATIC"
category = "Static"
[[entry]]
name = "ISV_HAZARD"
category = "SoftReset"
init = 0.0
kappa = 1.0
[[entry]]
name = "ISV_EPOCH"
category = "EpochReset"
init = 0.0
[[entry]]
name = "ISV_LAYOUT_FINGERPRINT"
category = "LayoutTail"
[[entry]]
name = "grad_norm_slow_ema"
category = "Persistent"
[[entry]]
name = "steps"
category = "HardReset"
init = 0
"""
SLOTS = (("TAU_EFF", 0, 1), ("Q", 1, 3), ("STATIC", 4, 1), ("HAZARD", 5, 2), ("EPOCH", 7, 1))
LANES = to_lanes(
    fingerprint(
        Layout((*(Slot(i, n, name) for name, i, n in SLOTS), Slot(8, 2, "LAYOUT_FINGERPRINT")))
    )
)
HAZARD = (0x7FA00001, 0x80000000)  # a signalling NaN and -0


def bus(*values: float) -> np.ndarray:
    words = np.array([*values[:5], 0.0, 0.0, values[5], 0.0, 0.0], dtype=np.float32)
    words.view(np.uint32)[5:7] = HAZARD
    words.view(np.uint32)[8:] = LANES
    return words


BEFORE = {
    "isv": bus(4.0, 9.0, 8.0, 7.0, 0.25, 3.0),
    "grad_norm_slow_ema": np.array([1.5], dtype=np.float32),
    "steps": np.array([77], dtype=np.int32),
}
AFTER = {
    "isv": bus(3.0, 1.0, 2.0, -0.0, 0.25, 3.0),
    "grad_norm_slow_ema": np.array([1.5], dtype=np.float32),
    "steps": np.array([0], dtype=np.int32),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "layout.toml").write_text(LAYOUT)
    (tmp_path / "registry.toml").write_text(REGISTRY)
    save_file(BEFORE, tmp_path / "before.safetensors")
    save_file(AFTER, tmp_path / "after.safetensors")
    return tmp_path


def run(folder: Path, *more: str, dumps: bool = True) -> Result:
    paths = ["registry", str(folder / "registry.toml"), "--layout", str(folder / "layout.toml")]
    if dumps:
        paths += ["--before", str(folder / "before.safetensors")]
        paths += ["--after", str(folder / "after.safetensors")]
    return CliRunner().invoke(app, [*paths, *more])


def test_a_registry_that_fits_passes(folder: Path) -> None:
    result = run(folder, dumps=False)
    assert result.exit_code == 0, result.output
    assert "pass: 8 stateful names" in result.stdout


def test_state_that_was_reset_as_registered_passes(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert "8 compared over the boundary" in result.stdout


def changed(folder: Path, word: int, bits: int) -> Result:
    isv = AFTER["isv"].copy()
    isv.view(np.uint32)[word] = bits
    save_file({**AFTER, "isv": isv}, folder / "after.safetensors")
    return run(folder, "--format", "json")


@pytest.mark.parametrize(
    ("word", "bits", "name"),
    [
        pytest.param(0, 0x40000000, "ISV_TAU_EFF", id="kappa-x-without-init"),  # 2.0, not 3.0
        pytest.param(0, 0x40200000, "ISV_TAU_EFF", id="applied-twice"),  # 2.5
        pytest.param(0, 0x40400003, "ISV_TAU_EFF", id="past-three-roundings"),
        pytest.param(3, 0x00000000, "ISV_Q", id="plus-zero-for-minus-zero"),
        pytest.param(4, 0x3E800001, "ISV_STATIC", id="one-bit-of-static"),
        pytest.param(5, 0x7FE00001, "ISV_HAZARD", id="signalling-nan-quieted"),
        pytest.param(6, 0x00000000, "ISV_HAZARD", id="minus-zero-lost"),
        pytest.param(7, 0x00000000, "ISV_EPOCH", id="epoch-state-reset-at-a-fold"),
        pytest.param(8, 0x00000000, "ISV_LAYOUT_FINGERPRINT", id="fingerprint-cleared"),
    ],
)
def test_one_word_that_is_not_as_registered_is_found(
    folder: Path, word: int, bits: int, name: str
) -> None:
    result = changed(folder, word, bits)
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["rule"], finding["where"]["key"]) == ("LAY023", name)


@pytest.mark.parametrize("bits", [0x40400000, 0x40400001, 0x403FFFFF])
def test_a_soft_reset_has_its_own_rounding(folder: Path, bits: int) -> None:
    """3.0 and its neighbours: within 3 u (|init| + kappa |x - init|) = 3 u 3."""
    assert changed(folder, 0, bits).exit_code == 0


def test_at_an_epoch_only_epoch_state_is_reset(folder: Path) -> None:
    isv = BEFORE["isv"].copy()
    isv[7] = 0.0
    save_file({**BEFORE, "isv": isv}, folder / "after.safetensors")
    assert run(folder, "--boundary", "epoch").exit_code == 0
    assert run(folder, "--boundary", "fold").exit_code == 1


def test_a_buffer_that_was_reset_though_persistent_is_found(folder: Path) -> None:
    save_file(
        {**AFTER, "grad_norm_slow_ema": np.zeros(1, np.float32)}, folder / "after.safetensors"
    )
    result = run(folder)
    assert result.exit_code == 1
    assert "grad_norm_slow_ema" in result.stdout


def test_state_in_a_dump_that_nobody_registered_is_found(folder: Path) -> None:
    save_file({**AFTER, "secret_ema": np.zeros(1, np.float32)}, folder / "after.safetensors")
    result = run(folder)
    assert result.exit_code == 1
    assert "LAY018" in result.stdout
    assert "secret_ema" in result.stdout


def test_state_that_is_missing_from_a_dump_is_found(folder: Path) -> None:
    save_file({"isv": AFTER["isv"]}, folder / "after.safetensors")
    result = run(folder, "--format", "json")
    assert result.exit_code == 1
    assert {f["rule"] for f in json.loads(result.stdout)["findings"]} == {"LAY022"}


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ('name = "ISV_STATIC"', 'name = "ISV_STATICS"', "LAY019"),
        ('name = "ISV_STATIC"', 'name = "ISV_SCHEMA_VERSION"', "LAY008"),
        (
            'name = "steps"\ncategory = "HardReset"\ninit = 0',
            'name = "ISV_Q"\ncategory = "HardReset"\ninit = 0',
            "LAY020",
        ),
        ("kappa = 0.5\n", "", "LAY021"),
        ("init = 2.0\n", "", "LAY021"),
        ("init = [1.0, 2.0, -0.0]", "init = [1.0, 2.0]", "LAY021"),
        ('category = "LayoutTail"', 'category = "Persistent"', "LAY021"),
        ('category = "Static"', 'category = "LayoutTail"', "LAY021"),
        ('category = "Static"', 'category = "Static"\nkappa = 0.1', "LAY021"),
    ],
)
def test_a_registry_with_a_fault_is_found(folder: Path, old: str, new: str, rule: str) -> None:
    path = folder / "registry.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    result = run(folder, "--format", "json", dumps=False)
    assert result.exit_code == 1
    assert rule in {finding["rule"] for finding in json.loads(result.stdout)["findings"]}


@pytest.mark.parametrize("text", ["", "[[entry]]", "entry = 3", "[[entry]]\nname = 'x'\n"])
def test_what_is_no_registry_exits_with_2(folder: Path, text: str) -> None:
    (folder / "registry.toml").write_text(text)
    result = run(folder, dumps=False)
    assert result.exit_code == 2
    assert "registry.toml" in result.stderr


def test_one_dump_alone_is_refused(folder: Path) -> None:
    result = run(folder, "--before", str(folder / "before.safetensors"), dumps=False)
    assert result.exit_code == 2
    assert "--after" in result.stderr


def test_a_bus_of_another_length_is_refused(folder: Path) -> None:
    save_file({"isv": np.zeros(4, np.float32)}, folder / "after.safetensors")
    result = run(folder)
    assert result.exit_code == 2
    assert "expected 10 float32 words" in result.stderr


def test_a_file_that_is_no_dump_is_refused(folder: Path) -> None:
    (folder / "after.safetensors").write_bytes(b"nothing")
    assert run(folder).exit_code == 2
