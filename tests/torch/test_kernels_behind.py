"""The CUDA function of each operator, its kernels compiled for the host, against plain torch.

What runs is what a GPU runs but for the driver: the contract's geometry, its packed parameters, its
workspace and its `.cu`. The expected values are the operator's plain torch in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from trueup.kernels.torch.ops import (
    attention,
    cms,
    deep,
    descent,
    elementwise,
    m3,
    momentum,
    muon,
    orthogonal,
)
from trueup.kernels.torch.ops.registry import Refused

OUT, IN, ROWS, HIDDEN = 7, 37, 5, 11


@dataclass(frozen=True)
class Case:
    """An operator's two functions, the shapes of its tensors, and its other arguments."""

    fast: Callable[..., Any]
    plain: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    rest: Sequence[Any]
    contracts: Sequence[str]
    scale: float = 1.0
    positive: tuple[int, ...] = ()
    tolerance: float = 2e-5
    """Of every element, beside 1 and relative; where factors are narrower, from their format."""
    spread: float = 0.0
    """In its place: of the change of a whole tensor, as the spec gives it for bf16 iterations."""

    def tensors(self) -> list[Tensor]:
        made = [torch.randn(shape) * self.scale for shape in self.shapes]
        return [item.abs() if place in self.positive else item for place, item in enumerate(made)]

    def check(self, got: Tensor, want: Tensor, start: Tensor | None) -> None:
        if not self.spread:
            torch.testing.assert_close(got.double(), want, rtol=self.tolerance, atol=self.tolerance)
            return
        change = want if start is None else want - start
        assert (got.double() - want).norm() <= self.spread * change.norm()


M = (OUT, IN)
CASES = {
    "delta_momentum": Case(
        momentum._fast,
        momentum._plain,
        [M, M, M, (OUT, OUT)],
        [0.9, 0.02, "derived"],
        ["delta_momentum"],
    ),
    "delta_momentum_rank1": Case(
        momentum._fast_rank1,
        momentum._plain_rank1,
        [M, M, (OUT,), (IN,)],
        [0.9, 0.02],
        ["delta_momentum_rank1"],
    ),
    "projected_descent": Case(
        descent._fast_single,
        descent._plain_single,
        [M, (IN,), (OUT,)],
        [0.01, "derived"],
        ["projected_descent"],
    ),
    "projected_descent_batch": Case(
        descent._fast_batch,
        descent._plain_batch,
        [M, (ROWS, IN), (ROWS, OUT)],
        [0.01, "derived"],
        ["projected_descent_batch"],
    ),
    "projected_descent_chunk": Case(
        descent._fast_chunk,
        descent._plain_chunk,
        [M, (150, IN), (150, OUT), (150,), (150,)],
        ["derived"],
        ["projected_descent_chunk"],
        0.1,
        (3, 4),
    ),
    "projected_descent_normalized": Case(
        descent._fast_single,
        descent._plain_single,
        [M, (IN,), (OUT,)],
        [0.01, "normalized"],
        ["projected_descent_normalized"],
    ),
    "projected_descent_prox": Case(
        descent._fast_single,
        descent._plain_single,
        [M, (IN,), (OUT,)],
        [0.01, "prox"],
        ["projected_descent_prox"],
    ),
    "projected_descent_batch_prox": Case(
        descent._fast_batch,
        descent._plain_batch,
        [M, (ROWS, IN), (ROWS, OUT)],
        [0.01, "prox"],
        ["projected_descent_batch_prox"],
    ),
    "newton_schulz": Case(
        orthogonal._fast,
        orthogonal._plain,
        [M],
        [5, *orthogonal.QUINTIC, 1e-7, False],
        ["newton_schulz"],
    ),
    "muon": Case(
        muon._fast_muon,
        muon._plain_muon,
        [M, M, M],
        [0.9, 0.02, "quintic5", 1e-7, "clamp", False],
        ["muon"],
    ),
    "muon_library": Case(
        muon._fast_library,
        muon._plain_library,
        [(IN, OUT)] * 3,
        [0.9, 0.02 * (IN / OUT) ** 0.5, 0.002, True, "quintic5", 1e-7, "clamp", False],
        ["muon_library"],
    ),
    "muon_library_bf16": Case(
        muon._fast_library,
        lambda *given: muon._plain_library(*given[:-1], False),
        [(IN, OUT)] * 3,
        [0.9, 0.02 * (IN / OUT) ** 0.5, 0.002, True, "quintic5", 1e-7, "clamp", True],
        ["muon_library_bf16"],
        spread=0.04,
    ),
    "newton_schulz_bf16": Case(
        lambda G, *rest: orthogonal._fast(G.bfloat16(), *rest),
        lambda G, *rest: orthogonal._plain(G.bfloat16().double(), *rest),
        [M],
        [5, *orthogonal.QUINTIC, 1e-7, False],
        ["newton_schulz_bf16"],
        spread=0.04,
    ),
    "deep_momentum": Case(
        deep._fast,
        deep._plain,
        [(IN, HIDDEN), (HIDDEN, IN), M, M],
        [0.9, 0.02, "dot_self", 1.0],
        ["deep_momentum"],
        0.5,
    ),
    "linear_attention": Case(
        attention._fast,
        attention._plain,
        [(2, 67, 12), (2, 67, 12), (2, 67, OUT), (2, OUT, 12)],
        [True, "auto"],
        ["linear_attention"],
        0.3,
    ),
    "linear_attention of few tokens": Case(
        attention._fast,
        attention._plain,
        [(2, attention.SHORT, 12), (2, attention.SHORT, 12), (2, attention.SHORT, 7), (2, 7, 12)],
        [True, "auto"],
        ["linear_attention_recurrent"],
    ),
    "linear_attention_pre": Case(
        attention._fast,
        attention._plain,
        [(2, 67, 12), (2, 67, 12), (2, 67, OUT), (2, OUT, 12)],
        [False, "auto"],
        ["linear_attention_pre"],
        0.3,
    ),
    "m3": Case(
        m3._fast,
        m3._plain,
        [M] * 6,
        [0.7, 0.3, 0.4, 0.02, 0.1, "quintic5", 1e-7],
        ["m3"],
        positive=(2,),
    ),
    "m3_slow": Case(m3._fast_slow, m3._plain_slow, [M] * 3, [0.5, "quintic5", 1e-7], ["m3_slow"]),
    "preconditioned_momentum": Case(
        elementwise._fast,
        elementwise._plain,
        [M, M, M, (OUT, OUT)],
        [0.9, 0.02, "left"],
        ["preconditioned_momentum"],
    ),
    "preconditioned_momentum_hadamard": Case(
        elementwise._fast,
        elementwise._plain,
        [M] * 4,
        [0.9, 0.02, "hadamard"],
        ["preconditioned_momentum_hadamard"],
    ),
    "adam_memory": Case(
        elementwise._fast_adam,
        elementwise._plain_adam,
        [M] * 3,
        [0.1],
        ["adam_memory"],
        positive=(1,),
    ),
    "cms_level": Case(
        cms._fast_level,
        cms._plain,
        [(1, ROWS, IN), (1, HIDDEN, IN), (1, IN, HIDDEN)],
        ["residual"],
        ["cms_level"],
        0.5,
    ),
    "cms_level_update": Case(
        cms._fast_update,
        cms._plain_update,
        [(HIDDEN, IN), (IN, HIDDEN), (ROWS, IN), (ROWS, IN)],
        [torch.tensor([1, 0, 1, 1, 1], dtype=torch.bool), 0.05, False, "f32"],
        ["cms_level_update"],
        0.5,
    ),
    "cms_level_update_tf32": Case(
        cms._fast_update,
        cms._plain_update,
        [(HIDDEN, IN), (IN, HIDDEN), (ROWS, IN), (ROWS, IN)],
        [torch.tensor([1, 0, 1, 1, 1], dtype=torch.bool), 0.05, False, "tf32"],
        ["cms_level_update_tf32"],
        0.5,
        tolerance=2.0**-10,  # two factors of 11 bits, sums below 1
    ),
    "cms_level_update_mean": Case(
        cms._fast_update,
        cms._plain_update,
        [(HIDDEN, IN), (IN, HIDDEN), (ROWS, IN), (ROWS, IN)],
        [
            torch.tensor([1, 0, 1, 1, 1], dtype=torch.bool),
            0.05,
            True,
            "tf32",
        ],  # there is none in tf32: it is allowed, not asked for
        ["cms_level_update_mean"],
        0.5,
    ),
}


def results(returned: Any) -> list[Tensor]:
    """What an operator returned beside what it wrote in place."""
    if returned is None:
        return []
    return [returned] if isinstance(returned, Tensor) else list(returned)


def compare(
    case: Case, got: Sequence[Tensor], want: Sequence[Tensor], starts: Sequence[Tensor]
) -> None:
    """Hold what was given (and perhaps moved) and what was returned to plain torch."""
    for place, (one, two) in enumerate(zip(got, want, strict=True)):
        case.check(one, two, starts[place] if place < len(starts) else None)


@pytest.mark.parametrize("name", CASES)
def test_the_shipped_kernel_computes_the_operator(name: str, on_host: Callable[[str], Any]) -> None:
    case = CASES[name]
    given = case.tensors()
    wide = [item.double() for item in given]
    starts = [item.clone() for item in wide]
    got, want = case.fast(*given, *case.rest), case.plain(*wide, *case.rest)
    assert not isinstance(got, Refused), got
    compare(case, [*given, *results(got)], [*wide, *results(want)], starts)
    for contract in case.contracts:
        assert on_host(f"nl.{contract}")._loaded[0].launched


def test_a_fallback_s_reason_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from trueup.kernels.torch.ops import registry

    monkeypatch.setattr(registry, "_REASONS", {})
    run = registry._on_cuda("twice", lambda x: 2 * x, lambda x: Refused("too small"))
    assert run(3) == 6
    assert registry.last_reason("twice") == "too small"
    run = registry._on_cuda("twice", lambda x: 0, lambda x: 2 * x)
    assert run(3) == 6
    assert registry.last_reason("twice") is None
    with pytest.raises(KeyError):
        registry.last_reason("thrice")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda t: momentum._fast(t, t, t, t, 0.9, 0.1, "scalar"), "reading scalar"),
        (lambda t: momentum._fast(t, t, t, None, 0.9, 0.1, "derived"), "takes P"),
        (lambda t: descent._fast_batch(t, t, t, 0.1, "mean"), "reading mean"),
        (lambda t: orthogonal._fast(t, 3, *orthogonal.CUBIC, 1e-7, False), "quintic5"),
        (lambda t: orthogonal._fast(t[None], 5, *orthogonal.QUINTIC, 1e-7, False), "stack"),
        (lambda t: cms._fast_level(t[None], t[None], t[None], "plain"), "residual"),
        (lambda t: m3._fast_slow(t, t, t, 1.0, "none", 1e-7), "no kernel for none"),
        (lambda t: registry_launch("nl.no_such", t), "no kernel nl.no_such is shipped"),
    ],
)
def test_what_no_kernel_computes_is_refused_with_its_reason(
    call: Callable[[Tensor], Any], reason: str, on_host: Callable[[str], Any]
) -> None:
    refused = call(torch.ones(3, 3))
    assert isinstance(refused, Refused)
    assert reason in refused


def registry_launch(contract: str, *given: Any) -> Refused | None:
    from trueup.kernels.torch.ops.registry import launch

    return launch(contract, *given)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_the_operator_on_a_device(name: str) -> None:
    """The same on a GPU: through NVRTC, the driver, and torch's current stream."""
    case = CASES[name]
    given = [item.cuda() for item in case.tensors()]
    rest = [item.cuda() if isinstance(item, Tensor) else item for item in case.rest]
    wide = [item.double() for item in given]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        got = case.fast(*given, *rest)
    stream.synchronize()
    starts = [item.clone() for item in wide]
    want = case.plain(*wide, *rest)
    assert not isinstance(got, Refused), got
    compare(case, [*given, *results(got)], [*wide, *results(want)], starts)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_a_captured_graph_replays_the_operator(name: str) -> None:
    """Capture, change the inputs in place, replay: the bits of an eager call."""
    case = CASES[name]
    rest = [item.cuda() if isinstance(item, Tensor) else item for item in case.rest]
    given, fresh = ([item.cuda() for item in case.tensors()] for _ in range(2))
    case.fast(*[item.clone() for item in given], *rest)  # compiled and loaded before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = case.fast(*given, *rest)
    for one, two in zip(given, fresh, strict=True):
        one.copy_(two)
    graph.replay()
    eager = case.fast(*fresh, *rest)
    torch.cuda.synchronize()
    given, fresh = [*given, *results(captured)], [*fresh, *results(eager)]
    for one, two in zip(given, fresh, strict=True):
        assert torch.equal(one, two)


@pytest.mark.gpu
def test_a_launch_from_a_thread_without_a_context() -> None:
    """Autograd's threads are such threads."""
    import threading

    W, x, u = torch.randn(9, 5).cuda(), torch.randn(5).cuda(), torch.randn(9).cuda()
    want = W.clone()
    descent._plain_single(want, x, u, 0.1, "derived")
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(descent._fast_single(W, x, u, 0.1, "derived"))
    )
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert found == [None]
    torch.testing.assert_close(W, want)


@pytest.mark.gpu
def test_both_passes_of_attention_run_the_kernel_and_agree_with_the_cpu() -> None:
    from trueup.kernels.torch import linear_attention
    from trueup.kernels.torch.ops.registry import last_reason

    given = [torch.randn(2, 130, 16) / 4 for _ in range(3)]
    here = [item.clone().requires_grad_() for item in given]
    there = [item.cuda().requires_grad_() for item in given]
    weights = torch.randn(2, 130, 16)
    grads = []
    for leaves in (here, there):
        y, _ = linear_attention(*leaves)
        (y * weights.to(y.device)).sum().backward()
        grads.append([y, *(leaf.grad for leaf in leaves)])
    assert last_reason("linear_attention") is None
    for one, two in zip(*grads, strict=True):
        torch.testing.assert_close(two.cpu(), one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "tokens", "post", "form", "contract"),
    [
        (torch.float32, 16, True, "auto", "nl.linear_attention_recurrent"),
        (torch.float32, 17, True, "auto", "nl.linear_attention"),
        (torch.float32, 17, True, "recurrent", "nl.linear_attention_recurrent"),
        (torch.float32, 1, True, "chunk", "nl.linear_attention"),
        (torch.float32, 1, False, "auto", "nl.linear_attention_pre"),
        (torch.bfloat16, 1, True, "auto", "nl.linear_attention_bf16"),
        (torch.float32, 1, False, "recurrent", "for float32 and the reading post"),
        (torch.bfloat16, 1, True, "recurrent", "for float32 and the reading post"),
        (torch.bfloat16, 1, False, "auto", "no kernel for the reading pre in bfloat16"),
    ],
)
def test_the_kernel_of_attention_is_chosen_by_length_and_form(
    dtype: torch.dtype, tokens: int, post: bool, form: str, contract: str
) -> None:
    assert contract in attention._contract(dtype, tokens, post, form)


@pytest.mark.parametrize(
    ("setting", "multiply", "contract"),
    [
        ("ieee", None, "nl.cms_level_update"),
        ("tf32", None, "nl.cms_level_update_tf32"),
        ("tf32", "f32", "nl.cms_level_update"),
        ("ieee", "tf32", "nl.cms_level_update_tf32"),
    ],
)
def test_a_chunk_update_in_tf32_follows_torch_s_setting_or_the_argument(
    setting: str, multiply: str | None, contract: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(cms, "launch", lambda name, *_: asked.append(name))
    t, before = torch.ones(3, 3), torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = setting
    try:
        cms._fast_update(t, t, t, t, t[0].bool(), 0.1, False, multiply)
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert asked == [contract]
