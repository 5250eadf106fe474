"""Choosing actions: Thompson sampling over the atoms, and noise on the scores of a branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.atoms import atoms, usable
from trueup.kernels.torch.dqn.shapes import BRANCHES, alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_Three = tuple[Tensor, Tensor, Tensor]


class Drawn(NamedTuple):
    """What `thompson` gives; none of it is differentiable."""

    action: Tensor
    """(B,), int32: the action of the largest draw, the first of equal ones."""
    sampled: Tensor
    """(B, n_actions): the atom drawn for every action, shifted."""
    invalid: Tensor
    """(B, n_actions), int32: 1 where a support is degenerate; its draw is the first atom."""


def thompson(
    logits: Tensor,
    support: Tensor,
    u: Tensor,
    *,
    positions: Tensor | None = None,
    shift: Tensor | None = None,
) -> Drawn:
    """Draw one atom for every action and take the action of the largest.

        i = min {i : sum_{j<=i} p_j > u}, p = softmax(logits);  action = argmax_a z_{a,i}
    Shapes: logits (B, n_actions, n_atoms); support (B, n_actions, 3) = (v_min, v_max, delta_z); u
    (B, n_actions) in [0, 1), drawn by the caller, one for each action; positions (n_atoms,); shift
    (B, n_actions). Raises ValueError for shapes that do not fit.
    """
    ranked("thompson", "logits", logits, "B n_actions n_atoms")
    rows, n = logits.shape[:2], logits.shape[2]
    expect(
        "thompson",
        support=(support, (*rows, 3)),
        u=(u, rows),
        positions=(positions, (n,)),
        shift=(shift, rows),
    )
    with torch.no_grad():
        return Drawn(*_thompson(*alike(logits, support, u, positions, shift)))


def greedy_action(scores: Tensor, branches: Sequence[int] = BRANCHES) -> Tensor:
    """Give the best action of every branch, the first of equal ones.

    Shapes: scores (B, A), the actions of all branches one after another. Returns (B, K), int32,
    within the branch. Raises ValueError for another shape.
    """
    ranked("greedy_action", "scores", scores, "B A")
    expect("greedy_action", scores=(scores, (scores.shape[0], sum(branches))))
    with torch.no_grad():
        actions: Tensor = _greedy(*alike(scores), list(branches))
    return actions


def advantage_noise(score: Tensor, sigma: Tensor, noise: Tensor) -> Tensor:
    """Add noise to the scores of every branch: score + sigma of the branch times noise.

    Shapes: score, noise and the result (B, 13), of branches of 4, 3, 3 and 3 actions; sigma (4,).
    Where a sigma is 0 the scores stay, bit by bit. Noise that is added before the mean over the
    actions of a branch is taken off (`dueling`) loses its common part: add it to what is compared.
    Not differentiable. Raises ValueError for shapes that do not fit.
    """
    ranked("advantage_noise", "score", score, "B 13")
    rows = (score.shape[0], sum(BRANCHES))
    expect("advantage_noise", score=(score, rows), sigma=(sigma, (4,)), noise=(noise, rows))
    with torch.no_grad():
        noisy: Tensor = _noise(*alike(score, sigma, noise))
    return noisy


def _plain(
    logits: Tensor, support: Tensor, u: Tensor, positions: Tensor | None, shift: Tensor | None
) -> _Three:
    n = logits.shape[-1]
    p, place = torch.softmax(logits, -1), torch.arange(n, device=logits.device)
    above = p.cumsum(-1) > u.unsqueeze(-1)
    first = torch.where(above, place, n).amin(-1)
    last = torch.where(p > 0, place, 0).amax(-1)  # rounding may leave no sum above u
    hit = torch.where(first < n, first, last)
    z, valid = atoms(support, n, positions, shift), usable(support, n)
    drawn = torch.where(valid, z.gather(-1, hit.unsqueeze(-1)).squeeze(-1), z[..., 0])
    return drawn.argmax(1).int(), drawn, (~valid).int()


def _fast(
    logits: Tensor, support: Tensor, u: Tensor, positions: Tensor | None, shift: Tensor | None
) -> _Three | Refused:
    if positions is not None:
        return Refused("the kernel is for evenly spaced atoms")
    moved = torch.zeros_like(u) if shift is None else shift
    action, sampled, invalid = _fake(logits)
    given = contiguous(logits, support, u, moved)
    refused = launch("dqn.thompson", *given, action, sampled, invalid)
    return (action, sampled, invalid) if refused is None else refused


def _fake(logits: Tensor, *_: Any) -> _Three:
    rows = logits.shape[:2]
    return (
        logits.new_empty(rows[:1], dtype=torch.int32),
        logits.new_empty(rows),
        logits.new_empty(rows, dtype=torch.int32),
    )


def _plain_greedy(scores: Tensor, branches: Sequence[int]) -> Tensor:
    return torch.stack([part.argmax(1) for part in scores.split(list(branches), 1)], 1).int()


def _fast_greedy(scores: Tensor, branches: Sequence[int]) -> Tensor | Refused:
    if tuple(branches) != BRANCHES:
        return Refused(f"the kernel is for branches of {BRANCHES} actions")
    actions = _fake_greedy(scores, branches)
    refused = launch("dqn.greedy_action", scores.contiguous(), actions)
    return actions if refused is None else refused


def _fake_greedy(scores: Tensor, branches: Sequence[int]) -> Tensor:
    return scores.new_empty((scores.shape[0], len(branches)), dtype=torch.int32)


def _plain_noise(score: Tensor, sigma: Tensor, noise: Tensor) -> Tensor:
    parts = [
        torch.where(scale == 0, part, part + scale * own)
        for scale, part, own in zip(
            sigma.unbind(), score.split(BRANCHES, 1), noise.split(BRANCHES, 1), strict=True
        )
    ]
    return torch.cat(parts, 1)


def _fast_noise(score: Tensor, sigma: Tensor, noise: Tensor) -> Tensor | Refused:
    noisy = _fake_noise(score)
    refused = launch("dqn.advantage_noise", *contiguous(score, sigma, noise), noisy)
    return noisy if refused is None else refused


def _fake_noise(score: Tensor, *_: Tensor) -> Tensor:
    return score.new_empty(score.shape)


_thompson = operator(
    "thompson(Tensor logits, Tensor support, Tensor u, Tensor? positions, Tensor? shift) "
    "-> (Tensor, Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
_greedy = operator(
    "greedy_action(Tensor scores, int[] branches) -> Tensor",
    _plain_greedy,
    fast=_fast_greedy,
    fake=_fake_greedy,
)
_noise = operator(
    "advantage_noise(Tensor score, Tensor sigma, Tensor noise) -> Tensor",
    _plain_noise,
    fast=_fast_noise,
    fake=_fake_noise,
)
