"""Evaluating the forms of an equation on one case: values, allowed errors, worst cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.cache import Cache
from trueup.oracle.bounds.digest import case_digest
from trueup.oracle.bounds.errors import BoundsError, Oversized, Unsupported
from trueup.oracle.bounds.follow import follow
from trueup.oracle.bounds.formats import output_format
from trueup.oracle.bounds.perturb import perturb
from trueup.oracle.bounds.plain import Inputs, checked, plain_values
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.bounds.rule import Alternative

Array = NDArray[Any]


@dataclass(frozen=True)
class Evaluation:
    """The bounds of one case.

    `values` are the plain results of form 0. `outputs` holds, per output, one alternative per
    form and outcome: an element passes if it fits any of them.
    """

    values: tuple[Array, ...]
    outputs: tuple[tuple[Alternative, ...], ...]
    dtypes: tuple[str, ...]
    samples: int
    outcomes: int
    exhaustive: bool
    notes: tuple[str, ...]

    @property
    def systematic(self) -> tuple[bool, ...]:
        """Per output: is its rounding systematic in any alternative?"""
        return tuple(any(a.systematic for a in output) for output in self.outputs)


@dataclass(frozen=True)
class Effort:
    """How many samples, outcomes and forms an evaluation takes."""

    samples: int
    outcomes: int
    stage: int
    forms: int | None = None  # the first so many; None: all


NATURAL = Effort(32, 1, 0, forms=1)
FIRST = Effort(32, 8, 0)
CONFIRM = Effort(256, 64, 1)


class Evaluator:
    """Derives the allowed error of every output element of one case.

    `forms` are equivalent formulas of the equation, called by keyword with `inputs`.
    """

    def __init__(
        self,
        forms: Sequence[Callable[..., Any]],
        inputs: Mapping[str, Array | float | int],
        precision: Precision,
        output_dtypes: Sequence[str],
        *,
        seed: int,
        cache: Path | None = None,
    ) -> None:
        """Check the arguments; nothing is evaluated before it is asked for."""
        if not forms:
            raise BoundsError("no form of the equation was given; pass at least one function")
        for dtype in output_dtypes:
            output_format(dtype)
        self.forms = tuple(forms)
        self.inputs: Inputs = checked(inputs)
        self.precision = precision
        self.dtypes = tuple(output_dtypes)
        self.seed = seed
        self._cache = Cache(cache)
        self._values: dict[int, tuple[Array, ...]] = {}
        self._done: dict[Effort, Evaluation] = {}

    def natural(self) -> Evaluation:
        """Form 0 with every decision taken as the reference takes it: what passes this passes all.

        An element passes if it fits any alternative, so there is no need of the others then.
        """
        return self._evaluated(NATURAL)

    def evaluation(self) -> Evaluation:
        """32 samples, 4 witnesses, up to 8 outcomes of every form; kept on disk."""
        return self._evaluated(FIRST)

    def confirmed(self) -> Evaluation:
        """256 fresh samples and up to 64 outcomes: what a failure is judged by."""
        return self._evaluated(CONFIRM)

    def values(self) -> tuple[Array, ...]:
        """The plain results of form 0."""
        return self.plain(0)

    def plain(self, index: int) -> tuple[Array, ...]:
        """The plain results of one form; all forms give the same shapes."""
        if index not in self._values:
            values = plain_values(self.forms[index], self.inputs, len(self.dtypes))
            shapes = [v.shape for v in values]
            wanted = shapes if index == 0 else [v.shape for v in self.plain(0)]
            if shapes != wanted:
                raise BoundsError(
                    f"form {index} of the equation returns shapes {shapes}, form 0 {wanted}"
                )
            self._values[index] = values
        return self._values[index]

    def _evaluated(self, effort: Effort) -> Evaluation:
        known = self._done.get(effort)
        if known is not None:
            return known
        key = case_digest(
            self.forms[: effort.forms],
            self.inputs,
            self.precision,
            self.dtypes,
            (self.seed, effort.stage, effort.samples, effort.outcomes),
        )
        found = self._cache.load(key) if key is not None else None
        if found is None:
            with np.errstate(all="ignore"):
                found = self._evaluate(effort)
            if key is not None:
                self._cache.store(key, found)
        self._done[effort] = found
        return found

    def _evaluate(self, effort: Effort) -> Evaluation:
        notes: list[str] = []
        outputs: list[list[Alternative]] = [[] for _ in self.dtypes]
        outcomes, exhaustive = 1, True
        self.plain(0)  # an error of the reference itself is the caller's to see
        for index, form in enumerate(self.forms[: effort.forms]):
            try:
                found = follow(self, form, index, effort)
            except Oversized as reason:
                if index > 0:  # a further form may be missing, the reference may not
                    notes.append(f"form {index} was left out: {reason}")
                    continue
                found = perturb(self, form, index, effort, str(reason))
            except Unsupported as reason:
                found = perturb(self, form, index, effort, str(reason))
            outcomes = max(outcomes, found.outcomes)
            exhaustive = exhaustive and found.exhaustive
            notes += [n for n in found.notes if n not in notes]
            for kept, new in zip(outputs, found.alternatives, strict=True):
                _merge(kept, new)
        return Evaluation(
            values=self.plain(0),
            outputs=tuple(tuple(output) for output in outputs),
            dtypes=self.dtypes,
            samples=effort.samples,
            outcomes=outcomes,
            exhaustive=exhaustive,
            notes=tuple(notes),
        )


def _merge(kept: list[Alternative], new: Sequence[Alternative]) -> None:
    for alternative in new:
        for i, known in enumerate(kept):
            if np.array_equal(known.value, alternative.value, equal_nan=True):
                kept[i] = known.merged(alternative)
                break
        else:
            kept.append(alternative)
