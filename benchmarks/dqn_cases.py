"""The kernels of the distributional agent: shapes, least bytes, the equations in torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from cases import Case
from torch import Tensor

Result = tuple[Tensor, ...]


def layer_norm_backward(
    d_out: Tensor, xhat: Tensor, rstd: Tensor, gamma: Tensor, *_: Tensor
) -> Result:
    """The gradients of LayerNorm's input, gain and bias."""
    g = d_out * gamma
    projection = (g * xhat).mean(1, keepdim=True)
    dy = rstd[:, None] * (g - g.mean(1, keepdim=True) - xhat * projection)
    return dy, (d_out * xhat).sum(0), d_out.sum(0)


def torch_layer_norm_backward(
    d_out: Tensor, xhat: Tensor, rstd: Tensor, gamma: Tensor, *_: Tensor
) -> Callable[[], object]:
    """Call torch's own operator for the same work."""
    rows, columns = d_out.shape
    mean = torch.zeros(rows, 1, device="cuda")
    bias = torch.zeros(columns, device="cuda")
    backward = torch.ops.aten.native_layer_norm_backward
    wide = rstd[:, None].contiguous()
    return lambda: backward(d_out, xhat, [columns], mean, wide, gamma, bias, [True] * 3)


def _layer_norm(B: int, D: int, versus: bool = False) -> Case:
    return Case(
        "dqn.layer_norm_backward",
        {"B": B, "D": D},
        4 * (3 * B * D + B + 3 * D),
        layer_norm_backward,
        fixed={"rstd": lambda: torch.rand(B, device="cuda") + 0.5},
        library=torch_layer_norm_backward,
        variants=_LAUNCHES if versus else (),
    )


_ROWS, _COLUMNS = "layer_norm_backward_rows", "layer_norm_backward_columns"
_LAUNCHES = [
    {_ROWS: ("min(B, 132)", "256")},  # not more blocks: the workspace has a row for each
    {_ROWS: ("min(B, 132)", "512")},
    {_COLUMNS: ("ceil(D / 8)", "1024")},
    {_COLUMNS: ("ceil(D / 8)", "512")},
]

CASES: list[Case] = [
    _layer_norm(65536, 256, versus=True),
    _layer_norm(131072, 128),
    _layer_norm(16384, 1024),
    _layer_norm(8192, 4096),
    _layer_norm(65536, 255),
]
