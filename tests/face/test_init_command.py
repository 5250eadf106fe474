"""`trueup init`: files that pass their own schemas, written whole or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.errors import FaceError
from trueup.gates.catalogue.rules import built_in_entries
from trueup.gates.closure.ticket import read_ticket
from trueup.gates.profile.load import built_in
from trueup.gates.read.limits import Limits
from trueup.gates.settings.apply import check_rules
from trueup.gates.settings.load import load_settings, schema
from trueup.gates.settings.templates import templates
from trueup.render import files
from trueup.render.files import write_together

NAMES = ("trueup.toml", "ticket.toml")


def _run(*words: object) -> Result:
    return CliRunner().invoke(app, ["init", *(str(word) for word in words)])


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("profile", built_in())
def test_what_is_written_passes_its_own_schema(profile: str, tmp_path: Path) -> None:
    result = _run("--profile", profile, tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "new" / "folder"
    assert sorted(listing(folder)) == sorted(NAMES)
    settings = load_settings(folder / "trueup.toml")
    assert settings.profile == profile
    ticket, _ = read_ticket(folder / "ticket.toml")
    assert ticket.profile == profile
    assert "PROFILE" not in (folder / "trueup.toml").read_text()


def test_the_examples_in_the_comments_are_fit_as_well(tmp_path: Path) -> None:
    text = templates("nl")["trueup.toml"]
    keys = "|".join(("\\[", *_keys()))
    bare = re.sub(rf"(?m)^# (?=(?:{keys})\b|\[|[A-Z]+\d+ = )", "", text)
    assert bare.count("\n# ") < text.count("\n# ") - 15
    (tmp_path / "trueup.toml").write_text(bare)
    settings = load_settings(tmp_path / "trueup.toml")
    check_rules(settings, built_in_entries())
    assert settings.limits == Limits(), "the template tells other defaults"
    assert len(settings.severities) == 2
    (waiver,) = settings.waivers
    assert all((waiver.artifact, waiver.key, waiver.steps, waiver.approved_by, waiver.ticket))


def _keys() -> list[str]:
    parts = [*schema()["properties"].values(), schema()["$defs"]["waiver"]]
    return [key for part in parts for key in part.get("properties", {})]


def test_the_template_tells_every_key() -> None:
    text = templates("nl")["trueup.toml"]
    for key in _keys():
        assert re.search(rf"(?m)^(?:# )?{key} = ", text), key


def test_what_is_there_is_not_overwritten_and_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "ticket.toml").write_text("mine")
    result = _run(tmp_path)
    assert result.exit_code == 2
    assert "ticket.toml exists already" in result.stderr
    assert "--force" in result.stderr
    assert listing(tmp_path) == {"ticket.toml": b"mine"}
    assert _run(tmp_path, "--force").exit_code == 0
    assert sorted(listing(tmp_path)) == sorted(NAMES)


def test_a_dangling_link_and_a_folder_are_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "trueup.toml").symlink_to("nowhere")
    assert _run(tmp_path).exit_code == 2
    (tmp_path / "trueup.toml").unlink()
    (tmp_path / "ticket.toml").mkdir()
    result = _run(tmp_path, "--force")
    assert result.exit_code == 2
    assert "holds a folder of that name" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["ticket.toml"]


def test_without_a_folder_it_writes_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = _run()
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == ["wrote trueup.toml", "wrote ticket.toml"]
    mode = (tmp_path / "trueup.toml").stat().st_mode & 0o777
    assert mode == 0o666 & ~files._umask()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--profile", "nll"), "did you mean nl"),
        (("--profile", "mine.toml"), "no shipped profile is called"),
        (("/proc/nowhere",), "cannot write"),
    ],
)
def test_what_cannot_be_done_is_2(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = _run(*words) if words[0][0] == "/" else _run(*words, tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_the_folder_is_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert _run(tmp_path / "file" / "deep").exit_code == 2


@pytest.mark.parametrize(
    ("call", "overwrite"),
    [("chmod", True), ("chmod", False), ("mkstemp", True), ("mkstemp", False), ("replace", True)],
)
def test_a_write_that_fails_leaves_nothing_half_done(
    call: str, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of the two files fails, at whatever it takes to write it."""
    module = files.tempfile if call == "mkstemp" else os
    real, calls = getattr(module, call), []

    def failing(*words: object, **options: object) -> object:
        calls.append(words)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return real(*words, **options)

    monkeypatch.setattr(module, call, failing)
    with pytest.raises(FaceError, match="No space left"):
        write_together(tmp_path, {"a": "1", "b": "2"}, overwrite=overwrite)
    left = listing(tmp_path)
    assert left == ({"a": b"1"} if call == "replace" else {})  # each that is there is whole


def test_a_name_that_is_taken_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def late(source: str, target: Path) -> None:
        if target.name == "b":
            target.write_text("another's")
        real(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(FaceError, match="File exists"):
        write_together(tmp_path, {"a": "1", "b": "2"}, overwrite=False)
    assert listing(tmp_path) == {"b": b"another's"}


def test_a_file_system_without_links_is_written_to_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(source: str, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    write_together(tmp_path, {"a": "1", "b": "2"}, overwrite=False)
    assert listing(tmp_path) == {"a": b"1", "b": b"2"}
