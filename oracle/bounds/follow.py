"""One form followed through samples, witnesses, outcomes and the worst case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError, Oversized, Unsupported
from trueup.oracle.bounds.model import Model
from trueup.oracle.bounds.orders import WITNESSES
from trueup.oracle.bounds.plain import copied, flattened
from trueup.oracle.bounds.rows import Rows
from trueup.oracle.bounds.rule import FACTOR, Alternative, Samples, alternative, apartness, numeric
from trueup.oracle.bounds.sampled import Sampled
from trueup.oracle.bounds.swap import rebuild
from trueup.oracle.bounds.tape import Tape
from trueup.oracle.bounds.worst import Worst

if TYPE_CHECKING:
    from trueup.oracle.bounds.evaluate import Effort, Evaluator

Array = NDArray[Any]
Form = Callable[..., Any]

# Bytes one array of rows may take; above it the samples run in several chunks. The C library reuses
# memory of up to 32 MiB and maps fresh pages beyond, which costs more than the arithmetic.
BUDGET = 28 * 2**20
# Decisions need a spread of their own, so the chunk that takes them has at least this many.
DECIDING = 8


@dataclass(frozen=True)
class Followed:
    """The alternatives of one form, per output."""

    alternatives: list[list[Alternative]]
    outcomes: int
    exhaustive: bool
    notes: list[str]


def follow(job: Evaluator, form: Form, index: int, effort: Effort) -> Followed:
    """Evaluate a form on rows: the natural outcome first, then the others if any are close."""
    run = _Run(job, form, index, effort)
    run.probe()
    plain = job.plain(index)
    first = Tape(0)
    natural = run.outcome(first)
    _check(natural, plain)
    found = [[a] for a in run.alternatives(natural, first, plain)]
    notes = sorted(run.notes)
    for i, ((only,), gathered) in enumerate(zip(found, natural, strict=True)):
        if only.systematic:
            notes.append(
                f"output {i}: systematic rounding (witness {apartness(gathered):.0f}·w away), "
                "judged by the worst case"
            )
    every = first.alternatives <= effort.outcomes
    count = int(first.alternatives) if every else effort.outcomes
    for number in range(1, count if first.close else 1):
        tape = Tape(number, every=every, seed=job.seed)
        try:
            samples = run.outcome(tape)
            others = run.alternatives(samples, tape, plain)
        except Exception as error:
            # A flipped decision may lead outside an array; such an outcome is no alternative.
            notes.append(f"outcome {number} of form {index} was left out: {error}")
            continue
        for kept, new in zip(found, others, strict=True):
            kept.append(new)
    if first.close and not every:
        notes.append(f"{first.close} close decisions: {count} of their combinations were tried")
    return Followed(found, count, every, notes)


def _check(natural: list[Samples], plain: tuple[Array, ...]) -> None:
    """Row 0 must be the reference itself: else the array type did not follow it."""
    for i, (samples, value) in enumerate(zip(natural, plain, strict=True)):
        if samples.value.shape != value.shape:
            raise Unsupported(f"output {i} has another shape on rows")
        with np.errstate(all="ignore"):
            off = np.abs(numeric(samples.value) - numeric(value))
            same = (samples.value == value) | (np.isnan(samples.value) & np.isnan(value))
            limit = np.maximum(samples.spread(), samples.witness)
            if samples.value.dtype == np.longdouble:  # the reference itself rounds like the kernel
                limit = FACTOR * limit + 2.0**-53 * np.abs(value)
            near = off <= limit
        if not bool((same | near).all()):
            raise Unsupported(f"output {i} has another value on rows than by itself")


def followed(job: Evaluator, form: Form, model: Model) -> list[Rows]:
    """A form of the reference on the rows of one model."""
    try:
        function = rebuild(form, model, job.precision.stored)
        inputs = {
            name: model.lift(v) if isinstance(v, (float, np.ndarray)) else v
            for name, v in copied(job.inputs).items()
        }
        with np.errstate(all="ignore"):
            result = flattened(function(**inputs))
            return [model.lift(x) for x in result]
    except BoundsError:
        raise
    except MemoryError as error:
        raise Oversized("the reference needs more memory than there is") from error
    except RecursionError as error:
        raise Unsupported("the reference recursed too deeply on rows") from error
    except Exception as error:
        raise Unsupported(f"{type(error).__name__}: {error}") from error


def errors_of(outputs: list[Rows]) -> list[Array]:
    """The largest errors that a worst case came to; infinite where it says nothing."""
    errors = []
    for x in outputs:
        error = x.d[1] if x.floating and x.d.shape[0] == 2 else np.zeros(x.shape)
        errors.append(np.where(np.isnan(error), np.inf, error).astype(np.float64))
    return errors


class _Run:
    """Evaluations of one form at one effort."""

    def __init__(self, job: Evaluator, form: Form, index: int, effort: Effort) -> None:
        self.job = job
        self.form = form
        self.index = index
        self.effort = effort
        self.notes: set[str] = set()
        self.largest = 1
        self.decides = False
        self.natural_worst: list[Array] | None = None

    def call(self, model: Model) -> list[Rows]:
        """The reference on the rows of one model."""
        try:
            return followed(self.job, self.form, model)
        finally:
            self.notes |= model.notes

    def probe(self) -> None:
        """The worst case of the natural outcome first.

        It costs little, and says how large arrays become and whether anything is decided before
        memory is spent. Where it cannot be followed one row of plain values says so.
        """
        model: Model = Worst(self.job.precision, Tape(0))
        try:
            self.natural_worst = errors_of(self.call(model))
        except Oversized:
            raise
        except Unsupported as reason:
            self.notes.add(f"no worst case: {reason}")
            model = Sampled(
                self.job.precision, Tape(0), samples=0, seed=(self.job.seed,), orders=("blas",)
            )
            self.call(model)
        self.largest = max(model.largest, 1)
        self.decides = model.tape.made > 0

    def chunks(self) -> list[int]:
        """How many samples each pass takes."""
        total = self.effort.samples
        rows = max(BUDGET // (8 * self.largest) - 1 - len(WITNESSES), 2)
        rows = max(rows, DECIDING) if self.decides else rows
        sizes = [rows] * (total // rows)
        return [*sizes, total % rows] if total % rows else sizes

    def outcome(self, tape: Tape) -> list[Samples]:
        """All samples of one outcome; the first pass takes the decisions, the others follow."""
        gathered: list[Samples] = []
        for number, count in enumerate(self.chunks()):
            model = Sampled(
                self.job.precision,
                tape if number == 0 else tape.replay(),
                samples=count,
                seed=(self.job.seed, self.index, tape.outcome, number, self.effort.stage),
                orders=WITNESSES if number == 0 else (),
            )
            outputs = self.call(model)
            if number == 0:
                if len(outputs) != len(self.job.dtypes):
                    raise Unsupported("another number of outputs on rows")
                gathered = [Samples(np.array(x.v, dtype=_wide(x))) for x in outputs]
            for samples, x in zip(gathered, outputs, strict=True):
                rows = model.full(x.d) if x.floating else x.d
                with np.errstate(all="ignore"):
                    samples.add(rows[model.s], rows[model.w])
        return gathered

    def alternatives(
        self, gathered: list[Samples], tape: Tape, plain: tuple[Array, ...]
    ) -> list[Alternative]:
        """The rule applied to every output, with the worst case of the same decisions."""
        worst = self.worst(tape, gathered)
        out = []
        for i, (samples, dtype) in enumerate(zip(gathered, self.job.dtypes, strict=True)):
            if tape.outcome == 0 and samples.value.dtype == plain[i].dtype:
                samples.value = plain[i]
            out.append(alternative(samples, worst[i], dtype, form=self.index, outcome=tape.outcome))
        return out

    def worst(self, tape: Tape, gathered: list[Samples]) -> list[Array]:
        """The largest errors of an outcome; NaN where the worst case cannot be followed."""
        nothing = [np.full(s.value.shape, np.nan) for s in gathered]
        if self.natural_worst is None or tape.outcome == 0:
            return self.natural_worst or nothing
        try:
            return errors_of(self.call(Worst(self.job.precision, tape.replay())))
        except Unsupported as reason:
            self.notes.add(f"no worst case: {reason}")
            return nothing


def _wide(x: Rows) -> Any:
    return x.d.dtype
