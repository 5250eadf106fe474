"""Every kind of `trueup accept` is shown by its own examples, and only by those that fail."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.gates.acceptance.judge import judge_acceptance
from trueup.gates.acceptance.model import Judgement
from trueup.gates.catalogue.kinds import Kind, families

KINDS = families()["acceptance"]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "acceptance"
# The fixture whose files an example replaces, by the first digit of the kind's number.
BASES = {"1": "smoke", "2": "hard_stop", "3": "profile", "4": "final", "5": "ablation",
         "6": "tests"}  # fmt: skip
# What no file can show: an exception inside the other engine.
WITHOUT_EXAMPLE = {"engine_failed"}
SHOWN = [kind for kind in KINDS if kind.name not in WITHOUT_EXAMPLE]


def judged(kind: Kind, text: str, folder: Path, lay_out: Callable[..., list[Path]]) -> Judgement:
    lay_out(text, "acceptance.toml", folder.name)
    base = BASES.get(kind.id[3])
    if base is not None:
        for file in (FIXTURES / f"passes_{base}").iterdir():
            if not (folder / file.name).exists() and file.name != "expected.toml":
                shutil.copy(file, folder)
    return judge_acceptance(folder)


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.name)
def test_the_examples_of_a_kind_are_true(
    kind: Kind, tmp_path: Path, lay_out: Callable[..., list[Path]]
) -> None:
    passing = judged(kind, kind.passes, tmp_path / "passes", lay_out)
    assert kind.id not in {finding.rule for finding in passing.findings}
    # What is only told (a kernel that is gone) stands beside a pass.
    allowed = {"ACC109"} if kind.id.startswith("ACC1") else set()
    assert passing.passed or {f.rule for f in passing.findings} <= allowed
    failing = judged(kind, kind.fails, tmp_path / "fails", lay_out)
    (finding, *_) = [one for one in failing.findings if one.rule == kind.id]
    assert (finding.severity, finding.summary) == (kind.severity, kind.summary)
    assert failing.passed is (kind.severity != "error")


def test_only_the_named_kinds_go_without_examples() -> None:
    assert {kind.name for kind in KINDS if not (kind.passes and kind.fails)} == WITHOUT_EXAMPLE


def test_ids_are_in_order_and_grouped_by_their_block() -> None:
    ids = [kind.id for kind in KINDS]
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"ACC[0-6]\d\d", one) for one in ids)


def test_blockers_and_evidence_cannot_be_waived() -> None:
    fixed = {kind.name for kind in KINDS if not kind.waivable}
    wanted = {"blocker_failed", "blocker_unusable", "rejected_rerun", "ledger_broken"}
    wanted |= {"baseline_edited", "baseline_left_out", "evidence_missing", "tier_empty"}
    assert wanted <= fixed
