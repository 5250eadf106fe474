"""Make the wrong kernels from the shipped ones: one defect each, told in its folder's `edit.toml`.

A folder with an `edit.toml` names a shipped kernel (`base`) and edits, each a text that occurs
exactly `count` times (once, unless said) in one of the kernel's files. The result, kernel.cu,
contract.toml and any header that an edit touches, is committed, so that each wrong kernel can be
read and run as it stands; a test holds the committed files to what this makes. A folder without an
`edit.toml` is written by hand.

    python tests/wrong_kernels/derive.py     # after a shipped kernel has changed
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parent.parent / "kernels"
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


class EditError(Exception):
    """An edit no longer fits the shipped kernel; the message says which, and what to do."""


def folders() -> list[Path]:
    """List the folders of wrong kernels."""
    return sorted(path.parent for path in HERE.glob("*/expect.toml"))


def derive(folder: Path) -> dict[str, str]:
    """Return the files, by name, that the folder's edits make of the shipped kernel."""
    plan = tomllib.loads((folder / "edit.toml").read_text())
    base = KERNELS / plan["base"]
    texts = {name: path.read_text() for name, path in _sources(base)}
    touched = {"kernel.cu", "contract.toml"}
    for edit in plan.get("edit", []):
        name, count = edit["file"], edit.get("count", 1)
        found = texts[name].count(edit["find"])
        if found != count:
            raise EditError(
                f"{folder.name}/edit.toml: {edit['find']!r} occurs {found} times in {name} of "
                f"{plan['base']}, expected {count}; fit the edit to the kernel as it is now"
            )
        texts[name] = texts[name].replace(edit["find"], edit["replace"])
        touched.add(name)
    touched |= _between(texts, touched)
    touched |= _on_the_way(texts, touched)
    texts["contract.toml"] = _contract(texts["contract.toml"], base, folder.name)
    why = tomllib.loads((folder / "expect.toml").read_text())["why"]
    texts["kernel.cu"] = f"// WRONG ON PURPOSE: {why}\n//\n{texts['kernel.cu']}"
    return {name: texts[name] for name in sorted(touched)}


def _between(texts: dict[str, str], touched: set[str]) -> set[str]:
    """Headers through which the kernel includes a touched one: a quoted include looks beside the
    file that has it first, so they must lie beside the touched one.
    """
    includes = {name: set(_INCLUDE.findall(text)) for name, text in texts.items()}
    reached: set[str] = set()
    new = {"kernel.cu"}
    while new:
        reached |= new
        new = {name for at in new for name in includes.get(at, ())} - reached
    found: set[str] = set()
    while True:
        more = {name for name in reached if includes.get(name, set()) & (touched | found)}
        if more <= found:
            return found
        found |= more


def _on_the_way(texts: dict[str, str], touched: set[str]) -> set[str]:
    """Headers between the kernel and an edited one: they must be found beside it."""
    found: set[str] = set()

    def leads(name: str) -> bool:
        inner = [other for other in texts if f'#include "{other}"' in texts[name]]
        through = [leads(other) for other in inner]
        if any(through):
            found.add(name)
        return any(through) or name in touched - {"kernel.cu"}

    leads("kernel.cu")
    return found


def _sources(base: Path) -> Iterator[tuple[str, Path]]:
    yield "kernel.cu", base.with_suffix(".cu")
    yield "contract.toml", base.with_suffix(".toml")
    for header in sorted([*KERNELS.glob("*.cuh"), *base.parent.glob("*.cuh")]):
        yield header.name, header


def _contract(text: str, base: Path, name: str) -> str:
    """The contract with its own id, and the way back to what the shipped kernel includes."""
    beside = f"../../../kernels/{base.parent.name}"
    include = ["../../../kernels", *([beside] if "[bus]" in text else [])]
    wanted = ", ".join(f'"{folder}"' for folder in (".", *include))
    given = "include = " in text
    lines = []
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        if key == "id":
            line = f'id = "wrong.{name}"'
        elif key == "source":
            line = 'source = "kernel.cu"'
            if "[bus]" in text and not given:
                line += f"\ninclude = [{wanted}]"
        elif key == "include":
            line = f"include = [{wanted}]"
        elif key == "layout":
            line = f'layout = "{beside}/{value[1:-1]}"'
        lines.append(line)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write every derived folder's files."""
    for folder in folders():
        if (folder / "edit.toml").exists():
            for name, text in derive(folder).items():
                (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
