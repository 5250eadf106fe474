"""Profiles of kernels: what nsys writes in its forms, and what counts as a regression."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.acceptance.errors import AcceptanceError, Incomparable
from trueup.gates.acceptance.inputs import Folder
from trueup.gates.acceptance.kernel_sums import Kernels, read_kernels

FULL = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
GRID = FULL.replace("Name", "GridXYZ,BlockXYZ,Name")
NAME = "void gemm<float, (int)8>(float const*, float*)"


def read(folder: Path, text: str, name: str = "k.csv") -> Kernels:
    (folder / name).write_text(text, newline="")
    return read_kernels(Folder(folder, "", lambda name, fault: None), name)


def found(kernels: Kernels) -> dict[str, tuple[Fraction, int]]:
    return {name: (one.total, one.instances) for name, one in kernels.by_name.items()}


ROW = f'97.5,"1,234,567",10,123456.7,120000.0,100000,150000,9000.5,"{NAME}"\n'
WANT = {NAME: (Fraction(1234567), 10)}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FULL + ROW, id="plain"),
        pytest.param("Generating SQLite file x.sqlite\nProcessing [x.sqlite] with "
                     "[/opt/reports/cuda_gpu_kern_sum.py]... \n\n" + FULL + ROW, id="preamble"),
        pytest.param(FULL.replace("\n", "\r\n") + ROW.replace("\n", "\r\n"), id="crlf"),
        pytest.param("\ufeff" + FULL + ROW, id="bom"),
        pytest.param(FULL + ROW + "\nProcessing the next report...\n", id="talk-after"),
        pytest.param(GRID + ROW.replace(f'"{NAME}"', f'   4    1    1, 128    1    1,"{NAME}"'),
                     id="grid-columns"),
        pytest.param(FULL.replace("(ns)", "(us)") + ROW.replace('"1,234,567"', '"1,234.567"'),
                     id="microseconds"),
        pytest.param(FULL.replace("Total Time (ns)", "Total Time (ms)")
                     + ROW.replace('"1,234,567"', "1.234567"), id="milliseconds"),
        pytest.param(FULL + ROW.replace('"1,234,567",10', '"1,000,000",8').replace("97.5", "80")
                     + ROW.replace('"1,234,567",10', '"234,567",2').replace("97.5", "17.5"),
                     id="one-kernel-with-two-grids"),
    ],
)  # fmt: skip
def test_a_table_is_read_by_its_header(tmp_path: Path, text: str) -> None:
    assert found(read(tmp_path, text)) == WANT


@pytest.mark.parametrize(
    "row",
    [
        {"Time (%)": 97.5, "Total Time (ns)": 1234567, "Instances": 10, "Name": NAME},
        {"Time (%)": "97.5", "Total Time (ns)": "1,234,567", "Instances": "10", "Name": NAME},
        {"Name": NAME, "GridXYZ": "4 1 1", "Instances": 10, "Total Time (us)": 1234.567},
    ],
)
@pytest.mark.parametrize("before", ["", "Processing [x.sqlite] with [cuda_gpu_kern_sum]... \n\n"])
def test_the_same_keys_are_read_from_json(tmp_path: Path, row: Any, before: str) -> None:
    assert found(read(tmp_path, before + json.dumps([row], indent=2), "k.json")) == WANT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FULL, "lists no kernel"),
        ("Name,Instances,Total Time (ns),Time (%)\n" + ROW, "has no table of kernels"),
        (FULL + ROW.replace('"1,234,567"', "1.234.567"), "Total Time .* is no number"),
        (FULL + ROW.replace('"1,234,567"', "1.5"), "is no whole number"),
        (FULL + ROW.replace('"1,234,567"', '"12,34"'), "is no number"),
        (FULL + ROW.replace('"1,234,567"', "-5"), "is no number"),
        (FULL + ROW.replace('"1,234,567"', "nan"), "is no number"),
        (FULL + ROW.replace(",10,", ",,"), "Instances is no number"),
        (FULL + ROW.replace(f'"{NAME}"', NAME), "a row of another length"),
        (FULL + ROW.replace(f'"{NAME}"', '""'), "a kernel without a name"),
        (FULL + ROW[:-3], "is not CSV"),
        (FULL + ROW + FULL + ROW, "holds two tables"),
        (FULL + ROW + "\n" + FULL + ROW, "holds two tables"),
        (FULL.replace("Instances", "Count") + ROW, "lacks a column"),
        (FULL.replace("Med (ns)", "Name") + ROW, "names a column twice"),
        ("[]", "lists no kernel"),
        ('[{"Name": "a"}]', "lacks a column"),
        ('[{"Name": 7, "Total Time (ns)": 1, "Instances": 1}]', "without a name"),
        ('[{"Name": "a", "Total Time (ns)": true, "Instances": 1}]', "is no number"),
    ],
)
def test_a_table_that_is_not_as_its_header_says_is_refused(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(AcceptanceError, match=words):
        read(tmp_path, text, "k.json" if text.startswith("[") else "k.csv")


def table(*kernels: tuple[str, int, int]) -> str:
    total = sum(time for _, time, _ in kernels) or 1
    rows = (f'{100 * time / total:.1f},{time},{count},"{name}"' for name, time, count in kernels)
    return "Time (%),Total Time (ns),Instances,Name\n" + "\n".join(rows) + "\n"


BASE = (("gemm", 600_000, 10), ("softmax", 390_000, 10), ("fill", 10_000, 5))


def compare(accepting: Any, new: Any, base: Any = BASE, **more: str) -> Any:
    return accepting.like("passes_profile", base_csv=table(*base), new_csv=table(*new), **more)


def changed(**times: tuple[int, int]) -> list[tuple[str, int, int]]:
    return [(name, *times.get(name, (time, count))) for name, time, count in BASE]


@pytest.mark.parametrize(
    ("new", "rules"),
    [
        pytest.param(BASE, [], id="the-same"),
        pytest.param([(n, t * 6 // 5, c) for n, t, c in BASE], [], id="exactly-20-percent"),
        pytest.param([(n, t * 6 // 5 + 1, c) for n, t, c in BASE],
                     ["ACC301", "ACC302"], id="just-over-in-all"),
        pytest.param(changed(gemm=(720_001, 10)), ["ACC302"], id="one-kernel"),
        pytest.param(changed(fill=(12_001, 5)), ["ACC302"], id="a-share-of-exactly-1-percent"),
        pytest.param(changed(gemm=(720_001, 10), softmax=(270_000, 10)), ["ACC302"],
                     id="the-maximum-hides-nothing"),
        pytest.param(changed(gemm=(1_200_000, 20)), ["ACC301", "ACC302"],
                     id="average-unchanged-launches-doubled"),
        pytest.param([(n, t * 2, c) for n, t, c in BASE], ["ACC301", "ACC302"],
                     id="all-doubled-time-percent-unchanged"),
        pytest.param([*BASE[:2]], ["ACC304"], id="removed"),
        pytest.param([*BASE, ("new", 200_000, 1)], ["ACC305"], id="added-exactly-20-percent"),
        pytest.param([*BASE, ("new", 200_001, 1)], ["ACC301", "ACC305"], id="added-over"),
    ],
)  # fmt: skip
def test_growth_for_each_epoch(accepting: Any, new: Any, rules: list[str]) -> None:
    judgement = compare(accepting, new)
    assert accepting.rules(judgement) == rules
    assert judgement.passed is (set(rules) <= {"ACC303", "ACC304", "ACC305"})


def test_a_small_kernel_is_told_of_and_does_not_decide(accepting: Any) -> None:
    base = [*BASE[:2], ("fill", 9_000, 5)]
    judgement = compare(accepting, [*BASE[:2], ("fill", 90_000, 50)], base)
    assert accepting.rules(judgement) == ["ACC303"]
    assert judgement.passed
    (finding,) = judgement.findings
    assert "launches x 10 (5 to 50)" in finding.got


def test_times_are_of_one_epoch(accepting: Any) -> None:
    judgement = compare(accepting, BASE)
    (total,) = [one for one in judgement.criteria if one.id == "profile.total"]
    assert total.value == "+0 %: 500000 to 500000 ns an epoch"  # 1,000,000 ns in 2 epochs


def test_more_launches_are_told_apart_from_slower_ones(accepting: Any) -> None:
    judgement = compare(accepting, changed(gemm=(1_200_000, 20)))
    (kernel,) = [one for one in judgement.criteria if one.of == "[gemm]"]
    assert "launches x 2 (10 to 20)" in kernel.value


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (("H200", "H100"), "gpu"),
        (("locked = true", "locked = false"), "clocks_locked"),
        (("epochs = 2", "epochs = 3"), "epochs"),
        (("epochs = 2", "epochs = 2\nsm_clock_mhz = 1500"), "sm_clock_mhz"),
    ],
)  # fmt: skip
def test_other_conditions_are_refused(accepting: Any, change: tuple[str, str], key: str) -> None:
    about = accepting.fixture("passes_profile")["new.toml"].replace(*change)
    with pytest.raises(Incomparable, match=f"another {key}"):
        compare(accepting, BASE, new_toml=about)


@pytest.mark.parametrize("line", ["epochs = 0", "epochs = 2.0", 'gpu = ""', "clocks_locked = 1"])
def test_conditions_that_say_nothing_are_refused(accepting: Any, line: str) -> None:
    kept = [one for one in accepting.fixture("passes_profile")["new.toml"].splitlines()
            if one.split()[0] != line.split()[0]]  # fmt: skip
    with pytest.raises(AcceptanceError, match=line.split()[0]):
        compare(accepting, BASE, new_toml="\n".join([*kept, line]))


def test_a_profile_without_time_is_refused(accepting: Any) -> None:
    with pytest.raises(Incomparable, match="no time at all"):
        compare(accepting, [("gemm", 0, 1)])


def test_a_kernel_of_no_time_that_gets_some_is_told(accepting: Any) -> None:
    judgement = compare(accepting, [*BASE, ("idle", 50, 1)], [*BASE, ("idle", 0, 0)])
    assert accepting.rules(judgement) == ["ACC303"]


def test_thresholds_can_be_set(accepting: Any) -> None:
    toml = accepting.fixture("passes_profile")["acceptance.toml"]
    toml += "\n[profile]\nthreshold = 0.1\nmin_share = 0.5\n"
    new = changed(gemm=(660_001, 10), softmax=(470_000, 10))
    judgement = compare(accepting, new, acceptance_toml=toml)
    assert accepting.rules(judgement) == ["ACC301", "ACC302", "ACC303"]


def test_a_kernel_name_cannot_drive_the_second_engine(accepting: Any) -> None:
    names = ["void $HOME<${x}>()", "<script>alert(1)</script>", "k\x1b[31m"]
    base = [(name, 100_000, 1) for name in names]
    judgement = compare(accepting, base, base)
    assert judgement.passed
    assert all(set(one.column).isdisjoint("<>${}\x1b") for one in judgement.expectations)
