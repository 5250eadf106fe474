"""Allowed errors derived from the reference itself: sampled rounding, witnesses, worst case."""

from .errors import BoundsError
from .evaluate import Evaluation, Evaluator
from .judge import OutputJudgement, judge, judge_confirmed
from .machine import machine
from .precision import Precision
from .rule import Alternative

__all__ = [
    "Alternative",
    "BoundsError",
    "Evaluation",
    "Evaluator",
    "OutputJudgement",
    "Precision",
    "judge",
    "judge_confirmed",
    "machine",
]
