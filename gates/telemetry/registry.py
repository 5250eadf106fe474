"""All checks by name: what a profile may ask for."""

from __future__ import annotations

from trueup.gates.telemetry import cell_checks, relation_checks, run_checks
from trueup.gates.telemetry.probe import Check

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (*cell_checks.CHECKS, *relation_checks.CHECKS, *run_checks.CHECKS)
}
