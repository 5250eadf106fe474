"""All document checks by name, and which kinds of artifacts each can be asked about."""

from __future__ import annotations

import functools

from trueup.gates.documents.model import DocumentCheck


def every_check() -> tuple[DocumentCheck, ...]:
    """Every check on documents. Imported when asked for: telemetry alone needs none of them."""
    from trueup.gates.bundle import checks as bundle
    from trueup.gates.checkpoint import checks as checkpoint
    from trueup.gates.documents import common
    from trueup.gates.evals import checks as evals
    from trueup.gates.telemetry import log_checks as logs

    return (
        *common.CHECKS, *checkpoint.CHECKS, *evals.CHECKS, *bundle.CHECKS, *logs.CHECKS,
    )  # fmt: skip


@functools.cache
def document_checks() -> dict[str, DocumentCheck]:
    """Every check by its name, which no two share."""
    return {check.name: check for check in every_check()}


def checks_on(kind: str) -> dict[str, DocumentCheck]:
    """The checks that a rule on artifacts of this kind may name."""
    return {name: check for name, check in document_checks().items() if kind in check.on}
