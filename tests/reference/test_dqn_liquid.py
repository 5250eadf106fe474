"""Liquid time constants: golden numbers, derivatives, stability, modulation, fire-rate audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import liquid_mod, liquid_step, liquid_step_backward
from trueup.reference.dqn.liquid_time_constant import (
    BACKWARD_WRONG,
    MOD_WRONG,
    WRONG,
    fire_rate_verdict,
)

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
numbers = st.floats(-4.0, 4.0)
GOLDEN = {"x": 0.4, "f": 0.7, "A": 1.3, "tau": 2.0}


def units(**values: float) -> dict[str, Any]:
    return {name: np.array([value]) for name, value in values.items()}


def test_golden() -> None:
    after = liquid_step(**units(**GOLDEN), dt=0.1)
    assert after[0] == pytest.approx(0.438392857, abs=6e-10)
    mod, tau_sys, _ = liquid_mod(np.array([0.7]), np.array([2.0]), np.array([0.1]))
    assert tau_sys[0] == pytest.approx(0.833333, abs=6e-7)
    assert mod[0] == pytest.approx(tau_sys[0] / 2.0)
    resting = GOLDEN | {"x": 0.758333333333333333}
    assert liquid_step(**units(**resting), dt=0.1)[0] == pytest.approx(resting["x"], rel=1e-12)


def test_torch_autograd() -> None:
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {"x": rng.standard_normal(9), "f": rng.uniform(0, 2, 9)}
    values |= {"A": rng.standard_normal(9), "tau": rng.uniform(0.2, 5, 9)}
    d_next, dt = rng.standard_normal(9), 0.3
    leaf = {name: torch.tensor(v, requires_grad=True) for name, v in values.items()}
    den = 1 + dt * (1 / leaf["tau"] + leaf["f"])
    ((leaf["x"] + dt * leaf["f"] * leaf["A"]) / den).backward(torch.tensor(d_next))
    got = liquid_step_backward(d_next, **values, dt=dt)
    for name, mine in zip(("x", "f", "A", "tau"), got, strict=True):
        grad = leaf[name].grad
        assert grad is not None
        np.testing.assert_allclose(mine, grad.numpy(), rtol=1e-11, atol=1e-13, err_msg=name)


def test_complex_step() -> None:
    values = units(**GOLDEN)
    got = liquid_step_backward(np.ones(1), **values, dt=0.1)
    for name, mine in zip(values, got, strict=True):
        moved: Any = values | {name: values[name] + 1e-30j}
        want = liquid_step(**moved, dt=0.1).imag / 1e-30
        np.testing.assert_allclose(mine, want, rtol=1e-13, err_msg=name)


@PROFILE
@given(x=numbers, A=numbers, f=st.floats(0, 5), tau=st.floats(0.1, 10), dt=st.floats(0, 1e4))
def test_the_step_stays_between_x_and_its_fixed_point(
    x: float, A: float, f: float, tau: float, dt: float
) -> None:
    """Stable for any dt; the same again from where it arrived."""
    goal = f * A / (1 / tau + f)
    after = liquid_step(**units(x=x, f=f, A=A, tau=tau), dt=dt)[0]
    slack = 1e-12 * (1 + abs(x) + abs(goal))
    assert min(x, goal) - slack <= after <= max(x, goal) + slack


@PROFILE
@given(x=numbers, A=numbers, f=st.floats(0, 5), tau=st.floats(0.1, 10))
def test_no_time_moves_nothing_and_endless_time_arrives(
    x: float, A: float, f: float, tau: float
) -> None:
    values = units(x=x, f=f, A=A, tau=tau)
    assert liquid_step(**values, dt=0.0)[0] == x
    goal = f * A / (1 / tau + f)
    assert liquid_step(**values, dt=1e12)[0] == pytest.approx(goal, rel=1e-6, abs=1e-6)


def test_an_explicit_step_explodes_where_the_fused_one_does_not() -> None:
    """dt = 10 is far beyond 2 tau_sys = 1.67."""
    x = {reading: np.array([0.4]) for reading in ("fused", "explicit_euler")}
    rest = {k: np.array([v]) for k, v in GOLDEN.items() if k != "x"}
    for _ in range(20):
        x = {r: liquid_step(v, **rest, dt=10.0, reading=r) for r, v in x.items()}
    assert abs(x["fused"][0] - 0.758333333) < 1e-6
    assert abs(x["explicit_euler"][0]) > 1e10


def test_a_unit_with_several_inputs_is_one_unit() -> None:
    """tau = C / leak, f = sum w / C, A = sum(w E) / sum w: the published form by currents."""
    rng = np.random.default_rng(1)
    C, leak, w, E, x, dt = 1.7, 0.6, rng.uniform(0.1, 1, 5), rng.standard_normal(5), 0.3, 0.05
    want = (C / dt * x + (w * E).sum()) / (C / dt + leak + w.sum())
    total = w.sum()
    got = liquid_step(**units(x=x, f=total / C, A=(w * E).sum() / total, tau=C / leak), dt=dt)
    assert got[0] == pytest.approx(want, rel=1e-13)


@PROFILE
@given(f=st.floats(0, 5), tau=st.floats(0.1, 10), rate=st.floats(0.01, 0.5))
def test_the_two_readings_of_the_modulation_act_in_opposite_directions(
    f: float, tau: float, rate: float
) -> None:
    values = [np.array([v]) for v in (f, tau, rate)]
    mod, shorter, kept = liquid_mod(*values, reading="on_tau")
    same, long, slower = liquid_mod(*values, reading="on_rate")
    assert 0 < mod[0] <= 1
    assert mod == same
    assert (shorter[0] <= tau, kept[0], long[0]) == (True, rate, tau)
    assert slower[0] <= rate


@pytest.mark.parametrize("reading", [*WRONG, *BACKWARD_WRONG, *MOD_WRONG])
def test_mutants_are_far_away(reading: str) -> None:
    values = units(**GOLDEN)
    if reading in WRONG:
        right: Any = (liquid_step(**values, dt=0.5),)
        wrong: Any = (liquid_step(**values, dt=0.5, reading=reading),)
    elif reading in BACKWARD_WRONG:
        right = liquid_step_backward(np.ones(1), **values, dt=0.5)
        wrong = liquid_step_backward(np.ones(1), **values, dt=0.5, reading=reading)
    else:
        three = [np.array([v]) for v in (0.7, 2.0, 0.1)]
        right, wrong = liquid_mod(*three), liquid_mod(*three, reading=reading)
    assert max(np.abs(a - b).max() for a, b in zip(right, wrong, strict=True)) > 1e-3


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        pytest.param([0.1, 0.02], "WIRED", id="fires-in-every-fold"),
        pytest.param([0.1, 0.0], "DELETE-OR-FIX", id="silent-in-one-fold"),
        pytest.param([], "DELETE-OR-FIX", id="no-fold"),
        pytest.param([float("nan")], "DELETE-OR-FIX", id="not-a-number"),
    ],
)
def test_fire_rate_audit(rates: list[float], verdict: str) -> None:
    assert fire_rate_verdict(rates) == verdict
