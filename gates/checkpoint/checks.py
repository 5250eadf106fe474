"""The checks on checkpoints and what stands beside them, by name."""

from __future__ import annotations

from trueup.gates.checkpoint import (
    digest_checks,
    feature_checks,
    form_checks,
    join_checks,
    pickle_checks,
    presence_checks,
    step_checks,
    weights_checks,
)
from trueup.gates.documents.model import DocumentCheck

CHECKS: tuple[DocumentCheck, ...] = (
    *form_checks.CHECKS,
    *join_checks.CHECKS,
    *step_checks.CHECKS,
    *feature_checks.CHECKS,
    *digest_checks.CHECKS,
    *presence_checks.CHECKS,
    *weights_checks.CHECKS,
    *pickle_checks.CHECKS,
)
