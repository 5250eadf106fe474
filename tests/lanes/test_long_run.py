"""Averages over thousands of steps: one-step bounds hold each step, and a bias is all that grows.

Three roundings a step leave a relative bias of at most 3 u / alpha, and a float32 average stalls
in a dead band before it reaches what it follows. So a right kernel is never held to the float64
average at 1e-6, and a wrong rate is still found by far.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import trueup.kernels
from trueup.oracle.backends.base import Buffer, Launch, RunOptions, Source
from trueup.oracle.backends.host import HostBackend

ISV = Path(trueup.kernels.__file__).resolve().parent / "isv"
FAST, SLOW = float(np.float32(0.1)), float(np.float32(0.001))
UNIT = 2.0**-24
F32 = np.dtype(np.float32)


@cache
def kernel() -> object:
    source = Source(ISV / "grad_norm_emas.cu", "cu")
    return HostBackend().load(source, ("grad_norm_emas",))


def after(steps: int, obs: float, start: float) -> tuple[float, float]:
    """The two averages of the shipped kernel after so many launches with one observation."""
    launch = Launch("grad_norm_emas", (1, 1, 1), (1, 1, 1), 0, ("obs", "fast", "slow"))
    buffers = [
        Buffer("obs", "in", F32, (1,), np.full(1, obs, F32)),
        Buffer("fast", "inout", F32, (1,), np.full(1, start, F32)),
        Buffer("slow", "inout", F32, (1,), np.full(1, start, F32)),
    ]
    result = kernel().run([launch] * steps, buffers, RunOptions(time_limit=60.0))  # type: ignore[attr-defined]
    assert not result.faults
    return float(result.buffers["fast"][0]), float(result.buffers["slow"][0])


def exact(steps: int, obs: float, start: float, alpha: float) -> float:
    """The closed form obs + (1 - alpha)^t (start - obs)."""
    return obs + (1.0 - alpha) ** steps * (start - obs)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("obs", [1.3, 1.9999])
def test_the_bias_stays_within_three_roundings_over_alpha(obs: float, factor: float) -> None:
    obs, start = float(np.float32(obs)), float(np.float32(obs * factor))
    steps = 6_000
    for got, alpha in zip(after(steps, obs, start), (FAST, SLOW), strict=True):
        want = exact(steps, obs, start, alpha)
        assert abs(got - want) <= 3 * UNIT / alpha * max(obs, start)


def test_the_slow_average_stalls_before_it_arrives() -> None:
    """From 1 towards 1.00005 at 0.001: float64 is within 1e-8 of it, float32 stops at 1.00003."""
    obs = float(np.float32(1.00005))
    steps = 12_000
    assert exact(steps, obs, 1.0, SLOW) == pytest.approx(obs, abs=1e-8)
    _, slow = after(steps, obs, 1.0)
    assert slow == after(50, obs, slow)[1]  # it moves no more
    assert 1e-6 < abs(slow - obs) <= 3 * UNIT / SLOW


def test_a_wrong_rate_is_far_outside_the_bias() -> None:
    steps, obs, start = 500, 1.0, 2.0
    _, slow = after(steps, obs, start)
    wrong = exact(steps, obs, start, 0.0011)
    assert abs(slow - wrong) > 100 * 3 * UNIT / SLOW
    assert abs(slow - exact(steps, obs, start, SLOW)) <= 3 * UNIT / SLOW * start
