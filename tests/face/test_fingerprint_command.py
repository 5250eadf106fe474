"""`trueup fingerprint` as it is called: its output, its constants compiled, its refusals."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.emit.layout import Language, emit
from trueup.reference.isv import layout as isv
from trueup.reference.isv.layout import Layout, Slot, Tensor

LAYOUTS = Path(__file__).resolve().parents[2] / "fixtures" / "layouts"
L0 = LAYOUTS / "passes_l0" / "layout.toml"
L0_VALUE = "0xf190210cb100d7da"
FORBIDDEN = re.compile(r"migrat|upgrad|convert|compat|legacy|schema version", re.IGNORECASE)


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["fingerprint", *map(str, args)])


def test_value_stands_on_the_first_line_and_the_lanes_after_it() -> None:
    result = run(L0)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        L0_VALUE, "lane0 0xb100d7da at word 1", "lane1 0xf190210c at word 2",
    ]  # fmt: skip
    assert run("show", L0).stdout == result.stdout


def test_json_has_hex_never_numbers() -> None:
    data = json.loads(run(L0, "--format", "json").stdout)
    assert data["fingerprint"] == L0_VALUE
    assert data["lanes"] == ["0xb100d7da", "0xf190210c"]
    assert (data["isv_total"], data["parameters"], data["padded_bytes"]) == (3, 10, 512)
    assert data["offsets"] == {"w_s1": 0, "b_s1": 256}


def test_a_layout_that_breaks_a_rule_has_no_fingerprint() -> None:
    result = run(LAYOUTS / "stale_index" / "layout.toml")
    assert result.exit_code == 1
    assert "0x" not in result.stdout
    assert "PLAN_THRESHOLD [49, 50) and NEW_SIGNAL [49, 50)" in result.stdout


@pytest.mark.parametrize("text", ["", "{}", "[[slot]]\nname = 1", "\0"])
def test_a_bad_layout_exits_with_2_and_one_message(text: str, tmp_path: Path) -> None:
    path = tmp_path / "layout.toml"
    path.write_text(text)
    result = run(path)
    assert result.exit_code == 2
    assert "layout.toml" in result.stderr
    assert "Traceback" not in result.stderr
    assert not result.stdout


def test_a_missing_layout_exits_with_2(tmp_path: Path) -> None:
    assert run(tmp_path / "no.toml").exit_code == 2


def declared(value: str, tmp_path: Path) -> Result:
    path = tmp_path / "layout.toml"
    path.write_text(f'expect = {{ fingerprint = "{value}" }}\n' + L0.read_text())
    return run(path)


def test_a_declared_fingerprint_is_held_to_the_layout(tmp_path: Path) -> None:
    assert declared(L0_VALUE, tmp_path).exit_code == 0
    result = declared("0xf190210cb100d7db", tmp_path)
    assert result.exit_code == 1
    assert "LAY017" in result.stdout


def test_diff_tells_what_moved_by_name_offset_and_bytes() -> None:
    folder = LAYOUTS / "trunk_86_to_95"
    result = run("diff", folder / "before.toml", folder / "after.toml")
    assert result.exit_code == 0
    assert "tensors: 86 -> 95" in result.stdout
    assert "#4 32 elements at byte 395,264 -> #13 32 elements at byte 1,583,104" in result.stdout
    assert "(+1,187,840 bytes)" in result.stdout


def test_diff_that_moves_a_slot_fails() -> None:
    folder = LAYOUTS / "grows_49_to_52"
    result = run("diff", folder / "before.toml", folder / "after.toml")
    assert result.exit_code == 1
    assert "PLAN_THRESHOLD [46, 47) -> [49, 50)" in result.stdout
    data = json.loads(
        run("diff", folder / "before.toml", folder / "after.toml", "--format", "json").stdout
    )
    assert {"LAY011", "LAY012"} == {finding["rule"] for finding in data["findings"]}


def sidecar(value: str, tmp_path: Path) -> Path:
    path = tmp_path / "step_10.meta.json"
    path.write_text(json.dumps({"layout_fingerprint": value}))
    return path


def test_check_passes_the_layout_and_refuses_another(tmp_path: Path) -> None:
    good = run("check", sidecar(L0_VALUE, tmp_path), "--layout", L0)
    assert good.exit_code == 0
    assert L0_VALUE in good.stdout
    bad = run("check", sidecar("0x3d414b290e5b8364", tmp_path), "--layout", L0)
    assert bad.exit_code == 1
    assert L0_VALUE in bad.stdout
    assert "0x3d414b290e5b8364" in bad.stdout
    assert not FORBIDDEN.search(bad.stdout + bad.stderr)


@pytest.mark.parametrize("k", [424, 35, 104, 64, 222, 20, 137243])
def test_check_compares_bits_of_a_raw_dump(k: int, tmp_path: Path) -> None:
    """Lanes that are NaN equal nothing as floats, and subnormal ones may equal zero."""
    path = tmp_path / "layout.toml"
    path.write_text(
        f'[[slot]]\nname = "S{k}"\nindex = 0\nlength = 1\n'
        '[[slot]]\nname = "LAYOUT_FINGERPRINT"\nindex = 1\nlength = 2\n'
    )
    value = int(run(path).stdout.split()[0], 16)
    dump = tmp_path / "isv.bin"
    dump.write_bytes(struct.pack("<f", 1.0) + value.to_bytes(8, "little"))
    assert run("check", dump, "--layout", path).exit_code == 0
    dump.write_bytes(struct.pack("<f", 1.0) + (value ^ 1).to_bytes(8, "little"))
    assert run("check", dump, "--layout", path).exit_code == 1
    swapped = struct.pack("<2I", value >> 32, value & 0xFFFFFFFF)
    dump.write_bytes(struct.pack("<f", 1.0) + swapped)
    assert run("check", dump, "--layout", path).exit_code == 1


def test_check_without_a_fingerprint_fails(tmp_path: Path) -> None:
    path = tmp_path / "x.meta.json"
    path.write_text("{}")
    result = run("check", path, "--layout", L0)
    assert result.exit_code == 1
    assert "LAY014" in result.stdout


@pytest.mark.parametrize(
    ("name", "raw", "says"),
    [
        ("x.meta.json", b"{", "is not JSON"),
        ("x.meta.json", b"[]", "is no object, got []"),
        ("x.meta.json", b"[" * 10_000, "is not fit to be read (too deep)"),
        ("x.yaml", b"a: &a [x]\nb: [*a, *a]\n", "is not fit to be read (yaml reference)"),
        ("x.safetensors", b"\0", "is not fit to be read (tensors header length)"),
        ("x.safetensors", b"\xff" * 8, "got 18446744073709551615 bytes of 8"),
        ("x.safetensors", struct.pack("<Q", 4) + b"[[[[", "is not fit to be read (tensors header)"),
        ("x.bin", b"abc", "is no dump of the bus, got 3 bytes"),
    ],
)
def test_check_of_what_is_no_checkpoint_exits_with_2(
    name: str, raw: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(raw)
    result = run("check", tmp_path / name, "--layout", L0)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{name}" in result.stderr
    assert says in result.stderr
    assert "expected " in result.stderr


def many(tensors: int) -> Layout:
    rng = random.Random(4)
    named = tuple(Tensor(f"layer{k}.block.w_{k}", rng.randrange(0, 10**9)) for k in range(tensors))
    slots = (Slot(0, 9, "A"), Slot(9, 1, "NAN"), Slot(10, 2, "LAYOUT_FINGERPRINT"))
    return Layout(slots, named, 512, 1536)


def small(k: int) -> Layout:
    return Layout((Slot(0, 1, f"S{k}"), Slot(1, 2, "LAYOUT_FINGERPRINT")))


CASES = {
    "l0": Layout(small(0).slots, (Tensor("w_s1", 8), Tensor("b_s1", 2))),
    "signalling": small(424), "leading_zeros": small(20), "many": many(600), "empty": small(7),
}  # fmt: skip


def compiler(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def called(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", CASES)
def test_cpp_constants_compute_the_same_value(name: str, tmp_path: Path) -> None:
    layout = CASES[name]
    (tmp_path / "layout.h").write_text(emit(layout, Language.C, "layout.toml"))
    (tmp_path / "main.cpp").write_text(
        '#include "layout.h"\n#include <cstdio>\n'
        "int main() {\n"
        '  static_assert(isv_layout::kFingerprint != 0, "");\n'
        '  std::printf("%016llx %08x %08x %d\\n", isv_layout::fingerprint(),\n'
        "              isv_layout::kFingerprintLanes[0], isv_layout::kFingerprintLanes[1],\n"
        "              SLOT_LAYOUT_FINGERPRINT);\n}\n"
    )
    flags = ("-std=c++14", "-Wall", "-Wextra", "-pedantic", "-Werror")
    called(compiler("g++"), *flags, tmp_path / "main.cpp", "-o", tmp_path / "main")
    value = isv.fingerprint(layout)
    lanes = [f"{lane:08x}" for lane in isv.to_lanes(value)]
    want = f"{value:016x} {lanes[0]} {lanes[1]} {layout.total - 2}\n"
    assert called(tmp_path / "main") == want


def test_c_takes_the_constants(tmp_path: Path) -> None:
    (tmp_path / "layout.h").write_text(emit(CASES["l0"], Language.C, "layout.toml"))
    (tmp_path / "main.c").write_text(
        '#include "layout.h"\n#include <stdio.h>\n'
        'int main(void) { printf("%08x%08x", ISV_FINGERPRINT_LANE1, ISV_FINGERPRINT_LANE0);'
        " return 0; }\n"
    )
    flags = ("-std=c99", "-Wall", "-pedantic", "-Werror")
    called(compiler("gcc"), *flags, tmp_path / "main.c", "-o", tmp_path / "main")
    assert int(called(tmp_path / "main"), 16) == isv.fingerprint(CASES["l0"])


@pytest.mark.parametrize("name", CASES)
def test_rust_constants_compute_the_same_value(name: str, tmp_path: Path) -> None:
    layout = CASES[name]
    (tmp_path / "layout.rs").write_text(emit(layout, Language.RUST, "layout.toml"))
    (tmp_path / "main.rs").write_text(
        "mod layout;\nconst WORDS: [u32; 2] = layout::FINGERPRINT_LANES;\n"
        'fn main() { println!("{:016x} {:08x} {:08x} {}", layout::layout_fingerprint(), '
        "WORDS[0], WORDS[1], layout::SLOT_LAYOUT_FINGERPRINT); }\n"
    )
    called(compiler("rustc"), "-D", "warnings", tmp_path / "main.rs", "-o", tmp_path / "main")
    value = isv.fingerprint(layout)
    lanes = [f"{lane:08x}" for lane in isv.to_lanes(value)]
    want = f"{value:016x} {lanes[0]} {lanes[1]} {layout.total - 2}\n"
    assert called(tmp_path / "main") == want


@pytest.mark.parametrize("name", CASES)
def test_python_constants_compute_the_same_value(name: str, tmp_path: Path) -> None:
    path = tmp_path / "layout.py"
    path.write_text(emit(CASES[name], Language.PYTHON, "layout.toml"))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import layout; "
    out = called(sys.executable, "-c", code + "print(layout.LAYOUT_FINGERPRINT)")
    assert int(out) == isv.fingerprint(CASES[name])


@pytest.mark.parametrize(
    ("language", "tool", "edit"),
    [
        (Language.C, "g++", ('{"w_s1", 8ULL', '{"w_s1", 9ULL')),
        (Language.RUST, "rustc", ('name: "w_s1", numel: 8', 'name: "w_s1", numel: 9')),
        (Language.PYTHON, sys.executable, ('("w_s1", 8', '("w_s1", 9')),
    ],
)
def test_constants_that_were_edited_do_not_build(
    language: Language, tool: str, edit: tuple[str, str], tmp_path: Path
) -> None:
    text = emit(CASES["l0"], language, "layout.toml")
    assert edit[0] in text
    suffix = {"c": ".cpp", "rust": ".rs", "python": ".py"}[language]
    path = tmp_path / f"layout{suffix}"
    path.write_text(text.replace(*edit))
    flags = {"c": ["-c", "-o", "x.o"], "rust": ["--crate-type", "lib"], "python": []}[language]
    done = subprocess.run(
        [compiler(tool), *flags, str(path)], capture_output=True, text=True, cwd=tmp_path,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "not those of the layout" in done.stderr


def test_emit_prints_the_constants() -> None:
    result = run(L0, "--emit", "rust")
    assert result.exit_code == 0
    assert "pub const SLOT_HEALTH: usize = 0;" in result.stdout


def test_emitted_source_never_lets_a_file_name_out_of_its_comment() -> None:
    text = emit(CASES["l0"], Language.C, "x\n#error /etc/*/y\n.toml")
    assert "#error" not in text
