"""State before and after a boundary: what the registry says must have happened, and nothing else.

Bits are compared wherever a value must stay or is set; a soft reset has its own rounding.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.gates.collector import Collector
from trueup.gates.findings import Where
from trueup.gates.layout.model import LayoutFile
from trueup.gates.layout.registry import Registry, ResetEntry, stateful_names
from trueup.gates.layout.state import ROUNDING, State, Words

Boundary = Literal["fold", "epoch", "both"]


def judge_boundary(
    registry: Registry,
    layout: LayoutFile,
    before: State,
    after: State,
    boundary: Boundary,
    lanes: tuple[int, int],
    collector: Collector,
) -> int:
    """Hold the state after a boundary to the state before it. Gives how many names were compared.

    `lanes` are the two words of the layout's fingerprint.
    """
    known, entries = stateful_names(registry, layout), registry.by_name()
    compared = 0
    for name in sorted({*before.arrays, *after.arrays} - set(known)):
        collector.of_kind(
            "state_unregistered", after.name, Where(key=name), f"{name} is in the dump"
        )
    for name in known:
        entry, old, new = entries.get(name), before.arrays.get(name), after.arrays.get(name)
        if old is None or new is None:
            missing = before.name if old is None else after.name
            collector.of_kind("state_not_dumped", missing, Where(key=name), f"no tensor {name}")
            continue
        if entry is None:
            continue  # reported with the registry itself
        compared += 1
        got = _wrong(entry, old, new, boundary, lanes)
        if got:
            collector.of_kind("state_not_reset", after.name, Where(key=name), got)
    return compared


def _wrong(
    entry: ResetEntry, old: Words, new: Words, boundary: Boundary, lanes: tuple[int, int]
) -> str:
    """What an entry's state does not hold, or nothing."""
    if old.dtype != new.dtype or old.bits.size != new.bits.size:
        return f"{old} became {new}"
    if entry.category == "LayoutTail":
        want = Words(np.array(lanes, dtype="<u4"), "F32")
        return _first_bits(entry, want, new, "the fingerprint's words")
    if entry.category in ("Persistent", "Static") or not _is_due(entry, boundary):
        return _first_bits(entry, old, new, "unchanged bits")
    soft = entry.category == "SoftReset"
    if not entry.init or (soft and entry.kappa is None):
        return ""  # reported with the registry itself
    if soft and entry.kappa == 1.0:
        return _first_bits(entry, old, new, "unchanged bits: kappa is 1")
    init = new.encoded(entry.init)
    if isinstance(init, str):
        return f"{entry.category}: {init}"
    if not soft or entry.kappa == 0.0:
        return _first_bits(entry, init, new, "the initial value")
    return _softly(entry, old, new, init)


def _is_due(entry: ResetEntry, boundary: Boundary) -> bool:
    """At an epoch only EpochReset acts, at a fold everything else, at both everything."""
    return boundary == "both" or (entry.category == "EpochReset") == (boundary == "epoch")


def _first_bits(entry: ResetEntry, want: Words, new: Words, what: str) -> str:
    if want.dtype != new.dtype or want.bits.size != new.bits.size:
        return f"{entry.category}: {new}, expected {want}"
    differs = want.bits != new.bits
    if not differs.any():
        return ""
    at = int(np.argmax(differs))
    got, wanted = (f"0x{int(words.bits[at]):0{new.width}x}" for words in (new, want))
    return (
        f"{entry.category}: element {at} is {new.numbers()[at]} ({got}), expected {what}: "
        f"{want.numbers()[at]} ({wanted})"
    )


def _softly(entry: ResetEntry, old: Words, new: Words, init: Words) -> str:
    """init + kappa (x - init) within its three roundings, in the format of the state."""
    if new.dtype not in ROUNDING:
        return f"SoftReset: {new}, which are no floats: there is no part of a distance to keep"
    unit, least = ROUNDING[new.dtype]
    kappa = np.longdouble(entry.kappa if new.dtype == "F64" else np.float32(entry.kappa))
    x, start, got = (words.numbers().astype(np.longdouble) for words in (old, init, new))
    with np.errstate(invalid="ignore", over="ignore"):
        want = start + kappa * (x - start)
        allowed = 3 * unit * (np.abs(start) + kappa * np.abs(x - start)) + least
        right = (np.abs(got - want) <= allowed) | (got == want) | (np.isnan(got) & np.isnan(want))
    if right.all():
        return ""
    at = int(np.argmin(right))
    return (
        f"SoftReset: element {at} is {_shown(got, at)}, expected {_shown(want, at)} within "
        f"{float(allowed[at]):.2g} (before {_shown(x, at)}, init {_shown(start, at)}, "
        f"kappa {float(kappa):.9g})"
    )


def _shown(numbers: NDArray[Any], at: int) -> str:
    return f"{float(numbers[at]):.9g}"
