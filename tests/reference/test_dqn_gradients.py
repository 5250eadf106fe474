"""Budgets, the SAXPY correction, eight norms in the fixed order, and reading them back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trueup.reference.dqn import branch_budgets, grad_norms, saxpy_correction
from trueup.reference.dqn.fixed_tree import (
    fixed_tree_norm,
    fixed_tree_sum,
    fixed_tree_sum_of_squares,
    sequential_sum_of_squares,
)
from trueup.reference.dqn.readback import (
    GradientBuffer,
    Norms,
    Readback,
    Unavailable,
    coerced_to_zero,
    end_of_epoch,
    ratio,
    read_after_wipe,
    suspicious,
)

PROFILE = settings(derandomize=True, deadline=None, max_examples=200)
U = 2.0**-24
numbers = st.floats(-4.0, 4.0, width=32)
units = st.floats(0.0, 1.0, width=32)
SLICES = np.array([[2.0, 5.0], [5.0, 9.0], [9.0, 12.0], [12.0, 15.0]])


def bits(x: np.float32) -> int:
    return int(np.float32(x).view(np.uint32))


def hashed(n: int) -> np.ndarray:
    i = np.arange(n, dtype=np.uint64)
    return ((i * np.uint64(2654435761) % 2**32).astype(np.float64) / 2**32 - 0.5).astype(np.float32)


# ---- budgets


def test_budgets_by_hand() -> None:
    beta, trunk = branch_budgets(
        np.array([[2.0, 0.5, 1.0, 0.0]]),
        np.array([4.0, 1.0, 8.0, 1.0]),
        np.full(1, 0.25),
        np.zeros(1),
        np.ones(1),
    )
    np.testing.assert_array_equal(beta, [[0.5, 0.5, 1.0, 1.0]])  # the last two at the ceiling
    np.testing.assert_array_equal(trunk, [0.75])


@PROFILE
@given(beta=st.lists(units, min_size=4, max_size=4))
def test_corrections_sum_to_nothing_within_five_roundings(beta: list[float]) -> None:
    """In float32, as the programme's kernel computes them; a bare four would fail a right one."""
    b = np.array(beta, dtype=np.float32)
    trunk = np.float32(np.float32(np.float32(np.float32(b[0] + b[1]) + b[2]) + b[3]) / 4)
    parts = (b - trunk).astype(np.float64)
    assert abs(parts.sum()) <= 5 * U * float(b.sum())


@PROFILE
@given(one=units)
def test_four_equal_budgets_give_the_trunk_the_same_bits(one: float) -> None:
    b = np.float32(one)
    assert np.float32(np.float32(np.float32(np.float32(b + b) + b) + b) / 4) == b
    hi = np.full(1, float(b))
    beta, trunk = branch_budgets(np.zeros((1, 4)), np.ones(4), np.ones(1), np.zeros(1), hi)
    assert (beta == trunk).all()


@PROFILE
@given(
    norm=hnp.arrays(np.float64, (2, 4), elements=st.floats(0.0, 50.0)),
    reference=hnp.arrays(np.float64, 4, elements=st.floats(0.01, 50.0)),
)
def test_budgets_stay_in_their_limits_and_fall_with_the_norm(
    norm: np.ndarray, reference: np.ndarray
) -> None:
    lo, hi, frac = np.array([0.1, 0.0]), np.array([0.9, 1.0]), np.full(2, 0.25)
    beta, trunk = branch_budgets(norm, reference, frac, lo, hi)
    louder, _ = branch_budgets(norm + 1.0, reference, frac, lo, hi)
    assert ((beta >= lo[:, None]) & (beta <= hi[:, None])).all()
    assert (louder <= beta).all()
    np.testing.assert_allclose(trunk, beta.mean(axis=1), rtol=1e-15)


# ---- the correction


@PROFILE
@given(
    acc=hnp.arrays(np.float64, 17, elements=numbers),
    g=hnp.arrays(np.float64, 17, elements=numbers),
    beta=hnp.arrays(np.float64, 4, elements=units),
)
def test_entries_are_scaled_by_the_factor_of_their_place(
    acc: np.ndarray, g: np.ndarray, beta: np.ndarray
) -> None:
    """Against exact rationals: acc + factor g."""
    trunk = beta.sum(keepdims=True) / 4
    got = saxpy_correction(acc, g, beta, trunk, SLICES)
    for i in range(17):
        branch = next((k for k in range(4) if SLICES[k, 0] <= i < SLICES[k, 1]), None)
        factor = Fraction(float(trunk[0] if branch is None else beta[branch]))
        want = Fraction(acc[i]) + factor * Fraction(g[i])
        scale = 1e-15 * (1.0 + abs(acc[i]) + 2.0 * abs(g[i]))
        assert abs(got[i] - float(want)) <= scale


@PROFILE
@given(
    acc=hnp.arrays(np.float64, 17, elements=numbers),
    g=hnp.arrays(np.float64, 17, elements=numbers),
    one=units,
)
def test_equal_budgets_correct_nothing_bit_for_bit(
    acc: np.ndarray, g: np.ndarray, one: float
) -> None:
    beta, trunk = np.full(4, one), np.full(1, one)
    got = saxpy_correction(acc, g, beta, trunk, SLICES)
    np.testing.assert_array_equal(got, acc + trunk * g)
    np.testing.assert_array_equal(saxpy_correction(acc, 0.0 * g, beta, trunk, SLICES), acc)


def test_the_order_of_branches_has_no_part() -> None:
    rng = np.random.default_rng(3)
    acc, g, beta = rng.standard_normal(17), rng.standard_normal(17), rng.random(4)
    trunk = beta.sum(keepdims=True) / 4
    want = saxpy_correction(acc, g, beta, trunk, SLICES)
    for order in ([3, 2, 1, 0], [2, 0, 3, 1]):
        got = saxpy_correction(acc, g, beta[order], trunk, SLICES[order])
        np.testing.assert_array_equal(got, want)


def test_pad_behind_the_parameters_stays_zero() -> None:
    acc, g = np.zeros(17), np.ones(17)
    g[15:] = 0.0  # the tile pad has no gradient
    got = saxpy_correction(acc, g, np.array([0.1, 0.4, 0.2, 0.9]), np.full(1, 0.4), SLICES)
    assert (got[15:] == 0.0).all()
    assert (got[:15] != 0.0).all()


@pytest.mark.parametrize("wrong", ["scalar_budget", "correction_with_beta", "applied_twice"])
def test_wrong_corrections_are_a_hundred_bounds_away(wrong: str) -> None:
    rng = np.random.default_rng(5)
    acc, g, beta = rng.standard_normal(17), rng.standard_normal(17), np.array([0.1, 0.9, 0.3, 0.6])
    trunk = beta.sum(keepdims=True) / 4
    want = saxpy_correction(acc, g, beta, trunk, SLICES)
    got = saxpy_correction(acc, g, beta, trunk, SLICES, reading=wrong)
    factor = np.max(trunk + np.abs(beta - trunk))
    bound = 3 * U * factor * np.abs(g) + 2 * U * np.abs(acc)
    assert np.max(np.abs(got - want) / bound) >= 100


# ---- the fixed order


@pytest.mark.parametrize(
    ("n", "total", "norm", "sequential"),
    [
        pytest.param(1000, 0x42A6B364, 0x41121304, 0x42A6B35D, id="1000"),
        pytest.param(3001, 0x437A334B, 0x417D1565, 0x437A3357, id="3001"),
    ],
)
def test_golden_bits_of_the_fixed_order(n: int, total: int, norm: int, sequential: int) -> None:
    x = hashed(n)
    assert bits(fixed_tree_sum_of_squares(x)) == total
    assert bits(fixed_tree_norm(x)) == norm
    assert bits(sequential_sum_of_squares(x)) == sequential


def test_golden_decimals() -> None:
    assert float(fixed_tree_sum_of_squares(hashed(1000))) == pytest.approx(83.35037, abs=5e-6)
    assert float(fixed_tree_norm(hashed(1000))) == pytest.approx(9.1296425, abs=5e-7)


def test_a_long_sum_in_sequence_is_a_percent_off_and_the_tree_is_not() -> None:
    """2^20 copies of the float32 next to 0.1, squares and the numbers themselves."""
    x = np.full(2**20, 0.1, dtype=np.float32)
    square = Fraction(float(np.float32(x[0] * x[0])))
    exact = float(2**20 * Fraction(float(x[0])) ** 2)
    assert float(sequential_sum_of_squares(x)) / exact - 1 == pytest.approx(-1.4e-2, abs=5e-4)
    assert float(fixed_tree_sum_of_squares(x)) / exact - 1 == pytest.approx(-2.1e-5, abs=5e-7)
    assert abs(float(2**20 * square) / exact - 1) < 2 * U
    plain = float(2**20 * Fraction(float(x[0])))
    in_turn = float(np.cumsum(x, dtype=np.float32)[-1])
    assert in_turn / plain - 1 == pytest.approx(9.9e-3, abs=5e-5)
    assert float(fixed_tree_sum(x)) / plain - 1 == pytest.approx(3.9e-5, abs=5e-7)


@PROFILE
@given(x=hnp.arrays(np.float32, st.integers(0, 900), elements=st.floats(-100, 100, width=32)))
def test_the_tree_is_within_its_error_note(x: np.ndarray) -> None:
    exact = sum(Fraction(float(v)) ** 2 for v in x)
    index = -(-x.size // 256) + 8 + 1
    gamma = index * U / (1 - index * U)
    tiny = x.size * 2.0**-149  # squares below the normal numbers lose bits of their own
    assert abs(Fraction(float(fixed_tree_sum_of_squares(x))) - exact) <= gamma * exact + tiny


def test_overflow_is_infinite_and_not_rescaled() -> None:
    assert np.isposinf(fixed_tree_norm(np.array([2e19], dtype=np.float32)))
    assert np.isnan(fixed_tree_norm(np.array([1.0, np.nan], dtype=np.float32)))


# ---- eight norms


def test_eight_norms_against_numpy_and_their_layout() -> None:
    g = np.random.default_rng(1).standard_normal((4, 40))
    norms = grad_norms(g, np.array([[3.0, 20.0], [20.0, 33.0]]))
    for c in range(4):
        assert norms[2 * c] == pytest.approx(np.linalg.norm(g[c, 3:20]), rel=1e-14)
        assert norms[2 * c + 1] == pytest.approx(np.linalg.norm(g[c, 20:33]), rel=1e-14)


@PROFILE
@given(
    g=hnp.arrays(np.float64, (4, 12), elements=numbers),
    component=st.integers(0, 3),
    scale=st.sampled_from([0.0, 0.25, 2.0, 8.0]),
)
def test_scaling_a_component_scales_its_two_floats_alone(
    g: np.ndarray, component: int, scale: float
) -> None:
    slices = np.array([[0.0, 5.0], [5.0, 11.0]])
    before = grad_norms(g, slices)
    g = g.copy()
    g[component] *= scale
    want = before.copy()
    want[2 * component : 2 * component + 2] *= scale
    np.testing.assert_allclose(grad_norms(g, slices), want, rtol=1e-12, atol=1e-150)
    assert (before >= 0.0).all()


def test_the_fixed_order_agrees_with_the_equation_on_slices() -> None:
    g = np.stack([hashed(3001) * np.float32(c + 1) for c in range(4)])
    slices = np.array([[10.0, 1010.0], [1010.0, 3001.0]])
    norms = grad_norms(g.astype(np.float64), slices)
    for c in range(4):
        for s, (a, b) in enumerate(slices.astype(int)):
            assert float(fixed_tree_norm(g[c, a:b])) == pytest.approx(norms[2 * c + s], rel=1e-6)


# ---- reading back

PARAMS, PAD, PLACES = 40, 8, ((3, 20), (20, 33))


def injected(pad: int = PAD) -> tuple[GradientBuffer, tuple[float, ...]]:
    """A buffer with a known gradient: component c is c + 1 everywhere, and its norms."""
    buffer = GradientBuffer(PARAMS, pad)
    buffer.data[:, :PARAMS] = np.arange(1, 5, dtype=np.float32)[:, np.newaxis]
    wide = tuple((c + 1) * (b - a) ** 0.5 for c in range(4) for a, b in PLACES)
    return buffer, wide


def test_the_end_of_an_epoch_reads_what_the_step_left() -> None:
    buffer, want = injected()
    got = end_of_epoch(buffer, Readback(PARAMS + PAD), PLACES, buffer.replay)
    assert isinstance(got, Norms)
    np.testing.assert_allclose(got.values, want, rtol=1e-6)
    assert (buffer.data == 0.0).all()  # the evaluation did replay


def test_a_size_mismatch_is_told_and_never_zero() -> None:
    """Failure A: the readback without the slack of the tiles."""
    buffer, _ = injected()
    got = end_of_epoch(buffer, Readback(PARAMS), PLACES, buffer.replay)
    assert isinstance(got, Unavailable)
    assert "40 floats" in got.reason
    assert "48" in got.reason


def test_failure_a_is_told_apart_by_its_zeros() -> None:
    buffer, want = injected()
    got = coerced_to_zero(buffer, Readback(PARAMS), PLACES)
    assert got.values == (0.0,) * 8
    assert not np.allclose(got.values, want)
    assert suspicious([got, got], [0.7, 0.6])
    right = coerced_to_zero(buffer, Readback(PARAMS + PAD), PLACES)
    np.testing.assert_allclose(right.values, want, rtol=1e-6)


def test_failure_b_reads_zeros_where_a_gradient_was_injected() -> None:
    """The ordering test: inject, run the boundary, expect the injected norms."""
    buffer, want = injected()
    got = read_after_wipe(buffer, Readback(PARAMS + PAD), PLACES, buffer.replay)
    assert isinstance(got, Norms)
    assert got.values == (0.0,) * 8
    assert not np.allclose(got.values, want)
    assert suspicious([got, got], [0.7, 0.6])


def test_a_snapshot_is_read_once_and_a_failed_one_leaves_none() -> None:
    buffer, _ = injected()
    readback = Readback(PARAMS + PAD)
    assert readback.snapshot(buffer) is None
    assert isinstance(readback.norms(PLACES), Norms)
    assert isinstance(readback.norms(PLACES), Unavailable)
    assert readback.snapshot(buffer) is None
    assert readback.snapshot(GradientBuffer(PARAMS, 0)) is not None
    assert isinstance(readback.norms(PLACES), Unavailable)


def test_zeros_are_suspicious_twice_running_and_beside_a_loss() -> None:
    zero, one, none = Norms((0.0,) * 8), Norms((1.0,) * 8), Unavailable("no snapshot")
    assert suspicious([one, zero, zero], [1.0, 1.0, 1.0])
    assert not suspicious([zero, one, zero], [1.0, 1.0, 1.0])
    assert not suspicious([zero, zero], [0.0, 0.0])
    assert not suspicious([none, none], [1.0, 1.0])


def test_the_ratio_is_mag_over_dir_or_nothing() -> None:
    norms = Norms((50.0, 0.5, 1.0, 0.0, np.inf, 1.0, 0.0, 2.0))
    assert [ratio(norms, c) for c in range(4)] == [100.0, None, None, 0.0]
