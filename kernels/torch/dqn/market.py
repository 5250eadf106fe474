"""The market's side: order-book centre of mass, joint actions, differential Sharpe ratio."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, flat, numbered, ranked
from trueup.kernels.torch.ops.registry import Refused, in_place, launch, operator

LEVELS = 10
_FLOOR = torch.tensor(1e-12).item()
_HOLD, _FLAT = 1, 3
_Four = tuple[Tensor, Tensor, Tensor, Tensor]
_Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class Book(NamedTuple):
    """What `order_book` gives, each (B,); none of it is differentiable."""

    signal: Tensor
    """From -1 to 1, positive where the bids stand closer to the mid."""
    com_bid: Tensor
    """Centre of mass of the bids, in ticks from the mid; that of the last level if none."""
    com_ask: Tensor
    """Centre of mass of the asks."""
    crossed: Tensor
    """int32: 1 where the best bid is not below the best ask."""


class Joint(NamedTuple):
    """The branches of a joint action, each (B,) and int32 but for the weight."""

    direction: Tensor
    magnitude: Tensor
    order: Tensor
    urgency: Tensor
    magnitude_weight: Tensor
    """float32: 0 where direction is hold or flat, which have no magnitude."""


def order_book(
    bid: Tensor, bid_size: Tensor, ask: Tensor, ask_size: Tensor, tick: Tensor | float
) -> Book:
    """Tell which side of an order book stands closer to the mid.

        com = sum size |price - mid| / tick / sum size;  (com_ask - com_bid) / (com_ask + com_bid)
    Shapes: bid, bid_size, ask, ask_size (B, 10), best first; tick a number or (1,). The signal is 0
    where both centres are. Raises ValueError for shapes that do not fit.
    """
    ranked("order_book", "bid", bid, "B 10")
    rows = (bid.shape[0], LEVELS)
    size = tick if isinstance(tick, Tensor) else bid.new_full((1,), tick)
    expect(
        "order_book",
        bid=(bid, rows),
        bid_size=(bid_size, rows),
        ask=(ask, rows),
        ask_size=(ask_size, rows),
        tick=(size, (1,)),
    )
    with torch.no_grad():
        return Book(*_book(*alike(bid, bid_size, ask, ask_size, size)))


def action_encoding(direction: Tensor, magnitude: Tensor, order: Tensor, urgency: Tensor) -> Tensor:
    """Number the joint action of four branches: ((d 3 + m) 3 + o) 3 + u, from 0 to 107.

    Shapes: whole numbers (B,), direction from 0 to 3, the others from 0 to 2. Returns (B,), int32.
    Raises ValueError for shapes that do not fit.
    """
    ranked("action_encoding", "direction", direction, "B")
    rest = {"magnitude": magnitude, "order": order, "urgency": urgency}
    expect("action_encoding", **{name: (item, direction.shape) for name, item in rest.items()})
    joint: Tensor = _encoding(*(numbered(item) for item in (direction, *rest.values())))
    return joint


def action_factoring(joint: Tensor) -> Joint:
    """Take joint actions apart, and tell where their magnitude means nothing.

        u = joint % 3,  o = joint // 3 % 3,  m = joint // 9 % 3,  d = joint // 27
    Shapes: joint (B,), whole numbers from 0 to 107. Raises ValueError for another shape.
    """
    ranked("action_factoring", "joint", joint, "B")
    return Joint(*_factoring(numbered(joint)))


def differential_sharpe_(
    R: Tensor, A: Tensor, B: Tensor, step: Tensor, eta: float, warm_up: float = 0.0
) -> Tensor:
    """Give what a bar's return does to the Sharpe ratio of each of n portfolios; A, B in place.

        D = (B dA - A dB / 2) / (B - A^2)^(3/2),  dA = R - A,  dB = R^2 - B;
        A <- A + eta dA,  B <- B + eta dB
    Moody and Saffell (2001), Eq. 14. Shapes: R and the result (n,); A, B (n,), float64, since their
    differences cancel; step (1,), the bars so far. D is 0 where B - A^2 <= 1e-12 and before
    `warm_up` bars; A and B move all the same. Raises ValueError for shapes and dtypes that do not
    fit.
    """
    in_place("differential_sharpe_", A, B)
    ranked("differential_sharpe_", "R", R, "n")
    expect("differential_sharpe_", A=(A, R.shape), B=(B, R.shape), step=(step, (1,)))
    if A.dtype is not torch.float64 or B.dtype is not torch.float64:
        raise ValueError(
            f"differential_sharpe_: got A, B of {A.dtype}, {B.dtype}, expected float64"
        )
    (returns,) = alike(R.detach())
    D: Tensor = _sharpe(returns, A, B, numbered(step), eta, warm_up)
    return D


def _centre(price: Tensor, size: Tensor, bid: Tensor, ask: Tensor, tick: Tensor) -> Tensor:
    """Take differences from both sides, exact where prices are close: the mid is not rounded."""
    far = ((price - bid) + (price - ask)).abs() / (2 * tick)
    total = size.sum(1)
    centre = (size * far).sum(1) / torch.where(total == 0, 1, total)
    return torch.where(total == 0, far[:, -1], centre)


def _plain_book(
    bid: Tensor, bid_size: Tensor, ask: Tensor, ask_size: Tensor, tick: Tensor
) -> _Four:
    best = bid[:, :1], ask[:, :1]
    com_bid, com_ask = _centre(bid, bid_size, *best, tick), _centre(ask, ask_size, *best, tick)
    both = com_ask + com_bid
    signal = torch.where(both == 0, 0, (com_ask - com_bid) / torch.where(both == 0, 1, both))
    return signal, com_bid, com_ask, (bid[:, 0] >= ask[:, 0]).int()


def _fast_book(
    bid: Tensor, bid_size: Tensor, ask: Tensor, ask_size: Tensor, tick: Tensor
) -> _Four | Refused:
    out = _fake_book(bid)
    refused = launch("dqn.order_book", *contiguous(bid, bid_size, ask, ask_size, tick), *out)
    return out if refused is None else refused


def _fake_book(bid: Tensor, *_: Tensor) -> _Four:
    signal, com_bid, com_ask = (bid.new_empty(bid.shape[:1]) for _ in range(3))
    return signal, com_bid, com_ask, bid.new_empty(bid.shape[:1], dtype=torch.int32)


def _plain_encoding(direction: Tensor, magnitude: Tensor, order: Tensor, urgency: Tensor) -> Tensor:
    return ((direction * 3 + magnitude) * 3 + order) * 3 + urgency


def _fast_encoding(
    direction: Tensor, magnitude: Tensor, order: Tensor, urgency: Tensor
) -> Tensor | Refused:
    joint = _fake_encoding(direction)
    given = contiguous(direction, magnitude, order, urgency)
    refused = launch("dqn.action_encoding", *given, joint)
    return joint if refused is None else refused


def _fake_encoding(direction: Tensor, *_: Tensor) -> Tensor:
    return direction.new_empty(direction.shape)


def _plain_factoring(joint: Tensor) -> _Five:
    direction = joint // 27
    moves = (direction != _HOLD) & (direction != _FLAT)
    return direction, joint // 9 % 3, joint // 3 % 3, joint % 3, moves.float()


def _fast_factoring(joint: Tensor) -> _Five | Refused:
    out = _fake_factoring(joint)
    refused = launch("dqn.action_factoring", joint.contiguous(), *out)
    return out if refused is None else refused


def _fake_factoring(joint: Tensor) -> _Five:
    d, m, o, u = (joint.new_empty(joint.shape) for _ in range(4))
    return d, m, o, u, joint.new_empty(joint.shape, dtype=torch.float32)


def _plain_sharpe(
    R: Tensor, A: Tensor, B: Tensor, step: Tensor, eta: float, warm_up: float
) -> Tensor:
    r = R.double()
    dA, dB, variance = r - A, r * r - B, B - A * A
    silent = (variance <= _FLOOR) | (step < warm_up)
    safe = torch.where(silent, 1, variance)
    D = torch.where(silent, 0, (B * dA - A * dB / 2) / (safe * safe.sqrt()))
    A.add_(dA, alpha=eta)
    B.add_(dB, alpha=eta)
    return D.to(R.dtype)


def _fast_sharpe(
    R: Tensor, A: Tensor, B: Tensor, step: Tensor, eta: float, warm_up: float
) -> Tensor | Refused:
    D = _fake_sharpe(R)
    refused = launch("dqn.differential_sharpe", *flat(R), D, A, B, step, eta, warm_up)
    return D if refused is None else refused


def _fake_sharpe(R: Tensor, *_: Any) -> Tensor:
    return R.new_empty(R.shape)


_book = operator(
    "order_book(Tensor bid, Tensor bid_size, Tensor ask, Tensor ask_size, Tensor tick) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    _plain_book,
    fast=_fast_book,
    fake=_fake_book,
)
_encoding = operator(
    "action_encoding(Tensor direction, Tensor magnitude, Tensor order, Tensor urgency) -> Tensor",
    _plain_encoding,
    fast=_fast_encoding,
    fake=_fake_encoding,
)
_factoring = operator(
    "action_factoring(Tensor joint) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _plain_factoring,
    fast=_fast_factoring,
    fake=_fake_factoring,
)
_sharpe = operator(
    "differential_sharpe_(Tensor R, Tensor(a!) A, Tensor(b!) B, Tensor step, float eta, "
    "float warm_up) -> Tensor",
    _plain_sharpe,
    fast=_fast_sharpe,
    fake=_fake_sharpe,
)
