"""A contract whose arguments are slots of a bus: what is refused, and what has to stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trueup.oracle.backends.base import RunOptions
from trueup.oracle.bus import bus_buffer, split, stray_words
from trueup.oracle.contract import Contract, load_contract
from trueup.oracle.errors import ContractError
from trueup.oracle.inputs import all_sizes, draw
from trueup.oracle.references import resolve

SHIPPED = Path(__file__).resolve().parents[2] / "kernels" / "isv"
LAYOUT = """
[[slot]]
name = "LEARNING_HEALTH"
index = 0
length = 1
[[slot]]
name = "TAU_EFF"
index = 1
length = 1
[[slot]]
name = "Q"
index = 2
length = 3
[[slot]]
name = "LAYOUT_FINGERPRINT"
index = 5
length = 2
"""


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    (tmp_path / "layout.toml").write_text(LAYOUT)
    (tmp_path / "tau.cu").write_text('extern "C" __global__ void tau(float* isv) {}')
    path = tmp_path / "tau.toml"
    path.write_text((SHIPPED / "tau.toml").read_text())
    return path


def edited(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_a_contract_on_a_bus_loads(contract: Path) -> None:
    loaded = load_contract(contract)
    assert loaded.bus is not None
    assert loaded.bus.layout.total == 7
    assert [arg.slot for arg in loaded.args] == ["LEARNING_HEALTH", "TAU_EFF"]


def test_another_layout_is_another_contract(contract: Path) -> None:
    before = load_contract(contract).digest
    edited(contract.parent / "layout.toml", '"Q"', '"R"')
    assert load_contract(contract).digest != before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('slot = "TAU_EFF"', 'slot = "TAU"', "no slot that a kernel may use"),
        ('slot = "TAU_EFF"', 'slot = "LAYOUT_FINGERPRINT"', "no slot that a kernel may use"),
        ('slot = "TAU_EFF"', 'slot = "Q..LAYOUT_FINGERPRINT"', "no slot that a kernel may use"),
        ('slot = "TAU_EFF"', 'slot = "Q..TAU_EFF"', "no slot that a kernel may use"),
        ('slot = "TAU_EFF"', 'slot = "LEARNING_HEALTH"', "two arguments are one slot"),
        ('slot = "TAU_EFF"', 'slot = "Q"', r"got \[1\], expected \[3\]"),
        ('role = "out"\ndtype = "f32"', 'role = "out"\ndtype = "f64"', "a slot is float32"),
        ('role = "out"', 'role = "workspace"', "a slot is float32"),
        ('slot = "TAU_EFF"', 'slot = "TAU_EFF"\nwritten = ["0:1"]', "neither strides"),
        ('name = "health"', 'name = "isv"', "the bus has this name"),
        ('layout = "layout.toml"', 'layout = "no.toml"', "no such layout"),
        ('[bus]\nname = "isv"\nlayout = "layout.toml"\n', "", "a slot without a bus"),
        ('args = ["isv"]', 'args = ["health", "tau"]', "`health` is no argument"),
        ('args = ["isv"]', "args = []", "no launch uses isv"),
    ],
)
def test_what_does_not_fit_is_refused(contract: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        load_contract(edited(contract, old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("index = 2", "index = 1", "overlap or leave a hole"),
        ("index = 2", "index = 3", "overlap or leave a hole"),
        ('"LAYOUT_FINGERPRINT"', '"TAIL"', "does not end in its fingerprint"),
        ('"TAU_EFF"', '"tau"', "not a layout"),
        ("length = 3", 'length = "3"', "not a layout"),
        ("[[slot]]", "[[slot", "not a layout"),
    ],
)
def test_a_layout_with_a_fault_is_refused(contract: Path, old: str, new: str, message: str) -> None:
    edited(contract.parent / "layout.toml", old, new)
    with pytest.raises(ContractError, match=message):
        load_contract(contract)


def prepared(path: Path) -> tuple[Contract, np.ndarray, object]:
    loaded = load_contract(path)
    case = all_sizes(loaded)[0]
    inputs = draw(loaded, resolve(loaded), case, 7)
    buffer = bus_buffer(loaded, inputs, RunOptions())
    assert buffer is not None
    assert buffer.initial is not None
    return loaded, buffer.initial, buffer


def test_slots_lie_where_the_layout_says(contract: Path) -> None:
    loaded, words, _ = prepared(contract)
    assert words.dtype == np.float32
    assert words.size == 7
    assert 0.0 <= float(words[0]) <= 1.0
    assert words.view(np.uint32)[1] == 0x7FF57FF5  # an output starts as the fill
    assert split(loaded, words)["health"].tobytes() == words[:1].tobytes()


@pytest.mark.parametrize("word", [0, 2, 3, 4, 5, 6])
def test_any_bit_that_changes_outside_the_outputs_is_found(contract: Path, word: int) -> None:
    loaded, words, buffer = prepared(contract)
    after = words.copy()
    after.view(np.uint32)[1] = 0  # the output
    assert stray_words(loaded, buffer, after) == []  # type: ignore[arg-type]
    after.view(np.uint32)[word] ^= 1
    (fault,) = stray_words(loaded, buffer, after)  # type: ignore[arg-type]
    assert f"word {word} of the bus" in fault.message


def test_the_words_that_must_stay_are_ones_that_arithmetic_changes(contract: Path) -> None:
    """Over some draws: adding zero changes signalling NaN and -0, as a float copy would."""
    loaded = load_contract(contract)
    changed = 0
    for seed in range(20):
        inputs = draw(loaded, resolve(loaded), all_sizes(loaded)[0], seed)
        buffer = bus_buffer(loaded, inputs, RunOptions())
        assert buffer is not None
        assert buffer.initial is not None
        with np.errstate(invalid="ignore"):
            moved = buffer.initial + np.float32(0.0)
        changed += bool((moved.view(np.uint32)[5:] != buffer.initial.view(np.uint32)[5:]).any())
    assert changed >= 8
