"""Evidence: the stored record of a verification, to be read as data by gates and people.

It names by digest what was verified (kernel, contract, reference), where it ran, and what every
lane counted and found. A host record never stands in for a GPU record: the backend is part of it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from trueup.oracle.errors import OracleError
from trueup.oracle.session import Session
from trueup.oracle.verdict import Verification

FORMAT = "trueup.evidence/1"

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def digests(session: Session) -> dict[str, str]:
    """Digest (SHA-256) what a verdict depends on: kernel, its local includes, contract, reference.

    The keys are `kernel`, `contract`, `reference`, and `include:NAME` for each local header.
    """
    found = {"contract": session.contract.digest, "reference": session.reference.digest}
    source = session.contract.source
    if source is None:
        assert session.contract.python is not None
        file = _python_file(session.contract.python, session.contract.path.parent)
        if file is not None:
            found["kernel"] = hashlib.sha256(file.read_bytes()).hexdigest()
        return found
    found["kernel"] = hashlib.sha256(source.path.read_bytes()).hexdigest()
    if source.kind == "cu":
        for header in _headers(source.path, source.include):
            name = os.path.relpath(header, source.path.parent)
            found[f"include:{name}"] = hashlib.sha256(header.read_bytes()).hexdigest()
    return found


def _python_file(python: str, folder: Path) -> Path | None:
    """Find the source of `file.py:function` or `module:function`."""
    name = python.rpartition(":")[0]
    if (folder / name).is_file():
        return folder / name
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def _headers(path: Path, include: tuple[Path, ...]) -> list[Path]:
    """List the local headers a source includes, directly or through one another."""
    found: list[Path] = []
    waiting = [path]
    while waiting:
        file = waiting.pop()
        for name in _INCLUDE.findall(file.read_bytes()):
            for folder in (file.parent, *include):
                header = (folder / name.decode("utf-8", "replace")).resolve()
                if header.is_file():
                    if header not in found:
                        found.append(header)
                        waiting.append(header)
                    break
    return sorted(found)


def environment() -> dict[str, Any]:
    """Describe the machine and the versions that a verdict may depend on."""
    return {
        "trueup": importlib.metadata.version("trueup") if _installed("trueup") else "source tree",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
    }


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def record(verification: Verification) -> dict[str, Any]:
    """Return the evidence as strict JSON data: numbers that are not finite become strings."""
    return {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "verdict": str(verification.verdict),
        "scope": dict(verification.scope),
        "environment": dict(verification.environment),
        "contracts": [_finite(asdict(contract)) for contract in verification.contracts],
        "skipped": [asdict(skip) for skip in verification.skipped],
        "errors": list(verification.errors),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def write_evidence(verification: Verification, path: Path | str) -> Path:
    """Write the evidence file, whole or not at all; parent directories are made.

    Raises OracleError where it cannot be written.
    """
    path = Path(path)
    text = json.dumps(record(verification), indent=1, allow_nan=False) + "\n"
    if os.path.exists(path) and not os.path.isfile(path):  # a device must not be replaced
        raise OracleError(
            "cannot write the evidence: it is not a regular file", where=str(path),
            fix="give the name of a file with --evidence",
        )  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise OracleError(
            f"cannot write the evidence: {error.strerror}",
            where=str(path),
            fix="give a writable path with --evidence",
        ) from None
    return path
