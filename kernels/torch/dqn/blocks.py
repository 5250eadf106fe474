"""GatedResidual, VariableSelection, SelectiveScan and MoEGate: the blocks of an agent's trunk."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trueup.kernels.torch.dqn.experts import moe_balance, moe_gate, moe_mixture
from trueup.kernels.torch.dqn.grn import EPS, MULTIPLY, gated_residual
from trueup.kernels.torch.dqn.scan import selective_scan
from trueup.kernels.torch.dqn.selection import BOUNDS, select_variables
from trueup.kernels.torch.dqn.shapes import Constant, entering, sized
from trueup.kernels.torch.ops.registry import one_of


def _xavier(*shape: int) -> nn.Parameter:
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape)))


class GatedResidual(nn.Module):
    """A gated residual network: two linears, ELU, GLU, residual and layer norm.

    Its output is signed and has a mean of 0 before gain and bias. Matrices start by Xavier, gains
    at 1, biases at 0: 7 tensors with a projected residual, 6 without.

    Args: dim_in; dim of the output (dim_in if None); hidden (dim if None); eps; multiply, "tf32"
    lets kernels use tensor cores. The residual is projected where dim differs from dim_in.
    """

    def __init__(
        self,
        dim_in: int,
        dim: int | None = None,
        hidden: int | None = None,
        *,
        eps: float = EPS,
        multiply: str = "f32",
    ) -> None:
        """Make the tensors; ValueError for another `multiply` and for what is not positive."""
        super().__init__()
        one_of("multiply", multiply, MULTIPLY)
        if not 0 < eps < math.inf:
            raise ValueError(f"eps: got {eps}, expected a positive number")
        dim = dim_in if dim is None else dim
        hidden = dim if hidden is None else hidden
        sized("GatedResidual", dim_in=dim_in, dim=dim, hidden=hidden)
        self.eps, self.multiply = eps, multiply
        self.W_a, self.b_a = _xavier(hidden, dim_in), nn.Parameter(torch.zeros(hidden))
        self.W_b, self.b_b = _xavier(2 * dim, hidden), nn.Parameter(torch.zeros(2 * dim))
        self.gamma, self.beta = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.W_res = _xavier(dim, dim_in) if dim != dim_in else None

    def extra_repr(self) -> str:
        """Tell the sizes."""
        (hidden, dim_in), dim = self.W_a.shape, self.gamma.shape[0]
        return f"dim_in={dim_in}, dim={dim}, hidden={hidden}, multiply={self.multiply!r}"

    def forward(self, x: Tensor) -> Tensor:
        """Give (B, dim) from x (B, dim_in); ValueError for another shape."""
        return gated_residual(
            x, self.W_a, self.b_a, self.W_b, self.b_b, self.gamma, self.beta, self.W_res,
            eps=self.eps, multiply=self.multiply,
        )  # fmt: skip


class VariableSelection(Constant):
    """Weigh six groups of features by one softmax of a linear gate.

    Args: dim of the features; bounds, 7 ascending: group g is [bounds[g], bounds[g + 1]), features
    outside pass unscaled; sigma multiplies the gates: with 6 and the first, zero gate the output is
    the input, bit by bit. Raises ValueError for other bounds.
    """

    def __init__(self, dim: int, bounds: Sequence[int] = BOUNDS, *, sigma: float = 1.0) -> None:
        """Make the gate, of zeros: all groups weigh the same."""
        super().__init__()
        if len(bounds) != 7 or list(bounds) != sorted(bounds) or bounds[0] < 0 or bounds[6] > dim:
            raise ValueError(f"bounds: got {list(bounds)}, expected 7 ascending within [0, {dim}]")
        self.sigma, self.ends = sigma, tuple(int(bound) for bound in bounds)
        self.W, self.b = nn.Parameter(torch.zeros(6, dim)), nn.Parameter(torch.zeros(6))
        self.keep_constants()

    def constants(self) -> dict[str, Tensor]:
        """Give `bounds`."""
        return {"bounds": torch.tensor(self.ends, dtype=torch.int32)}

    def extra_repr(self) -> str:
        """Tell the groups."""
        return f"dim={self.W.shape[1]}, bounds={self.ends}, sigma={self.sigma}"

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Give the scaled features (B, dim) and the groups' weights (B, 6), which are detached."""
        return select_variables(x, self.W, self.b, self.bounds, self.sigma)


class SelectiveScan(nn.Module):
    """A Mamba-2 core over bars: projections, a selective scan for each head, and a projection.

    Args: dim of the bars; heads and head_dim; state, the width of B and C. A starts from -1 to
    -heads, the step sizes between dt_min and dt_max. Raises ValueError for sizes below 1.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 4,
        head_dim: int = 16,
        state: int = 16,
        *,
        dt_min: float = 1e-3,
        dt_max: float = 0.1,
    ) -> None:
        """Make the projections, the rates and the skip."""
        super().__init__()
        sized("SelectiveScan", dim=dim, heads=heads, head_dim=head_dim, state=state)
        if not 0 < dt_min <= dt_max:
            raise ValueError(
                f"SelectiveScan: got dt from {dt_min} to {dt_max}, expected 0 < dt_min <= dt_max"
            )
        self.sizes = (heads * head_dim, heads, state, state)
        self.project = nn.Linear(dim, sum(self.sizes), bias=False)
        self.output = nn.Linear(heads * head_dim, dim, bias=False)
        dt = torch.exp(torch.empty(heads).uniform_(math.log(dt_min), math.log(dt_max)))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))  # softplus gives dt
        self.A_log = nn.Parameter(torch.log(torch.arange(1, heads + 1, dtype=torch.float32)))
        self.D = nn.Parameter(torch.ones(heads))

    def forward(self, x: Tensor, dur: Tensor | None = None) -> Tensor:
        """Give (B, T, dim) from bars x (B, T, dim) and their durations (B, T), 1 if None.

        What is given at a bar depends on no later one. Raises ValueError for another shape.
        """
        x = entering("SelectiveScan", x, self.project.weight, "B T dim")
        rows, dt_raw, Bm, Cm = self.project(x).split(self.sizes, -1)
        rows = rows.unflatten(-1, (self.sizes[1], -1))
        y = selective_scan(rows, dt_raw, self.dt_bias, self.A_log, Bm, Cm, self.D, dur)
        out: Tensor = self.output(y.flatten(2).to(self.output.weight.dtype))
        return out


class MoEGate(nn.Module):
    """Weigh experts by the full state: one hidden layer, ReLU, softmax.

    With 128 inputs, 64 hidden units and 8 experts it has 8776 parameters.

    Args: dim of the state; experts; hidden. Raises ValueError for sizes below 1.
    """

    def __init__(self, dim: int, experts: int = 8, hidden: int = 64) -> None:
        """Make the layers: matrices by Xavier, biases 0."""
        super().__init__()
        sized("MoEGate", dim=dim, experts=experts, hidden=hidden)
        self.W1, self.b1 = _xavier(hidden, dim), nn.Parameter(torch.zeros(hidden))
        self.W2, self.b2 = _xavier(experts, hidden), nn.Parameter(torch.zeros(experts))

    def extra_repr(self) -> str:
        """Tell the sizes."""
        (hidden, dim), experts = self.W1.shape, self.W2.shape[0]
        return f"dim={dim}, experts={experts}, hidden={hidden}"

    def forward(self, x: Tensor) -> Tensor:
        """Give the weights of the experts (B, experts) from the state x (B, dim)."""
        return moe_gate(x, self.W1, self.b1, self.W2, self.b2)

    @staticmethod
    def mix(g: Tensor, experts: Tensor) -> Tensor:
        """Join what the experts give, (B, experts, D), to (B, D) by the weights g."""
        return moe_mixture(g, experts)

    @staticmethod
    def balance(g: Tensor) -> Tensor:
        """Charge an uneven use: 1 where the experts are used evenly, their number at most."""
        return moe_balance(g)
