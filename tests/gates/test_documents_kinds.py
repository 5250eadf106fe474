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


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name not in WITHOUT_TEXT], ids=lambda kind: kind.name
)
def test_the_examples_of_a_kind_are_true(kind: Kind, lay_out: Callable[..., list[Path]]) -> None:
    limits = Limits(**kind.limits)
    (good,) = lay_out(kind.passes, "passes.json")
    document, faults = load_document(good, limits=limits)
    assert faults == []
    assert document.data is not None
    (bad,) = lay_out(kind.fails, "fails.json")
    _, faults = load_document(bad, limits=limits)
    assert {fault.kind for fault in faults} == {kind.name}


def test_only_the_named_kinds_go_without_examples() -> None:
    assert {kind.name for kind in KINDS if not (kind.passes and kind.fails)} == WITHOUT_TEXT


def test_ids_and_names_of_kinds_are_unique() -> None:
    every = [kind for family in families().values() for kind in family]
    assert len({kind.id for kind in every}) == len(every)
    assert len({kind.name for kind in every}) == len(every)
