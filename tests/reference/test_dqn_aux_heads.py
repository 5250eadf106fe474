"""Auxiliary heads: torch losses, the shared mask, weight and direction, mutants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference.dqn import aux_direction, aux_heads, aux_weight
from trueup.reference.dqn.aux_heads import WRONG, fold_labels, next_bar_targets
from trueup.reference.dqn.aux_weight import DIRECTION_WRONG, WEIGHT_WRONG

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)


def batch(seed: int = 0, B: int = 12, K: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, K, B)
    label[::3] = -1
    return {
        "pred": rng.standard_normal(B),
        "target": rng.standard_normal(B),
        "logits": 2 * rng.standard_normal((B, K)),
        "label": label,
        "w_aux": 0.07,
    }


def test_torch_losses_and_gradients() -> None:
    values = batch()
    pred, logits = (torch.tensor(values[k], requires_grad=True) for k in ("pred", "logits"))
    label = torch.tensor(values["label"])
    F = torch.nn.functional
    ce = F.cross_entropy(logits, label, ignore_index=-1)
    mse = F.mse_loss(pred[label >= 0], torch.tensor(values["target"])[label >= 0])
    (0.07 * (mse + ce)).backward()
    l_mse, l_ce, loss, dpred, dlogits = aux_heads(**values)
    assert l_mse[0] == pytest.approx(mse.item(), rel=1e-13)
    assert l_ce[0] == pytest.approx(ce.item(), rel=1e-13)
    assert loss[0] == pytest.approx(0.07 * (mse + ce).item(), rel=1e-13)
    assert pred.grad is not None
    assert logits.grad is not None
    np.testing.assert_allclose(dpred, pred.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(dlogits, logits.grad.numpy(), rtol=1e-11, atol=1e-16)


@PROFILE
@given(seed=st.integers(0, 10_000))
def test_gradients_sum_to_zero_over_classes_and_vanish_without_a_label(seed: int) -> None:
    values = batch(seed)
    *_, dpred, dlogits = aux_heads(**values)
    np.testing.assert_allclose(dlogits.sum(axis=1), 0.0, atol=1e-15)
    ignored = values["label"] < 0
    np.testing.assert_array_equal(dpred[ignored], 0.0)
    np.testing.assert_array_equal(dlogits[ignored], 0.0)


@pytest.mark.parametrize("K", [2, 5])
def test_uniform_logits_give_the_log_of_the_number_of_classes(K: int) -> None:
    values = batch(K=K) | {"logits": np.full((12, K), 3.0)}
    assert aux_heads(**values)[1][0] == pytest.approx(np.log(K), rel=1e-14)


def test_a_batch_without_labels_gives_zeros_and_no_nan() -> None:
    for part in aux_heads(**(batch() | {"label": np.full(12, -1)})):
        np.testing.assert_array_equal(part, 0.0)


def test_not_even_nan_reaches_through_the_mask() -> None:
    values = batch()
    ignored = values["label"] < 0
    values["logits"][ignored], values["target"][ignored] = np.nan, np.nan
    for part in aux_heads(**values):
        assert np.isfinite(part).all()


def test_health_zero_sends_exactly_nothing_back() -> None:
    weight = aux_weight(np.zeros(1), np.array([3.0]))
    assert weight[0] == 0.0
    *_, dpred, dlogits = aux_heads(**(batch() | {"w_aux": float(weight[0])}))
    np.testing.assert_array_equal(dpred, 0.0)
    np.testing.assert_array_equal(dlogits, 0.0)


@pytest.mark.parametrize(
    ("health", "sharpe", "want"),
    [
        pytest.param(1.0, 0.0, 0.1, id="whole"),
        pytest.param(0.5, 10.0, 0.025, id="half-of-half"),
        pytest.param(1.0, 20.0, 0.01, id="floor"),
        pytest.param(1.0, 500.0, 0.01, id="far-beyond-the-floor"),
        pytest.param(1.0, -5.0, 0.1, id="losing"),
        pytest.param(3.0, 0.0, 0.1, id="health-clipped"),
    ],
)
def test_weight(health: float, sharpe: float, want: float) -> None:
    got = aux_weight(np.array([health]), np.array([sharpe]))
    assert got[0] == pytest.approx(want, rel=1e-12)


@PROFILE
@given(a=st.floats(-30, 60), b=st.floats(-30, 60))
def test_better_sharpe_never_raises_the_weight(a: float, b: float) -> None:
    low, high = sorted((a, b))
    weights = [aux_weight(np.array([0.8]), np.array([s]))[0] for s in (low, high)]
    assert weights[1] <= weights[0]


def test_direction_of_known_logits() -> None:
    strong = np.array([[0.0, 0, 0, 0, 800.0], [800.0, 0, 0, 0, 0], [0.0, 0, 800.0, 0, 0], [0] * 5])
    np.testing.assert_allclose(aux_direction(strong), [1.0, -1.0, 0.0, 0.0], atol=1e-15)
    p = torch.softmax(torch.tensor([[0.3, -1.0, 0.2, 0.9, -0.4]], dtype=torch.float64), 1)[0]
    want = 2 * (p[3] + p[4] + p[2] / 2) - 1
    assert aux_direction(np.array([[0.3, -1.0, 0.2, 0.9, -0.4]]))[0] == pytest.approx(want.item())


def test_reversing_the_classes_turns_the_direction_round() -> None:
    logits = batch()["logits"]
    np.testing.assert_allclose(aux_direction(logits[:, ::-1]), -aux_direction(logits), atol=1e-14)
    even = batch(K=4)["logits"]  # without a middle class
    np.testing.assert_allclose(aux_direction(even[:, ::-1]), -aux_direction(even), atol=1e-14)


def test_the_last_bars_of_a_fold_have_no_label() -> None:
    assert fold_labels([1, 2, 3, 4, 0, 1, 2]) == [1, 2, -1, -1, -1, -1, -1]
    assert fold_labels([1, 2], horizon_bars=1) == [1, -1]
    assert fold_labels([3], horizon_bars=5) == [-1]


def test_a_target_looks_one_bar_ahead_and_never_at_its_own() -> None:
    close = np.array([100.0, 110.0, 99.0])
    np.testing.assert_allclose(next_bar_targets(close), [0.1, -0.1, 0.0], rtol=1e-14)
    leak = np.append(0.0, close[1:] / close[:-1] - 1)  # the current bar's own return
    assert np.abs(next_bar_targets(close) - leak).max() > 0.05


@pytest.mark.parametrize("reading", WRONG)
def test_mutants_are_far_away(reading: str) -> None:
    values = batch()
    pairs = zip(aux_heads(**values), aux_heads(**values, reading=reading), strict=True)
    assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3


@pytest.mark.parametrize("reading", WEIGHT_WRONG)
def test_weight_mutants_are_far_away(reading: str) -> None:
    points = [(0.5, 5.0), (0.0, 5.0), (2.0, 5.0), (0.5, 50.0)]
    gaps = [
        abs(aux_weight(h, s)[0] - aux_weight(h, s, reading=reading)[0])
        for h, s in ((np.array([a]), np.array([b])) for a, b in points)
    ]
    assert max(gaps) > 1e-3


@pytest.mark.parametrize("reading", DIRECTION_WRONG)
def test_direction_mutants_are_far_away(reading: str) -> None:
    logits = batch()["logits"]
    assert np.abs(aux_direction(logits) - aux_direction(logits, reading=reading)).max() > 1e-2
