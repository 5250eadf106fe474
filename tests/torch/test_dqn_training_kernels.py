"""The kernel behind each operator of the agent's training: on the host, and on a GPU as it is.

The expected values are the operator's plain torch in float64. In-place operators work on copies.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from trueup.kernels.torch.dqn import (
    atoms,
    auxiliary,
    branches,
    focus,
    gradients,
    iqn,
    liquid,
    market,
    projection,
    quantiles,
    replay,
    sampling,
    shift,
    terms,
    transforms,
)
from trueup.kernels.torch.dqn.atoms import support_of
from trueup.kernels.torch.ops.registry import Refused

INT, B, A = torch.int32, 37, 4


def whole(high: int, *shape: int, low: int = 0) -> Tensor:
    return torch.randint(low, high, shape, dtype=INT)


def numbers(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=INT)


def positive(*shape: int) -> Tensor:
    return 0.5 + torch.rand(shape)


def simplex() -> Tensor:
    return torch.softmax(torch.randn(B, 6), 1)


def drawn() -> list[Any]:
    low = torch.randn(B, A) - 2
    rows = 2 * torch.randn(B, A, 11), support_of(low, low + 3, 11), torch.rand(B, A)
    return [*rows, None, torch.randn(B, A) / 4]


def targets() -> list[Any]:
    low = torch.randn(2, B, 4) - 2
    support, after = support_of(low, low + 3, 11)
    p_next = torch.softmax(torch.randn(B, 4, 11), -1)
    shifts = torch.randn(2, B, 4) / 4
    return [p_next, support, after, torch.randn(B, 4) / 3, torch.rand(B, 4), None, *shifts]


def tree(C: int) -> Tensor:
    made = torch.cat([torch.zeros(C), torch.rand(C)])
    replay._plain_rebuild(made)
    return made


def book() -> list[Any]:
    steps = 1 + torch.arange(10)
    bid, ask = (100 + sign * 0.25 * steps for sign in (-1, 1))
    sizes = 10 * torch.rand(2, B, 10)
    sizes[0, 1] = 0
    return [bid.repeat(B, 1), sizes[0], ask.repeat(B, 1), sizes[1], torch.full((1,), 0.25)]


def flags() -> list[Any]:
    x = torch.randn(1000)
    x[777] = torch.nan
    return [x, whole(2, 48), torch.full((48,), -1, dtype=INT), numbers(30), numbers(9)]


def moments() -> list[Any]:
    first, second = torch.randn(B).double() / 9, positive(B).double()
    return [torch.randn(B), first, second, numbers(4), 0.02, 3.0]


SAXPY = [[3, 37], [37, 71], [73, 200], [260, 300]]
# Contract: module, suffix of its functions, arguments, and the places that are written.
Case = tuple[ModuleType, str, Callable[[], list[Any]], tuple[int, ...]]
CASES: dict[str, Case] = {
    "symlog": (transforms, "", lambda: [3 * torch.randn(5, 77)], ()),
    "symlog_backward": (
        transforms, "_backward", lambda: [3 * torch.randn(77), torch.randn(77)], (),
    ),
    "symexp": (transforms, "_symexp", lambda: [torch.randn(5, 77)], ()),
    "symexp_backward": (
        transforms, "_symexp_backward", lambda: [torch.randn(77), torch.randn(77)], (),
    ),
    "expected_q_backward": (
        atoms, "_backward", lambda: [torch.randn(B, A), *drawn()[:2], None], (),
    ),
    "greedy_action": (sampling, "_greedy", lambda: [torch.randn(B, 13), [4, 3, 3, 3]], ()),
    "atom_support": (
        quantiles, "_supports",
        lambda: [2 * torch.randn(8).sort().values, torch.randn(B, 13), 11, 0.5, 0.2, 0.5,
                 [4, 3, 3, 3]], (),
    ),
    "c51_projection": (projection, "", targets, ()),
    "td_priority": (
        projection, "_td",
        lambda: [torch.softmax(torch.randn(B, 4, 11), -1), torch.randn(B, 4, 11),
                 torch.rand(B, 4, 11)], (),
    ),
    "epsilon_greedy": (
        branches, "_explore",
        lambda: [whole(3, B, 4), whole(3, B, 4), torch.rand(B, 4), torch.full((1,), 0.4)], (),
    ),
    "nstep_return": (
        branches, "_return",
        lambda: [torch.randn(B, 5), (torch.rand(B, 5) < 0.2).float(), torch.rand(4), 1.5], (),
    ),
    "branch_budgets": (
        branches, "_budgets",
        lambda: [torch.rand(3, 4), torch.rand(4), torch.rand(3), torch.rand(3) / 9, positive(3)],
        (),
    ),
    "mag_concat": (
        branches, "_concat", lambda: [torch.randn(B, 9), torch.randn(B, 4), positive(1), 100.0],
        (),
    ),
    "mag_concat_backward": (
        branches, "_concat_backward",
        lambda: [torch.randn(B, 13), torch.randn(B, 4), positive(1), 100.0], (),
    ),
    "action_encoding": (
        market, "_encoding", lambda: [whole(4, B), *(whole(3, B) for _ in range(3))], (),
    ),
    "liquid_step": (
        liquid, "", lambda: [torch.randn(B), positive(B), torch.randn(B), positive(B), 0.3], (),
    ),
    "liquid_step_backward": (
        liquid, "_backward",
        lambda: [*torch.randn(2, B), positive(B), torch.randn(B), positive(B), 0.3], (),
    ),
    "liquid_mod": (liquid, "_mod", lambda: [positive(2, B), positive(2, B)], ()),
    "cvar": (iqn, "_cvar", lambda: [torch.randn(B, 3, 5), list(iqn.TAUS), 0.3], ()),
    "thompson": (sampling, "", drawn, ()),
    "advantage_noise": (
        sampling, "_noise",
        lambda: [torch.randn(B, 13), torch.tensor([0.0, 1, 2, 3]), torch.randn(B, 13)], (),
    ),
    "q_quantiles": (quantiles, "", lambda: [torch.randn(B, 13), [4, 3, 3, 3]], ()),
    "aux_heads": (
        auxiliary, "",
        lambda: [*torch.randn(2, B), torch.randn(B, 5), whole(5, B, low=-1), 0.3], (),
    ),
    "aux_weight": (auxiliary, "_weight", lambda: [*torch.rand(2, 1), 0.1, 20.0, 0.1], ()),
    "aux_direction": (auxiliary, "_direction", lambda: [torch.randn(B, 5)], ()),
    "attention_focus": (
        focus, "", lambda: [simplex(), torch.rand(1), torch.rand(7), numbers(3)], (2, 3),
    ),
    "attention_summary": (
        focus, "_summary", lambda: [simplex(), torch.rand(1), torch.rand(3), numbers(0)], (2, 3),
    ),
    "conservative": (
        terms, "_conservative",
        lambda: [torch.randn(B, A), whole(A, B), torch.rand(B), 0.7, 0.25], (),
    ),
    "expectile": (
        terms, "_expectile",
        lambda: [torch.randn(B, A), whole(A, B), torch.randn(B), torch.rand(B), 0.8, 0.25], (),
    ),
    "expectile_backup": (
        terms, "_backup",
        lambda: [torch.randn(B), whole(2, B).float(), torch.randn(B), torch.rand(4)], (),
    ),
    "entropy_term": (
        terms, "_entropy", lambda: [torch.randn(B, A), torch.rand(B), 0.4, 0.7, 0.25], (),
    ),
    "order_book": (market, "_book", book, ()),
    "action_factoring": (market, "_factoring", lambda: [whole(108, 3 * B)], ()),
    "differential_sharpe": (market, "_sharpe", moments, (1, 2)),
    "atom_shift_gradient": (
        shift, "_gradient",
        lambda: [torch.randn(B), whole(A, B), torch.randn(B), torch.rand(B), torch.randn(A),
                 torch.randn(B)], (),
    ),
    "sum_tree_rebuild": (
        replay, "_rebuild", lambda: [torch.cat([torch.zeros(67), torch.rand(67)])], (0,),
    ),
    "sum_tree_update": (
        replay, "_update", lambda: [tree(67), whole(80, B, low=-5), torch.rand(B)], (0,),
    ),
    "sum_tree_sample": (replay, "_sample", lambda: [tree(67), torch.rand(B)], ()),
    "priorities": (replay, "_priorities", lambda: [torch.randn(B, 4), 0.6, 1e-6], ()),
    "importance_weights": (replay, "_weights", lambda: [positive(B), None, 0.4], ()),
    "grad_norms": (
        gradients, "_norms", lambda: [torch.randn(4, 777), numbers([5, 300], [301, 777]), False],
        (),
    ),
    "grad_norms_blocked": (
        gradients, "_norms", lambda: [torch.randn(4, 777), numbers([5, 300], [301, 777]), True],
        (),
    ),
    "saxpy_correction": (
        gradients, "_saxpy",
        lambda: [*torch.randn(2, 301), torch.tensor([0.2, 0.5, 0.9, 0.4]), torch.full((1,), 0.5),
                 numbers(*SAXPY)], (0,),
    ),
    "nan_flags": (gradients, "_flags", flags, (1, 2)),
}  # fmt: skip
TREES = ("sum_tree_rebuild", "sum_tree_update", "sum_tree_sample")


def run(function: Callable[..., Any], given: list[Any], places: tuple[int, ...]) -> list[Tensor]:
    """Call on copies of what is written; give what was written and returned."""
    own = [item.clone() if at in places else item for at, item in enumerate(given)]
    returned = function(*own)
    assert not isinstance(returned, Refused), returned
    out = [returned] if isinstance(returned, Tensor) else list(returned or ())
    return [*(own[place] for place in places), *out]


def fast_of(name: str) -> Callable[..., Any]:
    module, suffix, _, _ = CASES[name]
    return getattr(module, f"_fast{suffix}")


def plain_of(name: str) -> Callable[..., Any]:
    module, suffix, _, _ = CASES[name]
    return getattr(module, f"_plain{suffix}")


def doubled(given: list[Any]) -> list[Any]:
    return [
        item.double() if isinstance(item, Tensor) and item.is_floating_point() else item
        for item in given
    ]


def on_device(given: list[Any]) -> list[Any]:
    return [item.cuda() if isinstance(item, Tensor) else item for item in given]


def held(got: list[Tensor], want: list[Tensor]) -> None:
    """Each result against float64, relative to the largest of its elements or 1; integers alike."""
    for one, two in zip(got, want, strict=True):
        assert one.shape == two.shape
        if not one.is_floating_point():
            assert torch.equal(one, two)
            continue
        scale = max(1.0, float(two.abs().max()))
        torch.testing.assert_close(one.double() / scale, two.double() / scale, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("name", CASES)
def test_the_shipped_kernel_computes_the_operator(name: str, on_host: Callable[[str], Any]) -> None:
    _, _, make, places = CASES[name]
    given = make()
    held(run(fast_of(name), given, places), run(plain_of(name), doubled(given), places))
    assert on_host(f"dqn.{name}")._loaded[0].launched


@pytest.mark.parametrize("name", TREES)
def test_trees_of_plain_torch_have_the_kernels_bits(
    name: str, on_host: Callable[[str], Any]
) -> None:
    _, _, make, places = CASES[name]
    given = make()
    for one, two in zip(
        run(fast_of(name), given, places), run(plain_of(name), given, places), strict=True
    ):
        assert torch.equal(one, two)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: iqn._fast_cvar(torch.ones(3, 2), [0.2, 0.8], 1.0), "quantiles at"),
        (lambda: quantiles._fast(torch.ones(3, 5), [2, 3]), "branches of"),
        (
            lambda: sampling._fast(*drawn()[:3], torch.linspace(0, 1, 11), None),
            "evenly spaced atoms",
        ),
        (
            lambda: replay._fast_weights(torch.ones(3), torch.ones(1), 0.4),
            "maximum over the batch",
        ),
        (lambda: transforms._fast(torch.ones(3).double()), "the kernel takes f32"),
        (
            lambda: shift._fast_gradient(
                torch.ones(2), numbers(0, 1), torch.ones(2), torch.ones(2), torch.ones(65),
                torch.ones(2),
            ),
            "n_actions = 65",
        ),
    ],
)  # fmt: skip
def test_what_no_kernel_computes_is_refused_with_its_reason(
    call: Callable[[], Any], reason: str, on_host: Callable[[str], Any]
) -> None:
    refused = call()
    assert isinstance(refused, Refused)
    assert reason in refused


def test_autograd_of_the_shift_has_the_bits_of_its_kernel(on_host: Callable[[str], Any]) -> None:
    """Weights of 4 B make the factor exactly 1, for any batch."""
    for rows in (1, 3, 37):
        d, signal, W = torch.randn(rows), torch.randn(rows), torch.randn(A)
        actions, zero = whole(A, rows), torch.zeros(rows)
        _, d_signal = shift._fast_gradient(
            d, actions, signal, torch.full((rows,), 4.0 * rows), W, zero
        )
        assert torch.equal(d_signal, d * W[actions.long()])


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_the_operator_on_a_device(name: str) -> None:
    _, _, make, places = CASES[name]
    given = on_device(make())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        got = run(fast_of(name), given, places)
    stream.synchronize()
    held(got, run(plain_of(name), doubled(given), places))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_a_captured_graph_replays_the_operator(name: str) -> None:
    """Capture, change the inputs in place, replay: the bits of an eager call."""
    _, _, make, places = CASES[name]
    given, fresh = on_device(make()), on_device(make())
    run(fast_of(name), given, places)  # compiled and loaded before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run(fast_of(name), given, places)
    for one, two in zip(given, fresh, strict=True):
        if isinstance(one, Tensor):
            one.copy_(two)
    graph.replay()
    eager = run(fast_of(name), fresh, places)
    torch.cuda.synchronize()
    for one, two in zip(captured, eager, strict=True):
        assert torch.equal(one, two)
