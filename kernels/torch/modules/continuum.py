"""ContinuumMemory: a chain of MLP levels, each updated at a frequency of its own (Eq. 30-31)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from trueup.kernels.torch.modules.levels import Counters, LevelSpec, MemoryLevel
from trueup.kernels.torch.modules.signals import ErrorSignal, keys_of, signal_of
from trueup.kernels.torch.ops.cms import FORMS, MULTIPLY, cms_level
from trueup.kernels.torch.ops.registry import at_least, number, one_of
from trueup.kernels.torch.parallel.reduce import Ranks, ranks_of, same_on_all

PHASES = ("end", "start")
FLUSHES = ("drop", "flush_partial", "carry")
REDUCTIONS = ("sum", "mean")


class ContinuumMemory(nn.Module):
    """The continuum memory system: Nested Learning, Eq. 30 and 31 (range corrected).

        y_t = MLP_k(... MLP_1(x_t)),  theta_l <- theta_l - lr_l sum over a chunk of C_l gradients
    `forward` is Eq. 30 at the present weights; `stream` also learns, in segments that end at the
    next update of any level, so that no token is evaluated at stale weights and splitting a stream
    into calls changes nothing.

    Args: dim; levels, the fastest first; form of a level's MLP, `residual`, `plain` or
    `pre_norm`; phase, `end` (updates after tokens C, 2C, ...) or `start` (after 0-based tokens
    0, C, ...); flush, what `finish` does with a remainder: `drop`, `flush_partial` (one more
    update if a token of it is active) or `carry`; reduce, `sum` over a chunk's active tokens or
    `mean`; sequences, None where all that is streamed shares the weights, or S for S sequences
    with weights of their own on top of the parameters; threshold, the mean error norm from which
    a chunk is written (None: always); group, the process group over which a shared memory's chunk
    gradients are reduced, or "local"; measure, take the signals of `telemetry` at each update
    (without, an update that has no momentum is one fused kernel, and `multiply` is
    `cms_level_update_`'s).

    Several processes that share a memory must say so: without `group` a shared memory refuses to
    learn (RuntimeError), because every rank would write its own.
    """

    def __init__(
        self,
        dim: int,
        levels: Sequence[LevelSpec],
        *,
        form: str = "residual",
        phase: str = "end",
        flush: str = "drop",
        reduce: str = "sum",
        sequences: int | None = None,
        threshold: float | None = None,
        group: Any = None,
        measure: bool = True,
        multiply: str | None = None,
    ) -> None:
        """Make the levels; ValueError for options that do not exist or periods out of order."""
        super().__init__()
        for name, value, known in (
            ("form", form, FORMS),
            ("phase", phase, PHASES),
            ("flush", flush, FLUSHES),
            ("reduce", reduce, REDUCTIONS),
        ):
            one_of(name, value, known)
        periods = [spec.period for spec in levels]
        if not levels or periods != sorted(periods):
            raise ValueError(f"levels: got periods {periods}, expected the fastest level first")
        if len({spec.name for spec in levels}) < len(levels):
            raise ValueError("levels: every level has a name of its own")
        at_least("dim", dim, 1)
        if sequences is not None:
            at_least("sequences", sequences, 1)
        if threshold is not None and not 0 <= number(threshold) < math.inf:
            raise ValueError(f"threshold: got {threshold}, expected 0 or more, or None")
        self.dim, self.form, self.phase, self.flush = dim, form, phase, flush
        self.mean, self.sequences, self.threshold = reduce == "mean", sequences, threshold
        if multiply is not None:
            one_of("multiply", multiply, MULTIPLY)
        self.group, self.measure, self.multiply = group, measure, multiply
        self.tokens = 0
        self.levels = nn.ModuleList(MemoryLevel(dim, spec, sequences) for spec in levels)
        for level in self.levels:
            level.first = phase == "start"
        self._reported = {spec.name: Counters() for spec in levels}

    def forward(self, x: Tensor) -> Tensor:
        """Give y of x's shape: (..., dim) where weights are shared, else (S, T, dim)."""
        flat, shape = self._shaped(x)
        for level in self.levels:
            W1, W2 = level.weights()
            flat = cms_level(flat, W1, W2, form=self.form)
        return flat.reshape(shape)

    def stream(self, x: Tensor, error: Tensor | ErrorSignal, mask: Tensor | None = None) -> Tensor:
        """Process a call's tokens in order, and update every level that comes due.

        x (N, T, dim), or (T, dim) for one stream; N is `sequences` where those are given. error:
        dL/dy, of x's shape, or a function of (y, start, stop) that gives it for the call's tokens
        [start, stop), which `error_of` makes from a loss. mask (N, T) or (T,), false where a
        token is not active: it is consumed, and changes nothing. Returns y of x's shape, each
        token at the weights it was processed with. Runs eagerly where it is compiled. Raises
        ValueError for other shapes, RuntimeError in inference mode, in which nothing is learned.
        """
        if torch.compiler.is_dynamo_compiling():
            return torch.compiler.disable(self.stream)(x, error, mask)
        self._taken(x, error, mask)
        batched = x if x.ndim == 3 else x.unsqueeze(0)
        ranks = self._ranks(batched)
        total = batched.shape[1]
        flags = None if mask is None else mask.bool().reshape(batched.shape[:2])
        outputs, start = [], 0
        while start < total:
            stop = min(total, start + min(level.due for level in self.levels))
            signal = signal_of(error, start, stop, x.ndim)
            active = None if flags is None else flags[:, start:stop]
            outputs.append(self._segment(batched[:, start:stop], signal, active))
            self._update_due(ranks)
            start = stop
        y = torch.cat(outputs, 1) if outputs else torch.empty_like(batched)
        return y if x.ndim == 3 else y.squeeze(0)

    def finish(self) -> None:
        """End the stream: treat what waits as `flush` says."""
        for level in self.levels:
            if not level.kept.count or self.flush == "carry":
                continue
            if self.flush == "drop":
                level.drop()
            else:
                self._update(level, self._ranks(level.kept.inputs[0]), flushed=True)

    def reset(self) -> None:
        """Start anew: no tokens, momentum or counters; sequences back at the parameters."""
        self.tokens = 0
        for level in self.levels:
            level.reset()
            level.first = self.phase == "start"
            self._reported[level.spec.name] = Counters()

    def counters(self) -> dict[str, dict[str, int]]:
        """Give each level's counters, and how many tokens are pending."""
        return {
            level.spec.name: {**asdict(level.counters), "pending": level.kept.count}
            for level in self.levels
        }

    def telemetry(self, layer: int = 0) -> dict[str, float | int]:
        """Give the keys of a telemetry row for what happened since the last call of this.

        `layer{L}.cms.{level}.*`: `grad_norm` sums the gradients' norms over tensors and applied
        updates (and sequences), `gate_hit`, `gate_hits` and `updates_applied` count them,
        `chunk_tokens` their token positions; `surprise_value` is the mean error norm of the
        last chunk that was applied, or else blocked.
        A level without update, pending or lost tokens is absent: absence is not zero. A gate that
        blocked every chunk adds `layer{L}.gate.{level}.gate_hit` = 0.
        """
        row: dict[str, float | int] = {}
        for level in self.levels:
            name = level.spec.name
            new = level.counters.less(self._reported[name])
            self._reported[name] = Counters(**asdict(level.counters))
            if any(asdict(new).values()) or level.kept.count:
                row |= keys_of(f"layer{layer}.cms.{name}", level, new)
            if new.gated and not new.updates:
                row[f"layer{layer}.gate.{name}.gate_hit"] = 0
            level.forget_signals()
        return row

    def get_extra_state(self) -> dict[str, Any]:
        """Give the clock."""
        return {"tokens": self.tokens}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Set the clock, and count telemetry from here."""
        self.tokens = int(state["tokens"])

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Load weights, changes, momentum, kept tokens, counters and clock."""
        loaded = super().load_state_dict(state_dict, strict, assign)
        for level in self.levels:
            self._reported[level.spec.name] = Counters(**asdict(level.counters))
        return loaded

    def _segment(
        self, x: Tensor, signal: Tensor | Callable[[Tensor], Tensor], active: Tensor | None
    ) -> Tensor:
        """Evaluate a segment at the present weights; hand every level its inputs and errors."""
        with torch.enable_grad():
            flat, shape = self._shaped(x.detach())
            inputs, outputs = [], []
            carried = flat.requires_grad_()
            for level in self.levels:
                W1, W2 = (weight.detach() for weight in level.weights())
                inputs.append(carried)
                carried = cms_level(carried, W1, W2, form=self.form)
                outputs.append(carried)
        y = carried.detach().reshape(shape)
        delta = signal if isinstance(signal, Tensor) else signal(y)
        if active is not None:
            delta = torch.where(active.unsqueeze(-1), delta, 0)
        delta = delta.to(y.dtype)
        errors = torch.autograd.grad(carried, outputs, delta.reshape(carried.shape))
        for level, rows, error in zip(self.levels, inputs, errors, strict=True):
            level.keep(rows.detach().reshape(shape), error.reshape(shape), active)
        self.tokens += x.shape[1]
        return y

    @torch.no_grad()
    def _update_due(self, ranks: Ranks) -> None:
        for level in self.levels:
            if level.due == 0:
                level.first = False
                self._update(level, ranks)

    @torch.no_grad()
    def _update(self, level: MemoryLevel, ranks: Ranks, flushed: bool = False) -> None:
        level.update(
            form=self.form,
            mean=self.mean,
            threshold=self.threshold,
            ranks=ranks,
            measure=self.measure,
            multiply=self.multiply,
            flushed=flushed,
        )

    def _shaped(self, x: Tensor) -> tuple[Tensor, torch.Size]:
        """Give x as (S, rows, dim), a stack for each set of weights."""
        self._fits(x)
        if self.sequences is None:
            return x.reshape(1, math.prod(x.shape[:-1]), self.dim), x.shape
        return x, x.shape

    def _fits(self, x: Tensor) -> None:
        shape = tuple(x.shape)
        shared = self.sequences is None
        if shape[-1:] != (self.dim,) or not (shared or shape[:-2] == (self.sequences,)):
            expected = f"(..., {self.dim})" if shared else f"({self.sequences}, T, {self.dim})"
            raise ValueError(f"ContinuumMemory: got x {shape}, expected {expected}")

    def _taken(self, x: Tensor, error: Tensor | ErrorSignal, mask: Tensor | None) -> None:
        """Raise before anything changed where `stream` cannot take these."""
        if torch.is_inference_mode_enabled():
            raise RuntimeError(
                "ContinuumMemory: stream learns, which torch.inference_mode does not allow: call "
                "it under torch.no_grad(), or evaluate with forward"
            )
        batched = x if x.ndim == 3 else x.unsqueeze(0)
        if batched.ndim != 3 or (self.sequences is None and batched.shape[2] != self.dim):
            raise ValueError(
                f"ContinuumMemory: got x {tuple(x.shape)}, expected (N, T, {self.dim}) or "
                f"(T, {self.dim})"
            )
        self._fits(batched)
        if not isinstance(error, Tensor) and not callable(error):
            raise ValueError(
                f"error: got {type(error).__name__}, expected a tensor or f(y, start, stop)"
            )
        if isinstance(error, Tensor) and error.shape != x.shape:
            raise ValueError(f"error signal: got {tuple(error.shape)}, expected {tuple(x.shape)}")
        if mask is not None and mask.shape != x.shape[:-1]:
            raise ValueError(f"mask: got {tuple(mask.shape)}, expected {tuple(x.shape[:-1])}")
        waiting = {len(level.kept.inputs[0]) for level in self.levels if level.kept.count}
        if waiting - {len(batched)}:
            raise ValueError(
                f"ContinuumMemory: tokens of {max(waiting)} sequences wait for an update, got x "
                f"{tuple(x.shape)}: end the stream with finish() or reset()"
            )

    def _ranks(self, x: Tensor) -> Ranks:
        """Give the ranks that share the weights, having seen that all have the same tokens."""
        if self.sequences is not None:
            return ranks_of("local", "ContinuumMemory")
        ranks = ranks_of(self.group, "ContinuumMemory (shared by all sequences)")
        clock = torch.tensor([self.tokens, x.shape[1]], device=x.device)
        same_on_all(clock, ranks, "the tokens seen, and those of this call,")
        return ranks
