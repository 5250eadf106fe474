"""Which `trueup.toml` a command goes by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import FaceError

if TYPE_CHECKING:
    from trueup.gates.settings.model import Settings


def chosen_settings(config: Path | None, no_config: bool) -> Settings:
    """Load the settings that were asked for, or the nearest; without a file they change nothing."""
    from trueup.gates.settings.load import find_settings, load_settings
    from trueup.gates.settings.model import Settings
    from trueup.render.paths import nearby

    if no_config:
        if config is not None:
            raise FaceError(
                "--config and --no-config were both given", fix="give one of them, or none"
            )
        return Settings()
    try:
        path = config or find_settings(Path.cwd())
    except OSError as error:  # a current directory that is gone
        raise FaceError(f"cannot look for trueup.toml: {error}", fix="give --no-config") from error
    if path is None:
        return Settings()
    return load_settings(path, nearby(str(path)))
