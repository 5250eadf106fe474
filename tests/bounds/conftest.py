"""Bounds are kept on disk; tests keep theirs apart."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bounds"
