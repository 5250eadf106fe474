"""Checks that fit every kind of document: its JSON Schema, values, relations."""

from __future__ import annotations

from trueup.gates.documents.model import DocumentCheck

CHECKS: tuple[DocumentCheck, ...] = ()
