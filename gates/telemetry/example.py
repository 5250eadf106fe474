"""The short examples of rules on telemetry: lines of JSON, with repeated rows written once."""

from __future__ import annotations

import json
import re

_REPEATED = re.compile(r"(\d{1,4})x (\{.*\})\s*")


def expanded(example: str, step: str = "step") -> str:
    """The telemetry that an example stands for.

    A line `20x {...}` stands for twenty rows, the step counting on from the one that is written.
    Any other line stands for itself, however broken.
    """
    out = []
    for line in example.removeprefix("\n").splitlines(keepends=True):
        found = _REPEATED.fullmatch(line)
        if found is None:
            out.append(line)
            continue
        row = json.loads(found[2])
        for index in range(int(found[1])):
            out.append(json.dumps({**row, step: row[step] + index}) + "\n")
    return "".join(out)
