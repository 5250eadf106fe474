"""What rules see of an evaluation, whichever form it was written in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trueup.gates.documents.model import Pointer
from trueup.gates.evals.numbers import Cell

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Score:
    """One measured thing: a task, a context length at a depth, a segment after a stage.

    `value` is the number it is reported by. `delta` is an improvement: memorized - baseline where
    higher is better, baseline - memorized where lower is better.
    """

    name: str
    pointer: Pointer
    metric: str = "accuracy"
    better: Better = "higher"
    value: Cell | None = None
    n: Cell | None = None
    correct: Cell | None = None
    stderr: Cell | None = None
    baseline: Cell | None = None
    memorized: Cell | None = None
    delta: Cell | None = None

    @property
    def is_accuracy(self) -> bool:
        """Whether its values are shares of correct answers."""
        return self.metric == "accuracy"

    def values(self) -> tuple[Cell, ...]:
        """Every value of the metric, without counts and differences."""
        return tuple(c for c in (self.value, self.baseline, self.memorized) if c is not None)


@dataclass(frozen=True, slots=True)
class Named:
    """A checkpoint as the document names it; what it leaves out is None."""

    pointer: Pointer
    path: str | None = None
    sha256: str | None = None
    step: Cell | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Memorisation at test time: whether it was on, and what it reports."""

    enabled: bool | None = None  # None: the document does not say
    pointer: Pointer = ()
    events: tuple[Cell, ...] = ()  # *_update_events: how many updates were applied
    norms: tuple[Cell, ...] = ()  # *_updates: summed gradient norms


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Loss in nats a token with what follows from it; what is not stated is None."""

    pointer: Pointer
    loss: Cell | None = None
    ppl: Cell | None = None
    nll: Cell | None = None
    tokens: Cell | None = None
    bytes: Cell | None = None
    bits_per_token: Cell | None = None
    bits_per_byte: Cell | None = None


@dataclass(frozen=True, slots=True)
class Stages:
    """A sequence of tasks: matrix[i][j] is task j after stage i, None where it was not measured."""

    pointer: Pointer
    tasks: tuple[str, ...]
    better: Better
    matrix: tuple[tuple[Cell | None, ...], ...]
    initial: tuple[Cell | None, ...] = ()
    claims: dict[str, Cell] = field(default_factory=dict)  # average, forgetting, ...


@dataclass(frozen=True, slots=True)
class Eval:
    """One evaluation."""

    kind: str | None  # None: it could not be told
    form: Literal["document", "script"]
    results: Pointer  # where the results stand
    scores: tuple[Score, ...] = ()
    checkpoints: tuple[Named, ...] = ()
    created_at: str | None = None
    variant: str | None = None
    memory: Memory = field(default_factory=Memory)
    totals: dict[str, Cell] = field(default_factory=dict)  # n, correct
    mean: Cell | None = None
    weighting: str = "task"
    perplexities: tuple[Perplexity, ...] = ()
    stages: Stages | None = None
