"""Write docs/rules/ from the catalogue: an index, and a page for each file of rules or findings.

python docs/rules_pages.py     # after a rule or a kind of finding has changed; `make docs`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from trueup.gates.catalogue.rules import Entry, built_in_entries

FOLDER = Path(__file__).resolve().parent / "rules"
_INTRO = """# Rules and findings

Everything that `trueup gate`, `trueup close` and `trueup accept` can find, by the file that defines
it. `trueup explain ID` tells the same at the command line. Written by `make docs`; a test holds it
to the code.

*Fixed*: found whatever the profile says. *Firm*: it says that something was not read or not judged,
so that it cannot be waived or made milder in `trueup.toml` ([settings](../settings.md)).
"""


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    families: dict[str, list[Entry]] = {}
    for entry in built_in_entries():
        families.setdefault(entry.family, []).append(entry)
    out = {"README.md": "".join(_index(families))}
    for family, entries in families.items():
        out[f"{family}.md"] = "\n".join(_page(family, entries))
    return out


def _index(families: dict[str, list[Entry]]) -> Iterator[str]:
    yield _INTRO
    for family, entries in families.items():
        yield f"\n## [{family}]({family}.md)\n"
        yield f"Defined in `{entries[0].defined}`.\n\n"
        yield "| id | severity | finds | |\n|---|---|---|---|\n"
        for one in entries:
            marks = ", ".join(_marks(one))
            link = f"[{one.id}]({family}.md#{one.id.lower()})"
            yield f"| {link} | {one.severity} | {_cell(one.summary)} | {marks} |\n"


def _marks(entry: Entry) -> Iterator[str]:
    if entry.fixed:
        yield "fixed"
    if not entry.waivable:
        yield "firm"


def _page(family: str, entries: Iterable[Entry]) -> Iterator[str]:
    entries = list(entries)
    yield f"# {family}"
    yield ""
    yield f"From `{entries[0].defined}`. [All rules and findings](README.md)"
    yield ""
    for entry in entries:
        yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[str]:
    name = f" (`{entry.name}`)" if entry.name else ""
    yield f"## {entry.id}"
    yield f"**{entry.severity}**{name}: {_text(entry.summary)}."
    yield ""
    yield _text(entry.why)
    yield ""
    yield f"- Expected: {_text(entry.expected)}"
    yield f"- Fix: {_text(entry.fix)}"
    if entry.check:
        params = "".join(f", {_code(f'{k} = {v}')}" for k, v in entry.params.items())
        yield f"- Check: `{entry.check}` ({_text(entry.asks)}){params}"
        yield f"- Reads: {_reads(entry)}"
    if entry.applies:
        yield f"- Applies {_text(entry.applies)}"
    if entry.profiles:
        yield f"- In the profiles: {', '.join(entry.profiles)}"
    if entry.limits:
        yield f"- Examples read with {', '.join(f'`{k} = {v}`' for k, v in entry.limits.items())}"
    marks = list(_marks(entry))
    if marks:
        yield f"- {', '.join(marks).capitalize()}"
    yield ""
    for label, example in (("Passes", entry.passes), ("Fails", entry.fails)):
        if example:
            yield f"{label}:"
            yield "~~~~text"
            yield from example.rstrip("\n").split("\n")
            yield "~~~~"
            yield ""


def _reads(entry: Entry) -> str:
    if entry.on != "telemetry" or " match " not in entry.reads:
        return _text(entry.reads)
    before, _, rest = entry.reads.partition(" match ")
    pattern, _, after = rest.rpartition(", in ")
    return f"{before} match {_code(pattern)}, in {after}"


def _text(text: str) -> str:
    """Words in which nothing is markup by accident."""
    parts = text.split("`")
    if len(parts) % 2:  # what stands between two backticks is code, and stays as it is
        return "`".join(one if index % 2 else _plain(one) for index, one in enumerate(parts))
    return _plain(text).replace("`", "\\`")


def _plain(text: str) -> str:
    for mark in ("\\", "*", "_", "<"):
        text = text.replace(mark, f"\\{mark}")
    return text


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def main() -> None:
    """Write the pages, and remove those of files that are gone."""
    wanted = pages()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
    sys.exit(0)
