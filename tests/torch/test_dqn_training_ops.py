"""Operators of the agent's training on the CPU: float64 references, differences, torch's checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import trueup.kernels.torch.dqn as t
from trueup.reference import dqn

F64, INT = torch.float64, torch.int32
B, N, ACTIONS, CLASSES = 7, 5, 4, 5
SLICES = [(2, 9), (11, 20)]
FOUR = [(3, 7), (7, 11), (13, 20), (20, 20)]


def random(*shape: int, grad: bool = False) -> Tensor:
    return torch.randn(*shape, dtype=F64).requires_grad_(grad)


def unit(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=F64)


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=F64)


def whole(high: int, *shape: int, low: int = 0) -> Tensor:
    return torch.randint(low, high, shape, dtype=INT)


def pairs(slices: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(slices, dtype=INT)


def simplex() -> Tensor:
    return torch.softmax(random(B, 6), 1)


def drawn() -> list[Any]:
    low = torch.randn(B, ACTIONS) - 2
    support = t.support_of(low, low + 3, N).double()
    support[1, 2, 2] = 0.0
    return [2 * random(B, ACTIONS, N), support, unit(B, ACTIONS), None, random(B, ACTIONS) / 4]


def targets() -> list[Any]:
    low = torch.randn(2, B, 4) - 2
    support, after = t.support_of(low, low + 3, N).double()
    support[1, 2, 2] = 0.0
    p_next = torch.softmax(random(B, 4, N), -1)
    rows = random(B, 4) / 3, unit(B, 4), None, random(B, 4) / 4, random(B, 4) / 4
    return [p_next, support, after, *rows]


def auxiliary() -> list[Any]:
    label = whole(CLASSES, B, low=-1)
    label[:2] = torch.tensor([-1, 2])
    return [random(B), random(B), 2 * random(B, CLASSES), label, 0.3]


def terms(*more: Any) -> list[Any]:
    return [2 * random(B, ACTIONS), whole(ACTIONS, B), *more]


def tree(C: int) -> Tensor:
    leaves = torch.rand(C)
    leaves[C // 2] = 0.0
    made = torch.cat([torch.zeros(C), leaves]).double()
    t.sum_tree_rebuild_(made)
    return made


def book() -> list[Any]:
    steps = 1 + torch.arange(10, dtype=F64)
    bid, ask = 100 - 0.25 * steps, 100 + 0.25 * steps
    sizes = 10 * unit(2, B, 10)
    sizes[0, 1] = 0.0  # an empty side
    rows = [
        bid.repeat(B, 1),
        sizes[0],
        ask.repeat(B, 1),
        sizes[1],
        doubles(0.25),
    ]
    rows[0][2] += 1.0  # a crossed book
    return rows


def moments() -> list[Any]:
    return [random(B), random(B) / 9, 0.1 + unit(B), torch.tensor([4], dtype=INT), 0.02, 3.0]


def flags(bad: bool) -> list[Any]:
    x = torch.randn(40)
    if bad:
        x[17] = torch.inf
    seen = torch.full((48,), -1, dtype=INT)
    return [x, whole(2, 48), seen, torch.tensor([30], dtype=INT), torch.tensor([9], dtype=INT)]


# Operator: its arguments by the schema, the places that it writes, and its reference; None if the
# reference takes them as they are.
Case = tuple[Callable[[], list[Any]], tuple[int, ...], Callable[..., Any] | None]
CASES: dict[str, Case] = {
    "symlog": (lambda: [3 * random(B, 2)], (), None),
    "symexp": (lambda: [3 * random(B, 2)], (), None),
    "symlog_backward": (lambda: [3 * random(B), random(B)], (), None),
    "symexp_backward": (lambda: [3 * random(B), random(B)], (), None),
    "expected_q_backward": (
        lambda: [random(B, ACTIONS), *drawn()[:2], None], (),
        lambda d, logits, support, _: dqn.expected_q_backward(d, logits, support)[0],
    ),
    "greedy_action": (
        lambda: [random(B, 13), [4, 3, 3, 3]], (), lambda scores, _: dqn.greedy_action(scores),
    ),
    "atom_support": (
        lambda: [2 * random(8).sort().values, random(B, 13), 11, 0.5, 0.2, 0.5, [4, 3, 3, 3]], (),
        None,
    ),
    "c51_projection": (targets, (), None),
    "td_priority": (
        lambda: [torch.softmax(random(B, 4, N), -1), random(B, 4, N), unit(B, 4, N)], (),
        lambda mass, z, p: dqn.td_priority(mass, z, p, 0 * mass[..., 0]),
    ),
    "epsilon_greedy": (
        lambda: [whole(3, B, 4), whole(3, B, 4), unit(B, 4), doubles(0.4)], (), None,
    ),
    "nstep_return": (
        lambda: [random(B, 3), (unit(B, 3) < 0.2).double(), unit(4), 1.5], (), None,
    ),
    "branch_budgets": (
        lambda: [unit(3, 4), unit(4), unit(3), 0.2 * unit(3), 0.5 + unit(3)], (), None,
    ),
    "mag_concat": (lambda: [random(B, 6), random(B, 4), doubles(0.8), 100.0], (), None),
    "mag_concat_backward": (
        lambda: [random(B, 10), random(B, 4), doubles(0.8), 100.0], (), None,
    ),
    "action_encoding": (
        lambda: [whole(4, B), *(whole(3, B) for _ in range(3))], (), None,
    ),
    "liquid_step": (lambda: [random(B), unit(B), random(B), 0.5 + unit(B), 0.3], (), None),
    "liquid_step_backward": (
        lambda: [random(B), random(B), unit(B), random(B), 0.5 + unit(B), 0.3], (), None,
    ),
    "liquid_mod": (
        lambda: [unit(B), 0.5 + unit(B)], (), lambda f, tau: dqn.liquid_mod(f, tau, f)[:2],
    ),
    "cvar": (
        lambda: [random(B, 2, 5), [0.05, 0.25, 0.5, 0.75, 0.95], 0.3], (),
        lambda theta, taus, a: dqn.cvar(theta.reshape(-1, 5), np.array([a])).reshape(B, 2),
    ),
    "thompson": (drawn, (), None),
    "advantage_noise": (
        lambda: [random(B, 13), doubles(0, 1, 2, 3), random(B, 13)], (), None,
    ),
    "q_quantiles": (
        lambda: [random(B, 13), [4, 3, 3, 3]], (), lambda q, _: dqn.q_quantiles(q),
    ),
    "aux_heads": (
        auxiliary, (),
        lambda *g: [dqn.aux_heads(*g)[place] for place in (2, 0, 1, 3, 4)],
    ),
    "aux_weight": (lambda: [unit(1), 9 * random(1), 0.1, 20.0, 0.1], (), None),
    "aux_direction": (lambda: [2 * random(B, CLASSES)], (), None),
    "attention_focus_": (
        lambda: [simplex(), unit(1), unit(7), torch.tensor([3], dtype=INT)], (2, 3),
        dqn.attention_focus,
    ),
    "attention_summary_": (
        lambda: [simplex(), unit(1), unit(3), torch.tensor([0], dtype=INT)], (2, 3),
        dqn.attention_summary,
    ),
    "conservative": (lambda: terms(unit(B), 0.7, 0.25), (), None),
    "expectile": (lambda: terms(random(B), unit(B), 0.8, 0.25), (), None),
    "expectile_backup": (
        lambda: [random(B), whole(2, B).double(), random(B), unit(4)], (), None,
    ),
    "entropy_term": (lambda: [2 * random(B, ACTIONS), unit(B), 0.4, 0.7, 0.25], (), None),
    "order_book": (book, (), None),
    "action_factoring": (lambda: [whole(108, 2 * B)], (), None),
    "differential_sharpe_": (
        moments, (1, 2), lambda *g: [dqn.differential_sharpe(*g)[place] for place in (1, 2, 0)],
    ),
    "atom_shift": (
        lambda: [random(4), random(B), whole(4, B)], (), lambda W, s, a: W[a] * s,
    ),
    "atom_shift_gradient": (
        lambda: [random(B), whole(4, B), random(B), unit(B), random(4), random(B)], (), None,
    ),
    "sum_tree_rebuild_": (
        lambda: [torch.cat([torch.zeros(6), torch.rand(6)]).double()], (0,), dqn.sum_tree_rebuild,
    ),
    "sum_tree_update_": (
        lambda: [tree(11), whole(11, B), unit(B)], (0,), dqn.sum_tree_update,
    ),
    "sum_tree_sample": (lambda: [tree(11), unit(B)], (), None),
    "priorities": (lambda: [random(B, 4), 0.6, 1e-6], (), None),
    "importance_weights": (
        lambda: [0.1 + unit(B), None, 0.4], (), lambda p, _, beta: dqn.importance_weights(p, beta),
    ),
    "grad_norms": (
        lambda: [random(4, 23), pairs(SLICES), True], (), lambda g, s, _: dqn.grad_norms(g, s),
    ),
    "saxpy_correction_": (
        lambda: [random(23), random(23), doubles(0.2, 0.5, 0.9, 0.4), doubles(0.5), pairs(FOUR)],
        (0,), dqn.saxpy_correction,
    ),
    "nan_flags_": (lambda: flags(True), (1, 2), dqn.nan_flags),
}  # fmt: skip
TABLE = list(CASES)


def listed(returned: Any) -> list[Any]:
    return [returned] if isinstance(returned, Tensor | np.ndarray) else list(returned or ())


def reference_of(name: str) -> Callable[..., Any]:
    own = CASES[name][2]
    return own or getattr(dqn, name)


@pytest.mark.parametrize("name", TABLE)
def test_plain_torch_agrees_with_the_reference(name: str) -> None:
    make, places, _ = CASES[name]
    given = make()
    plain = [item.numpy().copy() if isinstance(item, Tensor) else item for item in given]
    want = listed(reference_of(name)(*plain))
    returned = listed(getattr(torch.ops.trueup, name)(*given))
    got = [*(given[place] for place in places), *returned]
    assert len(got) == len(want)
    for one, two in zip(got, want, strict=True):
        array = np.asarray(two).reshape(one.shape)
        np.testing.assert_allclose(one.numpy(), array, rtol=1e-12, atol=1e-13)


def singles(given: list[Any]) -> tuple[Any, ...]:
    return tuple(
        item.float() if isinstance(item, Tensor) and item.dtype is F64 else item for item in given
    )


# The inputs that each differentiable operator has a gradient for.
LEAVES = {
    "symlog": (0,),
    "symlog_backward": (0, 1),
    "symexp": (0,),
    "symexp_backward": (0, 1),
    "expected_q_backward": (0, 1),
    "liquid_step": (0, 1, 2, 3),
    "liquid_mod": (0, 1),
    "cvar": (0,),
    "aux_heads": (0, 2),
    "aux_direction": (0,),
    "conservative": (0,),
    "expectile": (2,),
    "entropy_term": (0,),
    "atom_shift": (0, 1),
    "mag_concat": (0, 1),
}


@pytest.mark.parametrize("name", TABLE)
def test_opcheck(name: str) -> None:
    given = CASES[name][0]()
    rows = tuple(given) if name == "differential_sharpe_" else singles(given)
    for place in LEAVES.get(name, ()):
        rows[place].requires_grad_()
    torch.library.opcheck(getattr(torch.ops.trueup, name), rows)


# What is differentiated, as a function of the leaves; and whether twice.
Smooth = tuple[Callable[..., Any], Callable[[], list[Tensor]], bool]
SMOOTH: dict[str, Smooth] = {
    "symlog": (t.symlog, lambda: [random(B)], True),
    "symexp": (t.symexp, lambda: [random(B)], True),
    "liquid_step": (
        lambda x, f, A, tau: t.liquid_step(x, f, A, tau, 0.3),
        lambda: [random(2, B), unit(2, B), random(B), 0.5 + unit(1)], False,
    ),
    "liquid_mod": (t.liquid_mod, lambda: [unit(B), 0.5 + unit(B)], True),
    "cvar": (lambda theta: t.cvar(theta, level=0.4), lambda: [random(B, 5)], True),
    "aux_direction": (t.aux_direction, lambda: [random(B, CLASSES)], True),
    "aux_heads": (
        lambda pred, logits: t.aux_heads(
            pred, torch.ones(B), logits, torch.tensor([-1, 0, 1, 2, 3, 4, -1]), 0.3
        ).total,
        lambda: [random(B), random(B, CLASSES)], False,
    ),
    "conservative": (
        lambda Q: t.conservative(Q, torch.arange(B) % 4, torch.ones(B), 0.7),
        lambda: [random(B, ACTIONS)], False,
    ),
    "expectile": (
        lambda V: t.expectile(torch.ones(B, 4), torch.arange(B) % 4, V, torch.ones(B), 0.8),
        lambda: [random(B)], False,
    ),
    "entropy_term": (
        lambda Q: t.entropy_term(Q, torch.ones(B), 0.4, 0.7), lambda: [random(B, ACTIONS)], False,
    ),
    "atom_shift": (
        lambda W, s: t.atom_shift(W, s, torch.arange(B) % 3),
        lambda: [random(4), random(B)], False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_by_finite_differences(name: str) -> None:
    run, make, twice = SMOOTH[name]
    leaves = [leaf.requires_grad_() for leaf in make()]
    assert gradcheck(run, leaves, fast_mode=True)
    if twice:
        assert gradgradcheck(run, leaves, fast_mode=True)


@pytest.mark.parametrize("name", ["conservative", "aux_heads"])
def test_a_weight_on_the_device_is_the_number_it_holds(name: str) -> None:
    """A scalar that a kernel wrote stays a tensor: the host reads nothing."""
    if name == "conservative":
        leaf = random(B, ACTIONS, grad=True)
        rest = torch.arange(B) % 4, torch.ones(B)
        losses = [t.conservative(leaf, *rest, w) for w in (0.7, doubles(0.7))]
    else:
        leaf = random(B, CLASSES, grad=True)
        label = torch.arange(B) % CLASSES - 1
        losses = [
            t.aux_heads(torch.zeros(B), torch.ones(B), leaf, label, w).total
            for w in (0.7, doubles(0.7))
        ]
    grads = [torch.autograd.grad(loss, leaf)[0] for loss in losses]
    torch.testing.assert_close(losses[0], losses[1])
    torch.testing.assert_close(grads[0], grads[1])


def test_the_scale_of_appended_values_is_no_part_of_the_gradient() -> None:
    """The differences hold it fixed: the gradient is that of [h, c q] for the c of the forward."""
    h, q, rms = random(B, 6, grad=True), random(B, 4, grad=True), doubles(0.8)
    joined, c = t.mag_concat(h, q, rms)
    d = torch.randn_like(joined)
    got = torch.autograd.grad(joined, (h, q), d)
    want = torch.autograd.grad(torch.cat([h, c.detach() * q], 1), (h, q), d)
    for one, two in zip(got, want, strict=True):
        torch.testing.assert_close(one, two)
    assert not c.requires_grad


def test_every_action_has_the_support_of_its_branch() -> None:
    quantiles, q = torch.linspace(-3, 3, 8), torch.randn(B, 13)
    every = t.branch_supports(quantiles, 11)
    assert every.shape == (13, 3)
    assert [row[0].item() for row in every.unique_consecutive(dim=0)] == every[
        [0, 4, 7, 10], 0
    ].tolist()
    wide = t.branch_supports(quantiles, 11, q=q, widening=0.5)
    want = dqn.atom_support(quantiles.double().numpy(), q.double().numpy(), 11, 0.5)
    sizes = torch.tensor([4, 3, 3, 3])
    torch.testing.assert_close(wide, torch.from_numpy(want).float().repeat_interleave(sizes, 1))
    with pytest.raises(ValueError, match=r"got widening 0\.5 and no q"):
        t.branch_supports(quantiles, widening=0.5)
    with pytest.raises(ValueError, match=r"got quantiles \(7,\), expected \(8,\)"):
        t.branch_supports(quantiles[1:])


def test_every_public_name_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()
    results = {name for name in t.__all__ if hasattr(getattr(t, name), "_fields")}
    assert not [name for name in set(t.__all__) - results if f"`{name}" not in page]
