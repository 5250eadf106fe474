"""What one who trains does with an optimizer: copies, saves, schedules, checkpoints, mistakes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer, lr_scheduler
from torch.utils.checkpoint import checkpoint

from trueup.kernels.torch import (
    M3,
    DeepMomentum,
    DeltaMomentum,
    LayerCapture,
    MuonNS,
    ProjectedDescent,
)
from trueup.kernels.torch.ops.descent import gradient_scale


def projected(net: nn.Module, **options: Any) -> Optimizer:
    capture = LayerCapture(net)
    return ProjectedDescent(capture.weights(), capture, **options)


MAKE: dict[str, Callable[..., Optimizer]] = {
    "delta": lambda net, **o: DeltaMomentum(net.parameters(), **o),
    "deep": lambda net, **o: DeepMomentum(net.parameters(), hidden=3, **o),
    "muon": lambda net, **o: MuonNS(net.parameters(), **o),
    "muon library": lambda net, **o: MuonNS.library(net.parameters(), **o),
    "m3": lambda net, **o: M3(net.parameters(), frequency=2, eps=0.1, **o),
    "projected": projected,
    "projected tokens": lambda net, **o: projected(net, order="tokens", **o),
}
every = pytest.mark.parametrize("name", MAKE)
STATEFUL = [name for name in MAKE if not name.startswith("projected")]
stateful = pytest.mark.parametrize("name", STATEFUL)


def model(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    torch.manual_seed(1)
    one, two = (nn.Linear(*size, bias=False, dtype=dtype) for size in ((4, 6), (6, 3)))
    return nn.Sequential(one, nn.Tanh(), two)


def batch(net: nn.Module, seed: int, rows: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    kind = next(net.parameters()).dtype
    x, y = (torch.randn(rows, size, generator=generator).to(kind) for size in (4, 3))
    return x, y


def train(net: nn.Module, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        x, y = batch(net, step)
        (net(x) - y).square().sum().div(10).backward()
        optimizer.step()


def same(one: nn.Module, two: nn.Module, tolerance: float = 0.0) -> None:
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda both: pickle.loads(pickle.dumps(both)),
}


@every
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_model_and_optimizer_trains_on_alike_and_apart(name: str, how: str) -> None:
    net = model()
    optimizer = MAKE[name](net, lr=0.05)
    train(net, optimizer, range(2))
    other, copied = COPIES[how]((net, optimizer))
    before = [param.detach().clone() for param in net.parameters()]
    train(other, copied, range(2, 4))
    for param, old in zip(net.parameters(), before, strict=True):
        assert torch.equal(param, old)
    train(net, optimizer, range(2, 4))
    same(net, other)


def test_a_group_added_to_a_copy_starts_a_network_of_its_own() -> None:
    net = model()
    optimizer = copy.deepcopy(MAKE["deep"](net))
    added = nn.Parameter(torch.ones(6, 4))
    optimizer.add_param_group({"params": [added]})
    first = optimizer.param_groups[0]["params"][0]
    assert not torch.equal(optimizer.state[added]["A1"], optimizer.state[first]["A1"])


@stateful
@pytest.mark.parametrize(
    ("saved", "loaded", "kept"),
    [
        (torch.float32, torch.bfloat16, torch.float32),
        (torch.bfloat16, torch.float32, torch.float32),
        (torch.float64, torch.float32, torch.float32),
        (torch.float32, torch.float64, torch.float64),
    ],
)
def test_a_state_of_another_precision_is_cast_to_that_of_a_fresh_one(
    name: str, saved: torch.dtype, loaded: torch.dtype, kept: torch.dtype
) -> None:
    net, other = model(saved), model(loaded)
    optimizer, restored = MAKE[name](net, lr=0.05), MAKE[name](other, lr=0.05)
    train(net, optimizer, range(2))
    restored.load_state_dict(optimizer.state_dict())
    pairs = zip(optimizer.state.values(), restored.state.values(), strict=True)
    for key, (mine, theirs) in ((key, pair) for pair in pairs for key in pair[0]):
        if isinstance(mine[key], Tensor):
            assert theirs[key].dtype is kept
            torch.testing.assert_close(theirs[key], mine[key].to(kept), rtol=0, atol=0)
    train(other, restored, range(2, 3))


@every
def test_a_state_dict_of_another_optimizer_is_refused_and_changes_nothing(name: str) -> None:
    net = model()
    adam = torch.optim.AdamW(net.parameters())
    train(net, adam, range(1))
    foreign = adam.state_dict()
    optimizer = MAKE[name](net, lr=0.05)
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(ValueError, match=r"holds exp_avg, exp_avg_sq, step, expected"):
        optimizer.load_state_dict(foreign)
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert after["state"].keys() == before["state"].keys()


@stateful
def test_a_state_dict_of_other_shapes_or_options_is_refused(name: str) -> None:
    net = model()
    wider = nn.Sequential(nn.Linear(4, 7, bias=False), nn.Linear(7, 3, bias=False))
    saved = MAKE[name](wider, lr=0.05).state_dict()
    optimizer = MAKE[name](net, lr=0.05)
    with pytest.raises(ValueError, match=r"of a parameter \(.*\) has the shape \(.*\), expected"):
        optimizer.load_state_dict(saved)
    saved = optimizer.state_dict()
    saved["param_groups"][0]["lr"] = -1.0
    with pytest.raises(ValueError, match=r"lr: got -1\.0, expected 0 or more"):
        optimizer.load_state_dict(saved)
    saved["param_groups"][0].pop("lr")  # an older file, which did not know an option
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.05


def test_a_preconditioner_is_loaded_where_there_was_none() -> None:
    net, other = model(), model()
    one, two = DeltaMomentum(net.parameters()), DeltaMomentum(other.parameters())
    one.set_preconditioner(net[0].weight, torch.diag(torch.arange(1.0, 7)))
    two.load_state_dict(one.state_dict())
    for optimizer, trained in ((one, net), (two, other)):
        train(trained, optimizer, range(2))
    same(net, other)


@every
@pytest.mark.parametrize("shape", [(1,), (1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_rate_with_dimensions_is_a_number(
    name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    net, other = model(), model()
    options: dict[str, Any] = {"foreach": True} if name == "delta" else {}
    train(net, MAKE[name](net, lr=torch.full(shape, 0.05, dtype=dtype), **options), range(2))
    train(other, MAKE[name](other, lr=0.05, **options), range(2))
    assert {param.dtype for param in net.parameters()} == {torch.float32}
    same(net, other, 1e-5)


@every
@pytest.mark.parametrize(
    "bad", [None, "0.1", float("nan"), -1.0, torch.tensor(-1.0), torch.ones(2), 1j], ids=repr
)
def test_a_rate_that_is_none_is_told(name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match="lr: got"):
        MAKE[name](model(), lr=bad)


SCHEDULES: dict[str, Callable[[Optimizer], Any]] = {
    "one cycle": lambda o: lr_scheduler.OneCycleLR(
        o, 0.1, total_steps=8, cycle_momentum="momentum" in o.defaults
    ),
    "warm up": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.5)], [2]
    ),
}


@every
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_of_numbers_and_of_tensors_is_the_same(name: str, schedule: str) -> None:
    nets = model(torch.float64), model(torch.float64)
    for net, lr in zip(nets, (0.05, torch.tensor(0.05, dtype=torch.float64)), strict=True):
        optimizer = MAKE[name](net, lr=lr)
        scheduler = SCHEDULES[schedule](optimizer)
        seen = set()
        for step in range(3):
            train(net, optimizer, range(step, step + 1))
            seen.add(float(optimizer.param_groups[0]["lr"]))
            scheduler.step()
        assert len(seen) > 2
    same(*nets, 1e-9)


@every
@pytest.mark.parametrize("foreach", [False, True])
def test_a_parameter_that_is_not_contiguous_is_trained_as_one_that_is(
    name: str, foreach: bool
) -> None:
    net, other = model(torch.float64), model(torch.float64)
    for layer in (net[0], net[2]):
        layer.weight = nn.Parameter(layer.weight.detach().T.contiguous().T)
    options: dict[str, Any] = {"foreach": foreach} if name in STATEFUL else {}
    for trained in (net, other):
        train(trained, MAKE[name](trained, lr=0.05, **options), range(3))
    assert not net[0].weight.is_contiguous()
    same(net, other, 1e-9)


@stateful
@pytest.mark.parametrize(
    "layer",
    [nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last), nn.LayerNorm(3)],
)
def test_convolutions_and_vectors_are_another_optimizer_s(name: str, layer: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"takes matrices \(d_out, d_in\): got .* another opt"):
        MAKE[name](layer)


@stateful
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_empty_and_tiny_matrices_take_steps(name: str, shape: tuple[int, int]) -> None:
    net = nn.Module()
    net.weight = nn.Parameter(torch.zeros(shape))
    optimizer = MAKE[name](net)
    net.weight.grad = torch.zeros(shape)
    optimizer.step()
    assert not net.weight.isnan().any()


@stateful
def test_foreach_takes_matrices_of_several_kinds_in_one_group(name: str) -> None:
    nets = [nn.Module(), nn.Module()]
    for net, foreach in zip(nets, (True, False), strict=True):
        torch.manual_seed(3)
        for place, (shape, dtype) in enumerate(
            [((3, 4), torch.float64), ((3, 4), torch.float32), ((3, 4), torch.float64)]
        ):
            param = nn.Parameter(torch.randn(shape, dtype=dtype))
            param.grad = torch.randn(shape, dtype=dtype)
            net.register_parameter(f"w{place}", param)
        MAKE[name](net, lr=0.05, foreach=foreach).step()
    same(*nets, 1e-3 if name.startswith("muon") else 1e-5)


@pytest.mark.parametrize("name", ["projected", "projected tokens"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_layer_is_seen_once(name: str, reentrant: bool) -> None:
    net, other = model(), model()
    for trained, kept in ((net, False), (other, True)):
        optimizer = MAKE[name](trained, lr=0.05)
        for step in range(2):
            optimizer.zero_grad()
            x, y = batch(trained, step)
            x.requires_grad_()
            out = checkpoint(trained, x, use_reentrant=reentrant) if kept else trained(x)
            (out - y).square().sum().div(10).backward()
            optimizer.step()
    same(net, other)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*:FutureWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize(("order", "what"), [("batch", "step"), ("tokens", "model")])
def test_projected_descent_compiles_over_changing_numbers_of_rows(order: str, what: str) -> None:
    """The step as one graph, or the captured model; rows change, and some layers see two calls."""
    torch._dynamo.reset()
    nets = model(), model()
    for net, compiled in zip(nets, (False, True), strict=True):
        optimizer = projected(net, lr=0.05, order=order, batch="sum")
        step, run = optimizer.step, net
        if compiled and what == "step":
            step = torch.compile(optimizer.step, fullgraph=True, backend="aot_eager")
        elif compiled:
            run = torch.compile(net, backend="aot_eager")
        for number, sizes in enumerate([(5,), (3,), (7, 2)]):
            optimizer.zero_grad()
            for rows in sizes:
                x, y = batch(net, number, rows)
                (run(x) - y).square().sum().div(10).backward()
            step()
    same(*nets, 1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*:FutureWarning")
def test_a_compiled_step_of_tokens_still_refuses_a_gradient_of_other_terms() -> None:
    torch._dynamo.reset()
    net = model()
    optimizer = MAKE["projected tokens"](net, lr=0.05)
    step = torch.compile(optimizer.step, fullgraph=True, backend="eager")
    x, y = batch(net, 0)
    ((net(x) - y).square().sum() + net[0].weight.square().sum()).backward()
    # A compiled step that raises leaves gradients switched off, which is torch's: put them back.
    with torch.enable_grad(), pytest.raises(RuntimeError, match="not that of the captured tokens"):
        step()


def test_the_scale_of_a_gradient_by_hand_and_opcheck() -> None:
    captured = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    assert gradient_scale(3 * captured, captured).item() == 3
    assert gradient_scale(torch.zeros(2, 2), torch.zeros(2, 2)).item() == 1
    torch.library.opcheck(torch.ops.trueup.gradient_scale, (2 * captured, captured))


def test_m3_is_no_part_of_a_cuda_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps are counted on the host; with one momentum move for each step there is no count."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    for frequency in (2, 1):
        param = nn.Parameter(torch.ones(2, 2))
        optimizer = M3([param], frequency=frequency)
        param.grad = torch.ones(2, 2)
        if frequency == 1:
            optimizer.step()
            continue
        with pytest.raises(RuntimeError, match="CUDA graph would repeat one of them"):
            optimizer.step()
        assert torch.equal(param, torch.ones(2, 2))
