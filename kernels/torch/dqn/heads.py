"""C51Head and IQNHead: the distributional heads of a branching agent on a shared trunk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trueup.kernels.torch.dqn.aggregation import dueling
from trueup.kernels.torch.dqn.atoms import expected_q
from trueup.kernels.torch.dqn.c51 import BRANCH_WEIGHT, C51Loss, c51_loss
from trueup.kernels.torch.dqn.iqn import TAUS, IQNLoss, cvar, iqn_loss
from trueup.kernels.torch.dqn.sampling import Drawn, greedy_action, thompson
from trueup.kernels.torch.dqn.shapes import (
    BRANCHES,
    Constant,
    entering,
    expect,
    ranked,
    sized,
    spread,
)
from trueup.kernels.torch.dqn.shift import atom_shift
from trueup.kernels.torch.ops.registry import operator

SHIFT = (-0.5, 0.0, 0.5, 0.0)
"""How the auxiliary signal moves the atoms of Short, Hold, Long and Flat at first."""


def _plain_scale(h: Tensor, factor: float) -> Tensor:
    return h.clone(memory_format=torch.contiguous_format)


def _fake_scale(h: Tensor, factor: float) -> Tensor:
    return h.new_empty(h.shape)


def _keep_scale(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.factor = inputs[1]


def _backward_scale(ctx: Any, d: Tensor) -> tuple[Tensor, None]:
    return ctx.factor * d, None


# The identity, whose gradient is multiplied.
_scaled = operator(
    "scale_gradient(Tensor h, float factor) -> Tensor", _plain_scale, fake=_fake_scale
)
torch.library.register_autograd(
    "trueup::scale_gradient", _backward_scale, setup_context=_keep_scale
)


class _Branching(Constant):
    """Actions of all branches one after another, the greedy ones, and those taken."""

    def __init__(self, branches: Sequence[int]) -> None:
        super().__init__()
        if not branches or min(branches) < 1:
            raise ValueError(f"branches: got {list(branches)}, expected positive numbers")
        self.branches = tuple(int(size) for size in branches)

    def constants(self) -> dict[str, Tensor]:
        """Give `starts`, the first action of every branch."""
        starts = [sum(self.branches[:k]) for k in range(len(self.branches))]
        return {"starts": torch.tensor(starts)}

    def greedy(self, q: Tensor) -> Tensor:
        """Give the best action of every branch, the first of equal ones: (B, A) to (B, 4).

        Raises ValueError for another shape.
        """
        return greedy_action(q, self.branches).long()

    def taken(self, rows: Tensor, actions: Tensor) -> Tensor:
        """Give the rows of the actions of every branch: (B, A, ...) at (B, 4) to (B, 4, ...).

        Raises ValueError for another shape of `actions` and, on the CPU, for an action that its
        branch does not have.
        """
        expect("taken", actions=(actions, (rows.shape[0], len(self.branches))))
        if actions.device.type == "cpu" and not torch.compiler.is_compiling():
            self._within(actions)
        index = actions.long() + self.starts
        wide = index.reshape(*index.shape, *(1,) * (rows.ndim - 2))
        return rows.gather(1, wide.expand(*index.shape, *rows.shape[2:]))

    def _within(self, actions: Tensor) -> None:
        """Raise ValueError for an action of another branch, whose row would be taken unnoticed."""
        wrong = (actions < 0) | (actions >= torch.tensor(self.branches))
        if wrong.any():
            row, branch = wrong.nonzero()[0].tolist()
            raise ValueError(
                f"taken: got action {actions[row, branch].item()} of branch {branch} at row {row}, "
                f"expected 0 to {self.branches[branch] - 1}"
            )


class C51Head(_Branching):
    """Dueling logits of the atoms of every action: C51 on branches, with movable atoms.

        logits = V + A - mean of A over the branch;  z_a = support + W_a signal for direction
    The first branch is direction. Adding a number to the logits of an action changes nothing and
    has no gradient: what an auxiliary signal trains is where the atoms lie.

    Args: dim of the trunk's output; n_atoms; branches, actions of each; trunk_scale multiplies the
    gradient that enters the trunk (1/5, as published for dueling branches); shift, the first W of
    direction. Raises ValueError for sizes below 1, for fewer than two atoms, for branches without
    an action and for a shift of another length than the first branch.
    """

    def __init__(
        self,
        dim: int,
        n_atoms: int = 51,
        branches: Sequence[int] = BRANCHES,
        *,
        trunk_scale: float = 0.2,
        shift: Sequence[float] = SHIFT,
    ) -> None:
        """Make the value and advantage layers and the shift."""
        super().__init__(branches)
        sized("C51Head", dim=dim)
        if n_atoms < 2:
            raise ValueError(f"n_atoms: got {n_atoms}, expected 2 or more")
        if len(shift) != self.branches[0]:
            raise ValueError(f"shift: got {len(shift)} numbers, expected {self.branches[0]}")
        self.n_atoms, self.trunk_scale = n_atoms, trunk_scale
        self.value = nn.Linear(dim, n_atoms)
        self.advantage = nn.Linear(dim, sum(self.branches) * n_atoms)
        self.shift = nn.Parameter(torch.tensor(shift, dtype=torch.float32))
        self.keep_constants()

    def forward(self, h: Tensor) -> Tensor:
        """Give logits (B, A, n_atoms) from the trunk's output h (B, dim), else ValueError."""
        h = _scaled(entering("C51Head", h, self.value.weight), self.trunk_scale)
        advantage = self.advantage(h).unflatten(1, (sum(self.branches), self.n_atoms))
        return dueling(self.value(h), advantage, self.branches)

    def shifts(self, signal: Tensor) -> Tensor:
        """Give (B, A): W_a signal for direction, 0 for the others. signal (B,), from -1 to 1."""
        ranked("shifts", "signal", signal, "B")
        moved = signal.unsqueeze(1) * self.shift.to(signal.dtype)
        return nn.functional.pad(moved, (0, sum(self.branches[1:])))

    def q(
        self,
        logits: Tensor,
        support: Tensor,
        signal: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Give expected values (B, A) on the shifted atoms.

        logits (B, A, n_atoms); support (B, A, 3), or what expands to it; signal (B,) or None.
        """
        rows = spread("q", "support", support.to(logits.device), (*logits.shape[:2], 3))
        shift = None if signal is None else self.shifts(signal)
        return expected_q(logits, rows, positions=positions, shift=shift)[0]

    def sample(
        self,
        logits: Tensor,
        support: Tensor,
        u: Tensor,
        signal: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Drawn:
        """Draw the direction by Thompson sampling on the shifted atoms; see `thompson`.

        logits, support and signal as in `q`; u (B, 4) in [0, 1), one draw for each direction.
        """
        first = self.branches[0]
        rows = spread("sample", "support", support.to(logits.device), (*logits.shape[:2], 3))
        shift = None if signal is None else self.shifts(signal)[:, :first]
        return thompson(logits[:, :first], rows[:, :first], u, positions=positions, shift=shift)

    def loss(
        self,
        logits: Tensor,
        actions: Tensor,
        p_next: Tensor,
        support: Tensor,
        next_support: Tensor,
        returns: Tensor,
        discount: Tensor,
        weight: Tensor,
        *,
        signal: Tensor | None = None,
        next_shift: Tensor | None = None,
        positions: Tensor | None = None,
        branch_weight: float = BRANCH_WEIGHT,
    ) -> C51Loss:
        """Give the loss of the taken actions against the next actions' distributions.

        logits (B, A, n_atoms); actions (B, 4) within their branches; p_next (B, 4, n_atoms);
        support, next_support (B, A, 3) or what expands to it: online at the taken, `next_support`
        (B, 4, 3) at the next actions; the others as in `c51_loss`. next_shift (B, 4) is that of
        the target network. Raises ValueError for shapes that do not fit.
        """
        B, A, _ = logits.shape
        rows = spread("loss", "support", support.to(logits.device), (B, A, 3))
        after = next_support.to(logits.device)
        shift = None
        if signal is not None:  # the other branches do not move
            expect("loss", signal=(signal, (B,)))
            moved = atom_shift(self.shift, signal, actions[:, 0]).unsqueeze(1)
            shift = nn.functional.pad(moved, (0, len(self.branches) - 1))
        return c51_loss(
            self.taken(logits, actions),
            p_next,
            self.taken(rows, actions),
            spread("loss", "next_support", after, (B, len(self.branches), 3)),
            returns,
            discount,
            weight,
            positions=positions,
            shift=shift,
            next_shift=next_shift,
            branch_weight=branch_weight,
        )


class IQNHead(_Branching):
    """Quantiles of every action at fixed levels: IQN with a cosine embedding of the level.

        phi_j(tau) = max(sum_i cos(pi i tau) w_ij + b_j, 0), i from i0;  theta = linear(h * phi)
    Args: dim of the trunk's output; branches; taus; n_cos cosines, from i0 (the paper prints 0,
    whose cosine is constant); trunk_scale multiplies the gradient that enters the trunk, once for
    all branches. Raises ValueError for sizes below 1 and for taus that do not ascend within (0, 1).
    """

    def __init__(
        self,
        dim: int,
        branches: Sequence[int] = BRANCHES,
        *,
        taus: Sequence[float] = TAUS,
        n_cos: int = 64,
        i0: int = 1,
        trunk_scale: float = 0.25,
    ) -> None:
        """Make the embedding and the output layer."""
        super().__init__(branches)
        if list(taus) != sorted(set(taus)) or not taus or taus[0] <= 0 or taus[-1] >= 1:
            raise ValueError(f"taus: got {list(taus)}, expected numbers ascending within (0, 1)")
        sized("IQNHead", dim=dim, n_cos=n_cos)
        self.trunk_scale, self.taus = trunk_scale, tuple(float(tau) for tau in taus)
        self.waves = (i0, i0 + n_cos)
        self.embedding = nn.Linear(n_cos, dim)
        self.output = nn.Linear(dim, sum(self.branches))
        self.keep_constants()

    def constants(self) -> dict[str, Tensor]:
        """Give `tau`, in float32 whatever the weights are, and the cosines of the levels."""
        tau = torch.tensor(self.taus, dtype=torch.float32)
        waves = torch.arange(*self.waves, dtype=torch.float64)
        cosines = torch.cos(math.pi * tau.double()[:, None] * waves)
        wide = self.embedding.weight.dtype is torch.float64
        told = {"tau": tau, "cosines": cosines if wide else cosines.float()}
        return super().constants() | told

    def forward(self, h: Tensor) -> Tensor:
        """Give theta (B, A, n_tau) from the trunk's output h (B, dim), else ValueError."""
        h = _scaled(entering("IQNHead", h, self.output.weight), self.trunk_scale)
        phi = torch.relu(self.embedding(self.cosines.to(h.dtype)))
        theta: Tensor = self.output(h.unsqueeze(1) * phi).transpose(1, 2)
        return theta

    def q(self, theta: Tensor, level: float = 1.0) -> Tensor:
        """Give (B, A): the mean of the worst share `level`, at 1 the value of an action."""
        return cvar(theta, self.taus, level)

    def loss(
        self,
        theta: Tensor,
        actions: Tensor,
        target: Tensor,
        weight: Tensor,
        kappa: float = 1.0,
        *,
        reading: str = "divided",
    ) -> IQNLoss:
        """Give the quantile Huber loss of the taken actions; see `iqn_loss`.

        theta (B, A, n_tau); actions (B, 4) within their branches; target (B, 4, n_target).
        """
        rows = self.taken(theta, actions)
        return iqn_loss(rows, target, self.tau, weight, kappa, reading=reading)
