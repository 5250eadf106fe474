"""Layouts: every rule has what passes and what fails, and what is stored is read as bits."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trueup.gates.catalogue.kinds import Kind, families
from trueup.gates.collector import Collector
from trueup.gates.errors import Unreadable
from trueup.gates.layout.diff import diff_layouts, judge_diff
from trueup.gates.layout.load import load_layout
from trueup.gates.layout.model import LayoutFile
from trueup.gates.layout.registry import judge_registry, load_registry
from trueup.gates.layout.rules import judge_layout
from trueup.gates.layout.stored import Stored, read_stored

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "layouts"
FOLDERS = sorted(path.parent for path in FIXTURES.glob("*/expected.toml"))
KINDS = families()["layout"]
L0 = FIXTURES / "passes_l0" / "layout.toml"
# Found by a command that computes the hash, or in dumps of state: tested with those.
ELSEWHERE = {"LAY013", "LAY017", "LAY022", "LAY023"}


def found(collector: Collector) -> set[str]:
    names = {kind.id: kind.name for kind in KINDS}
    return {names.get(finding.rule, finding.rule) for finding in collector.findings()}


def judged(folder: Path) -> set[str]:
    """What is found in a folder: one layout, two to compare, or a layout and what is stored."""
    collector = Collector()
    layouts = {
        path.stem: load_layout(path, path.name)
        for path in folder.glob("*.toml")
        if path.name not in ("expected.toml", "registry.toml")
    }
    for layout in layouts.values():
        judge_layout(layout, collector)
    if "before" in layouts:
        after = layouts["after"]
        judge_diff(diff_layouts(layouts["before"], after), after, collector)
    for path in folder.glob("registry.toml"):
        judge_registry(load_registry(path, path.name), layouts["layout"], collector)
    for path in folder.glob("*.meta.json"):
        read_stored(path, path.name, layouts["layout"], collector)
    return found(collector)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folder_leads_to_its_expected_kinds(folder: Path) -> None:
    want = tomllib.loads((folder / "expected.toml").read_text())
    assert judged(folder) == set(want["kinds"])


def test_files_are_what_the_script_makes() -> None:
    script = [sys.executable, "-B", str(FIXTURES / "make.py"), "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def laid_out(text: str, folder: Path) -> Path:
    folder.mkdir()
    parts = [part for part in text.split("== ") if part.strip()]
    for part in parts:
        name, _, rest = part.partition(" ==\n") if " ==\n" in part else ("layout.toml", "", part)
        (folder / name).write_text(rest)
    return folder


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k.id not in ELSEWHERE], ids=lambda k: f"{k.id}-{k.name}"
)
def test_examples_of_the_catalogue_are_true(kind: Kind, tmp_path: Path) -> None:
    assert judged(laid_out(kind.passes, tmp_path / "passes")) == set()
    assert kind.name in judged(laid_out(kind.fails, tmp_path / "fails"))


def test_tensors_behind_the_new_trunk_move_by_nine_places() -> None:
    folder = FIXTURES / "trunk_86_to_95"
    before, after = (load_layout(folder / f"{name}.toml") for name in ("before", "after"))
    assert (len(before.tensors), len(after.tensors)) == (86, 95)
    moved = [c for c in diff_layouts(before, after).tensors if c.before and c.after]
    assert len(moved) == 82
    assert {c.after[0] - c.before[0] for c in moved if c.before and c.after} == {9}
    assert {c.after[1] - c.before[1] for c in moved if c.before and c.after} == {0}
    # the first of them: bytes of the 13 new tensors less those of the 4 old, each padded to 256
    old = [256 * 128, 256, 256 * 256, 256]
    new = [256 * 128, 256, 512 * 256, 512, 256 * 128, 256, 256]
    new += [256 * 256, 256, 512 * 256, 512, 256, 256]
    assert moved[0].shift == sum(4 * n for n in new) - sum(4 * n for n in old)


def test_an_equal_layout_has_no_difference() -> None:
    assert diff_layouts(load_layout(L0), load_layout(L0)).empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[[slot]]\nname = 'A'\n", "index"),
        ("retired = ['\u0410']\n[[slot]]\nname = 'A'\nindex = 0\nlength = 1\n", "capitals"),
        ("[[slot]]\nname = 'a'\nindex = 0\nlength = 1\n", "capitals"),
        ("[[slot]]\nname = 'A'\nindex = -1\nlength = 1\n", "slot"),
        ("[[slot]]\nname = 'A'\nindex = 0\nlength = 0\n", "slot"),
        ("[[slot]]\nname = 'A'\nindex = 0.0\nlength = 1\n", "whole number"),
        ("[[slot]]\nname = 'A'\nindex = true\nlength = 1\n", "whole number"),
        ("[[slot]]\nname = 'A'\nindex = 0\nlenght = 1\n", "is lenght meant"),
        ("align_bytes = 3\n[[slot]]\nname = 'A'\nindex = 0\nlength = 1\n", "align_bytes"),
        ("[[slot]]\nname = 'A|0|1\\nS|B'\nindex = 0\nlength = 1\n", "slot"),
        ("[[slot]]\nname = 'A'\nname = 'B'\nindex = 0\nlength = 1\n", "duplicate key"),
        ("[[slot\n", "TOML"),
    ],
)
def test_what_is_no_layout_is_refused_with_its_place(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "layout.toml"
    path.write_text(text)
    with pytest.raises(Unreadable, match=message) as caught:
        load_layout(path, "layout.toml")
    assert "layout.toml" in str(caught.value)


def safetensors(path: Path, metadata: dict[str, str] | None) -> Path:
    """One tensor of four bytes and its header, written by hand."""
    header: dict[str, object] = {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    if metadata is not None:
        header["__metadata__"] = metadata
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + b"\0\0\0\0")
    return path


def stored(path: Path, layout: LayoutFile | None = None) -> tuple[Stored, set[str]]:
    collector = Collector()
    out = read_stored(path, path.name, layout or load_layout(L0), collector)
    return out, found(collector)


# signalling NaN low, signalling NaN high, quiet NaN, subnormal, both signalling, -0, infinity
WITNESSES = [
    0x82A6E9647FAE6D67, 0x7F9CC1F2C8C28F2B, 0x0FE6827AFFD339FE, 0x7FDEEBA1607D1675,
    0x40489FB38009F507, 0x005D88C2DB9FC73D, 0xFFBA7696FF95B303, 0x8000000080000000,
    0x7F8000007F800000, 0, 2**64 - 1,
]  # fmt: skip


@pytest.mark.parametrize("value", WITNESSES, ids=lambda value: f"{value:016x}")
def test_every_bit_pattern_survives_every_form(value: int, tmp_path: Path) -> None:
    text = f"0x{value:016x}"
    dump = tmp_path / "isv.bin"
    dump.write_bytes(struct.pack("<f", 0.5) + value.to_bytes(8, "little"))
    sidecar = tmp_path / "x.meta.json"
    sidecar.write_text(json.dumps({"layout_fingerprint": text}))
    weights = safetensors(tmp_path / "x.safetensors", {"layout_fingerprint": text})
    for path in (dump, sidecar, weights):
        assert stored(path)[0].fingerprint == value, path.name
        assert stored(path)[1] == set()


@pytest.mark.parametrize(
    "value",
    ["0x3d414b29e5b8364", "0x3D414B290E5B8364", "3d414b290e5b8364", 4414042, None, 1.5, True],
)
def test_another_spelling_is_not_read(value: object, tmp_path: Path) -> None:
    sidecar = tmp_path / "x.meta.json"
    sidecar.write_text(json.dumps({"layout_fingerprint": value}))
    assert stored(sidecar) == (stored(sidecar)[0], {"fingerprint_not_stored"})
    assert stored(sidecar)[0].fingerprint is None


def test_weights_without_metadata_have_no_fingerprint(tmp_path: Path) -> None:
    assert stored(safetensors(tmp_path / "x.safetensors", None))[1] == {"fingerprint_not_stored"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("isv_total", 4), ("n_param_tensors", 3), ("total_params", 11), ("tile_pad_floats", 1),
        ("total_padded_bytes", 256), ("align_bytes", 512), ("isv_total", "3"), ("isv_total", 3.0),
    ],
)  # fmt: skip
def test_a_stored_size_must_be_the_layouts(key: str, value: object, tmp_path: Path) -> None:
    right = {
        "layout_fingerprint": "0xf190210cb100d7da", "isv_total": 3, "n_param_tensors": 2,
        "total_params": 10, "total_padded_bytes": 512, "tile_pad_floats": 0, "align_bytes": 256,
    }  # fmt: skip
    sidecar = tmp_path / "x.meta.json"
    sidecar.write_text(json.dumps(right))
    assert stored(sidecar)[1] == set()
    sidecar.write_text(json.dumps({**right, key: value}))
    assert stored(sidecar)[1] == {"layout_size_stored"}


@pytest.mark.parametrize("key", ["schema_version", "isv_version", "migrated_from", "Version"])
def test_a_layout_number_is_found(key: str, tmp_path: Path) -> None:
    sidecar = tmp_path / "x.meta.json"
    data = {"layout_fingerprint": "0xf190210cb100d7da", "versions": {"torch": "2.11"}, key: 2}
    sidecar.write_text(json.dumps(data))
    assert stored(sidecar)[1] == {"layout_numbered"}


def test_a_dump_of_another_length_is_found(tmp_path: Path) -> None:
    path = tmp_path / "isv.bin"
    path.write_bytes(b"\0" * 4 * 87)
    assert stored(path)[1] == {"layout_size_stored"}


@pytest.mark.parametrize("raw", [b"", b"\0" * 4, b"\0" * 9])
def test_what_is_no_dump_is_refused(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "isv.bin"
    path.write_bytes(raw)
    with pytest.raises(Unreadable, match=r"isv\.bin: is no dump"):
        stored(path)


def test_a_missing_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="does not exist"):
        stored(tmp_path / "x.safetensors")
