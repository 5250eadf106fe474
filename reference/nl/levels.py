"""Definition 2: which component is faster, which level it belongs to, and how long its chunks are.

Frequencies count updates per unit of time, one unit being one update on one data point; frozen
weights have frequency 0. Level 1 is the fastest: a higher level has a lower frequency.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from trueup.reference.errors import BadInputs

WHERE = "Definition 2"


@dataclass(frozen=True)
class Component:
    """A part of a model that has a state: its name, its frequency, and what its state needs.

    ``needs`` names the components whose state *at the same time t* is needed to compute this
    one's state at t.
    """

    name: str
    frequency: Fraction | float | int
    needs: tuple[str, ...] = ()


def precedes(a: str, b: str, components: Iterable[Component]) -> bool:
    """Tell whether a is faster than b (a > b of Definition 2).

    It is, if its frequency is higher, or if both are equal and computing b's state at t needs a's
    state at t, directly or through others. If neither precedes the other they are *equal*, which
    is not transitive.
    """
    known = _named(components)
    one, two = _look_up(known, a), _look_up(known, b)
    if one.frequency != two.frequency:
        return one.frequency > two.frequency
    return a != b and a in _needed(known)[b]


def levels(components: Iterable[Component]) -> dict[str, int]:
    """Give every component its level, 1 being the fastest.

    Paper: Nested Learning (NeurIPS 2025), Definition 2. It leaves open how components that are
    equal pairwise share levels; the rule here orders by (-frequency, depth), depth being the
    longest chain of same-frequency, same-time needs that leads to a component. Equal keys share
    a level. The key is total and refines ``precedes``.

    Raises BadInputs for a name that is unknown or taken twice, a frequency that is negative or
    not finite, and states that need each other at the same time.
    """
    known = _named(components)
    needed = _needed(known)
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            rate = known[name].frequency
            same = (other for other in needed[name] if known[other].frequency == rate)
            depths[name] = max((depth(other) + 1 for other in same), default=0)
        return depths[name]

    keys = {name: (-component.frequency, depth(name)) for name, component in known.items()}
    rank = {key: place for place, key in enumerate(sorted(set(keys.values())), start=1)}
    return {name: rank[key] for name, key in keys.items()}


def chunk_sizes(longest: int, updates: Sequence[int]) -> tuple[int, ...]:
    """Give the chunk length of each level: C_l = C_max / f_l.

    Paper: the definition printed with Eq. 30 refers to itself (its bound index shadows the free
    one). The usable form counts f_l, the updates of level l per C_max tokens, so that f_l C_l is
    the same for all levels: C_max = 16 and f = (16, 4, 1) give C = (1, 4, 16).

    Raises BadInputs unless every length is a whole number of at least one token.
    """
    if longest < 1 or any(count < 1 or longest % count for count in updates):
        raise BadInputs(
            "chunks are whole numbers of tokens",
            where="chunk sizes of Eq. 30",
            got=f"C_max = {longest}, updates {', '.join(map(str, updates))}",
            expected="every number of updates divides C_max",
        )
    return tuple(longest // count for count in updates)


def _named(components: Iterable[Component]) -> dict[str, Component]:
    known: dict[str, Component] = {}
    for component in components:
        if component.name in known:
            raise BadInputs("a component is named twice", where=WHERE, got=component.name)
        if not math.isfinite(component.frequency) or component.frequency < 0:
            raise BadInputs(
                "a frequency is a finite number of updates",
                where=f"{WHERE}: {component.name}",
                got=str(component.frequency),
                expected="0 (frozen) or more",
            )
        known[component.name] = component
    return known


def _look_up(known: Mapping[str, Component], name: str) -> Component:
    if name not in known:
        raise BadInputs(
            "no such component", where=WHERE, got=name, expected="one of " + ", ".join(known)
        )
    return known[name]


def _needed(known: Mapping[str, Component]) -> dict[str, frozenset[str]]:
    """Give for each component all states it needs at the same time, its needs' needs included."""
    closed: dict[str, frozenset[str]] = {}

    def close(name: str, path: tuple[str, ...]) -> frozenset[str]:
        if name in path:
            raise BadInputs(
                "states need each other at the same time",
                where=WHERE,
                got=" needs ".join((*path[path.index(name) :], name)),
                expected="no cycle",
                fix="let one of them read the state of the step before",
            )
        if name not in closed:
            direct = _look_up(known, name).needs
            below = [close(other, (*path, name)) for other in direct]
            closed[name] = frozenset(direct).union(*below)
        return closed[name]

    return {name: close(name, ()) for name in known}
