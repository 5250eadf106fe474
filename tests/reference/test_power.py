"""Declared wrong variants are really wrong, and declared forms really the same equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueup.reference import Equation, Family, NotApplicable, catalogue

EQUATIONS = catalogue()
BY_ID = pytest.mark.parametrize("entry", EQUATIONS, ids=[entry.id for entry in EQUATIONS])
UNIT = Family("unit", "the ordinary draw", lambda rng, sizes, values: values)
SHAPES = (
    {
        "n_atoms": 5,
        "n_actions": 4,
        "n_steps": 3,
        "n_tau": 3,
        "n_target": 4,
        "n_cos": 3,
        "d_out": 2,
        "d_in": 3,
        "B": 3,
        "r": 3,
        "c": 2,
        "D": 7,
        "n": 5,
        "S": 6,
        "N": 2,
        "T": 4,
        "d_k": 3,
        "d_v": 2,
        "C": 3,
        "P": 2,
        "d": 3,
        "h": 4,
        "L": 2,
        "n1": 2,
        "n2": 3,
        "H": 5,
        "D_in": 3,
        "M": 3,
        "E": 3,
        "A": 3,
        "K": 5,
    },
    {
        "n_atoms": 7,
        "n_actions": 3,
        "n_steps": 1,
        "n_tau": 5,
        "n_target": 5,
        "n_cos": 2,
        "d_out": 3,
        "d_in": 2,
        "B": 4,
        "r": 2,
        "c": 5,
        "D": 4,
        "n": 8,
        "S": 3,
        "N": 1,
        "T": 5,
        "d_k": 2,
        "d_v": 3,
        "C": 2,
        "P": 3,
        "d": 2,
        "h": 3,
        "L": 3,
        "n1": 4,
        "n2": 2,
        "H": 3,
        "D_in": 6,
        "M": 2,
        "E": 4,
        "A": 4,
        "K": 3,
    },
    {
        "n_atoms": 3,
        "n_actions": 5,
        "n_steps": 4,
        "n_tau": 2,
        "n_target": 7,
        "n_cos": 4,
        "d_out": 5,
        "d_in": 5,
        "B": 5,
        "r": 5,
        "c": 5,
        "D": 5,
        "n": 9,
        "S": 12,
        "N": 3,
        "T": 3,
        "d_k": 5,
        "d_v": 5,
        "C": 4,
        "P": 2,
        "d": 5,
        "h": 5,
        "L": 2,
        "n1": 3,
        "n2": 3,
        "H": 4,
        "D_in": 4,
        "M": 5,
        "E": 2,
        "A": 3,
        "K": 4,
    },
    {
        "n_atoms": 9,
        "n_actions": 4,
        "n_steps": 2,
        "n_tau": 4,
        "n_target": 3,
        "n_cos": 7,
        "d_out": 7,
        "d_in": 4,
        "B": 2,
        "r": 7,
        "c": 4,
        "D": 33,
        "n": 33,
        "S": 33,
        "N": 2,
        "T": 6,
        "d_k": 4,
        "d_v": 7,
        "C": 6,
        "P": 1,
        "d": 4,
        "h": 6,
        "L": 4,
        "n1": 5,
        "n2": 2,
        "H": 2,
        "D_in": 2,
        "M": 4,
        "E": 8,
        "A": 2,
        "K": 7,
    },
)
DEGENERATE = (
    {
        "n_atoms": 2,
        "n_actions": 2,
        "n_steps": 1,
        "n_tau": 1,
        "n_target": 2,
        "n_cos": 2,
        "d_out": 1,
        "d_in": 4,
        "B": 1,
        "r": 1,
        "c": 4,
        "D": 1,
        "n": 1,
        "S": 1,
        "N": 1,
        "T": 1,
        "d_k": 4,
        "d_v": 1,
        "C": 1,
        "P": 1,
        "d": 1,
        "h": 4,
        "L": 1,
        "n1": 1,
        "n2": 1,
        "H": 1,
        "D_in": 1,
        "M": 1,
        "E": 1,
        "A": 1,
        "K": 1,
    },
    {
        "n_atoms": 4,
        "n_actions": 3,
        "n_steps": 2,
        "n_tau": 2,
        "n_target": 1,
        "n_cos": 3,
        "d_out": 4,
        "d_in": 1,
        "B": 2,
        "r": 4,
        "c": 1,
        "D": 2,
        "n": 2,
        "S": 2,
        "N": 1,
        "T": 2,
        "d_k": 1,
        "d_v": 4,
        "C": 2,
        "P": 1,
        "d": 2,
        "h": 1,
        "L": 2,
        "n1": 2,
        "n2": 2,
        "H": 2,
        "D_in": 2,
        "M": 2,
        "E": 2,
        "A": 2,
        "K": 2,
    },
    {
        "n_atoms": 2,
        "n_actions": 4,
        "n_steps": 1,
        "n_tau": 1,
        "n_target": 1,
        "n_cos": 1,
        "d_out": 1,
        "d_in": 1,
        "B": 1,
        "r": 1,
        "c": 1,
        "D": 1,
        "n": 1,
        "S": 1,
        "N": 1,
        "T": 1,
        "d_k": 1,
        "d_v": 1,
        "C": 1,
        "P": 1,
        "d": 1,
        "h": 1,
        "L": 1,
        "n1": 1,
        "n2": 1,
        "H": 1,
        "D_in": 1,
        "M": 1,
        "E": 1,
        "A": 1,
        "K": 1,
    },
)


def flat(result: Any) -> np.ndarray:
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(np.asarray(part)) for part in parts])


def inputs(entry: Equation, family: Family, shape: dict[str, int], draw: Any) -> dict[str, Any]:
    sizes = {axis: shape[axis] for axis in entry.axes}
    rng = np.random.default_rng([len(family.name), *sizes.values()])
    values = family.make(rng, sizes, draw(entry, sizes, rng))
    return dict(entry.prepare(rng, sizes, values)) if entry.prepare else dict(values)


def differs(got: np.ndarray, want: np.ndarray) -> bool:
    """Tell more than rounding: a part in a million of the largest element, or other NaNs."""
    finite = np.isfinite(want)
    if not np.array_equal(np.isfinite(got), finite):
        return True
    scale = float(np.max(np.abs(want[finite]), initial=0.0))
    return bool(np.any(np.abs(got[finite] - want[finite]) > 1e-6 * scale))


def finders(entry: Equation, name: str, against: str, draw: Any) -> set[str]:
    found: set[str] = set()
    for family in (UNIT, *entry.families):
        for shape in SHAPES:
            values = inputs(entry, family, shape, draw)
            try:
                with np.errstate(all="ignore"):  # a missing guard is one of the wrong variants
                    got = flat(entry.call(name, **values))
            except NotApplicable:
                continue
            if differs(got, flat(entry.call(against, **values))):
                found.add(family.name)
    return found


@BY_ID
def test_every_wrong_variant_and_other_reading_is_found_by_a_family(
    entry: Equation, draw: Any
) -> None:
    """On a family that is there to tell wrong kernels, not one that readings share."""
    telling = {UNIT.name} | {f.name for f in entry.families if not f.right_kernel_only}
    for name in entry.known():
        if name != entry.default_reading:
            assert finders(entry, name, entry.default_reading, draw) & telling, name


@BY_ID
def test_readings_are_told_apart_pairwise(entry: Equation, draw: Any) -> None:
    for number, name in enumerate(entry.readings):
        for other in entry.readings[number + 1 :]:
            values = [inputs(entry, UNIT, shape, draw) for shape in SHAPES]
            for family in entry.families:
                values += [inputs(entry, family, shape, draw) for shape in SHAPES]
            told = False
            for case in values:
                try:
                    one, two = entry.call(name, **case), entry.call(other, **case)
                except NotApplicable:
                    continue
                told = told or differs(flat(one), flat(two))
            assert told, (name, other)


@BY_ID
def test_forms_compute_the_same_reading(entry: Equation, draw: Any) -> None:
    checked = 0
    for reading in entry.readings:
        first, *others = entry.form(reading)
        for family in (UNIT, *entry.families):
            for shape in SHAPES + DEGENERATE:
                values = inputs(entry, family, shape, draw)
                try:
                    want = flat(first(**values))
                except NotApplicable:
                    for other in others:
                        with pytest.raises(NotApplicable):
                            other(**values)
                    continue
                scale = 1.0 + max(float(np.max(np.abs(v))) for v in values.values()) ** 3
                scale = scale if np.isfinite(scale) else 1.0
                for other in others:
                    got = flat(other(**values))
                    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13 * scale)
                    checked += 1
    assert checked


@pytest.mark.parametrize(
    ("id", "one", "two", "family"),
    [
        ("nl.delta_momentum", "derived", "scalar", "repeated_sample"),
        ("nl.delta_momentum", "derived", "left_gg", "repeated_sample"),
        ("nl.delta_momentum", "literal_right", "flat_outer", "repeated_sample"),
        ("nl.delta_momentum", "derived", "literal_right", "from_rest"),
        ("nl.delta_momentum", "derived", "no_delta", "from_rest"),
        ("nl.delta_momentum_rank1", "derived", "scalar", "repeated_sample"),
        ("nl.delta_momentum_rank1", "derived", "flat_outer", "from_rest"),
        ("nl.delta_momentum", "derived", "flat_outer", "no_gradient"),
        ("nl.projected_descent", "literal", "normalized", "unit_input"),
        ("nl.projected_descent", "prox", "prox_unit", "unit_input"),
        ("nl.projected_descent", "derived", "literal", "unit_eta"),
        ("nl.projected_descent", "derived", "prox", "fixed_point"),
        ("nl.projected_descent", "derived", "prox_unit", "fixed_point"),
        ("nl.projected_descent", "derived", "plain_gd", "no_input"),
        ("nl.projected_descent_batch", "derived", "prox", "fixed_point"),
        ("nl.projected_descent_batch", "derived", "sequential", "orthogonal_rows"),
        ("nl.newton_schulz", "quintic5", "quintic5_add", "zero"),
        ("nl.newton_schulz", "quintic5", "quintic5_add", "orthogonal"),
        ("isv.grad_norm_emas", "guarded", "alphas_swapped", "steady"),
        ("nl.momentum", "i", "weights_from_old_m", "absent"),
    ],
)
def test_readings_coincide_where_they_must(
    id: str, one: str, two: str, family: str, draw: Any
) -> None:
    """A test on such inputs proves nothing about which reading a kernel follows."""
    entry = next(entry for entry in EQUATIONS if entry.id == id)
    chosen = next((f for f in entry.families if f.name == family), None)
    if chosen is None:
        # The counter-example of this table: on ordinary inputs the variants part.
        case = inputs(entry, UNIT, SHAPES[0], draw)
        assert differs(flat(entry.call(two, **case)), flat(entry.call(one, **case)))
        return
    for shape in SHAPES:
        values = inputs(entry, chosen, shape, draw)
        values.pop("P", None)
        want = flat(entry.call(one, **values))
        scale = 1.0 + float(np.max(np.abs(want)))
        np.testing.assert_allclose(flat(entry.call(two, **values)), want, atol=2e-6 * scale)
