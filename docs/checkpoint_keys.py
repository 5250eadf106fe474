"""Write the table of keys of docs/checkpoints.md from the schema of sidecars.

    python docs/checkpoint_keys.py     # after the schema has changed

The table stands between `<!-- keys -->` and `<!-- end keys -->`; a test holds it to the schema.
"""

from __future__ import annotations

import re
from pathlib import Path

from trueup.gates.documents.schema import built_in_schema

PAGE = Path(__file__).resolve().parent / "checkpoints.md"


def table() -> str:
    """List every key with its meaning."""
    keys = built_in_schema("checkpoint/sidecar")["properties"]
    rows = [f"| `{name}` | {one['description']} |" for name, one in keys.items()]
    return "\n".join(("| key | meaning |", "| --- | --- |", *rows)) + "\n"


def filled(page: str) -> str:
    """Return the page with the table as the schema has it now."""
    between = re.compile(r"(<!-- keys -->\n).*?(<!-- end keys -->)", re.DOTALL)
    page, count = between.subn(lambda found: f"{found[1]}{table()}{found[2]}", page)
    if count != 1:
        raise ValueError(f"the page has {count} places for the table, expected 1")
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
