"""Writes the tables of keys in `acceptance.md` from the schema and the defaults of the code.

python docs/acceptance_keys.py [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from trueup.gates.acceptance import config

HERE = Path(__file__).parent
PAGE = HERE / "acceptance.md"
SCHEMA = HERE.parent / "gates" / "acceptance" / "schemas" / "acceptance.schema.json"
BEGIN, END = "<!-- keys: made by acceptance_keys.py -->", "<!-- end of keys -->"
_STRUCTS = {
    "acceptance": config.About, "results": config.Results, "baseline": config.BaselineFile,
    "band": config.Band, "limit": config.Limit, "mix": config.Mix, "wired": config.Wired,
    "smoke": config.Smoke, "hard_stop": config.HardStop, "profile": config.ProfileCheck,
    "final": config.Final, "ablation": config.Ablation, "tests": config.Tests,
}  # fmt: skip


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A part, or what it refers to; a description of its own comes first."""
    if "$ref" not in part:
        return part
    target: Any = schema
    for step in part["$ref"].split("/")[1:]:
        target = target[step]
    return {**_resolved(target, schema), **{k: v for k, v in part.items() if k != "$ref"}}


def _default(table: str, key: str) -> str:
    """The default of a key as TOML has it; empty where there is none."""
    for field in msgspec.structs.fields(_STRUCTS[table]):
        if field.encode_name == key:
            value = field.default
            if value is msgspec.NODEFAULT or value is None or value in ("", ()):
                return ""
            if isinstance(value, tuple):
                return f"`{json.dumps(list(value))}`"
            return f"`{json.dumps(value) if isinstance(value, str | bool) else value}`"
    raise KeyError(f"{table}.{key}")


def _table(name: str, part: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    several = part["type"] == "array"
    whole = part["items"] if several else part
    yield f"### `[[{name}]]`" if several else f"### `[{name}]`"
    yield ""
    yield part["description"]
    yield ""
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    for key, value in whole["properties"].items():
        needed = "needed" if key in whole["required"] else _default(name, key)
        text = _resolved(value, schema)["description"].replace("|", "\\|")
        yield f"| `{key}` | {needed} | {text} |"
    yield ""


def keys() -> str:
    """All tables."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    lines: list[str] = []
    for name, part in schema["properties"].items():
        lines += _table(name, part, schema)
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
        sys.exit(0 if same else "docs/acceptance.md: run python docs/acceptance_keys.py")
    PAGE.write_text(wanted, "utf-8")
