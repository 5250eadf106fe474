"""The rules of the dqn profile against the numbers that its programme states."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trueup.gates import Verdict, judge
from trueup.gates.profile.load import load_profile

HOME = Path(__file__).resolve().parents[2] / "fixtures" / "health_diag"
Row = dict[str, Any]


def _run() -> ModuleType:
    spec = importlib.util.spec_from_file_location("health_diag_run", HOME / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["health_diag_run"] = module
    spec.loader.exec_module(module)
    return module


BASE: list[Row] = _run().base()


def judged(tmp_path: Path, change: Callable[[list[Row]], Any]) -> Verdict:
    rows = copy.deepcopy(BASE)
    result = change(rows)
    path = tmp_path / "health_diag.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (result or rows)))
    return judge(path, "dqn")


def found(tmp_path: Path, change: Callable[[list[Row]], Any]) -> set[str]:
    return {finding.rule for finding in judged(tmp_path, change).findings}


@pytest.mark.parametrize(
    ("mix", "rules"),
    [
        pytest.param([38, 12, 42, 14], {"DQN032"}, id="the-reported-106-percent"),
        pytest.param([38, 12, 38, 14], set(), id="102-percent-of-four"),
        pytest.param([38, 12, 39, 14], {"DQN032"}, id="103-percent-of-four"),
        pytest.param([0.25, 0.25, 0.25, 0.25], set(), id="shares"),
        pytest.param([0.25, 0.25, 0.25, 0.26], {"DQN032"}, id="shares-of-1.01"),
    ],
)
def test_action_mixes(mix: list[float], rules: set[str], tmp_path: Path) -> None:
    assert found(tmp_path, lambda rows: rows[3]["action_mix"].update(DIR=mix)) == rules


@pytest.mark.parametrize(
    ("slot", "inside", "outside"),
    [
        ("TAU_EFF", 1e-2, 1.01e-2),
        ("EPSILON_EFF", 0.02, 0.0199),
        ("GAMMA_DIR_EFF", 0.995, 0.996),
        ("GAMMA_URG_EFF", 0.8, 0.79),
        ("KELLY_CAP_EFF", 0.05, 0.049),
        ("PLAN_THRESHOLD", 0.9, 0.91),
        ("CQL_ALPHA", 1.0, 1.01),
        ("STATE_KL_AMP", 2.0, 2.01),
        ("LEARNING_HEALTH", 1.0, 1.01),
    ],
)
def test_ranges_of_the_bus(slot: str, inside: float, outside: float, tmp_path: Path) -> None:
    """The last row of a fold, where no schedule follows; only the range may be broken."""
    ranges = {f"DQN{n:03}" for n in (47, 48, 50, 53, 55, 56, 57, 59)}
    for value, broken in ((inside, 0), (outside, 1)):
        rules = found(tmp_path, lambda rows, v=value: rows[11]["isv"].update({slot: v}))
        assert len(rules & ranges) == broken, rules


def test_ranges_allow_the_float32_of_their_ends(tmp_path: Path) -> None:
    """float32(0.01) and float32(0.995) are not the decimals, and are no fault."""
    import struct

    def f32(value: float) -> float:
        nearest: float = struct.unpack("f", struct.pack("f", value))[0]
        return nearest

    for slot, end in (("TAU_EFF", 0.01), ("GAMMA_DIR_EFF", 0.995), ("PLAN_THRESHOLD", 0.9)):
        assert f32(end) != end
        rules = found(tmp_path, lambda rows, s=slot, e=end: rows[11]["isv"].update({s: f32(e)}))
        assert rules <= {"DQN044"}  # the monitor of the slot shows the value of before


def test_gamma_goldens_pass(tmp_path: Path) -> None:
    """(v_range 4, health 1) -> 0.9; (4, 0.5) -> 0.85; (40, 1) -> 0.99."""
    for value in (0.9, 0.85, 0.99):
        change = {"GAMMA_ORD_EFF": value}
        assert found(tmp_path, lambda rows, c=change: rows[11]["isv"].update(c)) == set()


def test_flags_are_told_apart_by_their_slots(tmp_path: Path) -> None:
    groups = {"DQN017": (0, 23), "DQN018": (24, 35), "DQN019": (36, 47)}
    for rule, ends in groups.items():
        for slot in ends:
            verdict = judged(
                tmp_path,
                lambda rows, s=slot: (
                    [r["nan_flags"].__setitem__(s, 1) for r in rows[8:12]] and rows
                ),
            )
            (finding,) = verdict.findings
            assert (finding.rule, finding.where.key) == (rule, f"nan_flags[{slot}]")
            assert (finding.where.step, finding.count) == (300, 4)


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_norm_of_exactly_zero(epochs: int, tmp_path: Path) -> None:
    """One epoch is a ratio of 0.0; two in a row are a readback that failed."""

    def change(rows: list[Row]) -> None:
        for row in rows[2 : 2 + epochs]:
            row["grad_decomp"]["IQN"]["dir"] = 0.0

    assert found(tmp_path, change) == ({"DQN024"} if epochs == 2 else set())


def test_no_loss_needs_no_gradient(tmp_path: Path) -> None:
    def change(rows: list[Row]) -> None:
        for row in rows[2:4]:
            row["loss"] = 0.0
            row["grad_decomp"]["IQN"].update(mag=0.0, dir=0.0)

    assert found(tmp_path, change) == set()


def test_a_profile_of_ones_own_replaces_proposed_numbers(tmp_path: Path) -> None:
    (rule,) = [rule for rule in load_profile("dqn").rules if rule.id == "DQN048"]
    words = "".join(f'{k} = "x"\n' for k in ("summary", "why", "expected", "fix"))
    (tmp_path / "mine.toml").write_text(
        '[profile]\nid = "mine"\nsummary = "s"\ninclude = ["dqn"]\n'
        f'[[rule]]\nid = "DQN048"\nseverity = "error"\n{words}check = "{rule.check}"\n'
        'keys = ["isv.TAU_EFF"]\nparams = { min = 0.0, max = 1.0 }\n'
    )
    path = tmp_path / "health_diag.jsonl"
    rows = copy.deepcopy(BASE)
    for row in rows[:12]:
        row["isv"]["TAU_EFF"] *= 4
        row["monitors"]["tau"]["value"] *= 4
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {f.rule for f in judge(path, "dqn").findings} == {"DQN048"}
    assert judge(path, str(tmp_path / "mine.toml")).findings == ()


def test_infinity_in_a_slot_never_satisfies_a_range(tmp_path: Path) -> None:
    rows = copy.deepcopy(BASE)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    old = f'"STATE_KL_AMP": {rows[11]["isv"]["STATE_KL_AMP"]}'
    assert old in text
    for word in ("Infinity", "-Infinity", "NaN"):
        path = tmp_path / "health_diag.jsonl"
        path.write_text(text.replace(old, f'"STATE_KL_AMP": {word}'))
        rules = {finding.rule for finding in judge(path, "dqn").findings}
        assert {"RDR008", "DQN006", "DQN059"} <= rules


def test_the_profile_takes_the_rules_on_checkpoints_and_bundles() -> None:
    profile = load_profile("dqn")
    kinds = {rule.on for rule in profile.rules}
    assert {"telemetry", "metadata", "weights", "manifest", "log"} <= kinds
    assert profile.nesting.flatten
