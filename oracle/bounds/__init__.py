"""Allowed errors derived from the reference itself: sampled rounding, witnesses, worst case."""

from trueup.oracle.bounds.certain import Certain, certain
from trueup.oracle.bounds.errors import BoundsError
from trueup.oracle.bounds.evaluate import Evaluation, Evaluator
from trueup.oracle.bounds.judge import OutputJudgement, judge, judge_confirmed, passing_naturally
from trueup.oracle.bounds.machine import machine
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.bounds.rule import Alternative

__all__ = [
    "Alternative",
    "BoundsError",
    "Certain",
    "Evaluation",
    "Evaluator",
    "OutputJudgement",
    "Precision",
    "certain",
    "judge",
    "judge_confirmed",
    "machine",
    "passing_naturally",
]
