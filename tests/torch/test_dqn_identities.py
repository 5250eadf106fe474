"""What must come back bit by bit, and what must never be read as 0."""

from __future__ import annotations

import io
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import trueup.kernels.torch.dqn as t
from trueup.reference import dqn
from trueup.reference.isv.layout import from_lanes, to_lanes

WITNESSES = [
    0x82A6E9647FAE6D67,  # the low lane a signalling NaN
    0x7F9CC1F2C8C28F2B,  # the high lane a signalling NaN
    0x0FE6827AFFD339FE,  # a quiet NaN
    0x40489FB38009F507,  # a subnormal number
    0xFFBA7696FF95B303,  # both lanes signalling NaN
    0x0000000080000000,  # +0 beside -0
]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
def test_every_joint_action_comes_back(device: str) -> None:
    joint = torch.arange(108, dtype=torch.int32, device=device)
    parts = t.action_factoring(joint)
    assert torch.equal(t.action_encoding(*parts[:4]), joint)
    rows = torch.tensor(list(product(range(4), range(3), range(3), range(3))), dtype=torch.int32)
    rows = rows.to(device)
    again = t.action_factoring(t.action_encoding(*rows.unbind(1)))
    assert torch.equal(torch.stack(again[:4], 1), rows)
    still = (rows[:, 0] == 1) | (rows[:, 0] == 3)  # hold and flat have no magnitude
    assert torch.equal(parts.magnitude_weight, (~still).float())


def test_the_encoding_is_that_of_the_reference() -> None:
    rows = np.array(list(product(range(4), range(3), range(3), range(3))), dtype=np.float64)
    got = t.action_encoding(*torch.from_numpy(rows).unbind(1))
    np.testing.assert_array_equal(got.numpy(), dqn.action_encoding(*rows.T))


def written(value: int, size: int = 87) -> Tensor:
    """Give a bus with a fingerprint at its tail, written as two words."""
    bus = torch.randn(size)
    bus.view(torch.int32)[-2:] = torch.from_numpy(np.array(to_lanes(value), np.uint32).view("i4"))
    return bus


def read(bus: Tensor) -> int:
    low, high = (int(word) & 0xFFFFFFFF for word in bus.view(torch.int32)[-2:].tolist())
    return from_lanes(low, high)


@pytest.mark.parametrize("value", WITNESSES, ids=hex)
@pytest.mark.parametrize("device", DEVICES)
def test_a_fingerprint_on_the_bus_comes_back_bit_by_bit(value: int, device: str) -> None:
    """Through copies, a checkpoint, and whatever writes other slots."""
    bus = written(value).to(device)
    slots = bus[:-2]
    slots.lerp_(torch.randn_like(slots), 0.01)
    copied = torch.empty_like(bus).copy_(bus.clone())
    file = io.BytesIO()
    torch.save({"isv": copied}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)["isv"]
    assert read(loaded.cpu()) == value
    assert torch.equal(loaded[:-2], slots)


def test_arithmetic_over_the_tail_loses_a_fingerprint() -> None:
    """An average over the whole bus quiets a signalling NaN; equality of floats sees no NaN."""
    bus = written(WITNESSES[-2])
    assert read(torch.lerp(bus, bus, 0.5)) != WITNESSES[-2]
    assert not torch.equal(bus, bus.clone())  # NaN is not NaN
    assert torch.equal(bus.view(torch.int32), bus.clone().view(torch.int32))


@pytest.mark.parametrize("whole", [False, True])
def test_a_scan_for_nan_leaves_the_tail_out(whole: bool) -> None:
    bus = written(WITNESSES[0])
    flags, seen = (torch.full((48,), at, dtype=torch.int32) for at in (0, -1))
    t.nan_flags_(bus if whole else bus[:-2], flags, seen, slot=47, step=3)
    assert flags.nonzero().tolist() == ([[47]] if whole else [])
    assert seen[47].item() == (3 if whole else -1)


class Agent(nn.Module):
    """An encoder and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleList([t.GatedResidual(14, 12), t.GatedResidual(12)])
        self.select = t.VariableSelection(14, (0, 4, 6, 8, 10, 13, 14))
        self.c51, self.iqn = t.C51Head(12, 11), t.IQNHead(12)

    def encode(self, x: Tensor) -> Tensor:
        h, _ = self.select(x)
        for block in self.encoder:
            h = block(h)
        return h

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.encode(x)
        return self.c51(h), self.iqn(h)


@pytest.mark.parametrize("device", DEVICES)
def test_the_targets_encoder_alone_is_that_of_the_whole_forward(device: str) -> None:
    """Bit by bit, and no gradient is written."""
    agent, x = Agent().to(device), torch.randn(9, 14, device=device)
    seen: list[Tensor] = []
    agent.encoder[-1].register_forward_hook(lambda _module, _given, out: seen.append(out))
    logits, theta = agent(x)
    with torch.no_grad():
        alone = agent.encode(x)
    assert torch.equal(seen[0], alone)
    assert not alone.requires_grad
    assert all(item.grad is None for item in agent.parameters())
    assert torch.equal(agent.c51(alone), logits)
    assert torch.equal(agent.iqn(alone), theta)


PARAMS, PAD = 40, 6
SLICES = [(4, 18), (18, 33)]


def filled(device: str) -> Tensor:
    buffer = torch.zeros(4, PARAMS + PAD, device=device)
    buffer[:, :PARAMS] = torch.randn(4, PARAMS)
    return buffer


@pytest.mark.parametrize("order", ["fixed", "blocked"])
def test_a_size_mismatch_is_told_and_never_zero(order: str) -> None:
    """The history's failure (A): a buffer of another size read as norms of 0.0."""
    other = [(4, 18), (18, PARAMS + PAD + 1)]
    with pytest.raises(ValueError, match="expected 2 within 0 and 46"):
        t.grad_norms(filled("cpu"), other, order=order)
    with pytest.raises(ValueError, match=r"got g \(3, 46\), expected \(4, 46\)"):
        t.grad_norms(filled("cpu")[:3], SLICES, order=order)


@pytest.mark.parametrize("device", DEVICES)
def test_a_snapshot_outlives_the_replay_that_wipes_its_buffer(device: str) -> None:
    """The history's failure (B): a replay zeroes the buffer before it is read."""
    buffer, source = torch.zeros(4, PARAMS + PAD, device=device), filled(device)
    snapshot, norms = torch.zeros_like(buffer), torch.zeros(8, device=device)
    places = torch.tensor(SLICES, dtype=torch.int32, device=device)

    def step() -> None:
        buffer.zero_().add_(source)
        snapshot.copy_(buffer)
        norms.copy_(t.grad_norms(snapshot, places))

    step()
    if device == "cuda":
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        source.mul_(2)
        graph.replay()
    buffer.zero_()  # the next replay begins
    want = torch.stack([row[start:end].norm() for row in source for start, end in SLICES])
    torch.testing.assert_close(norms, want)
    torch.testing.assert_close(t.grad_norms(snapshot, SLICES), want)
    assert not t.grad_norms(buffer, SLICES).any()  # what a late reader gets


def test_wrong_calls_of_the_plumbing_are_told() -> None:
    flags = torch.zeros(48, dtype=torch.int32)
    with pytest.raises(ValueError, match="got slot 48, expected 0 to 47"):
        t.nan_flags_(torch.ones(2), flags, flags.clone(), slot=48, step=0)
    with pytest.raises(ValueError, match=r"got tree \(5,\), expected \(2 C,\)"):
        t.sum_tree_rebuild_(torch.ones(5))
    with pytest.raises(ValueError, match=r"got a tree of torch\.float16"):
        t.sum_tree_sample(torch.ones(4).half(), torch.rand(2))
    with pytest.raises(RuntimeError, match="works in place"):
        t.saxpy_correction_(
            torch.ones(4, requires_grad=True), torch.ones(4), torch.ones(4), torch.ones(1),
            [(0, 1), (1, 2), (2, 3), (3, 4)],
        )  # fmt: skip
    with pytest.raises(ValueError, match=r"got A, B of torch\.float32, torch\.float64"):
        t.differential_sharpe_(
            torch.ones(2), torch.ones(2), torch.ones(2).double(), torch.ones(1), 0.1
        )
