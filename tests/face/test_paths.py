"""Paths in reports and replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueup.render.paths import nearby
from trueup.shipped import shipped_kernels


def test_what_lies_below_is_said_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert nearby(str(tmp_path / "a" / "b.toml")) == "a/b.toml"
    assert nearby("a/b.toml") == "a/b.toml"
    elsewhere = str(tmp_path.parent / "b.toml")
    assert nearby(elsewhere) == elsewhere
    assert nearby("/x\0y") == "/x\0y"


def test_a_link_of_ones_own_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "link.toml").symlink_to(tmp_path / "c.toml")
    assert nearby(str(tmp_path / "deep" / "link.toml")) == "deep/link.toml"


def test_a_shipped_contract_is_named_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    contract = shipped_kernels() / "nl" / "delta_momentum.toml"
    real = contract.resolve()
    monkeypatch.chdir(real.parents[2])
    assert nearby(str(contract)) == f"{real.parents[1].name}/nl/delta_momentum.toml"
