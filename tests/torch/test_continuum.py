"""ContinuumMemory: Eq. 30 and 31 against the references, its stream, its counters and its state."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from trueup.kernels.torch.modules import ContinuumMemory, LevelSpec, error_of
from trueup.kernels.torch.ops.cms import cms_level
from trueup.reference.nl.cms_forward import cms_forward, silu, silu_slope
from trueup.reference.nl.cms_stream import CmsStream, Flush, Phase, Reduce, StreamLevel
from trueup.reference.nl.cms_update_level import cms_level_update

F64 = torch.float64
Array = NDArray[np.float64]
D, H = 3, 5


def memory(
    periods: Sequence[int] = (2, 4), momentum: float = 0.0, **options: Any
) -> ContinuumMemory:
    torch.manual_seed(3)
    levels = [
        LevelSpec(f"level{place}", period, H, 0.1 / (place + 1), momentum)
        for place, period in enumerate(periods)
    ]
    made: ContinuumMemory = ContinuumMemory(D, levels, **options).double()
    with torch.no_grad():
        for param in made.parameters():
            param.copy_(torch.randn(param.shape, dtype=F64) / 2)
    return made


Signal = Callable[[Tensor, int, int], Tensor]


def shifted(v: Tensor, start: int) -> Signal:
    """The error signal of a call that begins at a token of the stream."""
    return lambda y, a, b: y - v[:, start + a : start + b]


def targets(T: int, N: int = 1) -> tuple[Tensor, Tensor, Signal]:
    """A stream, what it should become, and the error signal of 1/2 |y - v|^2."""
    generator = torch.Generator().manual_seed(5)
    x, v = (torch.randn(N, T, D, dtype=F64, generator=generator) for _ in range(2))
    return x, v, lambda y, start, stop: y - v[:, start:stop]


def theta(W1: Tensor, W2: Tensor) -> Array:
    return np.concatenate([W1.detach().numpy().ravel(), W2.detach().numpy().ravel()])


def parts(flat: Array) -> tuple[Array, Array]:
    return flat[: H * D].reshape(H, D), flat[H * D :].reshape(D, H)


def gradient(flat: Array, x: Array, delta: Array) -> Array:
    """f of one token for the residual MLP level."""
    W1, W2 = parts(flat)
    z = W1 @ x
    error = (W2.T @ delta) * silu_slope(z)
    return np.concatenate([np.outer(error, x).ravel(), np.outer(delta, silu(z)).ravel()])


class Reference:
    """The reference's stream over the same levels, evaluated by hand in NumPy."""

    def __init__(self, like: ContinuumMemory, phase: Phase, flush: Flush, reduce: Reduce) -> None:
        levels = [
            StreamLevel(
                theta(level.W1, level.W2),
                gradient,
                level.spec.period,
                level.spec.lr,
                level.spec.momentum,
            )
            for level in like.levels
        ]
        self.stream = CmsStream(levels, phase=phase, flush=flush, reduce=reduce)

    def run(self, x: Array, v: Array, active: NDArray[np.bool_]) -> None:
        def evaluate(start: int, stop: int) -> Any:
            rows, inputs = x[start:stop], []
            for level in self.stream.levels:
                W1, W2 = parts(level.theta)
                inputs.append(rows)
                rows = rows + silu(rows @ W1.T) @ W2.T
            delta = np.where(active[start:stop, None], rows - v[start:stop], 0)
            errors: list[Array] = []
            for level, before in zip(self.stream.levels[::-1], inputs[::-1], strict=True):
                W1, W2 = parts(level.theta)
                errors.insert(0, delta)
                delta = delta + ((delta @ W2) * silu_slope(before @ W1.T)) @ W1
            return inputs, errors, active[start:stop]

        self.stream.process(len(x), evaluate)


def same_as(reference: Reference, mine: ContinuumMemory) -> None:
    for level, other in zip(mine.levels, reference.stream.levels, strict=True):
        np.testing.assert_allclose(theta(level.W1, level.W2), other.theta, rtol=1e-11, atol=1e-12)
        assert vars(level.counters) == vars(other.counters)
        assert level.kept.count == other.pending


@pytest.mark.parametrize("form", ["residual", "plain", "pre_norm"])
def test_forward_is_the_reference(form: str) -> None:
    mine = memory(form=form)
    x = torch.randn(7, D, dtype=F64)
    W1 = np.stack([level.W1.detach().numpy() for level in mine.levels])
    W2 = np.stack([level.W2.detach().numpy() for level in mine.levels])
    want = cms_forward(x.numpy(), W1, W2, reading=form)
    np.testing.assert_allclose(mine(x).detach().numpy(), want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("form", ["residual", "plain", "pre_norm"])
def test_a_level_s_derivatives(form: str) -> None:
    x = torch.randn(2, 3, D, dtype=F64, requires_grad=True)
    W1 = torch.randn(2, 4, D, dtype=F64, requires_grad=True)
    W2 = torch.randn(2, D, 4, dtype=F64, requires_grad=True)

    def run(*given: Tensor) -> Tensor:
        return cms_level(*given, form=form)

    assert gradcheck(run, (x, W1, W2), fast_mode=True)
    assert gradgradcheck(run, (x, W1, W2), fast_mode=True)
    flat = [item.detach().float().requires_grad_() for item in (x, W1, W2)]
    torch.library.opcheck(torch.ops.trueup.cms_level, (*flat, form))


GRID = list(itertools.product(["end", "start"], ["drop", "flush_partial", "carry"]))


@pytest.mark.parametrize(("phase", "flush"), GRID)
@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("periods", [(1, 3), (2, 3), (2, 4, 8), (4, 4)])
def test_a_stream_is_the_reference(
    phase: Phase, flush: Flush, reduce: Reduce, periods: tuple[int, ...]
) -> None:
    """Momentum, masks, calls of odd lengths, and the end of the stream between two of them."""
    mine = memory(periods, momentum=0.5, phase=phase, flush=flush, reduce=reduce)
    reference = Reference(mine, phase, flush, reduce)
    x, v, _ = targets(23)
    active = torch.tensor([t % 5 != 1 and not 8 <= t < 13 for t in range(23)])
    for start, stop in ((0, 5), (5, 6), (6, 17), (17, 23)):
        part = slice(start, stop)
        mine.stream(x[:, part], shifted(v, start), active[part][None])
        reference.run(x[0, part].numpy(), v[0, part].numpy(), active[part].numpy())
        same_as(reference, mine)
        if stop in (6, 23):
            mine.finish()
            reference.stream.finish()
            same_as(reference, mine)


def test_one_chunk_is_the_chunk_update_of_the_reference() -> None:
    mine = memory((4,))
    (level,) = mine.levels
    x, _, _ = targets(4)
    delta = torch.randn(4, D, dtype=F64)
    mask = torch.tensor([True, False, True, True])
    want = cms_level_update(
        level.W1.detach().numpy().copy(),
        level.W2.detach().numpy().copy(),
        x[0].numpy(),
        delta.numpy(),
        mask.double().numpy(),
        0.1,
        np.zeros(4),
    )
    mine.stream(x[0], delta, mask)
    np.testing.assert_allclose(level.W1.detach().numpy(), want[0], rtol=1e-12)
    np.testing.assert_allclose(level.W2.detach().numpy(), want[1], rtol=1e-12)


def test_q31_5_splitting_a_stream_changes_nothing() -> None:
    whole, split = memory((2, 3), flush="carry"), memory((2, 3), flush="carry")
    x, v, error = targets(17)
    whole.stream(x, error)
    for start, stop in ((0, 1), (1, 8), (8, 8), (8, 17)):
        split.stream(x[:, start:stop], shifted(v, start))
        split.finish()
    for one, two in zip(whole.parameters(), split.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-13, atol=1e-14)
    assert whole.counters() == split.counters()


def test_q31_6_weights_of_a_token_depend_on_earlier_chunks_alone() -> None:
    x, _, error = targets(8)
    other = x.clone()
    other[:, 5] += 1  # in the third chunk of the fast level
    y, z = memory().stream(x, error), memory().stream(other, error)
    assert torch.equal(y[:, :5], z[:, :5])
    assert torch.equal(y[:, 4], z[:, 4])
    assert not torch.equal(y[:, 6:], z[:, 6:])


def test_a_masked_chunk_changes_no_bit_momentum_included() -> None:
    """U23: a full chunk without an active token is consumed, and nothing steps."""
    mine = memory((2, 4), momentum=0.9)
    x, _, error = targets(8)
    mine.stream(x, error)
    before = {
        name: value.clone()
        for name, value in mine.state_dict().items()
        if isinstance(value, Tensor)
    }
    mine.stream(x, error, torch.zeros(1, 8, dtype=torch.bool))
    assert all(torch.equal(mine.state_dict()[name], value) for name, value in before.items())
    assert mine.counters()["level0"]["masked"] == 8
    assert mine.tokens == 16


def test_a_mask_is_of_tokens_not_of_what_they_hold() -> None:
    x, _, error = targets(4)
    mask = torch.tensor([[True, True, False, True]])
    results = []
    for poison in (0.0, float("nan")):
        mine = memory((4,))
        dirty = x.clone()
        dirty[0, 2] = poison
        mine.stream(dirty, error, mask)
        results.append([param.detach().clone() for param in mine.parameters()])
    assert all(map(torch.equal, *results))
    assert all(torch.isfinite(param).all() for param in results[1])


def test_a_closed_gate_changes_no_bit_and_loses_the_chunk() -> None:
    x, _, error = targets(8)
    start = [param.detach().clone() for param in memory().parameters()]
    closed = memory(threshold=1e6)
    closed.stream(x, error)
    assert all(map(torch.equal, start, closed.parameters()))
    assert closed.counters()["level0"] == {
        "updates": 0, "consumed": 0, "flushed": 0, "masked": 0, "gated": 8, "dropped": 0,
        "pending": 0,
    }  # fmt: skip
    assert memory(threshold=0.0).stream(x, error).equal(memory().stream(x, error))


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_sequences_have_memories_of_their_own(reduce: str) -> None:
    """U15, U24, U27, U28: a sequence in a batch is the sequence alone, whatever others mask."""
    x, v, error = targets(9, N=3)
    mask = torch.rand(3, 9) > 0.3
    mask[1, :4] = False  # this sequence skips a chunk that the others write
    options: dict[str, Any] = {"momentum": 0.5, "reduce": reduce, "flush": "flush_partial"}
    together = memory(sequences=3, **options)
    y = together.stream(x, error, mask)
    together.finish()
    for n in range(3):
        alone = memory(**options)
        y_alone = alone.stream(x[n : n + 1], shifted(v[n : n + 1], 0), mask[n : n + 1])
        alone.finish()
        torch.testing.assert_close(y[n], y_alone[0], rtol=1e-12, atol=1e-13)
        for one, two in zip(together.levels, alone.levels, strict=True):
            for mine, want in zip(one.weights(), two.weights(), strict=True):
                torch.testing.assert_close(mine[n], want[0], rtol=1e-12, atol=1e-13)


def test_a_batch_that_shares_one_memory_sums_over_it() -> None:
    x, v, error = targets(4, N=3)
    shared = memory((4,))
    W1 = shared.levels[0].W1.detach().clone()
    shared.stream(x, error)
    changes = torch.zeros_like(W1)
    for n in range(3):
        alone = memory((4,))
        alone.stream(x[n : n + 1], shifted(v[n : n + 1], 0))
        changes += alone.levels[0].W1.detach() - W1
    torch.testing.assert_close(shared.levels[0].W1.detach() - W1, changes, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("N", [1, 3])
def test_without_signals_the_fused_update_computes_the_same(reduce: str, N: int) -> None:
    x, _, error = targets(13, N)
    mask = torch.rand(N, 13) > 0.4
    mask[:, 4:6] = False
    plain, fused = memory(reduce=reduce), memory(reduce=reduce, measure=False)
    y, same = plain.stream(x, error, mask), fused.stream(x, error, mask)
    torch.testing.assert_close(same, y, rtol=1e-12, atol=1e-13)
    for one, two in zip(plain.parameters(), fused.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-13)
    assert plain.counters() == fused.counters()
    assert fused.telemetry()["layer0.cms.level0.grad_norm"] == 0
    assert plain.telemetry()["layer0.cms.level0.grad_norm"] > 0


def test_reset_returns_sequences_to_the_parameters() -> None:
    x, _, error = targets(8, N=2)
    mine = memory(sequences=2, momentum=0.5)
    first = mine.stream(x, error)
    mine.stream(x[:, :3], error)
    mine.reset()
    assert torch.equal(mine.stream(x, error), first)
    assert mine.tokens == 8


def test_forward_trains_the_parameters_under_the_sequences_changes() -> None:
    x, _, error = targets(8, N=2)
    mine = memory(sequences=2)
    mine.stream(x, error)
    mine(x).square().sum().backward()
    assert all(param.grad is not None and param.grad.any() for param in mine.parameters())


@pytest.mark.parametrize("sequences", [None, 2])
def test_a_state_dict_resumes_in_the_middle_of_a_chunk(sequences: int | None) -> None:
    x, v, error = targets(20, N=2)
    options: dict[str, Any] = {"momentum": 0.5, "flush": "carry", "sequences": sequences}
    straight, mine = memory(**options), memory(**options)
    rest = shifted(v, 11)
    straight.stream(x[:, :11], error)
    straight.stream(x[:, 11:], rest)
    mine.stream(x[:, :11], error)
    file = io.BytesIO()
    torch.save(mine.state_dict(), file)
    file.seek(0)
    other = memory(**options)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert other.counters()["level1"]["pending"] == 3
    other.stream(x[:, 11:], rest)
    assert other.tokens == straight.tokens
    assert other.counters() == straight.counters()
    for one, two in zip(straight.levels, other.levels, strict=True):
        assert all(map(torch.equal, one.weights(), two.weights()))


def test_moving_the_module_moves_what_waits() -> None:
    x, _, error = targets(3)
    mine = memory()
    mine.stream(x, error)
    mine.float()
    assert mine.levels[0].kept.inputs[0].dtype is torch.float32
    assert mine.levels[0].kept.active[0].dtype is torch.bool


def test_error_of_a_loss_is_its_gradient() -> None:
    _, v, error = targets(4)
    signal = error_of(lambda y, a, b: (y - v[:, a:b]).square().sum() / 2)
    y = torch.randn(1, 2, D, dtype=F64)
    torch.testing.assert_close(signal(y, 1, 3), error(y, 1, 3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: memory((4, 2)),
        lambda: memory(()),
        lambda: memory(phase="middle"),
        lambda: memory(flush="keep"),
        lambda: memory(form="mlp"),
        lambda: memory(sequences=0),
        lambda: ContinuumMemory(2, [LevelSpec("a", 1, 2, 0.1), LevelSpec("a", 2, 2, 0.1)]),
        lambda: LevelSpec("a.b", 1, 2, 0.1),
        lambda: LevelSpec("a", 0, 2, 0.1),
        lambda: LevelSpec("a", 1, 2, -0.1),
        lambda: memory().stream(torch.ones(1, 3, 2, dtype=F64), torch.ones(1, 3, 2, dtype=F64)),
        lambda: memory(sequences=2)(torch.ones(3, 3, D, dtype=F64)),
        lambda: memory().stream(torch.ones(1, 3, D, dtype=F64), torch.ones(1, 2, D, dtype=F64)),
    ],
)
def test_wrong_calls_are_told(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"got|name of its own"):
        make()


def test_forward_compiles_and_exports() -> None:
    torch._dynamo.reset()
    mine, x = memory(), torch.randn(5, D, dtype=F64)
    compiled = torch.compile(mine, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), mine(x))
    program = torch.export.export(mine, (x,))
    torch.testing.assert_close(program.module()(x), mine(x))
