"""The kernels of the distributional agent: shapes, least bytes, the equations in torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from cases import Case
from dqn_equations import (
    c51_loss,
    grad_norms,
    grn_backward,
    grn_forward,
    iqn_loss,
    layer_norm_backward,
    selective_scan_backward,
    selective_scan_forward,
    sum_tree_sample,
    sum_tree_update,
    vsn_backward,
    vsn_forward,
)
from torch import Tensor

ATOMS = 51


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


def _supports(B: int) -> Tensor:
    low = torch.rand(B, 4, device="cuda") - 3
    high = low + 4 + torch.rand(B, 4, device="cuda")
    return torch.stack([low, high, (high - low) / (ATOMS - 1)], -1)


def _c51(B: int) -> Case:
    return Case(
        "dqn.c51_loss",
        {"B": B, "n_atoms": ATOMS},
        4 * (B * 4 * (3 * ATOMS + 2 * 3 + 7) + B),
        c51_loss,
        {"returns": 0.5, "shift": 0.1, "next_shift": 0.1},
        {
            "p_next": lambda: torch.softmax(torch.randn(B, 4, ATOMS, device="cuda"), -1),
            "support": lambda: _supports(B),
            "next_support": lambda: _supports(B),
            "discount": lambda: torch.rand(B, 4, device="cuda"),
            "weight": lambda: torch.rand(B, device="cuda") + 0.5,
        },
    )


def _iqn(B: int, n: int) -> Case:
    return Case(
        "dqn.iqn_loss",
        {"B": B, "n_tau": n, "n_target": n},
        4 * (B * 4 * (3 * n + 1) + B + n),
        iqn_loss,
        fixed={
            "tau": lambda: torch.rand(n, device="cuda"),
            "weight": lambda: torch.rand(B, device="cuda") + 0.5,
            "kappa": 1.0,
        },
    )


def _grn(B: int, D: int, ending: str = "") -> Case:
    """Time the forward pass: two products of D and 2 D columns."""
    return Case(
        f"dqn.grn_forward{ending}",
        {"B": B, "H": D, "D": D},
        4 * (B * 7 * D + B + 3 * D * D + 5 * D),
        grn_forward,
        {"W_a": D**-0.5, "W_b": D**-0.5},
        operations=2 * 3 * B * D * D,
        rate="tf32" if ending else "f32",
    )


def _grn_backward(B: int, D: int, ending: str = "") -> Case:
    """Time the backward pass: two products each for inputs and for weights."""
    return Case(
        f"dqn.grn_backward{ending}",
        {"B": B, "H": D, "D": D},
        4 * (B * 8 * D + B + 2 * 3 * D * D + 6 * D),
        grn_backward,
        {"W_a": D**-0.5, "W_b": D**-0.5},
        {
            "rstd": lambda: torch.rand(B, device="cuda") + 0.5,
            "s": lambda: torch.rand(B, D, device="cuda"),
            "e": lambda: torch.nn.functional.elu(torch.randn(B, D, device="cuda")),
        },
        2 * 6 * B * D * D,
        "tf32" if ending else "f32",
    )


def _groups() -> Tensor:
    return torch.tensor([0, 42, 60, 76, 92, 115, 121], dtype=torch.int32, device="cuda")


def _vsn(B: int) -> Case:
    return Case(
        "dqn.vsn_forward",
        {"B": B, "D": 128},
        4 * (B * (2 * 128 + 6) + 6 * 128 + 6 + 7),
        vsn_forward,
        {"W": 128**-0.5},
        {"gb": _groups, "sigma": 1.0},
    )


def _vsn_backward(B: int) -> Case:
    return Case(
        "dqn.vsn_backward",
        {"B": B, "D": 128},
        4 * (B * (3 * 128 + 6) + 2 * 6 * 128 + 6 + 7),
        vsn_backward,
        {"W": 128**-0.5},
        {
            "gb": _groups,
            "sigma": 1.0,
            "w": lambda: torch.softmax(torch.randn(B, 6, device="cuda"), 1),
        },
    )


def _scan(B: int, T: int, H: int, P: int, M: int) -> Case:
    return Case(
        "dqn.selective_scan_forward",
        {"B": B, "T": T, "H": H, "P": P, "M": M},
        4 * (B * T * (2 * H * P + H + 2 * M + 1) + 3 * H),
        selective_scan_forward,
        {"Bm": M**-0.5, "Cm": M**-0.5, "A_log": 0.5},
        {"dur": lambda: torch.rand(B, T, device="cuda") + 0.5},
    )


def _scan_backward(B: int, T: int, H: int, P: int, M: int) -> Case:
    return Case(
        "dqn.selective_scan_backward",
        {"B": B, "T": T, "H": H, "P": P, "M": M},
        4 * (B * T * (3 * H * P + 2 * H + 4 * M + 2) + 6 * H),
        selective_scan_backward,
        {"Bm": M**-0.5, "Cm": M**-0.5, "A_log": 0.5},
        {"dur": lambda: torch.rand(B, T, device="cuda") + 0.5},
    )


def _norms(n: int) -> Case:
    """Time eight norms: four components of n floats, in two slices that touch."""
    return Case(
        "dqn.grad_norms",
        {"n": n},
        4 * 4 * n,
        grad_norms,
        fixed={
            "slices": lambda: torch.tensor(
                [[0, n // 2], [n // 2, n]], dtype=torch.int32, device="cuda"
            )
        },
    )


def _tree(C: int) -> Tensor:
    levels = [torch.rand(C, device="cuda") + 0.01]
    while levels[0].numel() > 1:
        levels.insert(0, levels[0].view(-1, 2).sum(1))
    return torch.cat([torch.zeros(1, device="cuda"), *levels])


_LINE = 32  # bytes that a scattered access to memory moves


def _tree_update(C: int, n: int) -> Case:
    """Count lines of memory; what takes the time is waiting for one level after the other."""
    return Case(
        "dqn.sum_tree_update",
        {"C": C, "n": n},
        n * 8 + _levels_touched(C, n, reads=2),
        sum_tree_update,
        fixed={
            "tree": lambda: _tree(C),
            "index": lambda: torch.randperm(C, device="cuda")[:n].int(),
            "leaf": lambda: torch.rand(n, device="cuda") + 0.01,
        },
    )


def _tree_sample(C: int, B: int) -> Case:
    return Case(
        "dqn.sum_tree_sample",
        {"C": C, "B": B},
        B * 12 + _levels_touched(C, B, reads=1),
        sum_tree_sample,
        fixed={"tree": lambda: _tree(C), "u": lambda: torch.rand(B, device="cuda")},
    )


def _levels_touched(C: int, n: int, reads: int) -> int:
    """Give the bytes of the lines that n ways from the root to a leaf touch."""
    depth = C.bit_length() - 1
    return sum(reads * min(n * _LINE, 4 * 2**level) for level in range(1, depth + 1))


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
    _c51(8192),
    _iqn(8192, 32),
    _iqn(8192, 5),
    _grn(8192, 256),
    _grn(8192, 256, "_tf32"),
    _grn_backward(8192, 256),
    _grn_backward(8192, 256, "_tf32"),
    _vsn(8192),
    _vsn(65536),
    _vsn_backward(8192),
    _vsn_backward(65536),
    _scan(64, 1024, 4, 64, 16),
    _scan_backward(64, 1024, 4, 64, 16),
    _norms(625_000),
    _norms(2_500_000),
    _tree_update(2**20, 1024),
    _tree_sample(2**20, 1024),
]
