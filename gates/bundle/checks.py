"""The checks on this kind of artifact, by name."""

from __future__ import annotations

from trueup.gates.documents.model import DocumentCheck

CHECKS: tuple[DocumentCheck, ...] = ()
