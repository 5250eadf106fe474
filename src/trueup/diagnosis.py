"""What this machine can do: backends, and the packages and tools behind them."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from trueup import __version__


@dataclass(frozen=True)
class Row:
    """One thing looked at: whether it is there, what it is, and what to do where it is not."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """Everything `trueup doctor` looked at."""

    backends: tuple[Row, ...]
    machine: tuple[Row, ...]

    @property
    def able(self) -> list[str]:
        """Name the backends that run a compiled kernel here (Python callables run anywhere)."""
        return [row.name for row in self.backends if row.ok and row.name != "python"]

    def document(self) -> dict[str, Any]:
        """Lay it out as JSON data."""
        return {
            "trueup": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "backends": [asdict(row) for row in self.backends],
            "machine": [asdict(row) for row in self.machine],
        }


# What the commands need beside the backends' own needs, with the way to get it.
_PACKAGES = (
    ("ml-dtypes", "pip install trueup"),
    ("pandera", "pip install trueup"),
    ("pytest", "pip install pytest"),
)


def diagnose() -> Diagnosis:
    """Look at this machine; touches no GPU driver beyond what the backends do to find one."""
    from trueup.oracle.backends.choose import NAMES, available

    rows = [Row(*row) for row in available()]
    known = {row.name for row in rows}
    rows += [_package(name, fix) for name, fix in _PACKAGES if name not in known]
    return Diagnosis(tuple(_backend(name) for name in NAMES), tuple(rows))


def _backend(name: str) -> Row:
    from trueup.oracle.backends.choose import choose
    from trueup.oracle.errors import BackendUnavailable

    try:
        return Row(name, True, str(choose(name, (name,)).device))
    except BackendUnavailable as error:
        return Row(name, False, error.what, error.fix or "")


def _package(name: str, fix: str) -> Row:
    try:
        return Row(name, True, version(name))
    except PackageNotFoundError:
        return Row(name, False, "not installed", fix)
