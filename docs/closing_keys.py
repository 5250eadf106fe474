"""Writes the tables of keys in `closing.md` from the schema of the ticket.

python docs/closing_keys.py [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE / "closing.md"
SCHEMA = HERE.parent / "gates" / "closure" / "ticket.schema.json"
BEGIN, END = "<!-- keys: made by closing_keys.py -->", "<!-- end of keys -->"


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A part, or what it refers to; a description of its own comes first."""
    if "$ref" not in part:
        return part
    target: Any = schema
    for step in part["$ref"].split("/")[1:]:
        target = target[step]
    return {**_resolved(target, schema), **{k: v for k, v in part.items() if k != "$ref"}}


def _table(name: str, part: dict[str, Any], schema: dict[str, Any], needed: bool) -> Iterator[str]:
    whole = _resolved(part, schema)
    several = whole["type"] == "array"
    keys = _resolved(whole["items"], schema) if several else whole
    choices = [choice["required"] for choice in keys.get("oneOf", ())]
    required = {*keys.get("required", ()), *(key for choice in choices for key in choice)}
    yield f"### `[[{name}]]`" if several else f"### `[{name}]`"
    yield ""
    said = [whole["description"]]
    if not needed:
        said.append("Optional.")
    if choices:
        ways = (" and ".join(f"`{key}`" for key in choice) for choice in choices)
        said.append(f"Has one of: {'; '.join(ways)}.")
    yield " ".join(said)
    yield ""
    yield "| key | meaning |"
    yield "|---|---|"
    for key, value in keys["properties"].items():
        optional = "" if key in required else " (optional)"
        text = _resolved(value, schema)["description"].replace("|", "\\|")
        yield f"| `{key}`{optional} | {text} |"
    yield ""


def keys() -> str:
    """All tables."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    lines: list[str] = []
    for name, part in schema["properties"].items():
        lines += _table(name, part, schema, name in schema["required"])
    return "\n".join(lines).rstrip("\n")


def page() -> str:
    """The page with its tables as the schema has them."""
    text = PAGE.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{keys()}\n\n{END}{tail}"


if __name__ == "__main__":
    wanted = page()
    if sys.argv[1:] == ["--check"]:
        same = wanted == PAGE.read_text("utf-8")
        sys.exit(0 if same else "docs/closing.md: run python docs/closing_keys.py")
    PAGE.write_text(wanted, "utf-8")
