"""Profile regression: kernel time for each epoch, in all and kernel by kernel, against a base."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trueup.gates.acceptance.config import Measured, ProfileCheck
from trueup.gates.acceptance.errors import Incomparable
from trueup.gates.acceptance.exact import decimal_text, parameter
from trueup.gates.acceptance.inputs import Folder, Input
from trueup.gates.acceptance.kernel_sums import Kernel, Kernels, read_kernels
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.model import Measure
from trueup.gates.acceptance.session import Session, between
from trueup.gates.findings import Where

_BLOCK = "profile"
_SAME = ("gpu", "clocks_locked", "sm_clock_mhz", "epochs")


@dataclass(frozen=True, slots=True)
class _Taken:
    """A profile with its conditions."""

    kernels: Kernels
    about: Input
    epochs: int

    def per_epoch(self, time: Fraction) -> Fraction:
        """Nanoseconds of one epoch."""
        return time / self.epochs


def judge_profile(session: Session, asked: ProfileCheck) -> None:
    """The sum of all kernels, and each kernel whose share of the base counts."""
    base = _taken(session, session.gate, asked.base)
    new = _taken(session, session.run, asked.new)
    _comparable(base, new)
    for one in (base, new):
        _whole(session, one)
    limit = parameter(asked.threshold)
    total = _growth(base.kernels.total, new.kernels.total)
    _judge(session, "profile.total", "", base, new, total, limit, base.kernels.total,
           new.kernels.total)  # fmt: skip
    _kernels(session, asked, base, new)


def _taken(session: Session, folder: Folder, asked: Measured) -> _Taken:
    about = folder.document(asked.about, "profile conditions")
    check(about, "about")
    kernels = read_kernels(folder, asked.kernels)
    said = about.data.get("sha256")
    if said is not None:
        real = _digest(folder, asked.kernels)
        if real != said:
            session.found.add("profile_other_file", about.name, about.where(("sha256",)), said,
                              f"the digest of {kernels.file}: {real}")  # fmt: skip
            session.answer("profile.conditions", f"[{asked.about}]", _BLOCK, "false", said, real)
    if not kernels.total:
        raise Incomparable("took no time at all", where=kernels.file, expected="time in kernels")
    return _Taken(kernels, about, about.data["epochs"])


def _digest(folder: Folder, relative: str) -> str:
    import hashlib

    return hashlib.sha256(folder.path(relative).read_bytes()).hexdigest()


def _comparable(base: _Taken, new: _Taken) -> None:
    """Refuse to compare what was measured under other conditions."""
    for key in _SAME:
        before, now = base.about.data.get(key), new.about.data.get(key)
        if before != now:
            raise Incomparable(
                f"two profiles with another {key}", where=f"{base.about.name}, {new.about.name}",
                got=f"{before} and {now}", expected=f"the same {key} in both",
                fix="profile both on the same GPU model, clocks and number of epochs",
            )  # fmt: skip


def _whole(session: Session, taken: _Taken) -> None:
    """Shares that do not add up to 100 are those of a table that was cut."""
    percents, rows = taken.kernels.percents, taken.kernels.rows
    if percents is None:
        return
    slack = Fraction(rows, 20) + Fraction(1, 10)  # each share is rounded to 0.1
    if abs(percents - 100) > slack:
        session.found.add("profile_cut", taken.kernels.file, Where(key="Time (%)"),
                          f"{decimal_text(percents)} % in {rows} rows")  # fmt: skip
        session.answer("profile.whole", f"[{taken.kernels.file}]", _BLOCK, "false",
                       f"{decimal_text(percents)} %", "100 %")  # fmt: skip


def _growth(before: Fraction, after: Fraction) -> Fraction:
    return (after - before) / before


def _kernels(session: Session, asked: ProfileCheck, base: _Taken, new: _Taken) -> None:
    limit, least = parameter(asked.threshold), parameter(asked.min_share)
    for name, kernel in base.kernels.by_name.items():
        now = new.kernels.by_name.get(name)
        where = Where(line=kernel.line, key=name[:200])
        if now is None:
            session.found.add("kernel_removed", new.kernels.file, where, "not in the new profile")
            continue
        counts = kernel.total >= least * base.kernels.total
        if not kernel.total:
            if now.total:
                session.found.add("small_kernel_regressed", new.kernels.file, where,
                                  f"{_told(now, new)}, from nothing")  # fmt: skip
            continue
        growth = _growth(kernel.total, now.total)
        if counts:
            _judge(session, "profile.kernel", f"[{name[:200]}]", base, new, growth, limit,
                   kernel.total, now.total, (kernel, now))  # fmt: skip
        elif growth > limit:
            session.found.add("small_kernel_regressed", new.kernels.file, where,
                              f"{_percent(growth)}: {_told(kernel, base)} to {_told(now, new)}"
                              f"{_launches(kernel, now)}")  # fmt: skip
    for name, kernel in new.kernels.by_name.items():
        if name not in base.kernels.by_name:
            where = Where(line=kernel.line, key=name[:200])
            session.found.add("kernel_added", new.kernels.file, where, _told(kernel, new))


def _told(kernel: Kernel, taken: _Taken) -> str:
    return f"{decimal_text(taken.per_epoch(kernel.total))} ns an epoch"


def _percent(growth: Fraction) -> str:
    return f"{'+' if growth >= 0 else ''}{decimal_text(growth * 100)} %"


def _launches(before: Kernel, now: Kernel) -> str:
    """How many times as many launches: more launches and slower launches are two diseases."""
    if not before.instances:
        return ""
    ratio = Fraction(now.instances, before.instances)
    return f"; launches x {decimal_text(ratio)} ({before.instances} to {now.instances})"


def _judge(
    session: Session, ident: str, of: str, base: _Taken, new: _Taken, growth: Fraction,
    limit: Fraction, before: Fraction, after: Fraction,
    pair: tuple[Kernel, Kernel] | None = None,
) -> None:  # fmt: skip
    """One time against its base: `> limit` regresses, exactly the limit does not."""
    measure = Measure(growth, None, limit)
    value = (
        f"{_percent(growth)}: {decimal_text(base.per_epoch(before))} to "
        f"{decimal_text(new.per_epoch(after))} ns an epoch"
    )
    value += _launches(*pair) if pair else ""
    if not measure.holds():
        kind = "profile_regressed" if pair is None else "kernel_regressed"
        where = (
            Where(line=pair[1].line, key=pair[1].name[:200]) if pair else Where(key="all kernels")
        )
        session.found.add(kind, new.kernels.file, where, value, f"at most {_percent(limit)}")
    session.answer(ident, of, _BLOCK, "true" if measure.holds() else "false", value,
                   between(None, limit), measure=measure)  # fmt: skip
