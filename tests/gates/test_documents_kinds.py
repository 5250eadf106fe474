"""Every kind of fault of a document: its own examples prove it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.gates.catalogue.kinds import Kind, families
from trueup.gates.read.documents.read import load_document
from trueup.gates.read.limits import Limits

KINDS = families()["document"]
# A kind that no text can show has a test of its own.
WITHOUT_TEXT = {"document_changed"}
NAMES = {"digest": "a.sha256", "tensors": "a.safetensors", "pickle": "a.pkl", "archive": "a.pt"}
READ_AS = {".sha256": "digest", ".safetensors": "weights", ".pkl": "pickle", ".pt": "pickle"}


def faults_of(path: Path, kind: Kind) -> tuple[set[str], bool]:
    """The kinds of fault, and whether rules still get something to judge."""
    form = READ_AS.get(path.suffix, "document")
    document, faults = load_document(path, kind=form, limits=Limits(**kind.limits))
    return {fault.kind for fault in faults}, document.data is not None


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name not in WITHOUT_TEXT], ids=lambda kind: kind.name
)
def test_the_examples_of_a_kind_are_true(kind: Kind, lay_out: Callable[..., list[Path]]) -> None:
    default = NAMES.get(kind.name.split("_")[0], "a.json")
    (good,) = lay_out(kind.passes, default, "passes")
    assert faults_of(good, kind) == (set(), True)
    (bad,) = lay_out(kind.fails, default, "fails")
    faults, judged = faults_of(bad, kind)
    assert faults == {kind.name}
    # Nobody may waive what left nothing to judge.
    assert judged or not kind.waivable


def test_only_the_named_kinds_go_without_examples() -> None:
    assert {kind.name for kind in KINDS if not (kind.passes and kind.fails)} == WITHOUT_TEXT


def test_ids_and_names_of_kinds_are_unique() -> None:
    every = [kind for family in families().values() for kind in family]
    assert len({kind.id for kind in every}) == len(every)
    assert len({kind.name for kind in every}) == len(every)
