"""C51 projection and cross-entropy against exact rationals, torch autograd and golden numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.oracle.bounds import Evaluator, Precision
from trueup.reference import get
from trueup.reference.dqn import c51_loss, c51_projection
from trueup.reference.dqn.atoms import atoms, log_softmax, softmax

PROFILE = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 10_000)
LOSS, PROJECTION = get("dqn.c51_loss"), get("dqn.c51_projection")


def rows(support: list[float]) -> Any:
    return np.tile(np.array(support), (1, 4, 1))


def everywhere(value: float) -> Any:
    return np.full((1, 4), value)


def golden(returns: float, discount: float, **more: Any) -> Any:
    p_next, support = np.tile([0.25, 0.5, 0.25], (1, 4, 1)), rows([-1.0, 1.0, 1.0])
    return c51_projection(
        p_next, support, support, everywhere(returns), everywhere(discount), **more
    )


def draw(seed: int, batch: int = 3, n: int = 7, places: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shape = (batch, 4)
    out = {
        "logits": 2.0 * rng.standard_normal((*shape, n)),
        "p_next": softmax(rng.standard_normal((*shape, n))),
        "returns": rng.uniform(-0.5, 0.5, shape),
        "discount": rng.uniform(0.5, 0.99, shape),
        "weight": rng.uniform(0.3, 1.0, batch),
        "shift": 0.3 * rng.standard_normal(shape),
        "next_shift": 0.3 * rng.standard_normal(shape),
    }
    for name in ("support", "next_support"):
        low = rng.uniform(-2.0, -1.0, shape)
        high = rng.uniform(1.0, 2.0, shape)
        out[name] = np.stack([low, high, (high - low) / (n - 1)], -1)
    if places:
        middle = np.sort(rng.uniform(0.05, 0.95, n - 2))
        out["positions"] = np.concatenate([[0.0], middle, [1.0]])
    return out


def projecting(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in ("logits", "weight")}


def by_cells(t: Any, p: Any, z: Any) -> list[Any]:
    """Apply the published rule to one row, number by number."""
    mass = [0 * p[0] for _ in z]
    for t_j, p_j in zip(t, p, strict=True):
        if t_j <= z[0]:
            mass[0] += p_j
        elif t_j >= z[-1]:
            mass[-1] += p_j
        else:
            low = max(i for i, z_i in enumerate(z) if z_i <= t_j)
            w = (t_j - z[low]) / (z[low + 1] - z[low])
            mass[low] += p_j * (1 - w)
            mass[low + 1] += p_j * w
    return mass


def test_golden_projections() -> None:
    assert golden(0.25, 0.5)[0][0, 0].tolist() == [0.0625, 0.625, 0.3125]
    moved = golden(2.0, 1.0)[0][0, 0]
    assert moved.tolist() == [0.0, 0.0, 1.0]
    assert golden(0.0, 1.0)[0][0, 0].tolist() == [0.25, 0.5, 0.25]
    assert golden(0.0, 1.0, reading="integer_b")[0][0, 0].tolist() == [0.0, 0.0, 0.0]
    shifted = golden(0.25, 0.5, shift=everywhere(0.1))[0][0, 0]
    np.testing.assert_allclose(shifted, [0.0875, 0.675, 0.2375], atol=1e-15)


@pytest.mark.parametrize("places", [False, True])
def test_projection_in_exact_rationals(places: bool) -> None:
    """Third source: the rule by cells over fractions, targets on atoms among them."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(2, 9))
        steps = rng.integers(1, 5, n - 1) if places else np.ones(n - 1, dtype=int)
        corner = np.concatenate([[0], np.cumsum(steps)])
        span = Fraction(int(corner[-1]), 4)
        low = Fraction(int(rng.integers(-8, 3)), 4)
        exact = [low + Fraction(int(c), 4) for c in corner]
        p = [Fraction(int(x), 64) for x in rng.integers(0, 16, n)]
        r, d = Fraction(int(rng.integers(-4, 5)), 4), Fraction(int(rng.integers(0, 5)), 4)
        want = by_cells([r + d * z for z in exact], p, exact)
        support = rows([float(low), float(low + span), float(span) / (n - 1)])
        given = {
            "p_next": np.tile([float(x) for x in p], (1, 4, 1)),
            "support": support,
            "next_support": support,
            "returns": everywhere(float(r)),
            "discount": everywhere(float(d)),
        }
        if places:
            given["positions"] = corner / corner[-1]
        for form in PROJECTION.form("default"):
            got = form(**given)[0]
            np.testing.assert_allclose(got[0, 2], [float(m) for m in want], atol=1e-13)


@PROFILE
@given(seed=SEEDS, places=st.booleans())
def test_projection_keeps_mass_and_is_never_negative(seed: int, places: bool) -> None:
    values = projecting(draw(seed, places=places))
    mass, invalid = c51_projection(**values)
    np.testing.assert_allclose(mass.sum(-1), 1.0, atol=1e-13)
    assert (mass >= 0.0).all()
    assert not invalid.any()


@PROFILE
@given(seed=SEEDS, places=st.booleans())
def test_projection_keeps_the_mean_of_unclamped_targets(seed: int, places: bool) -> None:
    values = projecting(draw(seed, places=places))
    values |= {"discount": 0.3 * values["discount"], "next_support": values["support"]}
    mass, _ = c51_projection(**values)
    places_given = values.get("positions")
    z = atoms(values["support"], 7, places_given, values["shift"])
    z_next = atoms(values["next_support"], 7, places_given, values["next_shift"])
    t = values["returns"][..., None] + values["discount"][..., None] * z_next
    inside = ((t > z[..., :1]) & (t < z[..., -1:])).all(-1)
    want = (values["p_next"] * t).sum(-1)
    np.testing.assert_allclose((mass * z).sum(-1)[inside], want[inside], atol=1e-13)
    clamped = (values["p_next"] * np.clip(t, z[..., :1], z[..., -1:])).sum(-1)
    np.testing.assert_allclose((mass * z).sum(-1), clamped, atol=1e-13)


@PROFILE
@given(seed=SEEDS, places=st.booleans())
def test_projection_on_shifted_atoms_is_that_of_shifted_targets(seed: int, places: bool) -> None:
    values = projecting(draw(seed, places=places))
    back = values | {"returns": values["returns"] - values["shift"]}
    back["shift"] = np.zeros((3, 4))
    np.testing.assert_allclose(c51_projection(**values)[0], c51_projection(**back)[0], atol=1e-12)


def test_terminal_targets_fall_on_two_neighbours_and_an_unchanged_support_changes_nothing() -> None:
    mass, _ = golden(0.25, 0.0)
    assert mass[0, 0].tolist() == [0.0, 0.75, 0.25]
    values = projecting(draw(1))
    same = values | {"next_support": values["support"], "next_shift": values["shift"]}
    same |= {"returns": np.zeros((3, 4)), "discount": np.ones((3, 4))}
    np.testing.assert_allclose(c51_projection(**same)[0], values["p_next"], atol=1e-13)


def test_golden_loss_with_a_shift() -> None:
    logits, support = np.tile([0.0, 0.5, -0.5], (1, 4, 1)), rows([-1.0, 1.0, 1.0])
    loss, d_logits, d_shift, invalid = c51_loss(
        logits,
        np.tile([0.25, 0.5, 0.25], (1, 4, 1)),
        support,
        support,
        everywhere(0.25),
        everywhere(0.5),
        np.ones(1),
        shift=everywhere(0.1),
        next_shift=everywhere(0.0),
    )
    np.testing.assert_allclose(loss, 0.96151967, atol=5e-9)
    np.testing.assert_allclose(
        4.0 * d_logits[0, 0], [0.21969589, -0.16851961, -0.05117628], atol=5e-9
    )
    np.testing.assert_allclose(d_shift, -0.625, atol=1e-12)
    assert not invalid.any()


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("n", [2, 7, 51])
def test_gradients_by_torch_autograd(n: int, places: bool) -> None:
    """Third source: the loss through the projection in torch, the target held constant."""
    values = draw(2, n=n, places=places and n > 2)
    logits = torch.tensor(values["logits"], requires_grad=True)
    shift = torch.tensor(values["shift"], requires_grad=True)
    base = torch.tensor(atoms(values["support"], n, values.get("positions")))
    z = base + shift[..., None]
    z_next = atoms(values["next_support"], n, values.get("positions"), values["next_shift"])
    t = torch.tensor(values["returns"][..., None] + values["discount"][..., None] * z_next)
    inside = torch.clamp(t, z[..., :1], z[..., -1:])
    at = (torch.searchsorted(z.detach(), inside.detach(), right=True) - 1).clamp(0, n - 2)
    z_low, z_high = z.gather(-1, at), z.gather(-1, at + 1)
    w = (inside - z_low) / (z_high - z_low)
    p = torch.tensor(values["p_next"])
    mass = torch.zeros_like(p).scatter_add(-1, at, p * (1 - w)).scatter_add(-1, at + 1, p * w)
    loss = -(mass * torch.log_softmax(logits, -1)).sum(-1)
    got = c51_loss(**values)
    np.testing.assert_allclose(got[0], loss.detach().numpy(), atol=1e-12)
    (d_shift,) = torch.autograd.grad(loss.sum(), shift, retain_graph=True)
    np.testing.assert_allclose(got[2], d_shift.numpy(), atol=1e-11)
    omega = torch.tensor(values["weight"])[:, None] / 3 / 4
    (d_logits,) = torch.autograd.grad((omega * loss).sum(), logits)
    np.testing.assert_allclose(got[1], d_logits.numpy(), atol=1e-13)


def test_loss_by_the_librarys_cross_entropy() -> None:
    values = draw(4)
    mass = c51_projection(**projecting(values))[0].reshape(12, 7)
    want = torch.nn.functional.cross_entropy(
        torch.tensor(values["logits"].reshape(12, 7)), torch.tensor(mass), reduction="none"
    )
    np.testing.assert_allclose(c51_loss(**values)[0].ravel(), want.numpy(), atol=1e-12)


@PROFILE
@given(seed=SEEDS, places=st.booleans(), number=st.sampled_from([1e-3, 1.0, 100.0]))
def test_loss_is_bounded_by_the_entropy_and_ignores_a_number_on_all_logits(
    seed: int, places: bool, number: float
) -> None:
    values = draw(seed, places=places)
    mass, _ = c51_projection(**projecting(values))
    loss, d_logits, *_ = c51_loss(**values)
    entropy = -np.where(mass > 0.0, mass * np.log(np.where(mass > 0.0, mass, 1.0)), 0.0).sum(-1)
    assert (loss >= entropy - 1e-12).all()
    np.testing.assert_allclose(d_logits.sum(-1), 0.0, atol=1e-14)
    moved = c51_loss(**(values | {"logits": values["logits"] + number}))
    np.testing.assert_allclose(moved[0], loss, atol=1e-10)


def test_the_minimum_is_the_target_itself() -> None:
    values = draw(6)
    mass, _ = c51_projection(**projecting(values))
    values["logits"] = np.log(np.maximum(mass, 1e-300))
    _, d_logits, *_ = c51_loss(**values)
    np.testing.assert_allclose(d_logits, 0.0, atol=1e-15)


@pytest.mark.parametrize("places", [False, True])
def test_forms_agree_on_even_and_uneven_atoms(places: bool) -> None:
    for seed in range(10):
        values = draw(seed, places=places)
        first, *others = LOSS.form("default")
        for other in others:
            for a, b in zip(first(**values), other(**values), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-12)


def test_a_target_that_is_no_number_spoils_its_own_row_and_is_flagged() -> None:
    for name, value in (("returns", np.nan), ("p_next", np.nan), ("p_next", np.inf)):
        values = draw(8)
        values[name][1, 2] = value
        with np.errstate(invalid="ignore"):
            loss, d_logits, d_shift, invalid = c51_loss(**values)
        for out in (loss, d_logits.sum(-1), d_shift):
            assert np.argwhere(np.isnan(out)).tolist() == [[1, 2]]
        assert np.argwhere(invalid).tolist() == [[1, 2]]


def test_an_infinite_reward_is_clamped() -> None:
    values = draw(8)
    values["returns"][0, 0] = np.inf
    loss, *_, invalid = c51_loss(**values)
    assert loss[0, 0] == pytest.approx(-log_softmax(values["logits"])[0, 0, -1])
    assert not invalid.any()


@pytest.mark.parametrize("step", [np.nan, -1.0, 0.0, 7.0])
def test_a_degenerate_support_puts_all_mass_on_atom_0_and_is_flagged(step: float) -> None:
    values = draw(8)
    values["support"][2, 1, 2] = step
    loss, _, d_shift, invalid = c51_loss(**values)
    assert loss[2, 1] == pytest.approx(-log_softmax(values["logits"])[2, 1, 0])
    assert d_shift[2, 1] == 0.0
    assert np.argwhere(invalid).tolist() == [[2, 1]]


def meeting(values: dict[str, Any]) -> dict[str, Any]:
    """Let targets fall on atoms, as the family that asks for it does."""
    (family,) = (family for family in LOSS.families if family.name == "on_atoms")
    assert LOSS.prepare is not None
    rng = np.random.default_rng(3)
    return dict(LOSS.prepare(rng, {}, family.make(rng, {}, values)))


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("n", [2, 3, 7, 18])
def test_a_target_on_an_atom_takes_the_slope_of_the_cell_above(n: int, places: bool) -> None:
    """Third source: exact rationals; dL/dshift jumps there, and every form takes the same side."""
    values = meeting(draw(5, n=n, places=places))
    z = [
        [Fraction(float(x)) for x in row]
        for row in atoms(values["support"], n, values.get("positions")).reshape(12, n)
    ]
    log_p = log_softmax(values["logits"]).reshape(12, n)
    p, moved = values["p_next"].reshape(12, n), values["returns"].ravel()
    want, met = [], 0
    for row in range(12):
        pull = 0.0
        for j in range(n):
            t = Fraction(float(moved[row])) + z[row][j]
            if z[row][0] < t < z[row][-1]:
                met += t in z[row]
                low = max(i for i in range(n) if z[row][i] <= t)
                width = float(z[row][low + 1] - z[row][low])
                pull += p[row, j] * (log_p[row, low + 1] - log_p[row, low]) / width
        want.append(pull)
    assert met or n < 3
    for form in LOSS.form("default"):
        np.testing.assert_allclose(form(**values)[2].ravel(), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("places", [False, True])
def test_where_targets_meet_atoms_no_decision_hangs_on_rounding(places: bool) -> None:
    """So a kernel has one right answer there, and the mass that it loses is its own."""
    values = {
        name: np.asarray(value, dtype=np.float32).astype(np.float64)
        for name, value in meeting(draw(5, n=14, places=places)).items()
    }
    evaluator = Evaluator(LOSS.form("default"), values, Precision(), ["f32"] * 3 + ["i32"], seed=0)
    assert evaluator.evaluation().outcomes == 1


@pytest.mark.parametrize("places", [False, True])
def test_every_mutant_is_far_off(places: bool) -> None:
    """Killed as asked: in double precision the distance is millions of bounds."""
    values = draw(9, places=places)
    values["logits"][..., 0] = -30.0
    values["returns"][0] = 3.0
    on_atoms = meeting(draw(9, places=places))
    for name in LOSS.wrong:
        case = on_atoms if name == "integer_b" else values
        right, wrong = (LOSS.call(reading, **case) for reading in ("default", name))
        assert max(np.abs(a - b).max() for a, b in zip(wrong, right, strict=True)) > 1e-3, name
