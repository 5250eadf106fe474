"""Derivatives through online writes: closed forms, finite differences, autograd, the gap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference.nl import online_writes
from trueup.reference.nl.online_writes_chunks import (
    online_writes_chunks,
    projection_gradient,
    target_shift_gradient,
    write_gap,
)
from trueup.reference.nl.parity import chunk_weights

MODES = ("through", "straight_through", "detached")
ETA = 0.07


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def two_chunks(d_out: int = 2, d_in: int = 3, n1: int = 4, n2: int = 2) -> dict[str, Any]:
    return {
        "W0": draw(d_out, d_in),
        "X1": draw(d_in, n1, seed=1),
        "V1": draw(d_out, n1, seed=2),
        "X2": draw(d_in, n2, seed=3),
        "V2": draw(d_out, n2, seed=4),
    }


def second_loss(W0: Any, X1: Any, V1: Any, X2: Any, V2: Any, eta: float) -> float:
    W1 = W0 - eta * (W0 @ X1 - V1) @ X1.T
    return float(0.5 * np.sum((W1 @ X2 - V2) ** 2))


def test_scalar_witness() -> None:
    """W0 = 1, x1 = 2, v1 = 0, eta = 0.1, x2 = 1, v2 = 0: W1 = 0.6, l2 = 0.18."""
    one = {k: np.array([[v]]) for k, v in {"W0": 1.0, "X1": 2.0, "V1": 0.0, "X2": 1.0}.items()}
    one["V2"] = np.zeros((1, 1))
    assert second_loss(**one, eta=0.1) == pytest.approx(0.18)
    want = {
        "through": (0.6, 0.36, 0.12, -0.24, -2.4),
        "straight_through": (0.6, 0.6, 0.0, 0.0, 0.0),
        "detached": (0.6, 0.0, 0.0, 0.0, 0.0),
    }
    for mode, numbers in want.items():
        got = [float(np.sum(part)) for part in online_writes(**one, eta=0.1, reading=mode)]
        assert got == pytest.approx(numbers), mode


@pytest.mark.parametrize("shape", [(2, 3, 4, 2), (3, 2, 1, 3), (1, 4, 2, 2), (4, 1, 3, 1)])
def test_through_against_finite_differences(shape: tuple[int, int, int, int]) -> None:
    """U10: a write that stops gradients has dl2/deta = 0."""
    given = two_chunks(*shape)
    _, dW0, dV1, dX1, deta = online_writes(**given, eta=ETA, reading="through")
    for name, analytic in (("W0", dW0), ("V1", dV1), ("X1", dX1)):
        for at in np.ndindex(given[name].shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = {k: v.copy() for k, v in given.items()}
                moved[name][at] += step
                sides.append(second_loss(**moved, eta=ETA))
            assert analytic[at] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=2e-6), name
    numeric = (second_loss(**given, eta=ETA + 1e-6) - second_loss(**given, eta=ETA - 1e-6)) / 2e-6
    assert float(deta) == pytest.approx(numeric, rel=1e-6)
    assert float(deta) != 0.0


def by_torch(
    given: dict[str, Any], etas: list[float], mode: str, inner: str, weights: list[float]
) -> dict[str, Any]:
    """Third source: the program itself, differentiated by autograd."""

    def leaf(value: Any) -> Any:
        return torch.tensor(value, dtype=torch.float64, requires_grad=True)

    W0, X, V = leaf(given["W0"]), [leaf(x) for x in given["X"]], [leaf(v) for v in given["V"]]
    rates = [leaf(eta) for eta in etas]
    memory, total, losses = W0, 0.0, []
    for x, v, eta, weight in zip(X, V, rates, weights, strict=True):
        loss = 0.5 * ((memory @ x - v) ** 2).sum()
        losses.append(float(loss.detach()))
        total = total + weight * loss
        written = memory @ x - v + (memory @ x if inner == "dgd" else 0.0)
        step = -eta * written @ x.T
        if mode == "through":
            memory = memory + step
        elif mode == "straight_through":
            memory = memory + step.detach()
        else:
            memory = (memory + step).detach()
    total.backward()  # type: ignore[attr-defined]

    def grad(tensor: Any) -> Any:
        return np.zeros(tuple(tensor.shape)) if tensor.grad is None else tensor.grad.numpy()

    return {
        "W0": grad(W0),
        "X": [grad(x) for x in X],
        "V": [grad(v) for v in V],
        "eta": [float(grad(eta)) for eta in rates],
        "losses": losses,
        "memory": memory.detach().numpy(),
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", ["l2", "dgd"])
@pytest.mark.parametrize("lengths", [(4,), (3, 3), (2, 4, 1)])
def test_many_chunks_against_autograd(mode: Any, inner: Any, lengths: tuple[int, ...]) -> None:
    given = {
        "W0": draw(2, 3),
        "X": [draw(3, n, seed=c) for c, n in enumerate(lengths)],
        "V": [draw(2, n, seed=9 + c) for c, n in enumerate(lengths)],
    }
    etas = [0.05, 0.11, 0.08][: len(lengths)]
    weights = list(chunk_weights(lengths))
    want = by_torch(given, etas, mode, inner, weights)
    got = online_writes_chunks(
        given["W0"], given["X"], given["V"], etas, mode=mode, inner=inner, weights=weights
    )
    np.testing.assert_allclose(got.memory, want["memory"], rtol=1e-12)
    np.testing.assert_allclose(got.losses, want["losses"], rtol=1e-12)
    np.testing.assert_allclose(got.W0, want["W0"], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(got.eta, want["eta"], rtol=1e-11, atol=1e-13)
    for mine, theirs in zip((*got.X, *got.V), (*want["X"], *want["V"]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_two_chunks_are_the_closed_form_and_the_read_paths(mode: Any) -> None:
    given = two_chunks()
    closed = online_writes(**given, eta=ETA, reading=mode)
    W0, X1, V1 = given["W0"], given["X1"], given["V1"]
    got = online_writes_chunks(W0, [X1, given["X2"]], [V1, given["V2"]], [ETA, ETA], mode=mode)
    E1 = W0 @ X1 - V1
    np.testing.assert_allclose(got.W0, closed[1] + E1 @ X1.T, rtol=1e-12)
    np.testing.assert_allclose(got.V[0], closed[2] - E1, rtol=1e-12)
    np.testing.assert_allclose(got.X[0], closed[3] + W0.T @ E1, rtol=1e-12)
    assert got.eta[0] == pytest.approx(float(closed[4]), rel=1e-12)


def test_forward_values_are_the_same_in_every_mode() -> None:
    given = two_chunks()
    written = [online_writes(**given, eta=ETA, reading=mode)[0] for mode in MODES]
    np.testing.assert_array_equal(written[0], written[1])
    np.testing.assert_array_equal(written[0], written[2])
    doubled = online_writes(**given, eta=ETA, reading="rate_doubled")[0]
    assert np.max(np.abs(doubled - written[0])) > 1e-2


def test_the_gap_shows_which_mode_is_active() -> None:
    """Through minus straight-through in W0 is -eta Gamma X1 X1^T."""
    given = two_chunks()
    through = online_writes(**given, eta=ETA, reading="through")[1]
    gamma = online_writes(**given, eta=ETA, reading="straight_through")[1]
    gap = write_gap(gamma, given["X1"], ETA)
    np.testing.assert_allclose(through - gamma, gap, rtol=1e-10)
    assert np.linalg.norm(gap) > 0.1
    given["X1"][1:], given["X2"][:1] = 0.0, 0.0  # Gamma X1 = 0: nothing tells the modes apart
    through = online_writes(**given, eta=ETA, reading="through")[1]
    gamma = online_writes(**given, eta=ETA, reading="straight_through")[1]
    np.testing.assert_array_equal(through, gamma)


def test_three_chunks_multiply_the_decays_in_this_order() -> None:
    """dl_3/dW0 = Gamma_3 A_2 A_1; the A's are symmetric and do not commute."""
    X = [draw(3, 2, seed=c) for c in range(3)]
    V = [draw(2, 2, seed=5 + c) for c in range(3)]
    got = online_writes_chunks(draw(2, 3), X, V, [ETA] * 3, mode="through", weights=[0, 0, 1])
    before = online_writes_chunks(draw(2, 3), X[:2], V[:2], [ETA] * 2).memory
    gamma = (before @ X[2] - V[2]) @ X[2].T
    A1, A2 = (np.eye(3) - ETA * x @ x.T for x in X[:2])
    np.testing.assert_allclose(got.W0, gamma @ A2 @ A1, rtol=1e-11)
    assert np.max(np.abs(gamma @ A1 @ A2 - got.W0)) > 1e-2


def test_dgd_inner_step_and_the_mutant_that_detaches_u() -> None:
    """dl2/dW0 = Gamma (I - 2 eta x x^T); a detached surprise gives Gamma (I - eta x x^T)."""
    W0, x, v = draw(2, 3), draw(3, 1, seed=1), draw(2, 1, seed=2)
    X2, V2 = draw(3, 2, seed=3), draw(2, 2, seed=4)
    got = online_writes_chunks(
        W0, [x, X2], [v, V2], [ETA, ETA], mode="through", inner="dgd", weights=[0, 1]
    )
    W1 = W0 @ (np.eye(3) - ETA * x @ x.T) - ETA * (W0 @ x - v) @ x.T
    np.testing.assert_allclose(
        online_writes_chunks(W0, [x], [v], [ETA], inner="dgd").memory, W1, rtol=1e-12
    )
    gamma = (W1 @ X2 - V2) @ X2.T
    np.testing.assert_allclose(got.W0, gamma @ (np.eye(3) - 2 * ETA * x @ x.T), rtol=1e-11)
    leaf = torch.tensor(W0, requires_grad=True)
    tx, tv = torch.tensor(x), torch.tensor(v)
    u = (leaf @ tx - tv).detach()
    written = leaf - ETA * (leaf @ tx) @ tx.T - ETA * u @ tx.T
    (0.5 * ((written @ torch.tensor(X2) - torch.tensor(V2)) ** 2).sum()).backward()
    assert leaf.grad is not None
    mutant = leaf.grad.numpy()
    np.testing.assert_allclose(mutant, gamma @ (np.eye(3) - ETA * x @ x.T), rtol=1e-11)
    assert np.max(np.abs(mutant - got.W0)) > 1e-2


def test_a_projection_of_the_keys_gets_its_gradient() -> None:
    """X1 = K Z1, so dK = dX1 Z1^T; autograd agrees, and in the other modes it is zero."""
    given = two_chunks()
    K, Z = draw(3, 5, seed=7), draw(5, 4, seed=8)
    given["X1"] = K @ Z
    got = {mode: online_writes(**given, eta=ETA, reading=mode)[3] for mode in MODES}
    leaf = torch.tensor(K, requires_grad=True)
    X1, W0 = leaf @ torch.tensor(Z), torch.tensor(given["W0"])
    W1 = W0 - ETA * (W0 @ X1 - torch.tensor(given["V1"])) @ X1.T
    loss = 0.5 * ((W1 @ torch.tensor(given["X2"]) - torch.tensor(given["V2"])) ** 2).sum()
    loss.backward()
    assert leaf.grad is not None
    through = projection_gradient(got["through"], Z)
    np.testing.assert_allclose(through, leaf.grad.numpy(), rtol=1e-11)
    assert not projection_gradient(got["straight_through"], Z).any()


def test_the_target_shift_surrogate_has_a_factor_of_two() -> None:
    p, delta, mask = draw(4, 3), draw(4, 3, seed=1), np.array([1.0, 0.0, 1.0, 1.0])
    leaf = torch.tensor(p, requires_grad=True)
    target = (leaf - torch.tensor(delta)).detach()
    (torch.tensor(mask)[:, None] * (leaf - target) ** 2).sum().backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(target_shift_gradient(p, delta, mask), leaf.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * mask[:, None] * delta, atol=1e-12)


def test_one_backward_of_the_sum_is_the_sum_of_backwards() -> None:
    X = [draw(3, n, seed=n) for n in (2, 3, 1)]
    V = [draw(2, n, seed=n) for n in (2, 3, 1)]
    W0, etas = draw(2, 3), [ETA] * 3
    whole = online_writes_chunks(W0, X, V, etas, mode="through")
    parts = [
        online_writes_chunks(W0, X, V, etas, mode="through", weights=list(np.eye(3)[c]))
        for c in range(3)
    ]
    np.testing.assert_allclose(sum(part.W0 for part in parts), whole.W0, rtol=1e-12)
    np.testing.assert_allclose(np.sum([part.eta for part in parts], axis=0), whole.eta, rtol=1e-12)


def test_per_chunk_means_need_the_weights_of_their_tokens() -> None:
    """Equal chunks differ from the token mean by the number of chunks exactly; others do not."""
    W0, etas = draw(2, 3), [0.0, 0.0]
    for lengths in ((2, 2), (3, 1)):
        X = [draw(3, n, seed=5 + c) for c, n in enumerate(lengths)]
        V = [draw(2, n, seed=7 + c) for c, n in enumerate(lengths)]
        means = [1 / n for n in lengths]
        summed = online_writes_chunks(W0, X, V, etas, weights=means).W0
        shares = [w / n for w, n in zip(chunk_weights(lengths), lengths, strict=True)]
        right = online_writes_chunks(W0, X, V, etas, weights=shares).W0
        whole = online_writes_chunks(
            W0, [np.hstack(X)], [np.hstack(V)], [0.0], weights=[1 / sum(lengths)]
        ).W0
        np.testing.assert_allclose(right, whole, rtol=1e-12)
        assert np.allclose(summed, 2 * right) is (lengths == (2, 2))
