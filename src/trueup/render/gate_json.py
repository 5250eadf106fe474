"""A gate's verdicts as JSON: that of one run as it is, several in a list with their paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict


def gate_json(judged: Sequence[tuple[str, Verdict | str]], *, several: bool) -> str:
    """Write strict JSON. A single run that could not be judged has no document: only stderr."""
    if not several:
        return "".join(
            result.to_json() + "\n" for _, result in judged if not isinstance(result, str)
        )
    runs: list[dict[str, Any]] = [
        {"path": path, "refused": result}
        if isinstance(result, str)
        else {"path": path, "judgement": result.to_dict()}
        for path, result in judged
    ]
    words = ["refused" if isinstance(one, str) else one.verdict for _, one in judged]
    worst = next((word for word in ("refused", "fail") if word in words), "pass")
    document = {"verdict": worst, "runs": runs}
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=True) + "\n"
