"""One judgement under way: what is asked, what was opened, what was found and answered so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from trueup.gates.acceptance.baseline import Baseline, differences, digest_of, read_baseline
from trueup.gates.acceptance.config import BaselineFile, Config
from trueup.gates.acceptance.exact import Number, decimal_text
from trueup.gates.acceptance.found import Found
from trueup.gates.acceptance.inputs import Folder, Input
from trueup.gates.acceptance.model import Criterion, Held, Measure, Weight
from trueup.gates.acceptance.paths import Hit, follow, parse_path
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where


@dataclass(slots=True)
class Session:
    """Shared by the blocks of an acceptance, in the order in which they are judged."""

    config: Config
    source: Input  # the acceptance file
    gate: Folder  # of the acceptance file: baselines, manifest, ledger, the base profile
    run: Folder  # what the run left
    found: Found
    criteria: list[Criterion] = field(default_factory=list)
    refused: list[Unreadable] = field(default_factory=list)
    _documents: dict[tuple[str, str], Input | None] = field(default_factory=dict)
    _baselines: dict[str, Baseline] = field(default_factory=dict)

    def document(self, relative: str, kind: str) -> Input | None:
        """A document of the run; None, and a finding, if it cannot be read."""
        key = (relative, kind)
        if key not in self._documents:
            try:
                self._documents[key] = self.run.document(relative, kind)
            except Unreadable as error:
                self._documents[key] = None
                self.absent(error, relative)
        return self._documents[key]

    def absent(self, error: Unreadable, relative: str) -> None:
        """A file of the run that an acceptance names, and that says nothing."""
        self.refused.append(error)
        got = f"{error.what}: {error.got}" if error.got else error.what
        self.found.add("evidence_missing", self.run.shown(relative), Where(), got)

    def results(self, file: str = "") -> list[Input]:
        """The documents that paths lead into."""
        files = (file,) if file else self.config.results.files
        found = (self.document(one, "results") for one in files)
        return [one for one in found if one is not None]

    def hits(self, path: str, file: str = "") -> Iterator[tuple[Input, Hit, Number]]:
        """Every number a path leads to in the results."""
        steps = parse_path(path)
        for source in self.results(file):
            for hit in follow(source.data, steps):
                yield source, hit, source.number(hit.pointer)

    def baseline(self, ident: str) -> Baseline:
        """A baseline by its id (the only one, if it is empty). Its lock is looked at once."""
        about = next(one for one in self.config.baseline if not ident or one.id == ident)
        if about.file not in self._baselines:
            baseline = read_baseline(self.gate.document(about.file, "baseline"))
            self._baselines[about.file] = baseline
            self._lock(about, baseline)
        return self._baselines[about.file]

    def _lock(self, about: BaselineFile, baseline: Baseline) -> None:
        """Whether a baseline is still what was locked; findings, and one criterion."""
        source = baseline.source
        place = source.where(("baseline", "digest"))
        sound = True
        real = digest_of(source.raw)
        if real != baseline.stated:
            sound = False
            self.found.add(
                "baseline_edited",
                source.name,
                place,
                f"{baseline.stated}, but its bytes give {real}",
            )
        if about.digest and about.digest != baseline.stated:
            sound = False
            self.found.add("baseline_not_pinned", source.name, place, baseline.stated,
                           f"{about.digest}, as {self.source.name} has it")  # fmt: skip
        if not self._source(baseline):
            sound = False
        self.answer("baseline", f"[{about.file}]", "baseline", "true" if sound else "false",
                    f"{len(baseline.values)} numbers", "as it was locked")  # fmt: skip

    def _source(self, baseline: Baseline) -> bool:
        """The results a baseline was locked from, where they are still beside it."""
        said = baseline.source.data["source"]
        try:
            results = self.gate.document(said["file"], "baseline source")
        except Unreadable:
            return True  # it need not be kept; the digest is what holds
        where = baseline.source.where(("source", "sha256"))
        if results.sha256 != said["sha256"]:
            got = f"{results.name} has {results.sha256}"
            self.found.add("baseline_source", baseline.source.name, where, got,
                           f"the results it was locked from: {said['sha256']}")  # fmt: skip
            return False
        wrong = differences(baseline, results)
        for locked, now in wrong:
            self.found.add(
                "baseline_source", baseline.source.name, baseline.source.where(locked.pointer),
                f"{locked.name} = {locked.value.text}", f"{now.text}, as {results.name} has it",
            )  # fmt: skip
        return not wrong

    def answer(
        self, ident: str, of: str, block: str, held: Held, value: str, threshold: str, *,
        weight: Weight = "fail", tier: int | None = None, reason: str = "",
        measure: Measure | None = None,
    ) -> Criterion:  # fmt: skip
        """Put one criterion's answer down."""
        criterion = Criterion(
            ident, of, block, held, value, threshold, weight, tier, reason, measure
        )
        self.criteria.append(criterion)
        return criterion

    def undetermined(
        self, ident: str, block: str, reason: str, *, of: str = "", threshold: str = "",
        weight: Weight = "fail", tier: int | None = None,
    ) -> None:  # fmt: skip
        """A criterion that nothing answers; it does not hold."""
        self.answer(ident, of, block, "undetermined", "nothing", threshold, weight=weight,
                    tier=tier, reason=reason)  # fmt: skip


def between(low: Fraction | None, high: Fraction | None) -> str:
    """Bounds as people read them."""
    if low is None:
        return f"<= {decimal_text(high)}" if high is not None else "anything"
    if high is None:
        return f">= {decimal_text(low)}"
    if low == high:
        return f"= {decimal_text(low)}"
    return f"{decimal_text(low)} .. {decimal_text(high)}"
