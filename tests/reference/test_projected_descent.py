"""Eq. 27-29 against the table of readings, torch autograd and its exact properties."""

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
from trueup.reference.nl import projected_descent

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
READINGS = projected_descent.__equation__.readings  # type: ignore[attr-defined]
HALF, FULL = "printed_objective_half", "printed_objective_full"

WITNESS_W = [[1, 2, -1], [0, 1, 1]]
WITNESS_X = [1, -1, 2]
WITNESS_U = [1, -2]

weights = arrays(np.float64, (3, 4), elements=st.floats(-4.0, 4.0))
inputs = arrays(np.float64, 4, elements=st.floats(-3.0, 3.0)).filter(lambda x: x @ x > 1e-2)
surprises = arrays(np.float64, 3, elements=st.floats(-4.0, 4.0))
rates = st.floats(1e-3, 1.0)


def exact(rows: Any) -> np.ndarray:
    """Read fractions, decimal strings and integers as exact rationals."""
    read = np.vectorize(lambda entry: Fraction(str(entry)), otypes=[object])
    return np.asarray(read(np.array(rows)))


def fractions(text: str) -> list[Fraction]:
    return [Fraction(entry) for entry in text.split()]


def on_witness(reading: str, u: Any = WITNESS_U) -> list[Fraction]:
    W, x, eta = exact(WITNESS_W), exact(WITNESS_X), Fraction(1, 10)
    result: Any = projected_descent(W, x, exact(u), eta, reading=reading)  # type: ignore[arg-type]
    return list(result.flat)


@pytest.mark.parametrize(
    ("reading", "row_major"),
    [
        pytest.param("derived", "1.2 1.8 -.6 .1 .9 1.2", id="derived"),
        pytest.param("literal", "3.9 -.9 4.8 -.8 1.8 -.6", id="literal"),
        pytest.param("normalized", "1.4 1.6 -.2 1/30 29/30 16/15", id="normalized"),
        pytest.param("prox", "1.125 1.875 -.75 .0625 .9375 1.125", id="prox"),
        pytest.param("prox_unit", "13/11 20/11 -7/11 1/11 10/11 13/11", id="prox_unit"),
        pytest.param(HALF, "1.4 1.6 -.2 -.3 1.3 .4", id="half"),
        pytest.param(FULL, "1.8 1.2 .6 -.6 1.6 -.2", id="full"),
        pytest.param("plain_gd", ".9 2.1 -1.2 .2 .8 1.4", id="plain_gd"),
    ],
)
def test_e18_table_in_exact_rationals(reading: str, row_major: str) -> None:
    assert on_witness(reading) == fractions(row_major)


def test_e20_order_of_projection_and_gradient() -> None:
    """Projecting last erases the gradient; projecting the gradient leaves no update at all."""
    assert on_witness("grad_then_project") == fractions("1.5 1.5 0 -1/6 7/6 2/3")
    assert on_witness("grad_then_project", [7, 7]) == on_witness("grad_then_project")
    assert on_witness("project_gradient") == list(exact(WITNESS_W).flat)
    # project_then_grad: after the projection W x = 0, so the surprise is -v.
    assert on_witness("normalized", [4, -3]) == fractions("1.1 1.9 -.8 2/15 13/15 19/15")


def task(W: torch.Tensor, x: torch.Tensor, u: torch.Tensor, reading: str) -> torch.Tensor:
    sign = -1.0 if reading in (HALF, FULL) else 1.0
    return (1.0 if reading == FULL else 0.5) * ((W @ x + sign * u) ** 2).sum()


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4), (1, 4), (4, 1)])
@pytest.mark.parametrize("reading", ["derived", HALF, FULL])
def test_one_step_on_the_objective_by_autograd(shape: tuple[int, int], reading: str) -> None:
    """Third source: torch differentiates |W x + u|^2, halved or not."""
    rng = np.random.default_rng(1)
    W, x, u = (rng.standard_normal(s) for s in (shape, shape[1], shape[0]))
    leaf = torch.tensor(W, requires_grad=True)
    task(leaf, torch.tensor(x), torch.tensor(u), reading).backward()
    assert leaf.grad is not None
    got = projected_descent(W, x, u, 0.1, reading=reading)
    np.testing.assert_allclose(got, W - 0.1 * leaf.grad.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(2, 3), (7, 4), (1, 4), (4, 1)])
def test_prox_is_stationary_for_its_own_objective_by_autograd(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    W, x, u = (rng.standard_normal(s) for s in (shape, shape[1], shape[0]))
    eta = 0.3
    leaf = torch.tensor(projected_descent(W, x, u, eta, reading="prox"), requires_grad=True)
    inner = task(leaf, torch.tensor(x), torch.tensor(u), "prox")
    (inner + ((leaf - torch.tensor(W)) ** 2).sum() / (2.0 * eta)).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy(), 0.0, atol=1e-13)
    unit = projected_descent(W, x, u, eta, reading="prox_unit")
    assert np.max(np.abs(unit - leaf.detach().numpy())) > 1e-3


@PROFILE
@given(W=weights, x=inputs, u=surprises, eta=rates)
def test_q28_1_nothing_changes_orthogonal_to_x(W: Any, x: Any, u: Any, eta: float) -> None:
    z = np.array([x[1], -x[0], x[3], -x[2]])
    for reading in READINGS:
        got = projected_descent(W, x, u, eta, reading=reading)
        np.testing.assert_allclose(got @ z, W @ z, rtol=1e-10, atol=1e-10)


@PROFILE
@given(W=weights, x=inputs, u=surprises, eta=rates)
def test_outputs_along_x(W: Any, x: Any, u: Any, eta: float) -> None:
    """The card gives W' x for each reading in terms of n = |x|^2."""
    n, y = x @ x, W @ x
    expected = {
        "derived": (1 - eta * n) * y - eta * n * u,
        "literal": (1 - n) * y - eta * n * u,
        "normalized": -eta * n * u,
        "prox": (y - eta * n * u) / (1 + eta * n),
        "prox_unit": ((1 + eta - eta * n) * y - eta * n * u) / (1 + eta),
        HALF: (1 - eta * n) * y + eta * n * u,
        FULL: (1 - 2 * eta * n) * y + 2 * eta * n * u,
    }
    assert set(expected) == set(READINGS)
    for reading, want in expected.items():
        got = projected_descent(W, x, u, eta, reading=reading) @ x
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * (1 + n * n))


@PROFILE
@given(W=weights, x=inputs, u=surprises, eta=rates)
def test_q28_2_both_printed_forms_agree(W: Any, x: Any, u: Any, eta: float) -> None:
    """Eq. 28 forms W (I - eta x x^T) - eta u x^T; Eq. 29 descends on the residual."""
    by_matrix = W @ (np.eye(4) - eta * np.outer(x, x)) - eta * np.outer(u, x)
    np.testing.assert_allclose(projected_descent(W, x, u, eta), by_matrix, rtol=1e-11, atol=1e-10)


@PROFILE
@given(W=weights, x=inputs, u=surprises, eta=rates)
def test_q28_3_where_readings_coincide(W: Any, x: Any, u: Any, eta: float) -> None:
    unit, n = x / np.linalg.norm(x), float(x @ x)
    outside = W - np.outer(W @ unit, unit)  # W x = 0 up to rounding
    for case, one, two in (
        ((W, x, u, 1.0), "derived", "literal"),
        ((W, x, u, 1.0 / n), "derived", "normalized"),
        ((W, unit, u, eta), "literal", "normalized"),
        ((W, unit, u, eta), "prox", "prox_unit"),
        ((W, x, -(W @ x), eta), "derived", "prox"),
        ((outside, x, u, eta), "derived", "normalized"),
        ((outside, x, u, eta), "literal", "plain_gd"),
    ):
        results = [projected_descent(*case, reading=reading) for reading in (one, two)]
        np.testing.assert_allclose(results[0], results[1], rtol=1e-9, atol=1e-8 * (1 + n))


@PROFILE
@given(x=inputs)
def test_q28_4_algebra_of_the_projector(x: Any) -> None:
    nothing, n = np.zeros(4), float(x @ x)
    pi = projected_descent(np.eye(4), x, nothing, 0.1, reading="normalized")
    np.testing.assert_allclose(pi, pi.T, atol=1e-13)
    np.testing.assert_allclose(pi @ pi, pi, atol=1e-12)
    np.testing.assert_allclose(pi @ x, 0.0, atol=1e-12)
    assert np.trace(pi) == pytest.approx(3.0)
    e = projected_descent(np.eye(4), x, nothing, 0.1, reading="literal")
    squared = np.eye(4) - (2.0 - n) * np.outer(x, x)
    np.testing.assert_allclose(e @ e, squared, rtol=1e-10, atol=1e-10 * (1 + n * n))
    np.testing.assert_allclose(e @ x, (1.0 - n) * x, rtol=1e-10, atol=1e-10 * (1 + n * n))


@PROFILE
@given(W=weights, x=inputs, u=surprises)
def test_q28_5_prox_at_a_huge_rate_is_a_kaczmarz_projection(W: Any, x: Any, u: Any) -> None:
    n = x @ x
    got = projected_descent(W, x, u, 1e14, reading="prox")
    np.testing.assert_allclose(got @ x, -u, atol=1e-9)
    kaczmarz = W - np.outer(W @ x, x) / n - np.outer(u, x) / n
    np.testing.assert_allclose(got, kaczmarz, atol=1e-9)


def repeat(reading: str, eta: float, n: float, target: float | None, steps: int = 3000) -> float:
    """Repeat one sample with |x|^2 = n; u = W x - target each time, or 0 without a target."""
    W, x = np.array([[1.0, 2.0]]), np.sqrt(n) * np.array([0.6, 0.8])
    for _ in range(steps):
        u = np.zeros(1) if target is None else W @ x - target
        W = projected_descent(W, x, u, eta, reading=reading)
        if abs(W[0, 0]) > 1e6:
            return np.inf
    return float((W @ x)[0])


@pytest.mark.parametrize(
    ("reading", "eta", "n", "target", "stable"),
    [
        pytest.param("derived", 0.1, 19.0, None, True, id="derived-decay-below"),
        pytest.param("derived", 0.1, 21.0, None, False, id="derived-decay-above"),
        pytest.param("literal", 0.1, 1.9, None, True, id="literal-decay-below"),
        pytest.param("literal", 1e-6, 2.1, None, False, id="literal-decay-above"),
        pytest.param("prox", 9.0, 50.0, None, True, id="prox-decay"),
        pytest.param("normalized", 9.0, 50.0, None, True, id="normalized-decay"),
        pytest.param("derived", 0.1, 9.5, 1.0, True, id="derived-loop-below"),
        pytest.param("derived", 0.1, 10.5, 1.0, False, id="derived-loop-above"),
        pytest.param("literal", 0.1, 1.8, 1.0, True, id="literal-loop-below"),
        pytest.param("literal", 0.1, 1.85, 1.0, False, id="literal-loop-above"),
        pytest.param("normalized", 0.1, 9.5, 1.0, True, id="normalized-loop-below"),
        pytest.param("normalized", 0.1, 10.5, 1.0, False, id="normalized-loop-above"),
        pytest.param("prox", 9.0, 50.0, 1.0, True, id="prox-loop"),
    ],
)
def test_q28_6_stability(
    reading: str, eta: float, n: float, target: float | None, stable: bool
) -> None:
    assert bool(np.isfinite(repeat(reading, eta, n, target))) is stable


@pytest.mark.parametrize(
    ("reading", "fraction"),
    [
        pytest.param("derived", lambda eta, n: 0.5, id="derived"),
        pytest.param("prox", lambda eta, n: 0.5, id="prox"),
        pytest.param("prox_unit", lambda eta, n: 0.5, id="prox_unit"),
        pytest.param("literal", lambda eta, n: eta / (1 + eta), id="literal"),
        pytest.param("normalized", lambda eta, n: eta * n / (1 + eta * n), id="normalized"),
        pytest.param("plain_gd", lambda eta, n: 1.0, id="plain_gd"),
        pytest.param("scalar_decay", lambda eta, n: n / (1 + n), id="scalar_decay"),
    ],
)
def test_q28_7_and_e21_fixed_point_of_a_repeated_sample(reading: str, fraction: Any) -> None:
    """Not v: the decay and the error term both subtract W x."""
    eta, n, v = 0.2, 1.5, 3.0
    assert repeat(reading, eta, n, v) == pytest.approx(fraction(eta, n) * v, rel=1e-10)


def test_e19_literal_explodes_where_normalized_projects_once() -> None:
    W: Any = np.array([[1.0, 1.0]])
    x, u, path = np.array([3.0, 0.0]), np.zeros(1), []
    for _ in range(3):
        W = projected_descent(W, x, u, 0.1, reading="literal")
        path.append(W[0].tolist())
    assert path == [[-8.0, 1.0], [64.0, 1.0], [-512.0, 1.0]]
    W = np.array([[1.0, 1.0]])
    for _ in range(2):
        W = projected_descent(W, x, u, 0.1, reading="normalized")
        np.testing.assert_allclose(W, [[0.0, 1.0]], atol=1e-15)


def test_edges_zero_input_and_zero_surprise() -> None:
    W, u, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, -1.0]), np.array([1.0, 2.0])
    for reading in READINGS:
        still = projected_descent(W, np.zeros(2), u, 0.1, reading=reading)
        np.testing.assert_array_equal(still, W)
        moved = projected_descent(W, x, np.zeros(2), 0.1, reading=reading)
        assert np.max(np.abs(moved - W)) > 0.1, reading
    resting = projected_descent(W, x, np.zeros(2), 0.1, reading="plain_gd")
    np.testing.assert_array_equal(resting, W)


def test_left_decay_needs_a_square_matrix() -> None:
    with pytest.raises(NotApplicable, match="d_out = d_in, got 2 and 3"):
        projected_descent(np.ones((2, 3)), np.ones(3), np.ones(2), 0.1, reading="left_decay")


@pytest.mark.parametrize(
    ("reading", "u", "moves"),
    [
        pytest.param("project_gradient", [1.0, -2.0], False, id="U5-single-sample-no-update"),
        pytest.param("lead_term", [0.0, 0.0], False, id="U25-no-surprise-no-update"),
        pytest.param("plain_gd", [0.0, 0.0], False, id="U16-no-surprise-no-update"),
        pytest.param("derived", [0.0, 0.0], True, id="the-equation-decays"),
    ],
)
def test_what_kills_the_unfaithful_optimisers(reading: str, u: Any, moves: bool) -> None:
    """W x is not 0, so Eq. 28 must move W even where the surprise is 0."""
    W, x = np.array(WITNESS_W, dtype=float), np.array(WITNESS_X, dtype=float)
    got = projected_descent(W, x, np.array(u), 0.1, reading=reading)
    assert bool(np.max(np.abs(got - W)) > 1e-12) is moves


def test_u19_left_factor_acts_on_the_other_side() -> None:
    """(I - eta x x^T) W needs d_out = d_in, and there it decays rows instead of inputs."""
    W, x = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    left = projected_descent(W, x, np.zeros(2), 0.1, reading="left_decay")
    np.testing.assert_allclose(left, [[0.9, 0.9], [0.0, 1.0]])
    np.testing.assert_allclose(projected_descent(W, x, np.zeros(2), 0.1), [[0.9, 1.0], [0.0, 1.0]])
