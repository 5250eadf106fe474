"""The CUDA function of each of the agent's operators, its kernels compiled for the host.

What runs is what a GPU runs but for the driver. The expected values are the operator's plain torch
in float64; the GPU runs the same, eager and as a captured graph whose inputs change in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trueup.kernels.torch.dqn import aggregation, atoms, c51, experts, grn, iqn, scan, selection
from trueup.kernels.torch.ops.registry import Refused, last_reason

B, N, H, D = 5, 11, 9, 7
BOUNDS = torch.tensor([1, 2, 2, 4, 5, 7, 9], dtype=torch.int32)
Made = tuple[Callable[..., Any], Callable[..., Any], list[Any], list[str]]


def c51_rows(positions: bool, n: int = N) -> list[Any]:
    low = torch.randn(2, B, 4) - 2
    support, following = atoms.support_of(low, low + 2, n)
    places = torch.linspace(0, 1, n) ** 1.5 if positions else None
    return [
        torch.randn(B, 4, n), torch.softmax(torch.randn(B, 4, n), -1), support, following,
        torch.randn(B, 4) / 3, torch.rand(B, 4), torch.rand(B), places, torch.randn(B, 4) / 4,
        None, 0.25,
    ]  # fmt: skip


def expected_rows(positions: bool) -> list[Any]:
    low = torch.randn(B, 6) - 2
    places = torch.linspace(0, 1, N) ** 1.5 if positions else None
    support = atoms.support_of(low, low + 2, N)
    return [torch.randn(B, 6, N), support, places, torch.randn(B, 6)]


def grn_rows(projected: bool, tf32: bool = False) -> list[Any]:
    D_in = 6 if projected else D
    shapes = [(B, D_in), (H, D_in), (H,), (2 * D, H), (2 * D,), (D,), (D,)]
    rows: list[Any] = [torch.randn(shape) for shape in shapes]
    return [*rows, torch.randn(D, D_in) if projected else None, 1e-5, tf32]


def grn_saved(projected: bool, tf32: bool = False) -> list[Any]:
    rows = grn_rows(projected, tf32)
    out, *saved = grn._plain(*rows)
    kept = [rows[place] for place in (0, 1, 3, 5)]
    return [torch.randn_like(out), *kept, *saved, rows[7], tf32]


def vsn_saved() -> list[Any]:
    x, W = torch.randn(B, 10), torch.randn(6, 10)
    _, w = selection._plain(x, W, torch.randn(6), BOUNDS, 2.0)
    return [torch.randn(B, 10), x, W, w, BOUNDS, 2.0]


def scan_rows() -> list[Any]:
    shapes = [(2, 70, 3, 5), (2, 70, 3), (3,), (3,), (2, 70, 4), (2, 70, 4), (3,)]
    return [*(torch.randn(shape) / 2 for shape in shapes), 0.5 + torch.rand(2, 70)]


def gate_rows() -> list[Any]:
    return [torch.randn(shape) for shape in ((B, D), (H, D), (H,), (8, H), (8,))]


def gate_saved() -> list[Any]:
    x, W1, b1, W2, b2 = gate_rows()
    g, h = experts._plain(x, W1, b1, W2, b2)
    return [torch.randn(B, 8), x, W1, W2, h, g]


CASES: dict[str, Callable[[], Made]] = {
    "c51_loss": lambda: (c51._fast, c51._plain, c51_rows(False), ["c51_loss"]),
    "c51_loss_positions": lambda: (
        c51._fast, c51._plain, c51_rows(True), ["c51_loss_positions"],
    ),
    "expected_q": lambda: (atoms._fast, atoms._plain, expected_rows(False), ["expected_q"]),
    "expected_q_positions": lambda: (
        atoms._fast, atoms._plain, expected_rows(True), ["expected_q_positions"],
    ),
    "dueling": lambda: (
        aggregation._fast, aggregation._plain,
        [torch.randn(B, N), torch.randn(B, 13, N), [4, 3, 3, 3]], ["dueling_forward"],
    ),
    "dueling_backward": lambda: (
        aggregation._fast_backward, aggregation._plain_backward,
        [torch.randn(B, 13, N), [4, 3, 3, 3]], ["dueling_backward"],
    ),
    "iqn_loss": lambda: (
        iqn._fast, iqn._plain,
        [torch.randn(B, 4, 5), torch.randn(B, 4, 6), torch.rand(5), torch.rand(B), 0.5],
        ["iqn_loss"],
    ),
    "grn": lambda: (grn._fast, grn._plain, grn_rows(False), ["grn_forward"]),
    "grn_projected": lambda: (
        grn._fast, grn._plain, grn_rows(True), ["grn_forward_projected"],
    ),
    "grn_backward": lambda: (
        grn._fast_backward, grn._plain_backward, grn_saved(False), ["grn_backward"],
    ),
    "grn_backward_projected": lambda: (
        grn._fast_backward, grn._plain_backward, grn_saved(True), ["grn_backward_projected"],
    ),
    "vsn": lambda: (
        selection._fast, selection._plain,
        [torch.randn(B, 10), torch.randn(6, 10), torch.randn(6), BOUNDS, 2.0], ["vsn_forward"],
    ),
    "vsn_backward": lambda: (
        selection._fast_backward, selection._plain_backward, vsn_saved(), ["vsn_backward"],
    ),
    "selective_scan": lambda: (
        scan._fast, scan._plain, scan_rows(), ["selective_scan_forward"],
    ),
    "selective_scan_backward": lambda: (
        scan._fast_backward, scan._plain_backward,
        [torch.randn(2, 70, 3, 5), *scan_rows()], ["selective_scan_backward"],
    ),
    "moe_gate": lambda: (experts._fast, experts._plain, gate_rows(), ["moe_gate_forward"]),
    "moe_gate_backward": lambda: (
        experts._fast_backward, experts._plain_backward, gate_saved(), ["moe_gate_backward"],
    ),
    "moe_mixture": lambda: (
        experts._fast_mixture, experts._plain_mixture,
        [torch.rand(B, 8), torch.randn(B, 8, D)], ["moe_mixture_forward"],
    ),
    "moe_mixture_backward": lambda: (
        experts._fast_mixture_backward, experts._plain_mixture_backward,
        [torch.randn(B, D), torch.rand(B, 8), torch.randn(B, 8, D)], ["moe_mixture_backward"],
    ),
}  # fmt: skip
TF32 = {"grn": grn._fast, "grn_backward": grn._fast_backward}


def doubled(given: list[Any]) -> list[Any]:
    return [
        item.double() if isinstance(item, Tensor) and item.is_floating_point() else item
        for item in given
    ]


def on_device(given: list[Any]) -> list[Any]:
    return [item.cuda() if isinstance(item, Tensor) else item for item in given]


def results(returned: Any) -> list[Tensor]:
    return [returned] if isinstance(returned, Tensor) else list(returned)


def held(got: Any, want: Any, tolerance: float = 3e-5) -> None:
    """Each result against float64, relative to the largest of its elements or 1."""
    assert not isinstance(got, Refused), got
    for one, two in zip(results(got), results(want), strict=True):
        assert one.shape == two.shape
        if two.numel():
            scale = max(1.0, float(two.abs().max()))
            torch.testing.assert_close(
                one.double() / scale, two.double() / scale, rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("name", CASES)
def test_the_shipped_kernel_computes_the_operator(name: str, on_host: Callable[[str], Any]) -> None:
    fast, plain, given, contracts = CASES[name]()
    held(fast(*given), plain(*doubled(given)))
    for contract in contracts:
        assert on_host(f"dqn.{contract}")._loaded[0].launched


@pytest.mark.parametrize("n", [51, 96])
@pytest.mark.parametrize("positions", [False, True])
def test_more_atoms_than_the_contract_tries(
    n: int, positions: bool, on_host: Callable[[str], Any]
) -> None:
    given = c51_rows(positions, n)
    held(c51._fast(*given), c51._plain(*doubled(given)))
    assert on_host("dqn.c51_loss" + "_positions" * positions)._loaded[0].launched


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: c51._fast(*c51_rows(False)[:-1], 0.5), "branch weight is 0.25"),
        (lambda: grn._fast(*grn_rows(False)[:-2], 1e-3, False), "eps is 1e-05"),
        (lambda: aggregation._fast(torch.ones(2, 3), torch.ones(2, 5, 3), [5]), "branches of"),
        (
            lambda: aggregation._fast_backward(torch.ones(2, 5, 3), [5]),
            "branches of",
        ),
        (
            lambda: experts._fast_mixture(torch.rand(2, 3).double(), torch.rand(2, 3, 4).double()),
            "g is torch.float64, the kernel takes f32",
        ),
    ],
)
def test_what_no_kernel_computes_is_refused_with_its_reason(
    call: Callable[[], Any], reason: str, on_host: Callable[[str], Any]
) -> None:
    refused = call()
    assert isinstance(refused, Refused)
    assert reason in refused


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_the_operator_on_a_device(name: str) -> None:
    fast, plain, given, _ = CASES[name]()
    given = on_device(given)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        got = fast(*given)
    stream.synchronize()
    held(got, plain(*doubled(given)))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_a_captured_graph_replays_the_operator(name: str) -> None:
    """Capture, change the inputs in place, replay: the bits of an eager call."""
    fast, _, given, _ = CASES[name]()
    given, fresh = on_device(given), on_device(CASES[name]()[2])
    fast(*given)  # compiled and loaded before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = fast(*given)
    for one, two in zip(given, fresh, strict=True):
        if isinstance(one, Tensor):
            one.copy_(two)
    graph.replay()
    eager = fast(*fresh)
    torch.cuda.synchronize()
    for one, two in zip(results(captured), results(eager), strict=True):
        assert torch.equal(one, two)


@pytest.mark.gpu
@pytest.mark.parametrize("name", TF32)
def test_tensor_cores_on_a_device(name: str) -> None:
    """Operands of 11 bits, rounded: sums of 18 products or fewer are within 2^-9 of them."""
    made = grn_rows(False, True) if name == "grn" else grn_saved(False, True)
    plain = grn._plain if name == "grn" else grn._plain_backward
    given = on_device(made)
    held(TF32[name](*given), plain(*doubled(given)), 2**-7)


@pytest.mark.gpu
def test_both_passes_run_the_kernels_and_agree_with_the_cpu() -> None:
    from trueup.kernels.torch import gated_residual

    rows = [item for item in grn_rows(True) if isinstance(item, Tensor)]
    here = [item.clone().requires_grad_() for item in rows]
    there = [item.cuda().requires_grad_() for item in rows]
    for leaves in (here, there):
        gated_residual(*leaves).square().sum().backward()
    assert last_reason("grn") is None
    assert last_reason("grn_backward") is None
    for one, two in zip(here, there, strict=True):
        assert one.grad is not None
        assert two.grad is not None
        held(two.grad.cpu(), one.grad, 1e-4)
