"""One level of the continuum memory system: weights, kept tokens, counters, and its update."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor, nn

from trueup.kernels.torch.ops.cms import cms_level_update_, level_gradients
from trueup.kernels.torch.ops.registry import at_least, number
from trueup.kernels.torch.parallel.reduce import Ranks, sum_over
from trueup.kernels.torch.parallel.shards import is_sharded, reshard_, whole


@dataclass(frozen=True)
class LevelSpec:
    """What a level is: its name, period in tokens, hidden width, rate and momentum."""

    name: str
    period: int
    hidden: int
    lr: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError for a level that cannot be."""
        if not self.name or "." in self.name:
            raise ValueError(f"level name: got {self.name!r}, expected a word without dots")
        at_least(f"level {self.name}, period", self.period, 1)
        at_least(f"level {self.name}, hidden", self.hidden, 1)
        if not (0 <= number(self.lr) < math.inf and 0 <= number(self.momentum) < 1):
            raise ValueError(f"level {self.name}: lr 0 or more, momentum in [0, 1), got {self}")


@dataclass
class Counters:
    """Whole numbers: what became of a level's token positions, since the start or a reset."""

    updates: int = 0
    consumed: int = 0
    flushed: int = 0
    masked: int = 0
    gated: int = 0
    dropped: int = 0

    def less(self, older: Counters) -> Counters:
        """Give what was counted since `older`."""
        pairs = ((getattr(self, f.name), getattr(older, f.name)) for f in fields(self))
        return Counters(*(new - old for new, old in pairs))


@dataclass
class Kept:
    """Tokens since a level's last update: inputs, error signals, active flags, by segments."""

    inputs: list[Tensor] = field(default_factory=list)
    errors: list[Tensor] = field(default_factory=list)
    active: list[Tensor] = field(default_factory=list)
    count: int = 0
    masked: bool = False

    def joined(self) -> tuple[Tensor, Tensor, Tensor]:
        """Give the tokens as x, delta (N, n, d) and flags (N, n)."""
        return torch.cat(self.inputs, 1), torch.cat(self.errors, 1), torch.cat(self.active, 1)


class MemoryLevel(nn.Module):
    """The weights of one level, and the tokens that wait for its next update.

    Shared by all sequences, the parameters themselves are updated. With `sequences`, each has a
    change of its own (buffers `delta1`, `delta2`) on top of the learned initial parameters.
    """

    def __init__(self, dim: int, spec: LevelSpec, sequences: int | None) -> None:
        """Make the weights; the second layer starts small, so that a level starts near x."""
        super().__init__()
        self.spec, self.sequences = spec, sequences
        self.W1 = nn.Parameter(torch.randn(spec.hidden, dim) / math.sqrt(dim))
        self.W2 = nn.Parameter(torch.randn(dim, spec.hidden) * 0.1 / math.sqrt(spec.hidden))
        stacks = () if sequences is None else (sequences,)
        for place, shape in (("1", (spec.hidden, dim)), ("2", (dim, spec.hidden))):
            if sequences is not None:
                self.register_buffer(f"delta{place}", torch.zeros(*stacks, *shape))
            if spec.momentum:
                self.register_buffer(f"momentum{place}", torch.zeros(*stacks, *shape))
        self.kept = Kept()
        self.counters = Counters()
        self.first = False
        self.grad_norm: float | Tensor = 0.0
        self.surprise: Tensor | None = None
        self.blocked: Tensor | None = None

    def weights(self) -> tuple[Tensor, Tensor]:
        """Return W1 (S, h, d) and W2 (S, d, h); S is 1 where all sequences share them."""
        W1, W2 = whole(self.W1), whole(self.W2)
        if self.sequences is None:
            return W1.unsqueeze(0), W2.unsqueeze(0)
        return W1 + self.delta1, W2 + self.delta2

    @property
    def due(self) -> int:
        """How many more tokens the next update needs."""
        return (1 if self.first else self.spec.period) - self.kept.count

    def keep(self, inputs: Tensor, errors: Tensor, active: Tensor | None) -> None:
        """Append a segment (N, n, d), (N, n, d), (N, n); flags None: all are active."""
        if active is None:
            active = torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
            self.kept.masked |= not len(inputs)  # no sequences: no active token, as under a mask
        else:
            self.kept.masked = True
        self.kept.inputs.append(inputs)
        self.kept.errors.append(errors)
        self.kept.active.append(active)
        self.kept.count += inputs.shape[1]

    def drop(self) -> None:
        """Discard what waits, and count it."""
        self.counters.dropped += self.kept.count
        self.kept = Kept()

    def update(
        self,
        *,
        form: str,
        mean: bool,
        threshold: float | None,
        ranks: Ranks,
        measure: bool,
        multiply: str | None = None,
        flushed: bool = False,
    ) -> None:
        """Pop the chunk; step, unless all of it is masked or the gate is closed (Eq. 31).

        Without `measure` the signals of telemetry are not taken, and where nothing else needs the
        gradients themselves the step is one fused operator, with factors as `multiply` says.
        """
        x, delta, active = self.kept.joined()
        size, masked, self.kept = self.kept.count, self.kept.masked, Kept()
        if masked:
            x, delta = (torch.where(active.unsqueeze(-1), rows, 0) for rows in (x, delta))
        number = sum_over(self._per_state(active.sum(1).to(delta.dtype)), ranks)
        open_ = number > 0
        if masked and not bool(open_.any()):  # without a mask nothing waits for the device
            self.counters.masked += size
            return
        if measure or threshold is not None:
            surprise = self._mean_norm(delta, ranks)
            if threshold is not None:
                open_ = open_ & (surprise >= threshold)
                if not bool(open_.any()):
                    self.blocked = surprise.mean()
                    self.counters.gated += size
                    return
            self.surprise = torch.where(open_, surprise, 0).sum() / open_.sum()
        if not measure and form == "residual" and ranks.size == 1 and self._plain():
            rows, flags = (x.flatten(0, 1), delta.flatten(0, 1)), active.flatten()
            options: dict[str, Any] = {"mean": mean, "multiply": multiply}
            cms_level_update_(self.W1, self.W2, *rows, flags, self.spec.lr, **options)
        else:
            share = number if mean else torch.ones_like(number)
            self._step(x, delta, share, open_, form, ranks)
        self.counters.updates += 1
        self.counters.consumed += size
        self.counters.flushed += size if flushed else 0

    def _plain(self) -> bool:
        """Whether the parameters themselves are moved, by their gradient alone."""
        return self.sequences is None and not self.spec.momentum and not is_sharded(self.W1)

    def _per_state(self, values: Tensor) -> Tensor:
        """Sum (N,) over the batch where it shares one state, to (1,)."""
        return values.sum(0, keepdim=True) if self.sequences is None else values

    def _mean_norm(self, delta: Tensor, ranks: Ranks) -> Tensor:
        """Give each state's mean error norm over all positions of the chunk, masked ones too."""
        norms = self._per_state(delta.norm(dim=-1).sum(1))
        places = self._per_state(norms.new_full((delta.shape[0],), float(delta.shape[1])))
        return sum_over(norms, ranks) / sum_over(places, ranks)

    def _step(
        self,
        x: Tensor,
        delta: Tensor,
        share: Tensor,
        open_: Tensor,
        form: str,
        ranks: Ranks,
    ) -> None:
        W1, W2 = self.weights()
        if self.sequences is None:
            x, delta = x.reshape(1, -1, x.shape[-1]), delta.reshape(1, -1, delta.shape[-1])
        grads = level_gradients(x, delta, W1, W2, form=form)
        applied = open_.view(-1, 1, 1)
        for place, grad, param in zip("12", grads, (self.W1, self.W2), strict=True):
            grad = sum_over(grad, ranks) / share.view(-1, 1, 1)
            norms = torch.where(applied, grad, 0).flatten(1).norm(dim=1)
            self.grad_norm = self.grad_norm + norms.sum()
            self._move(place, param, grad, applied)

    def _move(self, place: str, param: Tensor, grad: Tensor, applied: Tensor) -> None:
        if self.spec.momentum:
            momentum = getattr(self, f"momentum{place}")
            shaped = momentum if self.sequences is not None else momentum.unsqueeze(0)
            grad = self.spec.momentum * shaped + grad
            shaped.copy_(torch.where(applied, grad, shaped))
        if self.sequences is None:
            reshard_(param, whole(param) - self.spec.lr * grad[0])
        else:
            change = getattr(self, f"delta{place}")
            change.copy_(torch.where(applied, change - self.spec.lr * grad, change))

    def reset(self) -> None:
        """Forget what waits, momentum, counters, and the sequences' changes; keep parameters."""
        self.kept, self.counters, self.first = Kept(), Counters(), False
        self.forget_signals()
        for name, buffer in self.named_buffers():
            if name.startswith(("delta", "momentum")):
                buffer.zero_()

    def forget_signals(self) -> None:
        """Start the signals of the next telemetry row: gradient norm, surprise read or blocked."""
        self.grad_norm, self.surprise, self.blocked = 0.0, None, None

    def get_extra_state(self) -> dict[str, Any]:
        """Give what is no tensor of fixed shape: kept tokens, counters, the clock's first tick."""
        tokens = self.kept.joined() if self.kept.count else ()
        return {
            "tokens": [item.clone() for item in tokens],
            "counters": asdict(self.counters),
            "first": self.first,
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_extra_state` gave, in the dtype and on the device of the weights.

        Raises ValueError where more tokens wait than the period has.
        """
        first, tokens = bool(state["first"]), state["tokens"]
        waiting, limit = (tokens[2].shape[1] if tokens else 0), 1 if first else self.spec.period
        if waiting >= limit:
            raise ValueError(
                f"level {self.spec.name}: in the state {waiting} tokens wait for an update that "
                f"is due after {limit}: it is of a level with another period"
            )
        self.kept = Kept()
        if tokens:
            place = {"device": self.W1.device, "copy": True}
            rows = [item.to(dtype=self.W1.dtype, **place) for item in tokens[:2]]
            self.keep(rows[0], rows[1], tokens[2].to(**place))
        self.counters = Counters(**state["counters"])
        self.first = first

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move the kept tokens with the module."""
        super()._apply(fn, recurse)
        for rows in (self.kept.inputs, self.kept.errors):
            rows[:] = [fn(item) for item in rows]
        self.kept.active[:] = [item.to(self.W1.device) for item in self.kept.active]
        return self
