"""Write docs/mutants.md: every mutant, what finds it, how far beyond its allowed error it lies.

    python docs/mutants.py [PATTERN]    # after a mutant has changed; `make docs`

What was found is recorded in docs/mutants.json under a digest of what it depends on; only what
changed since is run again, and with PATTERN, a part of a name, no other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from mutant_runs import (
    Found,
    kernel_digest,
    run_equation,
    run_kernel,
    variant_digest,
    wrong_kernels,
)

from trueup.reference import Equation, catalogue

FOLDER = Path(__file__).resolve().parent
PAGE, RECORD = FOLDER / "mutants.md", FOLDER / "mutants.json"
INTRO = """# Mutants

What must not pass, and what finds it. Written by `make docs` from recorded runs on the host
backend; a test holds the page to the record, and the record to the mutants there are.
*error/allowed* is that of the worst element: 1 is the bound. `∞` means that nothing is allowed
there, because no operation rounds, or that NaN and numbers stand in other places. Where a lane
compares bits or memory instead of errors, the rule that it found broken stands in that column.
"""


Record = dict[str, dict[str, Found]]
"""Kernels and variants by name."""


def variants() -> list[tuple[Equation, str]]:
    """List every known wrong variant of the catalogue with its equation."""
    return [(entry, name) for entry in catalogue() for name in entry.wrong]


def read_record() -> Record:
    """Read what was found so far; nothing where there is no record."""
    if not RECORD.exists():
        return {"kernels": {}, "variants": {}}
    data = json.loads(RECORD.read_text("utf-8"))
    return {kind: {k: Found(**v) for k, v in entries.items()} for kind, entries in data.items()}


def write_record(record: Record) -> None:
    """Write the record, ordered by name, so that a change shows as a change."""
    data = {
        kind: {name: asdict(entries[name]) for name in sorted(entries)}
        for kind, entries in record.items()
    }
    RECORD.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")


Run = Callable[[str], dict[str, Found]]


def stale(record: Record) -> Iterator[tuple[str, str, Run]]:
    """List what has to be run: mutants that are new, or whose digest is another."""
    for entry in catalogue():
        digest = variant_digest(entry)
        kept = [record["variants"].get(f"{entry.id}/{name}") for name in entry.wrong]
        if any(known is None or known.digest != digest for known in kept):
            yield "variants", entry.id, run_equation
    for folder in wrong_kernels():
        known = record["kernels"].get(folder.name)
        if known is None or known.digest != kernel_digest(folder):
            yield "kernels", folder.name, run_kernel


def attempted(run: Run, name: str) -> dict[str, Found] | str:
    """Run in another process; what cannot be run comes back as words."""
    try:
        return run(name)
    except Exception as error:
        return f"{name} could not be run: {error}"


def page(record: Record) -> str:
    """The text of docs/mutants.md."""
    parts = [INTRO, f"\n## Wrong kernels ({len(record['kernels'])})\n\n"]
    parts.append("| mutant | what is wrong | lane | error/allowed | as what, or where |\n")
    parts.append("|---|---|---|---|---|\n")
    parts += [f"| `{name}` | {_row(found)}" for name, found in sorted(record["kernels"].items())]
    parts.append(f"\n## Wrong variants of equations ({len(record['variants'])})\n")
    last = ""
    for name, found in sorted(record["variants"].items()):
        id, _, variant = name.partition("/")
        if id != last:
            parts.append(
                f"\n### {id}\n\n| mutant | what it computes | lane | error/allowed | case |\n"
            )
            parts.append("|---|---|---|---|---|\n")
            last = id
        parts.append(f"| `{variant}` | {_row(found)}")
    return "".join(parts)


def _row(found: Found) -> str:
    cells = (found.why, found.lane or "**not found**", found.ratio, found.where)
    return " | ".join(_cell(cell) for cell in cells) + " |\n"


def _cell(text: str) -> str:
    return text if text.startswith("**") else text.replace("|", "\\|").replace("*", "\\*")


def main(arguments: list[str]) -> int:
    """Run what changed, and write record and page."""
    record = read_record()
    names = {"kernels": {f.name for f in wrong_kernels()}}
    names["variants"] = {f"{entry.id}/{name}" for entry, name in variants()}
    for kind, entries in record.items():
        record[kind] = {name: found for name, found in entries.items() if name in names[kind]}
    wanted = arguments[0] if arguments else ""
    jobs = [job for job in stale(record) if wanted in job[1]]
    lost = 0
    with ProcessPoolExecutor() as pool:
        running = {pool.submit(attempted, run, name): (kind, name) for kind, name, run in jobs}
        for number, done in enumerate(as_completed(running), start=1):
            kind, name = running[done]
            found = done.result()
            if isinstance(found, str):
                lost += 1
                print(found, file=sys.stderr)
                continue
            record[kind] |= found
            print(f"{number} of {len(jobs)}: {kind} {name}", file=sys.stderr)
            if number % 10 == 0:
                write_record(record)  # what was run is kept, whatever comes
    write_record(record)
    PAGE.write_text(page(record), "utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
