"""What this machine can do: backends, and the packages and tools behind them."""

from __future__ import annotations

import platform
from dataclasses import dataclass
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
    packages: tuple[Row, ...]

    @property
    def can_verify(self) -> bool:
        """Whether at least one backend runs kernels here."""
        return any(row.ok for row in self.backends)

    def document(self) -> dict[str, Any]:
        """Lay it out as JSON data."""
        return {
            "trueup": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "backends": [vars(row) for row in self.backends],
            "packages": [vars(row) for row in self.packages],
        }


# Distribution, what it is for, what to install; names are those of pyproject's extras.
_PACKAGES = (
    ("numpy", "verify", "pip install trueup"),
    ("ml-dtypes", "verify with bfloat16", "pip install trueup"),
    ("polars", "gate", "pip install trueup"),
    ("pandera", "gate", "pip install trueup"),
    ("pytest", "pytest -m fidelity", "pip install pytest"),
    ("torch", "torch kernels, and GPU buffers", "pip install 'trueup[torch]'"),
    ("cuda-core", "the cuda backend", "pip install 'trueup[cuda]'"),
    ("nvidia-cuda-nvrtc", "compiling for the cuda backend", "pip install 'trueup[cuda]'"),
    ("great-expectations", "run acceptance", "pip install 'trueup[accept]'"),
)


def diagnose() -> Diagnosis:
    """Look at this machine; touches no GPU driver beyond what the backends do to find one."""
    from trueup.oracle.backends.choose import available

    backends = tuple(Row(*row) for row in available())
    return Diagnosis(backends, tuple(_package(*entry) for entry in _PACKAGES))


def _package(name: str, purpose: str, fix: str) -> Row:
    try:
        return Row(name, True, f"{version(name)}, for {purpose}")
    except PackageNotFoundError:
        return Row(name, False, f"not installed, for {purpose}", fix)
