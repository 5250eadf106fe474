"""Git as a witness: the manifest was committed before the start, and git runs nothing else."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.acceptance.errors import AcceptanceError


def final(accepting: Any, said: dict[str, Any], toml: str) -> Any:
    """The small final run by another acceptance, with a manifest and a ledger that fit it."""
    fixture = accepting.fixture("passes_final")
    text = json.dumps(json.loads(fixture["manifest.json"]) | said)
    record = json.loads(fixture["ledger.jsonl"])
    record["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return accepting.like("passes_final", manifest_json=text, acceptance_toml=toml,
                          ledger_jsonl=json.dumps(record) + "\n")  # fmt: skip


def asked(accepting: Any) -> tuple[str, dict[str, Any]]:
    """An acceptance that asks git, and what a manifest says of it."""
    toml = accepting.fixture("passes_final")["acceptance.toml"] + "in_git = true\n"
    digest = hashlib.sha256(toml.encode()).hexdigest()
    return toml, {"gate_parameters": {"acceptance_sha256": digest, "baseline_sha256": []}}


def git(folder: Path, *words: str, at: str = "2026-11-01T06:00:00Z") -> None:
    who = {"NAME": "n", "EMAIL": "n@example.org"}
    env = {
        f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()
    }
    env |= {
        "GIT_AUTHOR_DATE": at,
        "GIT_COMMITTER_DATE": at,
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
    }
    subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("at", "edited", "committed", "rules"),
    [
        pytest.param("2026-11-01T07:30:00Z", False, True, [], id="before-the-start"),
        pytest.param("2026-11-01T08:00:01Z", False, True, ["ACC403"], id="after-the-start"),
        pytest.param("2026-11-01T07:30:00Z", True, True, ["ACC403"], id="edited-since"),
        pytest.param("2026-11-01T07:30:00Z", False, False, ["ACC403"], id="never-committed"),
    ],
)
def test_git_has_the_manifest_from_before_the_start(
    accepting: Any, at: str, edited: bool, committed: bool, rules: list[str]
) -> None:
    toml, said = asked(accepting)
    files = accepting.fixture("passes_final")
    text = json.dumps(json.loads(files["manifest.json"]) | said)
    folder = accepting.folder
    git(folder, "init", "-q")
    (folder / "manifest.json").write_text(text.replace("r1", "r0") if edited else text)
    (folder / "first").write_text("")
    git(folder, "add", "manifest.json" if committed else "first")
    git(folder, "commit", "-q", "-m", "announce", at=at)
    judgement = final(accepting, said, toml)
    assert accepting.rules(judgement) == rules


def test_without_a_repository_git_cannot_be_asked(accepting: Any) -> None:
    toml, said = asked(accepting)
    with pytest.raises(AcceptanceError, match="in no git repository"):
        final(accepting, said, toml)


def test_a_repository_runs_nothing_of_its_own(accepting: Any) -> None:
    """Its configuration may name commands: none is started by asking for a commit."""
    toml, said = asked(accepting)
    folder = accepting.folder
    accepting.write(accepting.fixture("passes_final"))
    git(folder, "init", "-q")
    git(folder, "add", "manifest.json")
    git(folder, "commit", "-q", "-m", "announce")
    evil = folder / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "gpg.program", "core.sshCommand", "diff.external",
                "core.editor", "log.showSignature"):  # fmt: skip
        git(folder, "config", key, "true" if key.startswith("log") else str(evil))
    git(folder, "config", "diff.x.textconv", str(evil))
    (folder / ".gitattributes").write_text("*.json diff=x\n")
    final(accepting, said, toml)
    assert not (folder / "ran").exists()
