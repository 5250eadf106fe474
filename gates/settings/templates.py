"""The files that a project begins with: settings, and the template of a ticket's closure."""

from __future__ import annotations

from importlib import resources

from trueup.gates.settings.model import FILE

TICKET = "ticket.toml"


def templates(profile: str) -> dict[str, str]:
    """The text of each file by its name, for a built-in profile."""
    return {
        FILE: _filled("settings", "trueup.template.toml", profile),
        TICKET: _filled("closure", "ticket.template.toml", profile),
    }


def _filled(folder: str, name: str, profile: str) -> str:
    text = (resources.files(f"trueup.gates.{folder}") / name).read_text("utf-8")
    return text.replace("@PROFILE@", profile)
