"""A small branching agent on synthetic prices: it learns, stays finite, and its telemetry passes.

Returns follow r' = 0.8 r + 0.6 noise. A direction and a magnitude make a position; the right order
type depends on the size of the last return, the right urgency is always the same. The agent is
trained with the package's blocks, heads and losses, and reads its bus through the references.
"""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

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
from trueup.kernels.torch.dqn import conservative, entropy_term, epsilon_greedy
from trueup.kernels.torch.ops.registry import last_reason
from trueup.reference import isv
from trueup.reference.isv.layout import Layout, Slot, fingerprint, hexadecimal
from trueup.reference.isv.layout import Tensor as Listed

EPOCHS, STEPS, WALKERS, BARS, ATOMS = 6, 50, 64, 8, 21
FEATURES, WIDTH, EXPERTS = 14, 24, 4
State = tuple[Tensor, Tensor, Tensor]
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

    def state(self) -> State:
        """Give bars (B, T, 2), features (B, 14), and the auxiliary signal (B,)."""
        bars = torch.stack([self.returns, self.returns.abs()], 2)
        noise = torch.randn(WALKERS, 9, generator=self.random)
        last = self.returns[:, -4:]
        features = torch.cat([last, noise, self.position.unsqueeze(1)], 1)
        signal = torch.tanh(self.returns[:, -1])
        return bars.to(self.device), features.to(self.device), signal.to(self.device)

    def step(self, actions: Tensor) -> Tensor:
        """Take actions (B, 4), move the prices, and give the rewards (B,)."""
        direction, magnitude, order, urgency = actions.cpu().long().unbind(1)
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

    def forward(self, state: State) -> tuple[Tensor, Tensor, Tensor]:
        """Give C51's logits, IQN's quantiles and the experts' weights."""
        bars, features, _ = state
        core = self.scan(self.embed(bars))[:, -1]
        x = torch.cat([features, core], 1)
        chosen, _ = self.select(x)
        h = self.grn2(self.grn1(chosen))
        g = self.gate(x)
        h = h + self.gate.mix(g, self.experts(h).unflatten(1, (EXPERTS, WIDTH)))
        return self.c51(h), self.iqn(h), g


class Bus:
    """The internal-state bus of a run: what the references make of what was seen, in float32."""

    def __init__(self) -> None:
        self.health, self.emas, self.count = 0.25, np.zeros(6), np.zeros(1)
        self.middle, self.half = np.zeros(4), np.full(4, 4.0)
        self.rewards = np.zeros(0)
        self.series: list[dict[str, float]] = []
        self.slots: dict[str, float] = {}

    def support(self, device: str) -> Tensor:
        """Atoms of every action, on its branch's support."""
        sizes = torch.tensor(list(BRANCHES.values()))
        middle, half = (
            torch.tensor(one).repeat_interleave(sizes) for one in (self.middle, self.half)
        )
        return support_of(middle - half, middle + half, ATOMS).to(device)

    def look(self, q: Tensor, rewards: Tensor) -> None:
        """Take the values and rewards of an epoch into averages, supports and health."""
        for k, part in enumerate(q.double().cpu().split(tuple(BRANCHES.values()), 1)):
            low, high = (float(torch.quantile(part.flatten(), at)) for at in (0.05, 0.95))
            self.middle[k] = (low + high) / 2
            self.half[k] = max(4.0, 2 * (high - low))
        self.rewards = rewards.double().cpu().numpy()
        mean, deviation = self.rewards.mean(), self.rewards.std()
        seen = np.array([mean, deviation, 0.0, 0.0, 0.0, mean - deviation])
        self.emas, self.count = isv.reward_emas(seen, self.emas, self.count)
        self.health = float(np.clip(0.5 + mean / 2, 0, 1))

    def write(self, epoch: int) -> None:
        """Write the slots of an epoch."""
        h, seeds = np.array([self.health]), np.array([0.9**epoch])
        won = self.rewards > 0
        win, loss = (
            np.array([np.abs(self.rewards[side]).mean() if side.any() else 0.0])
            for side in (won, ~won)
        )
        share, count = np.array([won.mean() if won.size else 0.0]), np.array([1.0 * won.size])
        now, last = np.array([1.0 * epoch]), np.array([1.0 * EPOCHS])
        values = {
            "LEARNING_HEALTH": h, "EPSILON_EFF": isv.epsilon(now, last, h), "TAU_EFF": isv.tau(h),
            "KELLY_CAP_EFF": isv.kelly_cap(share, win, loss, count, h),
            "PLAN_THRESHOLD": isv.plan_threshold(h, h, now)[0], "READINESS_EMA": h,
            "SEED_FRACTION_EMA": seeds, "CQL_ALPHA": isv.cql_alpha(seeds),
            "CONVICTION_FLOOR": np.array([0.25]), "REWARD_TRAIL_EMA": self.emas[:1],
            "REWARD_MICRO_EMA": self.emas[1:2], "REWARD_BONUS_EMA": self.emas[5:],
        }  # fmt: skip
        gammas = isv.gamma(2 * self.half, h)
        values |= {f"GAMMA_{b}_EFF": gammas[k : k + 1] for k, b in enumerate(BRANCHES)}
        self.slots = {name: float(np.float32(value[0])) for name, value in values.items()}
        self.slots |= {"EPOCH_IDX": epoch, "TOTAL_EPOCHS": EPOCHS}

    def monitors(self, balance: float) -> dict[str, Any]:
        """Observe once more, and tell each monitor's value and how often it fired."""
        slots = self.slots
        self.series.append(
            {
                "atoms": float(self.middle[0] - self.half[0]), "gamma": slots["GAMMA_DIR_EFF"],
                "kelly_cap": slots["KELLY_CAP_EFF"], "tau": slots["TAU_EFF"],
                "epsilon": slots["EPSILON_EFF"], "grad_balancer": balance,
                "conviction_floor": slots["CONVICTION_FLOOR"],
            }
        )  # fmt: skip
        told = {}
        for name, value in self.series[-1].items():
            values = [one[name] for one in self.series]
            fires = sum(now != before for before, now in pairwise(values))
            rate = fires / max(1, len(values) - 1)
            told[name] = {"value": value, "fire_rate": rate, "n_obs": len(values)}
        return told


class Run:
    """Training, and a row of telemetry after every epoch."""

    def __init__(self, device: str, seed: int = 3) -> None:
        torch.manual_seed(seed)
        self.device, self.seed = device, seed
        self.agent = Agent().to(device)
        self.start = copy.deepcopy(self.agent)
        self.target = copy.deepcopy(self.agent).requires_grad_(False)
        self.adam = torch.optim.Adam(self.agent.parameters(), 4e-3)
        self.market, self.bus = Market(seed, device), Bus()
        self.rows: list[dict[str, Any]] = []
        tensors = [Listed(name, item.numel()) for name, item in self.agent.named_parameters()]
        slots = tuple(Slot(index, 1, name) for index, name in enumerate(SLOTS))
        tail = Slot(len(SLOTS), 2, "LAYOUT_FINGERPRINT")
        self.fingerprint = hexadecimal(fingerprint(Layout((*slots, tail), tuple(tensors))))

    def act(self, q: Tensor) -> Tensor:
        """Explore in every branch by a draw of its own."""
        other = (torch.rand(WALKERS, 4) * torch.tensor(list(BRANCHES.values()))).int()
        u, epsilon = torch.rand(WALKERS, 4), torch.full((1,), self.bus.slots["EPSILON_EFF"])
        drawn = (item.to(self.device) for item in (other, u, epsilon))
        return epsilon_greedy(self.agent.c51.greedy(q), *drawn)

    def targets(self, after: State, reward: Tensor, support: Tensor) -> dict[str, Tensor]:
        """Give the target network's distributions at the online network's next actions."""
        with torch.no_grad():
            online, quantiles, _ = self.agent(after)
            following, later, _ = self.target(after)
            c51, iqn = self.agent.c51, self.agent.iqn
            best = c51.greedy(c51.q(online, support, after[2]))
            gammas = torch.tensor([self.bus.slots[f"GAMMA_{b}_EFF"] for b in BRANCHES])
            discount = gammas.to(self.device).expand(WALKERS, 4)
            returns = reward.unsqueeze(1).expand(-1, 4)
            wise = iqn.taken(later, iqn.greedy(iqn.q(quantiles)))
            return {
                "p_next": torch.softmax(c51.taken(following, best), -1),
                "next_support": c51.taken(support.expand(WALKERS, -1, -1), best),
                "next_shift": c51.taken(self.target.c51.shifts(after[2]), best),
                "returns": returns,
                "discount": discount,
                "quantiles": returns.unsqueeze(2) + discount.unsqueeze(2) * wise,
            }

    def losses(
        self, state: State, actions: Tensor, reward: Tensor, after: State
    ) -> dict[str, Tensor]:
        """Give the four components of the loss, each a scalar."""
        c51, iqn, support = self.agent.c51, self.agent.iqn, self.bus.support(self.device)
        logits, theta, g = self.agent(state)
        aims = self.targets(after, reward, support)
        one, quantiles = reward.new_ones(WALKERS), aims.pop("quantiles")
        told = c51.loss(logits, actions, support=support, weight=one, signal=state[2], **aims)
        self.flags = [
            int(told.invalid.any()),
            *(int(not x.isfinite().all()) for x in (logits, theta)),
        ]
        q = c51.q(logits, support, state[2])
        parts = q.split(c51.branches, 1)
        alpha = 0.01 * self.bus.slots["CQL_ALPHA"]
        pushed = [
            conservative(part, actions[:, k], one, alpha, 1.0) for k, part in enumerate(parts)
        ]
        even = [entropy_term(part, one, 0.002, branch_weight=1.0) for part in parts]
        return {
            "C51": told.total + 0.01 * self.agent.gate.balance(g),
            "IQN": iqn.loss(theta, actions, quantiles, one).total / 4,
            "CQL": torch.stack(pushed).sum(),
            "ENT": torch.stack(even).sum(),
        }

    def norms(self, parts: dict[str, Tensor]) -> tuple[dict[str, dict[str, float]], np.ndarray]:
        """Give each component's gradient by branch of its head, and C51's of all branches."""
        found, every = {}, np.ones(4)
        for name, loss in parts.items():
            head = self.agent.iqn.output if name == "IQN" else self.agent.c51.advantage
            (gradient,) = torch.autograd.grad(loss, head.weight, retain_graph=True)
            rows = gradient.unflatten(0, (13, -1)).split(tuple(BRANCHES.values()))
            norms = [float(part.double().norm()) for part in rows]
            found[name] = {"mag": norms[1], "dir": norms[0]}
            every = np.array(norms) if name == "C51" else every
        return found, every

    def epoch(self, epoch: int) -> None:
        """Train for an epoch and append its row."""
        self.bus.write(epoch)
        counts, seen, state = torch.zeros(13), [], self.market.state()
        for step in range(STEPS):
            with torch.no_grad():
                q = self.agent.c51.q(self.agent(state)[0], self.bus.support(self.device), state[2])
            actions = self.act(q)
            reward = self.market.step(actions)
            after = self.market.state()
            parts = self.losses(state, actions, reward, after)
            total = torch.stack(list(parts.values())).sum()
            if step == STEPS - 1:
                decomposed, every = self.norms(parts)
            self.adam.zero_grad()
            total.backward()
            self.adam.step()
            with torch.no_grad():
                for old, new in zip(self.target.parameters(), self.agent.parameters(), strict=True):
                    old.lerp_(new, self.bus.slots["TAU_EFF"])
            seen.append(reward)
            chosen = (actions + self.agent.c51.starts).flatten().cpu()
            counts += torch.bincount(chosen, minlength=13)
            state = after
        self.report(epoch, total.item(), decomposed, isv.grad_balancer(every), counts)
        self.bus.look(q, torch.cat(seen))

    def report(
        self, epoch: int, loss: float, decomposed: Any, balance: np.ndarray, counts: Tensor
    ) -> None:
        """Append the row of an epoch."""
        split = counts.double().split(tuple(BRANCHES.values()))
        mix = {b: (one / one.sum()).tolist() for b, one in zip(BRANCHES, split, strict=True)}
        finite = all(bool(item.isfinite().all()) for item in self.agent.parameters())
        flags = [*self.flags, int(not finite), *[0] * 44]
        self.rows.append(
            {
                "t": "HEALTH_DIAG", "run_id": "agent", "seed": self.seed, "fold": 0,
                "epoch": epoch, "step": (epoch + 1) * STEPS, "loss": loss,
                "layout_fingerprint": self.fingerprint, "isv": dict(self.bus.slots),
                "monitors": self.bus.monitors(float(np.float32(balance[0]))),
                "grad_decomp": decomposed, "action_mix": mix, "nan_flags": flags,
                "nan_clamped_lines": 0, "null_reasons": {},
            }
        )  # fmt: skip

    def train(self) -> None:
        """Train for all epochs and say how the run ended."""
        for epoch in range(EPOCHS):
            self.epoch(epoch)
        ended = {"t": "TERMINATION", "run_id": "agent", "step": -1}
        self.rows.append(ended | {"termination": {"reason": "COMPLETED"}})


def score(run: Run, agent: Agent, seed: int) -> float:
    """The mean reward of the greedy policy on prices that were not trained on."""
    market, support, rewards = Market(seed, run.device), run.bus.support(run.device), []
    with torch.no_grad():
        for _ in range(20):
            state = market.state()
            q = agent.c51.q(agent(state)[0], support, state[2])
            rewards.append(market.step(agent.c51.greedy(q)))
    return float(torch.stack(rewards).mean())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_an_agent_learns_and_its_telemetry_passes(device: str, tmp_path: Path) -> None:
    run = Run(device)
    run.train()
    for name, item in run.agent.named_parameters():
        assert item.isfinite().all(), name
        assert not torch.equal(item, run.start.get_parameter(name)), f"{name} was not trained"
    for seed in (101, 102, 103):
        before, after = score(run, run.start, seed), score(run, run.agent, seed)
        assert after > before + 0.2, f"seed {seed}: {before:.3f} before, {after:.3f} after"
    text = "".join(json.dumps(row) + "\n" for row in run.rows)
    (tmp_path / "health_diag.jsonl").write_text(text)
    verdict = judge(tmp_path, "dqn")
    assert verdict.verdict == "pass", verdict.findings
    # One magnitude and one urgency are best here, and no magnitude moves the price.
    assert {finding.rule for finding in verdict.findings} <= {"DQN028", "DQN033", "DQN054"}
    assert verdict.rows == EPOCHS + 1
    if device == "cuda":
        names = "c51_loss", "iqn_loss", "grn", "grn_backward", "vsn", "selective_scan"
        for name in (*names, "conservative", "entropy_term", "epsilon_greedy", "greedy_action"):
            assert last_reason(name) is None, last_reason(name)


def test_the_gate_sees_an_agent_whose_target_is_not_a_number(tmp_path: Path) -> None:
    """The same rows with the flag that an invalid target sets."""
    run = Run("cpu")
    run.bus.write(0)
    state, after = run.market.state(), run.market.state()
    reward = torch.full((WALKERS,), torch.nan)
    run.losses(state, torch.zeros(WALKERS, 4, dtype=torch.long), reward, after)
    assert run.flags == [1, 0, 0]
    run.report(0, 1.0, {}, np.ones(4), torch.ones(13))
    (tmp_path / "health_diag.jsonl").write_text(json.dumps(run.rows[0]) + "\n")
    verdict = judge(tmp_path, "dqn")
    assert {finding.rule for finding in verdict.findings} >= {"DQN017"}
