"""All checks by name: what a profile may ask for."""

from __future__ import annotations

from trueup.gates.telemetry import (
    cadence_checks,
    cell_checks,
    copy_checks,
    gap_checks,
    monitor_checks,
    order_checks,
    record_checks,
    relation_checks,
    run_checks,
    said_checks,
    seen_checks,
    trend_checks,
)
from trueup.gates.telemetry.probe import Check

CHECKS: dict[str, Check] = {
    check.name: check
    for module in (
        cell_checks, order_checks, gap_checks, relation_checks, record_checks, cadence_checks,
        seen_checks, run_checks, copy_checks, trend_checks, said_checks, monitor_checks,
    )
    for check in module.CHECKS
}  # fmt: skip
