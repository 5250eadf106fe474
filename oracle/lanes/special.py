"""special: NaN, infinities, signed zeros and subnormal numbers, by the contract's NaN rule.

One special value at a time is put into one input. The reference says what must come of it: NaN and
infinity exactly where it has them, and everything else within its bound. Where the value put in is
NaN or infinity, elements that stay finite pass by the worst case alone if they can: the numeric
lane asks more of them. `nan = "guarded"` means that the reference itself holds the guard;
`nan = "ignore"` promises nothing for inputs that are not finite, and then only zeros and subnormal
numbers are tried.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.backends.base import RunOptions
from trueup.oracle.contract import Arg, Contract
from trueup.oracle.inputs import Case, Draw, draw, few_cases, with_native
from trueup.oracle.lanes.judging import holds, judged
from trueup.oracle.lanes.tally import Tally, skipped
from trueup.oracle.session import Session
from trueup.oracle.verdict import LaneVerdict

_LARGEST = 1200  # product of the axes: each case is evaluated for every special value and input

NOT_FINITE = {"nan": np.nan, "+inf": np.inf, "-inf": -np.inf}
FINITE = {"zero": 0.0, "-zero": -0.0, "subnormal": None}


def cases(session: Session) -> list[Case]:
    """A few small sizes: positions matter here, not extents."""
    few = few_cases(session.contract, count=3)
    small = [case for case in few if math.prod(case.axes.values()) <= _LARGEST]
    return small or few[:1]


def run(session: Session, picked: list[Case], seed: int, tally: Tally) -> LaneVerdict:
    """Try every special value in every floating-point input of every case."""
    arrays = _arrays(session)
    if not arrays:
        return skipped("special", "no input is a floating-point array")
    kinds = dict(FINITE) | (NOT_FINITE if session.contract.nan != "ignore" else {})
    for case in picked:
        if tally.enough():
            break
        tally.begin(case.id)
        ordinary = draw(session.contract, session.reference, case, seed)
        for arg in arrays:
            if not ordinary.native[arg.name].size:
                continue
            for kind in kinds:
                inputs = place(session.contract, ordinary, arg, kind)
                _try(session, tally, inputs, arg, kind)
            for spot in spots(ordinary.native[arg.name].size):
                inputs = place(session.contract, ordinary, arg, "nan", spot)
                if session.contract.nan != "ignore":
                    _try(session, tally, inputs, arg, "nan")
        tally.cases += 1
    return tally.verdict()


def _try(session: Session, tally: Tally, inputs: Draw, arg: Arg, kind: str) -> None:
    found = len(tally.findings)
    result = session.run(inputs, RunOptions())
    if tally.ran(result, inputs):
        surely = kind in NOT_FINITE and holds(session, tally, inputs, result)
        if not surely:
            judged(session, tally, inputs, result, briefly=True)
    if len(tally.findings) > found:
        tally.notes[f"failing input: {kind} in {arg.name}"] = None


def _arrays(session: Session) -> list[Arg]:
    """The floating-point arrays whose domain has room for special values."""
    domains = {}
    if session.reference.equation is not None:
        domains = {s.name: s.domain.kind for s in session.reference.equation.inputs}
    free = ("real", "sentinel", "nonnegative", "positive")
    return [
        arg
        for arg in session.contract.with_role("in", "inout")
        if arg.numpy.kind not in "iub"
        and domains.get(arg.name, "real") in free
        and (arg.name in domains or arg.legal is None)
    ]


def spots(size: int) -> list[int]:
    """List where a NaN is tried as well: in the middle and at the very end."""
    return sorted({size // 2, size - 1} - {0})


def place(contract: Contract, inputs: Draw, arg: Arg, kind: str, spot: int | None = None) -> Draw:
    """Put one special value into one input; subnormal scales the whole array.

    Without a `spot` it is a place of the array that differs from kind to kind and case to case, and
    a NaN has all its bits set, as GPUs make it: rounding by a carry would turn that one into -0.
    """
    anywhere = spot is None
    array: NDArray[Any] = inputs.native[arg.name].copy()
    if kind == "subnormal":
        tiny = float(np.finfo(array.dtype).tiny) if array.dtype.itemsize > 2 else 2.0**-120
        array = (array.astype(np.float64) * tiny * 0.125).astype(array.dtype)
    else:
        if spot is None:
            label = f"{inputs.case.id} {arg.name} {kind} {inputs.seed}".encode()
            spot = int.from_bytes(hashlib.sha256(label).digest()[:4], "big") % array.size
        array.reshape(-1)[spot] = {**NOT_FINITE, **FINITE}[kind]
        if kind == "nan" and anywhere:
            bits = array.view(f"u{array.dtype.itemsize}").reshape(-1)
            bits[spot] = np.iinfo(bits.dtype).max >> 1
    return with_native(inputs, contract, {arg.name: array})
