"""Expected value of a distributional head: invariants, gradients, degenerate supports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.reference import BadInputs, get
from trueup.reference.dqn import expected_q, expected_q_backward
from trueup.reference.dqn.atoms import atoms, check_support, is_valid, softmax

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)
ENTRY, BACKWARD = get("dqn.expected_q"), get("dqn.expected_q_backward")


def supports(low: Any, high: Any, n: int) -> Any:
    low, high = np.asarray(low, float), np.asarray(high, float)
    return np.stack([low, high, (high - low) / (n - 1)], axis=-1)


def draw(seed: int, batch: int = 3, actions: int = 4, n: int = 7) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    low = rng.standard_normal((batch, actions))
    places = np.concatenate([[0.0], np.sort(rng.uniform(0.05, 0.95, n - 2)), [1.0]])
    return {
        "logits": rng.standard_normal((batch, actions, n)),
        "support": supports(low, low + rng.uniform(0.5, 3.0, low.shape), n),
        "positions": places,
        "shift": 0.3 * rng.standard_normal((batch, actions)),
    }


def chosen(seed: int, places: bool, **sizes: int) -> dict[str, Any]:
    values = draw(seed, **sizes)
    return values if places else {k: v for k, v in values.items() if k != "positions"}


def test_golden() -> None:
    """Logits 0, .5, -.5 on atoms -1, 0, 1 moved by .1."""
    logits, support = np.array([[[0.0, 0.5, -0.5]]]), supports([[-1.0]], [[1.0]], 3)
    np.testing.assert_allclose(softmax(logits)[0, 0], [0.30719589, 0.50648039, 0.18632372])
    q, invalid = expected_q(logits, support, shift=np.full((1, 1), 0.1))
    assert q[0, 0] == pytest.approx(-0.02087216, abs=5e-9)
    assert invalid[0, 0] == 0


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("entry", [ENTRY, BACKWARD], ids=["forward", "backward"])
def test_forms_agree_on_even_and_uneven_atoms(entry: Any, places: bool) -> None:
    for seed in range(20):
        values = chosen(seed, places)
        if entry is BACKWARD:
            values["d_q"] = np.random.default_rng(seed).standard_normal((3, 4))
        first, *others = entry.form("default")
        for other in others:
            for a, b in zip(first(**values), other(**values), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-13)


@PROFILE
@given(seed=SEEDS, places=st.booleans(), move=st.floats(-5.0, 5.0), scale=st.floats(0.1, 10.0))
def test_moves_with_its_support_and_ignores_a_number_on_all_logits(
    seed: int, places: bool, move: float, scale: float
) -> None:
    values = chosen(seed, places)
    q, _ = expected_q(**values)
    z = atoms(values["support"], 7, values.get("positions"), values["shift"])
    assert (z[..., 0] - 1e-12 <= q).all()
    assert (q <= z[..., -1] + 1e-12).all()
    shifted = expected_q(**(values | {"shift": values["shift"] + move}))[0]
    np.testing.assert_allclose(shifted, q + move, atol=1e-11)
    np.testing.assert_allclose(
        expected_q(**(values | {"logits": values["logits"] + move}))[0], q, atol=1e-11
    )
    scaled = {"support": scale * values["support"], "shift": scale * values["shift"]}
    np.testing.assert_allclose(expected_q(**(values | scaled))[0], scale * q, atol=1e-11)


def test_uniform_logits_give_the_middle_of_the_support() -> None:
    q, _ = expected_q(np.full((1, 1, 51), 3.0), supports([[-2.0]], [[5.0]], 51))
    assert q[0, 0] == pytest.approx(1.5, abs=1e-14)


def test_even_atoms_are_positions_i_over_n_minus_1() -> None:
    values = draw(3, n=51)
    even = np.arange(51) / 50
    one = expected_q(values["logits"], values["support"], None, values["shift"])[0]
    two = expected_q(values["logits"], values["support"], even, values["shift"])[0]
    np.testing.assert_allclose(one, two, atol=1e-13)


@PROFILE
@given(seed=SEEDS, places=st.booleans())
def test_a_shift_of_zero_changes_no_bit(seed: int, places: bool) -> None:
    values = chosen(seed, places)
    values["support"][0, 0] = [-0.0, 1.0, 1.0 / 6.0]
    still = values | {"shift": np.zeros((3, 4))}
    without = {k: v for k, v in values.items() if k != "shift"}
    assert expected_q(**still)[0].tobytes() == expected_q(**without)[0].tobytes()
    z = atoms(values["support"], 7, values.get("positions"), np.zeros((3, 4)))
    assert np.signbit(z[0, 0, 0])


@pytest.mark.parametrize("places", [False, True])
def test_backward_by_torch_autograd(places: bool) -> None:
    values = chosen(11, places)
    upstream = np.random.default_rng(1).standard_normal((3, 4))
    d_logits, d_shift = expected_q_backward(upstream, **values)
    logits = torch.tensor(values["logits"], requires_grad=True)
    shift = torch.tensor(values["shift"], requires_grad=True)
    z = torch.tensor(atoms(values["support"], 7, values.get("positions"))) + shift[..., None]
    q = (torch.softmax(logits, -1) * z).sum(-1)
    q.backward(torch.tensor(upstream))
    assert logits.grad is not None
    assert shift.grad is not None
    np.testing.assert_allclose(d_logits, logits.grad.numpy(), atol=1e-13)
    np.testing.assert_allclose(d_shift, shift.grad.numpy(), atol=1e-13)
    np.testing.assert_allclose(d_logits.sum(-1), 0.0, atol=1e-13)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param([1.0, 1.0, 0.5], id="empty"),
        pytest.param([1.0, -1.0, -1.0], id="reversed"),
        pytest.param([-1.0, 1.0, 0.0], id="no-step"),
        pytest.param([-1.0, 1.0, 1.001], id="another-step"),
        pytest.param([0.0, 1e-39, 5e-40], id="subnormal-step"),
        pytest.param([np.nan, 1.0, 1.0], id="nan-low"),
        pytest.param([-1.0, np.nan, 1.0], id="nan-high"),
        pytest.param([-1.0, 1.0, np.nan], id="nan-step"),
        pytest.param([-1.0, np.inf, 1.0], id="infinite"),
    ],
)
def test_a_degenerate_support_is_flagged_and_has_all_mass_on_atom_0(row: list[float]) -> None:
    support = np.array([[row, [-1.0, 1.0, 1.0]]])
    logits = np.array([[[0.0, 1.0, 2.0]] * 2])
    with np.errstate(invalid="ignore"):
        assert is_valid(support, 3).tolist() == [[False, True]]
        q, invalid = expected_q(logits, support)
        d_logits, _ = expected_q_backward(np.ones((1, 2)), logits, support)
        with pytest.raises(BadInputs, match=r"support\[0, 0\]"):
            check_support(support, 3)
    assert invalid.tolist() == [[1, 0]]
    np.testing.assert_array_equal(q[0, 0], row[0])
    assert (d_logits[0, 0] == 0.0).all()
    assert np.abs(d_logits[0, 1]).min() > 0.01


def test_float32_steps_are_valid_and_one_atom_is_none() -> None:
    """delta_z as float32 gives it, at 51 atoms and a range far from 0."""
    rng = np.random.default_rng(0)
    low = np.float32(rng.uniform(-100.0, 100.0, 1000))
    high = low + np.float32(rng.uniform(0.5, 4.0, 1000))
    step = (high - low) / np.float32(50)
    assert is_valid(np.stack([low, high, step], -1).astype(float), 51).all()
    with pytest.raises(BadInputs, match="2 atoms or more"):
        check_support(np.array([0.0, 1.0, 1.0]), 1)


@pytest.mark.parametrize("places", [False, True])
def test_every_mutant_is_far_off_on_ordinary_numbers(places: bool) -> None:
    values = chosen(5, places)
    for entry, more in ((ENTRY, {}), (BACKWARD, {"d_q": np.full((3, 4), 0.7)})):
        right = entry.call("default", **more, **values)
        for name in entry.wrong:
            wrong = entry.call(name, **more, **values)
            assert max(np.abs(a - b).max() for a, b in zip(wrong, right, strict=True)) > 1e-2, name
