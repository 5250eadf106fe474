"""The kinds of check: each lane runs a contract's cases in one way and returns one verdict."""

from trueup.oracle.lanes.registry import LANES, applicable, run_lane

__all__ = ["LANES", "applicable", "run_lane"]
