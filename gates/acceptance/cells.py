"""The cells of a run: one for each seed and fold, as the results files list them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueup.gates.acceptance.exact import Number
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.paths import Hit
from trueup.gates.acceptance.session import Session
from trueup.gates.findings import Where


@dataclass(frozen=True, slots=True)
class Cell:
    """One seed and fold."""

    source: Input
    index: int
    data: dict[str, Any]

    @property
    def key(self) -> tuple[int, int]:
        """What tells it apart."""
        return int(self.data["seed"]), int(self.data["fold"])

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"seed {self.key[0]}, fold {self.key[1]}"

    @property
    def run_id(self) -> str:
        """The run it belongs to: its own word, or that of its file."""
        return str(self.data.get("run_id", self.source.data["run_id"]))

    @property
    def reason(self) -> str | None:
        """Its TerminationReason."""
        record = self.data.get("termination")
        return record.get("reason") if isinstance(record, dict) else None

    def whole(self, key: str) -> int | None:
        """A count; None where it is missing or no whole number."""
        value = self.data.get(key)
        return value if type(value) is int else None

    def where(self, *more: str) -> Where:
        """Its place in the file."""
        return self.source.where(("cells", self.index, *more))


def cells_of(session: Session, file: str = "") -> list[Cell]:
    """All cells of the results, in their order. Raises `AcceptanceError` if they have no form."""
    found: list[Cell] = []
    for source in session.results(file):
        check(source, "results")
        found += [Cell(source, index, one) for index, one in enumerate(source.data["cells"])]
    return found


def numbers_by_seed(
    session: Session, path: str, file: str = ""
) -> dict[str, dict[str, tuple[Input, Hit, Number]]]:
    """A metric by seed and then by fold; a seed and fold that is there twice is a finding."""
    found: dict[str, dict[str, tuple[Input, Hit, Number]]] = {}
    for source, hit, value in session.hits(path, file):
        if "fold" not in hit.of:
            session.found.add(
                "metric_unusable", source.name, source.where(hit.pointer), f"{path} names no fold",
                "a list whose elements have a fold",
            )  # fmt: skip
            continue
        rest = ",".join(f"{key}={one}" for key, one in hit.of.items() if key != "fold")
        folds = found.setdefault(f"[{rest}]" if rest else "", {})
        if hit.of["fold"] in folds:
            session.found.add("cell_twice", source.name, source.where(hit.pointer),
                              f"fold {hit.of['fold']} of {rest or 'the run'} again")  # fmt: skip
        folds.setdefault(hit.of["fold"], (source, hit, value))
    return found
