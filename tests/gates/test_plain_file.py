"""What a user names as profile, acceptance or manifest is a plain file: no pipe is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.ledger_add import add_start
from trueup.gates.acceptance.load import load_acceptance
from trueup.gates.errors import GateError, ProfileError
from trueup.gates.plain_file import plain_bytes
from trueup.gates.profile.load import load_profile

READERS: list[tuple[Callable[[Path], object], type[GateError]]] = [
    (lambda path: load_profile(str(path)), ProfileError),
    (lambda path: load_acceptance(path, str(path)), AcceptanceError),
    (lambda path: add_start(path.parent / "ledger.jsonl", path), AcceptanceError),
]


@pytest.mark.parametrize(("read", "error"), READERS)
def test_a_pipe_or_a_device_is_refused_at_once(
    read: Callable[[Path], object], error: type[GateError], tmp_path: Path
) -> None:
    pipe, device = tmp_path / "pipe.toml", tmp_path / "zero.toml"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device, tmp_path):
        with pytest.raises(error, match="is not a regular file"):
            read(path)


@pytest.mark.parametrize(("size", "fits"), [(8, True), (9, False)])
def test_the_limit_is_the_last_size_that_is_read(size: int, fits: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"#" * size)
    if fits:
        assert plain_bytes(path, "x.toml", ProfileError, most=8) == b"#" * size
    else:
        with pytest.raises(ProfileError, match="more than 8 bytes"):
            plain_bytes(path, "x.toml", ProfileError, most=8)
