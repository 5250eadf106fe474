"""A small branching agent on synthetic prices: it learns, stays finite, and its telemetry passes.

Returns follow r' = 0.8 r + 0.6 noise. A direction and a magnitude make a position; the right order
type depends on the size of the last return, the right urgency is always the same. The agent is
trained with the package's blocks, heads and losses, and reads its bus through the references.
"""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trueup.gates.judge import judge
from trueup.kernels.torch import (
    C51Head,
    GatedResidual,
    IQNHead,
    MoEGate,
    SelectiveScan,
    VariableSelection,
    support_of,
)
from trueup.reference import isv
from trueup.reference.isv.layout import Layout, Slot, fingerprint, hexadecimal
from trueup.reference.isv.layout import Tensor as Listed

EPOCHS, STEPS, WALKERS, BARS, ATOMS = 6, 50, 64, 8, 21
FEATURES, WIDTH, EXPERTS = 14, 24, 4
BRANCHES = {"DIR": 4, "MAG": 3, "ORD": 3, "URG": 3}
SLOTS = (
    "LEARNING_HEALTH", "EPOCH_IDX", "TOTAL_EPOCHS", "EPSILON_EFF", "TAU_EFF", "KELLY_CAP_EFF",
    "GAMMA_DIR_EFF", "GAMMA_MAG_EFF", "GAMMA_ORD_EFF", "GAMMA_URG_EFF", "PLAN_THRESHOLD",
    "READINESS_EMA", "SEED_FRACTION_EMA", "CQL_ALPHA", "CONVICTION_FLOOR", "REWARD_TRAIL_EMA",
    "REWARD_MICRO_EMA", "REWARD_BONUS_EMA",
)  # fmt: skip


class Market:
    """Walkers through synthetic returns, each with a position that Hold keeps."""

    def __init__(self, seed: int, device: str) -> None:
        self.random, self.device = torch.Generator().manual_seed(seed), device
        self.returns = torch.zeros(WALKERS, BARS)
        self.position = torch.zeros(WALKERS)
        for _ in range(BARS + 20):
            self._move()

    def _move(self) -> None:
        noise = torch.randn(WALKERS, generator=self.random)
        new = 0.8 * self.returns[:, -1] + 0.6 * noise
        self.returns = torch.cat([self.returns[:, 1:], new.unsqueeze(1)], 1)

    def state(self) -> tuple[Tensor, Tensor, Tensor]:
        """Give bars (B, T, 2), features (B, 14), and the auxiliary signal (B,)."""
        bars = torch.stack([self.returns, self.returns.abs()], 2)
        noise = torch.randn(WALKERS, 9, generator=self.random)
        last = self.returns[:, -4:]
        features = torch.cat([last, noise, self.position.unsqueeze(1)], 1)
        signal = torch.tanh(self.returns[:, -1])
        return bars.to(self.device), features.to(self.device), signal.to(self.device)

    def step(self, actions: Tensor) -> Tensor:
        """Take actions (B, 4), move the prices, and give the rewards (B,)."""
        direction, magnitude, order, urgency = actions.cpu().unbind(1)
        size = torch.tensor([0.25, 0.5, 1.0])[magnitude]
        target = torch.tensor([-1.0, 0.0, 1.0, 0.0])[direction] * size
        self.position = torch.where(direction == 1, self.position, target)
        best = torch.where(self.returns[:, -1].abs() > 0.8, 2, 0)
        costs = 0.2 * (order != best) + 0.2 * (urgency != 1)
        self._move()
        return (self.position * self.returns[:, -1] - costs).to(self.device)


class Agent(nn.Module):
    """Scan over bars, variable selection, two gated residual networks, experts, two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.scan = nn.Linear(2, 8), SelectiveScan(8, heads=2, head_dim=4, state=4)
        self.select = VariableSelection(FEATURES + 8, (0, 4, 6, 8, 10, 13, 14), sigma=6.0)
        self.grn1, self.grn2 = GatedResidual(FEATURES + 8, WIDTH), GatedResidual(WIDTH)
        self.gate = MoEGate(FEATURES + 8, EXPERTS, 16)
        self.experts = nn.Linear(WIDTH, EXPERTS * WIDTH)
        self.c51 = C51Head(WIDTH, ATOMS, shift=(0.0, 0.0, 0.0, 0.0))
        self.iqn = IQNHead(WIDTH, n_cos=16)

    def forward(self, state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Give C51's logits, IQN's quantiles and the experts' weights."""
        bars, features, _ = state
        core = self.scan(self.embed(bars))[:, -1]
        x = torch.cat([features, core], 1)
        chosen, _ = self.select(x)
        h = self.grn2(self.grn1(chosen))
        g = self.gate(x)
        h = h + self.gate.mix(g, self.experts(h).unflatten(1, (EXPERTS, WIDTH)))
        return self.c51(h), self.iqn(h), g


class Run:
    """Training: the bus, monitors and rows of telemetry beside the gradient steps."""

    def __init__(self, device: str, seed: int = 3) -> None:
        torch.manual_seed(seed)
        self.device, self.seed = device, seed
        self.agent = Agent().to(device)
        self.start = copy.deepcopy(self.agent)
        self.target = copy.deepcopy(self.agent).requires_grad_(False)
        self.adam = torch.optim.Adam(self.agent.parameters(), 4e-3)
        self.market = Market(seed, device)
        self.series: list[dict[str, float]] = []
        self.rows: list[dict[str, Any]] = []
        self.middle, self.health = np.zeros(4), 0.25
        self.averages: tuple[Any, Any] = (np.zeros(6), np.zeros(1))
        self.weights = np.ones(4)
        self.wins: list[float] = []
        self.bus = self.read_bus(0)
        tensors = [Listed(name, item.numel()) for name, item in self.agent.named_parameters()]
        slots = tuple(Slot(index, 1, name) for index, name in enumerate(SLOTS))
        tail = Slot(len(SLOTS), 2, "LAYOUT_FINGERPRINT")
        self.fingerprint = hexadecimal(fingerprint(Layout((*slots, tail), tuple(tensors))))

    def support(self) -> Tensor:
        """Atoms of every action, around the middle of its branch's values."""
        middle = torch.tensor(self.middle).repeat_interleave(torch.tensor([4, 3, 3, 3]))
        return support_of(middle - 5, middle + 5, ATOMS).to(self.device)

    def read_bus(self, epoch: int) -> dict[str, float]:
        """What the references make of health, epoch, ranges and rewards, in float32."""
        h, wins = np.array([self.health]), np.array(self.wins or [0.0])
        seeds, won = np.array([0.9**epoch]), wins > 0
        count = np.array([float(len(self.wins))])
        mean_win, mean_loss = (
            np.array([np.abs(wins[side]).mean() if side.any() else 0.0]) for side in (won, ~won)
        )
        ema = self.averages[0]
        gammas = isv.gamma(np.full(4, 10.0) - np.abs(self.middle) - np.arange(4) / 8, h)
        values = {
            "LEARNING_HEALTH": self.health,
            "EPSILON_EFF": isv.epsilon(np.array([1.0 * epoch]), np.array([1.0 * EPOCHS]), h)[0],
            "TAU_EFF": isv.tau(h)[0],
            "KELLY_CAP_EFF": isv.kelly_cap(won.mean(keepdims=True), mean_win, mean_loss, count, h)[0],
            "PLAN_THRESHOLD": isv.plan_threshold(h, h, count + 1)[0][0],
            "READINESS_EMA": self.health,
            "SEED_FRACTION_EMA": seeds[0],
            "CQL_ALPHA": isv.cql_alpha(seeds)[0],
            "CONVICTION_FLOOR": 0.25,
            "REWARD_TRAIL_EMA": ema[0],
            "REWARD_MICRO_EMA": ema[1],
            "REWARD_BONUS_EMA": ema[5],
        }
        values |= {f"GAMMA_{b}_EFF": g for b, g in zip(BRANCHES, gammas, strict=True)}
        bus = {name: float(np.float32(value)) for name, value in values.items()}
        return bus | {"EPOCH_IDX": epoch, "TOTAL_EPOCHS": EPOCHS}

    def act(self, q: Tensor) -> Tensor:
        """Explore in every branch by a draw of its own."""
        sizes = torch.tensor(list(BRANCHES.values()))
        other = (torch.rand(WALKERS, 4) * sizes).long()
        explore = torch.rand(WALKERS, 4) < self.bus["EPSILON_EFF"]
        return torch.where(explore, other, self.agent.c51.greedy(q).cpu()).to(self.device)

    def losses(
        self, state: Any, actions: Tensor, reward: Tensor, after: Any
    ) -> dict[str, Tensor]:
        """Give the four components of the loss, each a scalar."""
        agent, support = self.agent, self.support()
        logits, theta, g = agent(state)
        with torch.no_grad():
            following, next_theta, _ = self.target(after)
            online, _, _ = agent(after)
            best = agent.c51.greedy(agent.c51.q(online, support, after[2]))
            p_next = torch.softmax(self.target.c51.taken(following, best), -1)
            every = support.expand(WALKERS, -1, -1)
            next_support = agent.c51.taken(every, best)
            next_shift = agent.c51.taken(self.target.c51.shifts(after[2]), best)
            gammas = torch.tensor([self.bus[f"GAMMA_{b}_EFF"] for b in BRANCHES])
            discount = gammas.to(self.device).expand(WALKERS, 4).contiguous()
            returns = reward.unsqueeze(1).expand(-1, 4).contiguous()
            best_iqn = agent.iqn.greedy(agent.iqn.q(agent.iqn(agent.iqn_trunk(after))))\
                if hasattr(agent, "iqn_trunk") else best
            aims = returns.unsqueeze(2) + discount.unsqueeze(2) * agent.iqn.taken(next_theta, best_iqn)
        one = reward.new_ones(WALKERS)
        c51 = agent.c51.loss(
            logits, actions, p_next, support, next_support, returns, discount, one,
            signal=state[2], next_shift=next_shift,
        )  # fmt: skip
        assert not c51.invalid.any()
        q = agent.c51.q(logits, support, state[2])
        parts = q.split(agent.c51.branches, 1)
        entropy = sum(torch.special.entr(torch.softmax(part, 1)).sum(1).mean() for part in parts)
        spread = sum(torch.logsumexp(part, 1).mean() for part in parts)
        conservative = spread - agent.c51.taken(q.unsqueeze(2), actions).sum(1).mean()
        return {
            "C51": c51.total + 0.01 * agent.gate.balance(g),
            "IQN": agent.iqn.loss(theta, actions, aims, one).total / 4,
            "CQL": 0.01 * self.bus["CQL_ALPHA"] * conservative,
            "ENT": -0.002 * entropy,
        }
