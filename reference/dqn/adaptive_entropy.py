"""The weight of the entropy term, moved until the policy has the entropy that is wanted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.adaptive_entropy"
READINGS = ("logarithm",)
WRONG = {
    "sign": "log_alpha += lr (H - H_target): entropy below the target lowers alpha",
    "alpha_itself": "alpha = exp(log_alpha) + lr (H_target - H), and its logarithm",
    "lr_missing": "log_alpha += H_target - H",
    "next_branch": "each branch follows its neighbour's entropy",
}


def _wide_rate(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"lr": 0.5}


def _on_target(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"entropy": np.array(values["target"])}


def adaptive_entropy_by_parts(log_alpha: F64, entropy: F64, target: F64, lr: float) -> F64:
    """Add lr H_target and take away lr H."""
    return (log_alpha + lr * target) - lr * entropy


@equation(
    ID,
    title="Adaptive weight of the entropy",
    source="DQN programme, scalar transforms; soft actor-critic, arXiv:1812.05905, Eq. 18",
    grade="proposed by the programme",
    formula="log_alpha += lr (H_target - H)",
    axes=(),
    inputs=(
        Symbol("log_alpha", ("4",), Domain("real", -2.0, 1.0), "logarithm of each branch's weight"),
        Symbol("entropy", ("4",), Domain("nonnegative", 0.1, 1.3), "entropy of each branch"),
        Symbol("target", ("4",), Domain("nonnegative", 0.3, 0.9), "entropy that is wanted"),
        Symbol("lr", (), Domain("positive", 0.01, 0.3), "rate"),
    ),
    outputs=(Symbol("log_alpha_next", ("4",), Domain("real"), "logarithm after the step"),),
    readings=READINGS,
    wrong=WRONG,
    forms={"logarithm": (adaptive_entropy_by_parts,)},
    families=(
        Family("wide_rate", "a rate at which every term shows", _wide_rate),
        Family("on_target", "entropy as wanted: nothing moves", _on_target, True),
    ),
    notes="Entropy below the target raises the weight.",
)
def adaptive_entropy(
    log_alpha: F64, entropy: F64, target: F64, lr: float, *, reading: str = "logarithm"
) -> F64:
    """Move the weight of each branch's entropy towards the entropy that is wanted.

    Equation: DQN programme, scalar transforms
        log_alpha = log_alpha + lr (H_target - H)
    Shapes: log_alpha, entropy, target (4,); lr a scalar.
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    if reading == "next_branch":
        entropy = np.concatenate([entropy[1:], entropy[:1]])
    step = (entropy - target) if reading == "sign" else (target - entropy)
    if reading == "alpha_itself":
        moved = np.exp(log_alpha) + lr * step
        return np.log(np.where(moved > 1e-6, moved, 1e-6))
    return log_alpha + (step if reading == "lr_missing" else lr * step)
