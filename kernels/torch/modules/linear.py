"""LinearMemory: projections, a linear fast memory for each sequence, and its online writes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from trueup.kernels.torch.modules.writes import MODES, RULES, linear_memory
from trueup.kernels.torch.ops.attention import READINGS
from trueup.kernels.torch.ops.registry import at_least, number, one_of


@dataclass
class _Told:
    """Norms of the gradients that a backward pass sent through the writes of one call."""

    carried: list[Tensor] = field(default_factory=list)
    into_values: list[Tensor] = field(default_factory=list)


class LinearMemory(nn.Module):
    """A linear memory that every sequence writes and reads: Nested Learning, Eq. 12-16 and 28.

        k_t = x_t W_k,  v_t = x_t W_v,  q_t = x_t W_q;  y_t = M q_t
    with M written online by `rule` from its learned initial value. Each sequence has a memory of
    its own: nothing depends on the batch, its order, or the number of ranks.

    Args: dim of x; d_k and d_v (dim if None); rule, chunk, read and write_grad as in
    `linear_memory`; eta, rate of the inner step, learned if learn_eta; checkpoint_every, chunks
    between the memories that are kept for the backward pass (0 keeps all).
    """

    def __init__(
        self,
        dim: int,
        d_k: int | None = None,
        d_v: int | None = None,
        *,
        rule: str = "attention",
        chunk: int = 64,
        eta: float = 0.1,
        learn_eta: bool = False,
        write_grad: str = "straight_through",
        read: str | None = None,
        checkpoint_every: int = 0,
    ) -> None:
        """Make the projections and the initial memory; ValueError for options that do not exist."""
        super().__init__()
        one_of("rule", rule, ("attention", *RULES))
        one_of("write_grad", write_grad, MODES)
        one_of("read", read or "pre", READINGS)
        d_k, d_v = dim if d_k is None else d_k, dim if d_v is None else d_v
        for name, size, low in (
            ("dim", dim, 1),
            ("d_k", d_k, 1),
            ("d_v", d_v, 1),
            ("chunk", chunk, 1),
            ("checkpoint_every", checkpoint_every, 0),
        ):
            at_least(name, size, low)
        if not 0 < number(eta) < math.inf:
            raise ValueError(f"eta: got {eta!r}, expected a positive number")
        self.rule, self.chunk, self.write_grad, self.read = rule, chunk, write_grad, read
        self.checkpoint_every = checkpoint_every
        self.W_k = nn.Parameter(torch.randn(dim, d_k) / math.sqrt(dim))
        self.W_v = nn.Parameter(torch.randn(dim, d_v) / math.sqrt(dim))
        self.W_q = nn.Parameter(torch.randn(dim, d_k) / math.sqrt(dim))
        self.memory = nn.Parameter(torch.zeros(d_v, d_k))
        self.eta = nn.Parameter(torch.tensor(float(eta)), requires_grad=learn_eta)
        self._told = _Told()

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Give y (N, T, d_v) and the memory (N, d_v, d_k) after the last token.

        x (N, T, dim); memory, what an earlier call returned, or None for the initial one; mask
        (N, T), false where a token does not write. Raises ValueError for other shapes.
        """
        self._fits(x, memory, mask)
        if memory is None:
            memory = self.memory.expand(x.shape[0], -1, -1)
        values = x @ self.W_v
        told = _Told()
        watching = torch.is_grad_enabled() and not torch.compiler.is_compiling()
        if watching:
            # A checkpoint calls again in the backward pass, whose hooks may be the first call's.
            if torch._C._current_graph_task_id() == -1:
                self._told = told
            self._norm_into(values, told, told.into_values)
        return linear_memory(
            x @ self.W_q,
            x @ self.W_k,
            values,
            memory,
            self.eta,
            rule=self.rule,
            chunk=self.chunk,
            write_grad=self.write_grad,
            read=self.read,
            mask=mask,
            checkpoint_every=self.checkpoint_every,
            watch=(lambda M: self._norm_into(M, told, told.carried)) if watching else None,
        )

    def gradient_metrics(self) -> dict[str, float]:
        """Tell what the last backward pass sent through the writes of the last call.

        `write_grad_norm` is |dL/dv|: values act on the loss through writes alone, so that it is
        positive in `through` mode only. `carry_grad_norm` sums |dL/dM| over the memories that
        later tokens read: positive in `through` and `straight_through`. Both are 0 where no
        written memory was read (a single chunk under `pre`).
        """
        return {
            "write_grad_norm": float(sum(float(norm) for norm in self._told.into_values)),
            "carry_grad_norm": float(sum(float(norm) for norm in self._told.carried)),
        }

    def active_mode(self) -> str:
        """Name the mode that the last backward pass shows, whatever is configured.

        `detached` says that no derivative passed a write, which is also what a call shows whose
        written memory nothing read.
        """
        metrics = self.gradient_metrics()
        if metrics["write_grad_norm"] > 0:
            return "through"
        return "straight_through" if metrics["carry_grad_norm"] > 0 else "detached"

    def _fits(self, x: Tensor, memory: Tensor | None, mask: Tensor | None) -> None:
        """Raise ValueError for shapes that `forward` cannot take."""
        dim, (d_v, d_k) = self.W_k.shape[0], self.memory.shape
        if x.ndim != 3 or x.shape[2] != dim:
            raise ValueError(f"LinearMemory: got x {tuple(x.shape)}, expected (N, T, {dim})")
        N, T, _ = x.shape
        if memory is not None and memory.shape != (N, d_v, d_k):
            raise ValueError(
                f"LinearMemory: got memory {tuple(memory.shape)}, expected {(N, d_v, d_k)} for x "
                f"{tuple(x.shape)}"
            )
        if mask is not None and mask.shape != (N, T):
            raise ValueError(f"LinearMemory: got mask {tuple(mask.shape)}, expected {(N, T)}")

    def _norm_into(self, tensor: Tensor, told: _Told, kept: list[Tensor]) -> None:
        """Keep the norm of a tensor's gradient, and show the call to which it belongs."""
        if not tensor.requires_grad:
            return

        def keep(gradient: Tensor) -> None:
            kept.append(gradient.detach().norm())
            self._told = told

        tensor.register_hook(keep)
