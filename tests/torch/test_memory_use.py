"""What one who trains does with a memory: copies, checkpoints, 16 bits, ends, and wrong calls."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trueup.kernels.torch import ContinuumMemory, LevelSpec, LinearMemory, linear_memory

RULES = ("attention", "dot", "l2", "dgd")
LEVELS = (LevelSpec("fast", 4, 8, 0.1, momentum=0.5), LevelSpec("slow", 8, 8, 0.05))
rules = pytest.mark.parametrize("rule", RULES)
shared_or_not = pytest.mark.parametrize("sequences", [None, 2])


def linear(rule: str = "l2", **options: Any) -> LinearMemory:
    torch.manual_seed(1)
    memory = LinearMemory(6, d_k=4, d_v=5, rule=rule, **{"chunk": 4} | options)
    nn.init.normal_(memory.memory, std=0.3)
    return memory


def continuum(sequences: int | None = None, **options: Any) -> ContinuumMemory:
    torch.manual_seed(1)
    return ContinuumMemory(6, LEVELS, sequences=sequences, **options)


def signal(y: Tensor, start: int, stop: int) -> Tensor:
    return y / 10


def tokens(*shape: int) -> Tensor:
    return torch.randn(*shape, 6, generator=torch.Generator().manual_seed(len(shape)))


@rules
@pytest.mark.parametrize("every", [0, 2])
@pytest.mark.parametrize("shape", [(2, 0), (0, 5), (0, 0), (2, 1), (2, 11)])
def test_any_number_of_tokens_is_read_and_differentiated(
    rule: str, every: int, shape: tuple[int, int]
) -> None:
    memory = linear(rule, checkpoint_every=every, write_grad="through")
    y, after = memory(tokens(*shape).requires_grad_())
    assert y.shape == (*shape, 5)
    assert after.shape == (shape[0], 5, 4)
    (y.square().sum() + after.square().sum()).backward()
    assert memory.W_k.grad is not None
    if shape[1] == 0:
        assert torch.equal(after, memory.memory.expand_as(after))


@rules
def test_a_memory_of_sixteen_bits_is_not_rounded_between_writes(rule: str) -> None:
    """The values of the same inputs in float32, rounded once: in y alone."""
    q, k, v = (torch.randn(2, 40, size).bfloat16() for size in (4, 4, 5))
    M_0, options = torch.randn(2, 5, 4).bfloat16(), {"rule": rule, "chunk": 4}
    y, after = linear_memory(q, k, v, M_0, 0.125, **options)
    wide = [item.float() for item in (q, k, v, M_0)]
    want, exact = linear_memory(*wide, 0.125, **options)
    assert (y.dtype, after.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(after, exact, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(y.float(), want, rtol=2.0**-8, atol=1e-5)


@rules
def test_a_linear_memory_in_sixteen_bits_trains_and_goes_on(rule: str) -> None:
    memory = linear(rule, write_grad="through").bfloat16()
    y, after = memory(tokens(2, 11).bfloat16())
    y, _ = memory(tokens(2, 3).bfloat16(), after)
    y.float().square().sum().backward()
    assert memory.W_v.grad.dtype is torch.bfloat16
    assert memory.active_mode() == "through"


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("mode", ["through", "straight_through", "detached"])
def test_a_mode_shows_through_a_checkpoint_around_the_module(reentrant: bool, mode: str) -> None:
    memory, plain = linear(write_grad=mode), linear(write_grad=mode)
    x = tokens(2, 11).requires_grad_()
    checkpoint(memory, x, use_reentrant=reentrant)[0].square().sum().backward()
    plain(x)[0].square().sum().backward()
    assert memory.active_mode() == mode
    assert memory.gradient_metrics() == plain.gradient_metrics()


def test_a_mode_is_that_of_the_last_call() -> None:
    memory = linear(write_grad="through")
    memory(tokens(2, 11))[0].square().sum().backward()
    memory.write_grad = "detached"
    memory(tokens(2, 11))[0].square().sum().backward()
    assert memory.active_mode() == "detached"


@rules
def test_a_linear_memory_is_evaluated_without_gradients(rule: str) -> None:
    memory = linear(rule)
    want = memory(tokens(2, 11))[0]
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            y, _ = memory(tokens(2, 11))
        assert not y.requires_grad
        assert torch.equal(y, want)
    memory.requires_grad_(False)
    assert not memory(tokens(2, 11))[0].requires_grad


@rules
def test_a_used_linear_memory_is_copied_and_pickled(rule: str) -> None:
    memory = linear(rule, write_grad="through")
    want = memory(tokens(2, 11))[0]
    want.sum().backward()
    for other in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert torch.equal(other(tokens(2, 11))[0], want)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*:FutureWarning")
@pytest.mark.parametrize(("rule", "every"), [("attention", 0), ("l2", 0), ("l2", 2)])
def test_a_linear_memory_compiles_as_one_graph(rule: str, every: int) -> None:
    torch._dynamo.reset()
    memory = linear(rule, checkpoint_every=every, write_grad="through")
    compiled = torch.compile(memory, fullgraph=True, backend="aot_eager")
    grads = []
    for run in (memory, compiled):
        y, after = run(tokens(2, 11))
        memory.zero_grad()
        (y.square().sum() + after.sum()).backward()
        grads.append(
            [y, *(param.grad.clone() for param in memory.parameters() if param.requires_grad)]
        )
    for one, two in zip(*grads, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*:FutureWarning")
def test_a_stream_within_a_compiled_function_runs_eagerly() -> None:
    torch._dynamo.reset()
    memory, other = continuum(), continuum()
    step = torch.compile(lambda x: memory.stream(2 * x, signal) + 1, backend="aot_eager")
    for _ in range(2):
        x = tokens(2, 11)
        torch.testing.assert_close(step(x), other.stream(2 * x, signal) + 1)
    assert memory.counters() == other.counters()


@shared_or_not
@pytest.mark.parametrize("how", ["deepcopy", "pickle", "state dict"])
def test_a_copy_in_mid_stream_goes_on_alike(sequences: int | None, how: str) -> None:
    memory = continuum(sequences)
    memory.stream(tokens(2, 11), signal)  # three tokens wait
    if how == "state dict":
        other = continuum(sequences)
        other.load_state_dict(memory.state_dict())
    else:
        other = copy.deepcopy(memory) if how == "deepcopy" else pickle.loads(pickle.dumps(memory))
    y = memory.stream(tokens(2, 9), signal)
    assert torch.equal(other.stream(tokens(2, 9), signal), y)
    assert other.counters() == memory.counters()


@shared_or_not
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_state_of_another_precision_is_loaded_with_the_tokens_that_wait(
    sequences: int | None, dtype: torch.dtype
) -> None:
    memory = continuum(sequences)
    memory.stream(tokens(2, 11), signal)
    other = continuum(sequences).to(dtype)
    other.load_state_dict(memory.state_dict())
    y = memory.stream(tokens(2, 9), signal)
    got = other.stream(tokens(2, 9).to(dtype), signal)
    assert got.dtype is dtype
    limit = 0.1 if dtype is torch.bfloat16 else 1e-5
    assert (got.double() - y.double()).norm() <= limit * y.double().norm()


def test_a_state_of_another_period_is_told() -> None:
    memory = continuum()
    memory.stream(tokens(2, 11), signal)
    other = ContinuumMemory(6, [LevelSpec("fast", 2, 8, 0.1, momentum=0.5), LEVELS[1]])
    with pytest.raises(ValueError, match=r"level fast: in the state 3 tokens wait .* after 2"):
        other.load_state_dict(memory.state_dict())


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_no_sequences_are_no_update(reduce: str) -> None:
    memory = continuum(reduce=reduce)
    before = copy.deepcopy(memory.levels[0].W1)
    assert memory.stream(tokens(0, 5), signal).shape == (0, 5, 6)
    assert torch.equal(memory.levels[0].W1, before)
    assert memory.counters()["fast"]["updates"] == 0
    assert memory.counters()["fast"]["masked"] == 4
    assert continuum().stream(tokens(0), signal).shape == (0, 6)


def test_nothing_is_learned_in_inference_mode_and_nothing_is_lost() -> None:
    memory = continuum()
    with torch.inference_mode():
        with pytest.raises(RuntimeError, match="evaluate with forward"):
            memory.stream(tokens(2, 3), signal)
        y = memory(tokens(2, 3))
    with torch.no_grad():
        torch.testing.assert_close(memory.stream(tokens(2, 3), signal), y)
    assert memory.tokens == 3


def a_stream(*shapes: tuple[int, ...]) -> Callable[[], Any]:
    """Stream x, error and mask of these shapes."""
    x, error, mask = (*shapes, None, None)[:3]
    flags = None if mask is None else torch.ones(mask)
    return lambda: continuum().stream(torch.ones(x), torch.ones(error or x), flags)


def after_two(x: tuple[int, ...]) -> Callable[[], Any]:
    def run() -> None:
        memory = continuum()
        memory.stream(tokens(2, 3), signal)
        before = copy.deepcopy(memory.counters())
        try:
            memory.stream(torch.ones(x), signal)
        finally:
            assert memory.counters() == before

    return run


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: linear()(torch.ones(2, 6)), r"got x \(2, 6\), expected \(N, T, 6\)"),
    (lambda: linear()(torch.ones(2, 3, 5)), r"got x \(2, 3, 5\), expected \(N, T, 6\)"),
    (lambda: linear()(torch.ones(2, 3, 6), torch.ones(3, 5, 4)), r"memory \(3, 5, 4\), expected"),
    (lambda: linear("attention")(torch.ones(2, 3, 6), torch.ones(2, 4, 5)), r"memory \(2, 4, 5\)"),
    (lambda: linear()(torch.ones(2, 3, 6), mask=torch.ones(3)), r"got mask \(3,\), expected"),
    (lambda: linear("attention")(torch.ones(2, 3, 6), mask=torch.ones(2, 4)), r"mask \(2, 4\)"),
    (
        lambda: linear_memory(
            *[torch.ones(2, 3, 4)] * 2, torch.ones(2, 2, 5), torch.ones(2, 5, 4), 0.1, rule="dot"
        ),
        r"v \(2, 2, 5\), M_0 .* expected \(N, T, d_k\)",
    ),
    (
        lambda: linear_memory(
            *[torch.ones(3, 4)] * 2, torch.ones(3, 5), torch.ones(5, 4), 0.1, rule="l2"
        ),
        r"got q \(3, 4\)",
    ),
    (
        lambda: linear_memory(
            *[torch.ones(2, 3, 4)] * 3, torch.ones(2, 4, 4), 0.1, checkpoint_every=-1
        ),
        "checkpoint_every: got -1",
    ),
    (lambda: LinearMemory(0), "dim: got 0"),
    (lambda: LinearMemory(4, d_k=0), "d_k: got 0"),
    (lambda: LinearMemory(4, d_v=-1), "d_v: got -1"),
    (lambda: LinearMemory(4, chunk=2.5), "chunk: got 2.5"),  # type: ignore[arg-type]
    (lambda: LinearMemory(4, eta=None), "eta: got None"),  # type: ignore[arg-type]
    (lambda: continuum()(torch.ones(2, 9)), r"got x \(2, 9\), expected \(\.\.\., 6\)"),
    (lambda: continuum(2)(torch.ones(3, 4, 6)), r"got x \(3, 4, 6\), expected \(2, T, 6\)"),
    (a_stream((2, 3, 5)), r"got x \(2, 3, 5\), expected \(N, T, 6\) or \(T, 6\)"),
    (a_stream((6,)), r"got x \(6,\), expected"),
    (a_stream((2, 3, 6), (2, 4, 6)), r"error signal: got \(2, 4, 6\), expected \(2, 3, 6\)"),
    (a_stream((2, 3, 6), (3, 6)), r"error signal: got \(3, 6\)"),
    (a_stream((2, 3, 6), (2, 3, 6), (2, 4)), r"mask: got \(2, 4\), expected \(2, 3\)"),
    (a_stream((3, 6), (3, 6), (1, 3)), r"mask: got \(1, 3\), expected \(3,\)"),
    (lambda: continuum().stream(tokens(2, 3), None), "error: got NoneType"),  # type: ignore[arg-type]
    (lambda: continuum().stream(tokens(2, 3), lambda *_: None), "error signal: got NoneType"),  # type: ignore[arg-type, return-value]
    (
        lambda: continuum().stream(tokens(3), lambda y, *_: y.sum()),
        r"error signal: got \(\), expected \(3, 6\)",
    ),
    (after_two((3, 3, 6)), r"tokens of 2 sequences wait .* got x \(3, 3, 6\)"),
    (lambda: ContinuumMemory(0, LEVELS), "dim: got 0"),
    (lambda: continuum(0), "sequences: got 0"),
    (lambda: continuum(threshold=-1.0), r"threshold: got -1\.0"),
    (lambda: continuum(multiply="bf16"), "expected one of f32, tf32"),
    (lambda: LevelSpec("a", 1.5, 1, 0.1), "level a, period: got 1.5"),  # type: ignore[arg-type]
    (lambda: LevelSpec("a", 4, 1, None), "level a: lr 0 or more"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "told"), WRONG, ids=[told for _, told in WRONG])
def test_a_wrong_call_is_told_once_with_what_was_expected(
    call: Callable[[], Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        call()
