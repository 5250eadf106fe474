"""Write kernels/README.md: from each equation to its kernel and to what was measured of it.

    python docs/kernels_page.py     # after a contract or a result has changed; `make docs`

The rows are the shipped contracts; the times stand in benchmarks/results/, one file a device.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from trueup.reference import catalogue

ROOT = Path(__file__).resolve().parents[1]
KERNELS, RESULTS = ROOT / "kernels", ROOT / "benchmarks" / "results"
PAGE = KERNELS / "README.md"
HEAD = """# Kernels

A kernel is one `.cu` file and one contract (`.toml`) of the same name; several contracts may share
a `.cu`. `common.cuh` and its like are headers. `torch/` launches these kernels on torch's stream
([docs/torch.md](../docs/torch.md)). `make docs` writes the table from the contracts and from
[benchmarks/results](../benchmarks/results).

*Measured*: device time, and how many times the least time that the device allows (bytes at the
bandwidth of a copy, or operations at the rate of a large product), at one shape; the results hold
more shapes, and what torch takes for the same equation. A dash: not measured.

"""
COLUMNS = ("equation", "of", "reading", "contract", "stored, multiplied", "measured")


def measured() -> dict[str, str]:
    """Give for each contract the first row of the results that names it."""
    out: dict[str, str] = {}
    for path in sorted(RESULTS.glob("*.md")):
        lines = [line for line in path.read_text("utf-8").splitlines() if line.startswith("| ")]
        if not lines or "us / floor" not in lines[0]:
            continue
        names = [cell.strip() for cell in lines[0].strip("|").split("|")]
        for line in lines[1:]:
            cells = dict(zip(names, (c.strip() for c in line.strip("|").split("|")), strict=False))
            if re.fullmatch(r"[0-9.]+", cells.get("us / floor", "")) and ";" not in cells["shape"]:
                text = f"{cells['us']} us, {cells['us / floor']} × floor at {cells['shape']}"
                out.setdefault(
                    cells["kernel"], f"[{path.stem}](../benchmarks/results/{path.name}): {text}"
                )
    return out


def rows() -> Iterator[tuple[str, ...]]:
    """Give a row for each shipped contract, in the order of the catalogue."""
    times = measured()
    entries = {entry.id: number for number, entry in enumerate(catalogue())}
    known = {entry.id: entry for entry in catalogue()}
    found = []
    for path in sorted(KERNELS.glob("*/*.toml")):
        head = tomllib.loads(path.read_text("utf-8")).get("contract")
        if head is not None:
            found.append((entries[head["reference"]], path, head))
    for _, path, head in sorted(found, key=lambda one: (one[0], one[1].name)):
        entry = known[head["reference"]]
        precision = head.get("precision", {})
        storage = precision.get("storage", "f32")
        multiply = precision.get("multiply", storage)
        numbers = f"Eq. {', '.join(entry.numbers)}" if entry.numbers else entry.source
        yield (
            f"`{entry.id}`",
            numbers,
            f"`{head.get('reading', entry.default_reading)}`",
            f"[{head['id']}]({path.relative_to(KERNELS).as_posix()})",
            storage if multiply == storage else f"{storage}, {multiply}",
            times.get(head["id"], "—"),
        )


def page() -> str:
    """Give the whole page."""
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *rows()]
    return HEAD + "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
