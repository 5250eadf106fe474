"""The JSON of `verify`: strict, with stable keys, as `schemas/verify.schema.json` says.

JSON has no NaN and no infinity: such a number becomes null, and `beyond` beside it is true where
the missing ratio means an error beyond every bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from trueup import __version__
from trueup.oracle.verdict import (
    ContractVerdict,
    Finding,
    LaneVerdict,
    Skip,
    Verification,
    Worst,
)

FORMAT = 1

_SCHEMAS = {
    "verify": ("trueup", "schemas/verify.schema.json"),
    "identify": ("trueup", "schemas/identify.schema.json"),
    "gate": ("trueup.gates", "verdict.schema.json"),
    "gates": ("trueup", "schemas/gates.schema.json"),
}


def verify_document(verification: Verification) -> dict[str, Any]:
    """Lay a verification out as JSON data."""
    return {
        "verdict": str(verification.verdict),
        "backend": verification.backend,
        "contracts": [_contract(contract) for contract in verification.contracts],
        "skipped": [_skip(skip) for skip in verification.skipped],
        "errors": list(verification.errors),
        "environment": jsonable(verification.environment),
        "trueup": __version__,
        "format": FORMAT,
    }


def dumps(document: Any) -> str:
    """Write strict JSON in ASCII: no NaN literal, no character a pipe could garble."""
    return json.dumps(jsonable(document), indent=2, ensure_ascii=True, allow_nan=False)


def jsonable(value: Any) -> Any:
    """Make data strict JSON: keys are strings, numbers finite or null, the rest text."""
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return str(value)


def load_schema(name: str) -> dict[str, Any]:
    """Give the JSON Schema of an output: `verify`, `identify`, `gate`, `gates` (several runs)."""
    # A gate's verdict is laid out by the gates themselves, and so is its schema.
    package, file = _SCHEMAS[name]
    schema: dict[str, Any] = json.loads(files(package).joinpath(file).read_text("utf-8"))
    return schema


def _contract(contract: ContractVerdict) -> dict[str, Any]:
    return {
        "id": contract.id,
        "verdict": str(contract.verdict),
        "reading": contract.reading,
        "lanes": [_lane(lane) for lane in contract.lanes],
        "path": contract.path,
        "backend": contract.backend,
        "device": contract.device,
        "digests": jsonable(contract.digests),
        "findings": [_finding(finding) for finding in contract.findings],
        "seconds": jsonable(contract.seconds),
    }


def _lane(lane: LaneVerdict) -> dict[str, Any]:
    return {
        "lane": lane.lane,
        "verdict": str(lane.verdict),
        "cases": lane.cases,
        "elements": lane.elements,
        "launches": lane.launches,
        "worst": _worst(lane.worst),
        "findings": [_finding(finding) for finding in lane.findings],
        "reason": lane.reason,
        "notes": list(lane.notes),
        "matches": list(lane.matches),
        "scores": jsonable([asdict(score) for score in lane.scores]),
        "seconds": jsonable(lane.seconds),
    }


def _worst(worst: Worst | None) -> dict[str, Any] | None:
    if worst is None:
        return None
    return {
        "ratio": jsonable(float(worst.ratio)),
        "where": worst.where,
        "error": jsonable(float(worst.error)),
        "allowed": jsonable(float(worst.allowed)),
        "case": worst.case,
        "beyond": not math.isfinite(worst.ratio),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    document: dict[str, Any] = jsonable(asdict(finding))
    return document


def _skip(skip: Skip) -> dict[str, Any]:
    document: dict[str, Any] = jsonable(asdict(skip))
    return document
