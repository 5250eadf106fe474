"""Eq. 21-22 against the table of readings, torch autograd and its exact properties."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import NotApplicable
from trueup.reference.nl import delta_momentum, delta_momentum_rank1, momentum

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
READINGS = delta_momentum.__equation__.readings  # type: ignore[attr-defined]
RECTANGULAR = tuple(reading for reading in READINGS if reading != "literal_left")
ALPHA, ETA = 0.9, 0.1
HALF, FULL = "printed_objective_half", "printed_objective_full"


def exact(rows: Any) -> np.ndarray:
    """Read decimal strings and integers as exact rationals."""
    read = np.vectorize(lambda entry: Fraction(str(entry)), otypes=[object])
    return np.asarray(read(np.array(rows)))


def matrix(shape: tuple[int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize(
    ("reading", "row_major"),
    [
        pytest.param("derived", ".3 1.4 -.2 .7", id="derived"),
        pytest.param("literal_right", "-3.3 -1.3 -1.1 -.2", id="literal_right"),
        pytest.param("literal_left", "-1.3 -3.3 -1.1 -2.2", id="literal_left"),
        pytest.param("left_gg", ".6 1.4 -.2 .4", id="left_gg"),
        pytest.param("scalar", ".4 1.1 -.1 .5", id="scalar"),
        pytest.param("flat_outer", "-1.3 1.7 -2.1 -1.2", id="flat_outer"),
        pytest.param(HALF, ".7 1.6 0 .9", id="half"),
        pytest.param(FULL, ".5 1.4 0 .9", id="full"),
        pytest.param("p_transposed", ".4 1.5 -.3 .7", id="p_transposed"),
        pytest.param("g_right_p", ".4 1.4 -.2 .6", id="g_right_p"),
        pytest.param("flat_outer_eta", ".5 1.7 -.3 .6", id="flat_outer_eta"),
    ],
)
def test_e14_table_in_exact_rationals(reading: str, row_major: str) -> None:
    """One square witness separates every reading, and both misplaced preconditioners."""
    m, g, P = exact([[1, 2], [0, 1]]), exact([[1, 0], [1, 1]]), exact([[1, 1], [0, 1]])
    alpha, eta = Fraction(9, 10), Fraction(1, 10)
    got: Any = delta_momentum(m, g, alpha, eta, P, reading=reading)  # type: ignore[arg-type]
    assert list(got.flat) == [Fraction(want) for want in row_major.split()]


def test_e13_preconditioner_multiplies_from_the_left() -> None:
    P, g = exact([[1, 1], [0, 1]]), exact([[1, -1, 2], [-2, 2, -4]])
    rest, alpha, eta = exact(np.zeros((2, 3), dtype=int)), Fraction(9, 10), Fraction(1, 10)
    got: Any = delta_momentum(rest, g, alpha, eta, P)  # type: ignore[arg-type]
    assert (got == exact([[".1", "-.1", ".2"], [".2", "-.2", ".4"]])).all()
    bug: Any = delta_momentum(rest, g, alpha, eta, P, reading="p_transposed")  # type: ignore[arg-type]
    assert (bug == exact([["-.1", ".1", "-.2"], [".1", "-.1", ".2"]])).all()


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4), (1, 4), (4, 1)])
@pytest.mark.parametrize("reading", ["derived", "scalar", "left_gg", HALF, FULL])
def test_one_step_on_the_objective_by_autograd(shape: tuple[int, int], reading: str) -> None:
    """Third source: torch differentiates each reading's objective, decay added as in Q18.2."""
    m, g, P = matrix(shape, 1), matrix(shape, 2), matrix((shape[0], shape[0]), 3)
    leaf = torch.tensor(m, requires_grad=True)
    G, target = torch.tensor(g), torch.tensor(P)
    linear = (leaf @ G.T * target).sum()
    if reading == "derived":
        loss = 0.5 * ((leaf @ G.T + target) ** 2).sum()
    elif reading == "scalar":
        loss = 0.5 * (G * G).sum() * (leaf * leaf).sum() + linear
    elif reading == "left_gg":
        loss = 0.5 * ((leaf.T @ G) ** 2).sum() + linear
    else:
        loss = (0.5 if reading == HALF else 1.0) * ((leaf @ G.T - target) ** 2).sum()
    loss = loss + (1.0 - ALPHA) / (2.0 * ETA) * (leaf * leaf).sum()
    loss.backward()
    assert leaf.grad is not None
    got = delta_momentum(m, g, ALPHA, ETA, P, reading=reading)
    np.testing.assert_allclose(got, m - ETA * leaf.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3), (5, 5), (7, 4)])
@pytest.mark.parametrize("reading", RECTANGULAR)
def test_element_by_element_sums(shape: tuple[int, int], reading: str) -> None:
    """Third source: the table's rules with indices, Python loops over rationals."""
    rng = np.random.default_rng(7)
    rows, columns = range(shape[0]), range(shape[1])
    m, g = (exact(rng.integers(-3, 4, shape)) for _ in range(2))
    P = exact(rng.integers(-3, 4, (shape[0], shape[0])))
    alpha, eta = Fraction(3, 4), Fraction(1, 8)
    gram = [[sum(g[r, i] * g[r, j] for r in rows) for j in columns] for i in columns]
    outer = [[sum(g[i, c] * g[j, c] for c in columns) for j in rows] for i in rows]
    dot, norm = (sum(g[i, j] * o[i, j] for i in rows for j in columns) for o in (m, g))
    got: Any = delta_momentum(m, g, alpha, eta, P, reading=reading)  # type: ignore[arg-type]
    for i in rows:
        for j in columns:
            right = sum(m[i, k] * gram[k][j] for k in columns)
            left = sum(outer[i][k] * m[k, j] for k in rows)
            p_term = eta * sum(P[i, k] * g[k, j] for k in rows)
            want = {
                "derived": alpha * m[i, j] - eta * right - p_term,
                "literal_right": alpha * m[i, j] - right - p_term,
                "left_gg": alpha * m[i, j] - eta * left - p_term,
                "scalar": (alpha - eta * norm) * m[i, j] - p_term,
                "flat_outer": alpha * m[i, j] - dot * g[i, j] - p_term,
                HALF: alpha * m[i, j] - eta * right + p_term,
                FULL: alpha * m[i, j] - 2 * eta * right + 2 * p_term,
            }[reading]
            assert got[i, j] == want


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (7, 4)])
def test_q22_1_first_step_from_rest_is_preconditioned_momentum(shape: tuple[int, int]) -> None:
    g, P, W = matrix(shape, 1), matrix((shape[0], shape[0]), 2), matrix(shape, 3)
    rest = np.zeros(shape)
    want = momentum(rest, W, P @ g, ALPHA, ETA)
    got = delta_momentum(rest, g, ALPHA, ETA, P, W)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-13)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-13)


def two_steps(c: float, reading: str) -> np.ndarray:
    m: Any = np.zeros((3, 4))
    for seed in (1, 2):
        m = delta_momentum(m, c * matrix((3, 4), seed), ALPHA, ETA, reading=reading)
    return np.asarray(m)


def test_q22_2_quadratic_in_the_gradient() -> None:
    """Momentum without the quadratic term scales with g, and so does the row-mean variant."""
    for reading in ("no_delta", "row_mean"):
        np.testing.assert_allclose(two_steps(3.0, reading), 3.0 * two_steps(1.0, reading))
    assert np.max(np.abs(two_steps(3.0, "derived") - 3.0 * two_steps(1.0, "derived"))) > 0.1


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_q22_3_fixed_point_at_a_constant_gradient(alpha: float) -> None:
    g, P, m = 0.5 * matrix((3, 5), 1), matrix((3, 3), 2), np.zeros((3, 5))
    for _ in range(3000):
        m = np.asarray(delta_momentum(m, g, alpha, ETA, P))
    right = -ETA * P @ g @ np.linalg.inv((1 - alpha) * np.eye(5) + ETA * g.T @ g)
    left = -ETA * P @ np.linalg.inv((1 - alpha) * np.eye(3) + ETA * g @ g.T) @ g
    np.testing.assert_allclose(m, right, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(m, left, rtol=1e-10, atol=1e-12)


def test_q22_3_without_decay_the_memory_recalls_minus_p() -> None:
    g = np.linalg.qr(matrix((5, 3), 1))[0].T * np.array([[1.0], [1.5], [2.0]])
    P, m = matrix((3, 3), 2), np.zeros((3, 5))
    for _ in range(1000):
        m = np.asarray(delta_momentum(m, g, 1.0, ETA, P))
    np.testing.assert_allclose(m @ g.T, -P, atol=1e-12)
    np.testing.assert_allclose(m, -P @ np.linalg.pinv(g.T), atol=1e-12)


def test_q22_4_outside_the_row_space_only_alpha_acts() -> None:
    g, m, P = matrix((2, 5), 1), matrix((2, 5), 2), matrix((2, 2), 3)
    null = np.linalg.svd(g)[2][2:].T  # (5, 3), g @ null = 0
    got = np.asarray(delta_momentum(m, g, ALPHA, ETA, P))
    np.testing.assert_allclose(got @ null, ALPHA * (m @ null), atol=1e-13)
    for reading in ("scalar", "left_gg"):
        wrong = np.asarray(delta_momentum(m, g, ALPHA, ETA, P, reading=reading))
        assert np.max(np.abs(wrong @ null - ALPHA * (m @ null))) > 1e-2


def test_stability_bound_of_derived_and_divergence_of_the_missing_eta() -> None:
    g = np.diag([2.0, 1.0])
    for reading, eta, bounded in (
        ("derived", 0.45, True),  # eta sigma^2 = 1.8 < 1 + alpha
        ("derived", 0.5, False),  # 2.0
        ("literal_right", 1e-3, False),  # sigma^2 = 4 > 1 + alpha whatever the rate
    ):
        m: Any = np.ones((2, 2))
        for _ in range(400):
            m = delta_momentum(m, g, ALPHA, eta, reading=reading)
        assert bool(np.max(np.abs(m)) < 10.0) is bounded


@pytest.mark.parametrize(
    ("shape", "eta", "one", "two"),
    [
        pytest.param((1, 4), 0.1, "flat_outer", "literal_right", id="one-row-flat"),
        pytest.param((1, 4), 0.1, "scalar", "left_gg", id="one-row-scalar"),
        pytest.param((4, 1), 0.1, "scalar", "derived", id="one-column-scalar"),
        pytest.param((4, 1), 1.0, "scalar", "literal_right", id="one-column-unit-eta"),
        pytest.param((4, 1), 1.0, "flat_outer", "left_gg", id="one-column-flat"),
        pytest.param((3, 4), 1.0, "derived", "literal_right", id="unit-eta"),
    ],
)
def test_q22_5_readings_collapse_on_degenerate_inputs(
    shape: tuple[int, int], eta: float, one: str, two: str
) -> None:
    m, g, P = matrix(shape, 1), matrix(shape, 2), matrix((shape[0], shape[0]), 3)
    results = [delta_momentum(m, g, ALPHA, eta, P, reading=reading) for reading in (one, two)]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-12)


def test_q22_5_a_repeated_sample_from_rest_hides_readings_and_two_samples_show_them() -> None:
    first = np.outer([1.0, -2.0], [1.0, -1.0, 2.0])
    other = np.outer([0.5, 1.0], [1.0, 2.0, 0.0])
    for second, hidden in ((first, True), (other, False)):
        results = []
        for reading in ("derived", "scalar", "left_gg"):
            m: Any = np.zeros((2, 3))
            for g in (first, second):
                m = delta_momentum(m, g, ALPHA, ETA, reading=reading)
            results.append(m)
        for result in results[1:]:
            assert np.allclose(result, results[0]) is hidden


def test_u3_row_mean_golden() -> None:
    m, g = np.array([[0.5, -1, 0], [1, 1, -2]]), np.array([[1.0, 2, -3], [0, 1, 2]])
    got = delta_momentum(m, g, 0.9, 0.1, reading="row_mean")
    np.testing.assert_allclose(got, [[0.55, -0.7, -0.3], [0.91, 1.01, -1.59]], rtol=1e-13)


@pytest.mark.parametrize("reading", READINGS)
def test_rank_one_equals_the_full_equation_in_exact_rationals(reading: str) -> None:
    rng = np.random.default_rng(3)
    for shape in ((3, 3),) if reading == "literal_left" else ((2, 3), (4, 2), (1, 4), (4, 1)):
        m, W = (exact(rng.integers(-4, 5, shape)) for _ in range(2))
        u, x = exact(rng.integers(-4, 5, shape[0])), exact(rng.integers(-4, 5, shape[1]))
        alpha, eta = Fraction(9, 10), Fraction(1, 7)
        got: Any = delta_momentum_rank1(m, u, x, alpha, eta, W, reading=reading)  # type: ignore[arg-type]
        want: Any = delta_momentum(m, np.outer(u, x), alpha, eta, None, W, reading=reading)  # type: ignore[arg-type]
        assert (got[0] == want[0]).all()
        assert (got[1] == want[1]).all()


@PROFILE
@given(
    m=arrays(np.float64, (3, 4), elements=st.floats(-4.0, 4.0)),
    u=arrays(np.float64, 3, elements=st.floats(-2.0, 2.0)),
    x=arrays(np.float64, 4, elements=st.floats(-2.0, 2.0)),
    alpha=st.floats(0.0, 1.0),
    eta=st.floats(1e-3, 1.0),
)
def test_rank_one_touches_m_along_x_only(m: Any, u: Any, x: Any, alpha: float, eta: float) -> None:
    """Q22.4 for one sample: for z orthogonal to x, m' z = alpha m z."""
    z = np.array([x[1], -x[0], x[3], -x[2]])
    got = np.asarray(delta_momentum_rank1(m, u, x, alpha, eta))
    np.testing.assert_allclose(got @ z, alpha * (m @ z), rtol=1e-10, atol=1e-9)


def test_readings_that_need_a_shape_or_an_input_say_so() -> None:
    m, g = np.ones((2, 3)), np.ones((2, 3))
    for reading in ("literal_left", "p_transposed", "g_right_p", "ascent", "weights_from_old_m"):
        with pytest.raises(NotApplicable, match="expected"):
            delta_momentum(m, g, ALPHA, ETA, reading=reading)
    with pytest.raises(NotApplicable, match="d_out = d_in, got 2 and 3"):
        delta_momentum(m, g, ALPHA, ETA, np.eye(2), reading="g_right_p")


def test_weights_move_by_the_new_momentum() -> None:
    m, g, W = matrix((2, 3), 1), matrix((2, 3), 2), matrix((2, 3), 3)
    alone = np.asarray(delta_momentum(m, g, ALPHA, ETA))
    together = delta_momentum(m, g, ALPHA, ETA, None, W)
    np.testing.assert_array_equal(together[0], alone)
    np.testing.assert_array_equal(together[1], W + alone)
