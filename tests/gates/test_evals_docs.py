"""The pages on evaluations and bundles say what the code does."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from trueup.gates import judge
from trueup.gates.documents.schema import breaks
from trueup.gates.evals.read import KINDS
from trueup.gates.profile.load import parse_profile

ROOT = Path(__file__).resolve().parents[2]
EVALS = (ROOT / "docs" / "evals.md").read_text("utf-8")
BUNDLES = (ROOT / "docs" / "bundles.md").read_text("utf-8")
PROFILE = str(ROOT / "fixtures" / "evals" / "profile.toml")


def block(page: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_document_fits_its_schema_and_holds() -> None:
    data = json.loads(block(EVALS, "json"))
    assert breaks(data, "evals/evaluation") == []
    assert breaks(data["results"], "evals/zeroshot") == []


def test_the_document_passes_with_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step_002000.safetensors").write_bytes(b"weights\n")
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "zeroshot.json").write_text(block(EVALS, "json"))
    meta = {"step": 2000, "created_at": "2026-03-01T11:00:00Z"}
    (tmp_path / "checkpoints" / "step_002000.meta.json").write_text(json.dumps(meta))
    assert {finding.rule for finding in judge(tmp_path, PROFILE).findings} == {"EVAL021"}


def test_every_kind_and_every_key_of_results_is_told() -> None:
    for kind in KINDS:
        assert f"| `{kind}` | " in EVALS
        schema = json.loads((ROOT / "gates" / "evals" / f"{kind}.schema.json").read_text())
        for key in schema["properties"]:
            assert f"`{key}`" in EVALS or key in ("results", "extra"), key
    schema = json.loads((ROOT / "gates" / "evals" / "evaluation.schema.json").read_text())
    for key in schema["properties"]:
        assert f"`{key}`" in EVALS or f'"{key}"' in EVALS, key


def test_a_wrapped_output_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval").mkdir()
    (tmp_path / "step_000010.pt").write_bytes(b"weights\n")
    output = {"piqa_accuracy": 0.49609375, "piqa_samples": 256}
    (tmp_path / "eval" / "zeroshot.json").write_text(json.dumps(output))
    meta = {"step": 10, "created_at": "2026-01-01T00:00:00Z"}
    (tmp_path / "step_000010.meta.json").write_text(json.dumps(meta))
    names: dict[str, object] = {}
    exec(compile(block(EVALS, "python"), "docs/evals.md", "exec"), names)
    wrap = names["wrap"]
    assert callable(wrap)
    wrap("zeroshot", "eval/zeroshot.json", "step_000010.pt", 10, "0" * 40, 0, "configs/x.yaml")
    wrapped = json.loads((tmp_path / "eval" / "zeroshot.json").read_text())
    assert wrapped["checkpoint"]["sha256"] == hashlib.sha256(b"weights\n").hexdigest()
    assert {finding.rule for finding in judge(tmp_path, PROFILE).findings} == {"EVAL021"}


def test_the_manifest_fits_its_schema() -> None:
    data = json.loads(block(BUNDLES, "json"))
    assert breaks(data, "bundle/manifest") == []


def test_the_profile_replaces_the_variants() -> None:
    profile = parse_profile(block(BUNDLES, "toml").encode(), "docs/bundles.md")
    (rule,) = (rule for rule in profile.rules if rule.id == "BND010")
    assert rule.params == {"variants": ["teach", "no_teach"]}
    assert any(rule.id == "BND011" for rule in profile.rules)
