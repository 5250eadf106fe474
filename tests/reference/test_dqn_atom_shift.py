"""The atoms' shift through every reader of the atoms, its gradients, and Adam for its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import get
from trueup.reference.dqn import (
    adam_w,
    atom_shift,
    atom_shift_gradient,
    c51_loss,
    expected_q,
    mag_concat,
    thompson,
)
from trueup.reference.dqn.atom_shift import PRIOR
from trueup.reference.dqn.atoms import softmax

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)
W0 = np.array(PRIOR)
B, N = 6, 11


def head(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    low = rng.uniform(-2.0, -1.0, (B, 4))
    span = rng.uniform(2.0, 3.0, (B, 4))
    return {
        "logits": rng.standard_normal((B, 4, N)),
        "support": np.stack([low, low + span, span / (N - 1)], -1),
    }


def readers(W: Any, signal: Any, taken: Any) -> dict[str, Any]:
    """Give what every reader of the direction's atoms makes of a shift W s."""
    values, rng = head(1), np.random.default_rng(2)
    shift = atom_shift(W, signal)
    rows = np.arange(B)
    own = shift[rows, taken]
    q, _ = expected_q(**values, shift=shift)
    one = {
        "logits": np.repeat(values["logits"][rows, taken][:, None], 4, 1),
        "p_next": np.repeat(softmax(rng.standard_normal((B, N)))[:, None], 4, 1),
        "support": np.repeat(values["support"][rows, taken][:, None], 4, 1),
        "returns": np.full((B, 4), 0.2),
        "discount": np.full((B, 4), 0.6),
        "weight": np.ones(B),
    }
    one["next_support"] = one["support"]
    still = np.zeros((B, 4))
    moved = np.repeat(own[:, None], 4, 1)
    online = c51_loss(**one, shift=moved, next_shift=still)
    target = c51_loss(**one, shift=still, next_shift=moved)
    return {
        "expected value": q,
        "online side of the loss": online[0],
        "target side of the loss": target[0],
        "gradient": online[1],
        "input of the magnitude branch": mag_concat(np.ones((B, 3)), q, np.ones(1))[0],
        "Thompson sampling": thompson(**values, u=rng.random((B, 4)), shift=shift)[1],
    }


@pytest.mark.parametrize("action", range(4))
def test_every_reader_of_the_atoms_sees_each_weight(action: int) -> None:
    """One reader left out is the flagship defect of the integration."""
    signal, taken = np.linspace(0.2, 0.9, B), np.full(B, action)
    before = readers(W0, signal, taken)
    moved = W0.copy()
    moved[action] += 0.05
    for name, after in readers(moved, signal, taken).items():
        assert np.abs(after - before[name]).max() > 1e-4, name


def test_no_signal_or_no_weight_leaves_every_reader_bit_identical() -> None:
    signal, taken = np.linspace(-0.9, 0.9, B), np.zeros(B, dtype=int)
    want = readers(np.zeros(4), np.zeros(B), taken)
    for W, s in ((W0, np.zeros(B)), (np.zeros(4), signal)):
        for name, got in readers(W, s, taken).items():
            assert got.tobytes() == want[name].tobytes(), name


@PROFILE
@given(seed=SEEDS)
def test_negating_the_signal_and_swapping_short_and_long_mirrors(seed: int) -> None:
    signal = np.random.default_rng(seed).uniform(-1.0, 1.0, B)
    swap = [2, 1, 0, 3]
    np.testing.assert_array_equal(atom_shift(W0, -signal)[:, swap], atom_shift(W0, signal))


def test_a_probability_that_is_not_recentred_is_a_constant_bias() -> None:
    """At p_up = 1/2 the signal is 0 and nothing moves; (s + 1)/2 moves Short and Long apart."""
    assert (atom_shift(W0, np.zeros(1)) == 0.0).all()
    assert atom_shift(W0, np.zeros(1), reading="not_recentred").tolist() == [[-0.25, 0, 0.25, 0]]


def samples(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "d_shift": rng.standard_normal(B),
        "action": rng.integers(0, 4, B),
        "signal": rng.uniform(-1.0, 1.0, B),
        "weight": rng.uniform(0.3, 1.0, B),
        "W": W0.copy(),
        "d_state": rng.standard_normal(B),
    }


@PROFILE
@given(seed=SEEDS)
def test_gradient_by_torch_autograd(seed: int) -> None:
    """Third source: sum_b omega_b g_b W[a_b] s_b, differentiated in both factors."""
    values = samples(seed)
    W = torch.tensor(values["W"], requires_grad=True)
    s = torch.tensor(values["signal"], requires_grad=True)
    omega = torch.tensor(values["weight"]) / B / 4
    (omega * torch.tensor(values["d_shift"]) * W[values["action"]] * s).sum().backward()
    assert W.grad is not None
    assert s.grad is not None
    d_W, d_state = atom_shift_gradient(**values)
    np.testing.assert_allclose(d_W, W.grad.numpy(), atol=1e-14)
    np.testing.assert_allclose(d_state, values["d_state"] + s.grad.numpy(), atol=1e-14)
    untaken = np.setdiff1d(np.arange(4), values["action"])
    assert (d_W[untaken] == 0.0).all()


def test_hold_and_flat_hand_nothing_to_the_state_at_the_start() -> None:
    values = samples(3) | {"action": np.array([1, 3, 1, 3, 1, 3])}
    np.testing.assert_array_equal(atom_shift_gradient(**values)[1], values["d_state"])


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("returns", [0.1, 2.0, 40.0])
def test_the_losss_gradient_at_the_shift_by_complex_step(places: bool, returns: float) -> None:
    """Interior targets only; with all targets clamped it is exactly 0."""
    rng = np.random.default_rng(5)
    corner = np.concatenate([[0.0], np.sort(rng.uniform(0.05, 0.95, N - 2)), [1.0]])
    even = np.arange(N) / (N - 1)
    place = corner if places else even
    logits, p_next = rng.standard_normal(N), softmax(rng.standard_normal(N))
    t = returns + 0.9 * (-2.0 + 4.0 * even)
    shift = 0.137 + 1e-30j
    z = -2.0 + 4.0 * place + shift
    mass = np.zeros(N, dtype=complex)
    for t_j, p_j in zip(t, p_next, strict=True):
        if t_j <= z[0].real or t_j >= z[-1].real:
            mass[0 if t_j <= z[0].real else -1] += p_j
            continue
        low = int(np.searchsorted(z.real, t_j, side="right")) - 1
        w = (t_j - z[low]) / (z[low + 1] - z[low])
        mass[low] += p_j * (1 - w)
        mass[low + 1] += p_j * w
    log_p = logits - np.log(np.exp(logits).sum())
    want = -(mass * log_p).sum().imag / 1e-30
    support = np.tile([-2.0, 2.0, 4.0 / (N - 1)], (1, 4, 1))
    tiled = {"logits": np.tile(logits, (1, 4, 1)), "p_next": np.tile(p_next, (1, 4, 1))}
    if places:
        # The target's atoms are the even ones above: hand them over as returns of one atom each.
        got = sum(
            c51_loss(
                tiled["logits"],
                np.tile(p_next[j] * np.eye(N)[0], (1, 4, 1)),
                support,
                support,
                np.full((1, 4), t[j]),
                np.zeros((1, 4)),
                np.ones(1),
                corner,
                np.full((1, 4), 0.137),
                np.zeros((1, 4)),
            )[2][0, 0]
            for j in range(N)
        )
    else:
        got = c51_loss(
            **tiled,
            support=support,
            next_support=support,
            returns=np.full((1, 4), returns),
            discount=np.full((1, 4), 0.9),
            weight=np.ones(1),
            shift=np.full((1, 4), 0.137),
            next_shift=np.zeros((1, 4)),
        )[2][0, 0]
    assert got == pytest.approx(want, abs=1e-13)
    assert bool(got == 0.0) is (returns == 40.0)


@pytest.mark.parametrize("id", ["dqn.atom_shift", "dqn.atom_shift_gradient"])
def test_every_mutant_of_the_shift_is_far_off(id: str) -> None:
    entry, values = get(id), samples(9)
    given = {s.name: values[s.name] for s in entry.inputs if s.name in values}
    right = entry.call("default", **given)
    for name in entry.wrong:
        wrong = entry.call(name, **given)
        pairs = zip(*((x if isinstance(x, tuple) else (x,)) for x in (wrong, right)), strict=True)
        assert max(np.abs(a - b).max() for a, b in pairs) > 1e-3, name


def adam_steps(gradients: Any, **more: Any) -> list[Any]:
    W, m, v = W0.copy(), np.zeros(4), np.zeros(4)
    out = []
    for t, g in enumerate(gradients, 1):
        W, m, v = adam_w(W, m, v, np.asarray(g), np.full(1, float(t)), **more)
        out.append(W)
    return out


def test_adam_golden() -> None:
    first, second = adam_steps([[0.1, 0.0, -0.2, 0.0]] * 2)
    np.testing.assert_allclose(first, [-0.501, 0.0, 0.501, 0.0], atol=1e-9)
    np.testing.assert_allclose(second, [-0.502, 0.0, 0.502, 0.0], atol=1e-9)


@PROFILE
@given(seed=SEEDS)
def test_adam_by_torch(seed: int) -> None:
    gradients = np.random.default_rng(seed).standard_normal((6, 4))
    leaf = torch.tensor(W0, requires_grad=True)
    optimizer = torch.optim.Adam([leaf], lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    for g in gradients:
        leaf.grad = torch.tensor(g)
        optimizer.step()
    got = adam_steps(gradients, beta1=0.9, beta2=0.999, eps=1e-8, lr=1e-3)[-1]
    np.testing.assert_allclose(got, leaf.detach().numpy(), atol=1e-14)


def test_no_gradient_from_the_start_leaves_the_weights_bit_identical() -> None:
    assert all(W.tobytes() == W0.tobytes() for W in adam_steps(np.zeros((5, 4))))


def step_bound(t: int, b1: float, b2: float) -> float:
    k = np.arange(t)
    w, q = (1 - b1) * b1**k / (1 - b1**t), (1 - b2) * b2**k / (1 - b2**t)
    return float(np.sqrt((w * w / q).sum()))


def test_a_step_is_at_most_the_cauchy_schwarz_bound() -> None:
    for t, want in ((1, 1.0), (20, 1.156), (100, 2.24)):
        assert step_bound(t, 0.9, 0.999) == pytest.approx(want, abs=5e-3)
    growth = (0.999 / 0.9) ** np.arange(1, 260)
    steps = adam_steps(np.outer(growth, np.ones(4)) * 1e-10, eps=1e-300)
    sizes = np.abs(np.diff(np.stack([W0, *steps])[:, 0])) / 1e-3
    bounds = [step_bound(t, 0.9, 0.999) for t in range(1, 260)]
    assert (sizes <= np.array(bounds) * (1 + 1e-4)).all()
    assert sizes[-1] == pytest.approx(3.47, abs=0.01)  # beyond the often quoted 3.16


@pytest.mark.parametrize("name", get("dqn.adam_w").wrong)
def test_every_mutant_of_adam_parts(name: str) -> None:
    gradients = 1e-6 * np.random.default_rng(1).standard_normal((5, 4))
    right, wrong = (adam_steps(gradients, reading=r)[-1] for r in ("default", name))
    assert np.abs(wrong - right).max() > 1e-5
