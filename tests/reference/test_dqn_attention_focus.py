"""Attention focus: averages on the simplex, entropy, first observation, mutants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import attention_focus, attention_summary
from trueup.reference.dqn.attention_focus import ALPHA, EMA_WRONG, SUMMARY_WRONG

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
START = {7: np.array([0.1, 0.3, 0.1, 0.2, 0.2, 0.1, 0.9]), 3: np.array([0.3, 0.8, 0.9])}


def observation(seed: int, count: float, slots: int = 7) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "w": rng.dirichlet(np.full(6, 0.7), 8),
        "retention": rng.uniform(0.1, 0.9, 1),
        "ema": START[slots],
        "count": np.array([count]),
    }


def test_the_first_observation_is_taken_as_it_is() -> None:
    values = observation(0, 0.0)
    after, count = attention_focus(**values)
    np.testing.assert_allclose(after[:6], values["w"].mean(axis=0), rtol=1e-15)
    assert (after[6], count[0]) == (values["retention"][0], 1.0)


def test_later_observations_are_blended() -> None:
    values = observation(1, 4.0)
    after, count = attention_focus(**values)
    observed = np.append(values["w"].mean(axis=0), values["retention"])
    np.testing.assert_allclose(after, (1 - ALPHA) * START[7] + ALPHA * observed, rtol=1e-14)
    assert count[0] == 5.0
    assert np.float32(0.05) == ALPHA


@PROFILE
@given(seed=st.integers(0, 10_000), steps=st.integers(1, 30))
def test_six_averages_stay_on_the_simplex(seed: int, steps: int) -> None:
    ema, count = np.zeros(7), np.zeros(1)
    for step in range(steps):
        values = observation(seed + step, 0.0) | {"ema": ema, "count": count}
        ema, count = attention_focus(**values)
    assert ema[:6].sum() == pytest.approx(1.0, abs=1e-13)
    assert ((ema >= 0) & (ema <= 1)).all()
    assert count[0] == steps


@pytest.mark.parametrize(
    ("w", "largest", "entropy"),
    [
        pytest.param(np.full(6, 1 / 6), 1 / 6, 1.0, id="uniform"),
        pytest.param(np.eye(6)[2], 1.0, 0.0, id="one-hot"),
        pytest.param(np.array([0.5, 0.5, 0, 0, 0, 0]), 0.5, np.log(2) / np.log(6), id="two"),
    ],
)
def test_summary_of_known_weights(w: Any, largest: float, entropy: float) -> None:
    values = observation(2, 0.0, 3) | {"w": np.tile(w, (4, 1))}
    after, _ = attention_summary(**values)
    assert after[0] == pytest.approx(largest, rel=1e-15)
    assert after[1] == pytest.approx(entropy, abs=1e-15)
    assert after[2] == values["retention"][0]


def test_the_entropy_of_the_mean_is_not_the_mean_of_entropies() -> None:
    values = observation(3, 0.0, 3) | {"w": np.eye(6)}
    assert attention_summary(**values)[0][1] == pytest.approx(1.0, rel=1e-14)
    assert attention_summary(**values, reading="mean_of_entropies")[0][1] == 0.0


@pytest.mark.parametrize("reading", [*EMA_WRONG, *SUMMARY_WRONG])
def test_mutants_are_far_away(reading: str) -> None:
    """`first_blended` needs a first observation; all others show on any later one."""
    count = 0.0 if reading == "first_blended" else 3.0
    gaps = []
    for function, known, slots in (
        (attention_focus, EMA_WRONG, 7),
        (attention_summary, SUMMARY_WRONG, 3),
    ):
        if reading not in known:
            continue
        values = observation(4, count, slots)
        pairs = zip(function(**values), function(**values, reading=reading), strict=True)
        gaps.append(max(np.abs(a - b).max() for a, b in pairs))
    assert gaps
    assert min(gaps) > 1e-4
