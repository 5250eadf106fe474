"""What the tests of acceptances share: an acceptance from texts, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.acceptance.judge import judge_acceptance
from trueup.gates.acceptance.lock import lock
from trueup.gates.acceptance.model import Judgement

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "acceptance"


class Accepting:
    """Writes files into the test's folder and judges them."""

    head = '[acceptance]\nid = "mine"\n\n'
    results = '[results]\nfiles = ["results.json"]\n\n'

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, files: Mapping[str, Any]) -> Path:
        """Text and bytes as they are, anything else as JSON; acceptance.toml gets its head."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name == "acceptance.toml" and "[acceptance]" not in content:
                content = self.head + content
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        return self.folder

    def judged(self, files: Mapping[str, Any], **options: Any) -> Judgement:
        """The judgement of these files."""
        return judge_acceptance(self.write(files), **options)

    def fixture(self, name: str, **changes: Any) -> dict[str, Any]:
        """The files of a fixture, some replaced; the first `_` of a name stands for a dot."""
        files: dict[str, Any] = {
            path.name: path.read_text()
            for path in (FIXTURES / name).iterdir()
            if path.name != "expected.toml"
        }
        files |= {key.replace("_", ".", 1): content for key, content in changes.items()}
        return {key: content for key, content in files.items() if content is not None}

    def like(self, name: str, **changes: Any) -> Judgement:
        """The judgement of a fixture with some files replaced."""
        return self.judged(self.fixture(name, **changes))

    def locked(self, results: Any, *paths: str) -> str:
        """The text of a baseline locked from results."""
        source, target = self.folder / "of" / "old.json", self.folder / "of" / "new.toml"
        source.parent.mkdir(exist_ok=True)
        source.write_text(results if isinstance(results, str) else json.dumps(results))
        target.unlink(missing_ok=True)
        lock(source, target, paths=paths)
        return target.read_text()

    @staticmethod
    def held(judgement: Judgement) -> dict[str, str]:
        """Whether each criterion holds, by its name."""
        return {criterion.name: criterion.held for criterion in judgement.criteria}

    @staticmethod
    def rules(judgement: Judgement) -> list[str]:
        """The ids of what was found, each once."""
        return sorted({finding.rule for finding in judgement.findings})


@pytest.fixture
def accepting(tmp_path: Path) -> Accepting:
    return Accepting(tmp_path)
