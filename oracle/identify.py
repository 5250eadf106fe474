"""Which reading of its equation does a kernel follow? Every known form, ranked by its fit.

The kernel runs once on each of a few telling cases. Each reading and each known wrong variant of
the equation is then held to the outputs by its own derived bounds, as `verify` holds the declared
reading: a form whose largest error is at most the allowed one cannot be told from what the kernel
computes. The first few cases judge every form, the others those forms that fit so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trueup.oracle.backends.base import AnyArray, RunOptions
from trueup.oracle.errors import OracleError
from trueup.oracle.inputs import Case, Draw, draw, numeric_cases, parse_case
from trueup.oracle.lanes.identify import case_ratio
from trueup.oracle.lanes.registry import one_blas_thread
from trueup.oracle.session import Session

# Ordinary inputs at this many of the sizes; every telling family visits the first of them.
_SIZES = 4
# Cases that judge every form, and the forms that further cases judge if none fits these.
_FIRST, _NEAREST = 3, 3

Told = Callable[[str, int, int], None]


@dataclass(frozen=True)
class FormFit:
    """How one form of the equation fits what the kernel computed."""

    form: str
    kind: str  # "reading" | "wrong variant"
    ratio: float  # the largest error/allowed of the cases it was held to; infinite without any
    case: str  # where that was
    explained: int  # cases in which it fits
    cases: int  # cases it was held to: those in which it has a meaning, until it was ruled out


@dataclass(frozen=True)
class Identification:
    """Every form of an equation, ranked by how well it explains a kernel."""

    contract: str
    path: str
    equation: str
    declared: str
    backend: str
    device: str
    cases: tuple[str, ...]
    elements: int
    ranking: tuple[FormFit, ...]
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The form that explains the kernel best; of several that fit, the declared one."""
        return self.ranking[0].form

    @property
    def fitting(self) -> tuple[str, ...]:
        """The forms that explain every case; several cannot be told apart on these inputs."""
        return tuple(fit.form for fit in self.ranking if self._fits(fit))

    @property
    def declared_fits(self) -> bool:
        """Whether the kernel follows the reading that its contract declares."""
        return self.declared in self.fitting

    def _fits(self, fit: FormFit) -> bool:
        return fit.explained == len(self.cases)


@dataclass
class _Ran:
    """One case and what the kernel made of it."""

    draw: Draw
    outputs: list[AnyArray]


def identify(
    session: Session, case: str | None = None, seed: int = 0, progress: Told | None = None
) -> Identification:
    """Rank every reading and known wrong variant of a contract's equation.

    Raises OracleError for a malformed case id, and where no run ended without a fault.
    """
    picked = _cases(session, case)
    forms = (session.reference.reading, *session.reference.others())
    total = len(picked) + len(forms)
    notes: list[str] = []
    with one_blas_thread():
        runs = _runs(session, picked, seed, notes, _told(progress, total, 0))
        fits = _fits(session, forms, runs, _told(progress, total, len(picked)))
        bounds = session.evaluator(runs[0].draw).evaluation().notes
    if any(note.startswith("bound: inputs only") for note in bounds):
        notes.append(
            "the reference does what bounds cannot follow, so they come from the inputs' rounding "
            "alone; a ratio somewhat above 1 rules nothing out"
        )
    if len(forms) == 1:
        notes.append("the reference declares no other reading and no wrong variant to compare with")
    return Identification(
        contract=session.contract.id,
        path=str(session.contract.path),
        equation=session.reference.id,
        declared=session.reference.reading,
        backend=session.backend.name,
        device=session.backend.device,
        cases=tuple(ran.draw.case.id for ran in runs),
        elements=sum(int(np.asarray(o).size) for ran in runs for o in ran.outputs),
        ranking=tuple(sorted(fits, key=lambda fit: _rank(fit, session, len(runs)))),
        notes=tuple(notes),
    )


def _rank(fit: FormFit, session: Session, cases: int) -> tuple[bool, int, float, str]:
    """Order forms: those that explain more cases first, then by ratio.

    Of several that explain everything, and so cannot be told apart, the declared one is first.
    """
    first = fit.explained == cases and fit.form == session.reference.reading
    return (not first, -fit.explained, fit.ratio, fit.form)


def _told(progress: Told | None, total: int, before: int) -> Callable[[str, int], None]:
    def say(name: str, done: int) -> None:
        if progress is not None:
            progress(name, before + done, total)

    return say


def _cases(session: Session, case: str | None) -> list[Case]:
    """Pick the case named, or some sizes with ordinary inputs and every family that tells."""
    if case is not None:
        return [parse_case(session.contract, session.reference, case)]
    listed = [c for c in numeric_cases(session.contract, session.reference)]
    telling = [c for c in listed if not c.right_kernel_only]
    first: dict[str, Case] = {}
    for entry in telling:
        first.setdefault(entry.family, entry)
    sizes = [c for c in telling if c.family == "unit"][:_SIZES]
    return list(dict.fromkeys([*sizes[:2], *first.values(), *sizes]))


def _runs(
    session: Session,
    picked: Sequence[Case],
    seed: int,
    notes: list[str],
    say: Callable[[str, int], None],
) -> list[_Ran]:
    """Run the kernel on every case; one that ends in a fault tells nothing of a formula."""
    runs, faults = [], []
    for number, case in enumerate(picked):
        say(case.id, number)
        inputs = draw(session.contract, session.reference, case, seed)
        result = session.run(inputs, RunOptions())
        if result.faults:
            faults.append(f"{case.id}: {result.faults[0].message}")
            if result.faults[0].kind in ("time limit", "crash"):
                break  # it may have taken the device away, and the next would take as long
            continue
        runs.append(_Ran(inputs, session.outputs(result)))
    if not runs:
        raise OracleError(
            "no run ended without a fault, so nothing is known of its formula",
            where=f"{session.contract.path}: contract {session.contract.id}",
            got=faults[0],
            fix="run `trueup verify` and correct what it finds first",
        )
    if faults:
        notes.append(
            f"{len(faults)} of {len(picked)} cases ended in a fault and were left out "
            f"({faults[0]}); `trueup verify` says where"
        )
    return runs


@dataclass
class _Held:
    """What is known of one form so far."""

    name: str
    ratio: float = -1.0
    case: str = ""
    explained: int = 0
    cases: int = 0

    def hold(self, session: Session, runs: Sequence[_Ran]) -> None:
        """Hold the form to further runs by its own bounds."""
        for ran in runs:
            found = case_ratio(session, self.name, ran.draw, ran.outputs)
            if found is None:
                continue
            self.cases += 1
            self.explained += found <= 1
            if found > self.ratio:
                self.ratio, self.case = found, ran.draw.case.id


def _fits(
    session: Session, forms: Sequence[str], runs: Sequence[_Ran], say: Callable[[str, int], None]
) -> list[FormFit]:
    """Hold every form to the first runs, and those that fit them to the others."""
    held = [_Held(name) for name in forms]
    for number, form in enumerate(held):
        say(form.name, number)
        form.hold(session, runs[:_FIRST])
    judged = sorted((form for form in held if form.cases), key=lambda form: form.ratio)
    left = [form for form in judged if form.ratio <= 1] or judged[:_NEAREST]
    unheard = [form for form in held if not form.cases]  # no meaning in the first cases
    for form in left + unheard:
        form.hold(session, runs[_FIRST:])
    equation = session.reference.equation
    wrong = equation.wrong if equation is not None else ()
    return [
        FormFit(
            form.name,
            "wrong variant" if form.name in wrong else "reading",
            form.ratio if form.cases else math.inf,
            form.case,
            form.explained,
            form.cases,
        )
        for form in held
    ]
