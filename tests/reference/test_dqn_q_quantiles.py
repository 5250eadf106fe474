"""Quantiles of the branches' values and the supports that follow: goldens and equivariances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import get
from trueup.reference.dqn import atom_support, q_quantiles
from trueup.reference.dqn.atoms import is_valid
from trueup.reference.dqn.dueling import BRANCHES, offsets

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)
LOW, HIGH = float(np.float32(0.05)), float(np.float32(0.95))


def draw(seed: int, batch: int = 7) -> Any:
    return np.random.default_rng(seed).standard_normal((batch, 13))


def test_golden() -> None:
    """Six values of branches of one action each."""
    q = np.array([[3.0], [-1.0], [2.0], [10.0], [0.0], [7.0]])
    got = q_quantiles(np.tile(q, 4), branches=(1, 1, 1, 1))
    np.testing.assert_allclose(got[:4], -0.75, atol=1e-7)
    np.testing.assert_allclose(got[4:], 9.25, atol=1e-7)


@PROFILE
@given(seed=SEEDS, batch=st.integers(1, 40))
def test_by_the_librarys_quantile(seed: int, batch: int) -> None:
    q = draw(seed, batch)
    got = q_quantiles(q)
    for k, size in enumerate(BRANCHES):
        own = q[:, offsets()[k] : offsets()[k] + size]
        want = np.quantile(own, [LOW, HIGH])
        np.testing.assert_allclose(got[[k, k + 4]], want, atol=1e-12)


@PROFILE
@given(seed=SEEDS, scale=st.floats(0.1, 10.0), move=st.floats(-5.0, 5.0))
def test_ordered_equivariant_and_blind_to_the_order_of_samples(
    seed: int, scale: float, move: float
) -> None:
    q = draw(seed)
    got = q_quantiles(q)
    assert (got[:4] <= got[4:]).all()
    np.testing.assert_allclose(q_quantiles(scale * q + move), scale * got + move, atol=1e-12)
    turned = q[np.random.default_rng(seed + 1).permutation(7)]
    np.testing.assert_array_equal(q_quantiles(turned), got)


def test_equal_values_give_the_least_width() -> None:
    q = np.full((4, 13), 1.25)
    quantiles = q_quantiles(q)
    assert (quantiles == 1.25).all()
    support = atom_support(quantiles, q)
    np.testing.assert_allclose(support, np.tile([0.75, 1.75, 1.0 / 50], (4, 4, 1)))


@PROFILE
@given(seed=SEEDS, n_atoms=st.integers(2, 60), widening=st.floats(0.0, 2.0))
def test_supports_can_be_used_and_are_centred(seed: int, n_atoms: int, widening: float) -> None:
    q = 3.0 * draw(seed)
    quantiles = q_quantiles(q)
    support = atom_support(quantiles, q, n_atoms, widening)
    assert is_valid(support, n_atoms).all()
    middle = 0.5 * (quantiles[:4] + quantiles[4:])
    np.testing.assert_allclose(support[..., :2].mean(-1), np.tile(middle, (7, 1)), atol=1e-12)
    margin = support[..., 1] - quantiles[4:]
    assert (margin >= 0.1 * (quantiles[4:] - quantiles[:4]) - 1e-7).all()


def test_widening_by_the_population_spread() -> None:
    q, quantiles = np.zeros((1, 13)), np.array([-1.0] * 4 + [1.0] * 4)
    q[0, :4] = [1.0, -1.0, 1.0, -1.0]
    support = atom_support(quantiles, q, widening=0.5, margin=0.0)
    np.testing.assert_allclose(support[0, 0, :2], [-1.5, 1.5])
    np.testing.assert_allclose(support[0, 1, :2], [-1.0, 1.0])


@pytest.mark.parametrize("id", ["dqn.q_quantiles", "dqn.atom_support"])
def test_every_mutant_is_far_off(id: str) -> None:
    entry, q = get(id), 5.0 * draw(3) * np.repeat([1.0, 2.0, 3.0, 4.0], BRANCHES)
    given: dict[str, Any] = {"q": q}
    if id == "dqn.atom_support":
        given |= {"quantiles": q_quantiles(q), "widening": 0.5}
        given["quantiles"][4] = given["quantiles"][0] + 0.01
    right = entry.call("default", **given)
    for name in entry.wrong:
        assert np.abs(entry.call(name, **given) - right).max() > 1e-2, name
