"""The acceptance file as data: what is asked, every proposed number of it a parameter."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from trueup.gates.acceptance.model import Weight


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename={"weight": "class"}):
    """A table of the file."""


class Asked(_Part, frozen=True):
    """What every criterion on metrics has."""

    id: str
    path: str = ""
    summary: str = ""
    weight: Weight = "fail"
    tier: int | None = None
    file: str = ""


class Band(Asked, frozen=True):
    """A metric near its baseline: `abs(x - base) <= relative * abs(base)`, inclusive."""

    baseline: str = ""
    match: tuple[str, ...] = ()
    relative: Decimal | None = None
    absolute: Decimal | None = None  # where the base is 0, or if there is no relative one
    side: Literal["both", "lower", "upper"] = "both"


class Limit(Asked, frozen=True):
    """A metric on the right side of fixed numbers, inclusive."""

    ratio: tuple[str, ...] = ()  # of two paths, instead of one path
    at_least: Decimal | None = None
    at_most: Decimal | None = None


class Mix(Asked, frozen=True):
    """Shares of the choices of a policy, which must not collapse onto one."""

    classes: int | None = None
    total: Decimal = Decimal(1)
    sum_tolerance: Decimal = Decimal("1e-6")
    min_entropy: Decimal = Decimal("0.5")  # of ln(classes)
    max_share: Decimal = Decimal("0.95")


class Wired(Asked, frozen=True):
    """Monitors that must be there and must have observed something."""

    names: tuple[str, ...] = ()
    min_observations: int = 1


class Smoke(_Part, frozen=True):
    """The seven criteria of a multi-fold smoke run."""

    path: str
    baseline: str = ""
    match: tuple[str, ...] = ("fold",)
    file: str = ""
    folds: tuple[int, ...] = (0, 1, 2)
    retain: Decimal = Decimal("0.05")
    mono_mode: Literal["both", "baseline", "folds"] = "both"
    report: str = ""
    logs: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    audit: str = ""
    clamp_token: str = "NaN-CLAMPED-TO-ZERO"
    flags: int = 48
    hard_stops: tuple[str, ...] = ("REGRESSION_HARD_STOP", "NAN_FLAG", "LAYOUT_MISMATCH")
    audit_status: str = "Status"
    audit_closed: tuple[str, ...] = ("Wired", "OUT")
    audit_open_words: tuple[str, ...] = ("", "TBD", "evaluate")


class Watched(_Part, frozen=True):
    """A metric of the hard stop, with its bands."""

    name: str
    path: str = ""
    warn_below: Decimal | None = None
    error_below: Decimal | None = None
    warn_above: Decimal | None = None
    error_above: Decimal | None = None


class HardStop(_Part, frozen=True):
    """The stop of a run after 2N errors in a row, recomputed from its series."""

    series: tuple[str, ...]
    termination: str
    metric: tuple[Watched, ...]
    n_consec: int = 5
    warn_resets: bool = True
    reset_at: Literal["fold", "epoch", "never"] = "fold"
    missing: Literal["error", "skip"] = "error"
    allowed: tuple[str, ...] = ("COMPLETED", "EARLY_STOP")
    warnings: bool = True


class Measured(_Part, frozen=True):
    """One profile and the conditions it was taken under."""

    kernels: str
    about: str


class ProfileCheck(_Part, frozen=True):
    """Two profiles of kernels to compare."""

    base: Measured
    new: Measured
    threshold: Decimal = Decimal("0.20")
    min_share: Decimal = Decimal("0.01")


class Final(_Part, frozen=True):
    """The final run: one manifest, all cells, three tiers, one attempt."""

    manifest: str
    ledger: str
    sharpe: str
    ledger_head: str = ""
    in_git: bool = False
    n_seeds: int = 5
    n_folds: int = 6
    floor: Decimal = Decimal(20)
    worst: Decimal = Decimal("0.5")
    spread: Decimal = Decimal("0.5")
    ddof: int = 1
    hard_stops: tuple[str, ...] = ("REGRESSION_HARD_STOP", "NAN_FLAG", "LAYOUT_MISMATCH")


class Effect(_Part, frozen=True):
    """One metric of an ablation."""

    name: str
    path: str
    better: Literal["higher", "lower"] = "higher"
    threshold: Decimal = Decimal(0)  # of the control's value; a smaller loss is none


class Outcome(_Part, frozen=True):
    """One row of an outcome table: the first that fits decides."""

    when: dict[str, str]
    decision: str


class Ablation(_Part, frozen=True):
    """An ablation with paired seeds, and what its outcomes mean."""

    id: str
    file: str
    metric: tuple[Effect, ...]
    outcome: tuple[Outcome, ...]
    min_seeds: int = 3
    mixed_sign: Literal["inconclusive", "mean"] = "inconclusive"
    accept_inconclusive: bool = False


class Tests(_Part, frozen=True):
    """Counts of tests against those of before."""

    id: str
    file: str
    previous: str
    device: str = ""


class Results(_Part, frozen=True):
    """The documents that paths lead into."""

    files: tuple[str, ...] = ()


class BaselineFile(_Part, frozen=True):
    """A locked baseline."""

    file: str
    id: str = ""
    digest: str = ""


class About(_Part, frozen=True):
    """What the acceptance is of."""

    id: str
    summary: str = ""
    include: tuple[str, ...] = ()


class Config(_Part, frozen=True):
    """The whole file."""

    acceptance: About
    results: Results = Results()
    baseline: tuple[BaselineFile, ...] = ()
    band: tuple[Band, ...] = ()
    limit: tuple[Limit, ...] = ()
    mix: tuple[Mix, ...] = ()
    wired: tuple[Wired, ...] = ()
    smoke: Smoke | None = None
    hard_stop: HardStop | None = None
    profile: ProfileCheck | None = None
    final: Final | None = None
    ablation: tuple[Ablation, ...] = ()
    tests: tuple[Tests, ...] = ()

    @property
    def asks(self) -> int:
        """How many things it asks for."""
        single = (self.smoke, self.hard_stop, self.profile, self.final)
        many = (self.band, self.limit, self.mix, self.wired, self.ablation, self.tests)
        return sum(map(len, many)) + sum(one is not None for one in single)
