"""What every optimizer must do: state dicts, groups, closures, AMP, compile, and refusals."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.debugging import aot_eager

from trueup.kernels.torch import (
    M3,
    DeepMomentum,
    DeltaMomentum,
    LayerCapture,
    MuonNS,
    ProjectedDescent,
    split_parameters,
)

Make = Callable[..., torch.optim.Optimizer]


def projected(params: Any, **options: Any) -> ProjectedDescent:
    """Make it over the model that the parameters belong to, found through `model_of`."""
    return ProjectedDescent(params, LayerCapture(_MODELS[-1]), **options)


_MODELS: list[nn.Module] = []
OPTIMIZERS: dict[str, tuple[Make, dict[str, Any]]] = {
    "delta": (DeltaMomentum, {"lr": 0.05}),
    "deep": (DeepMomentum, {"lr": 0.05, "hidden": 3, "momentum": 0.9}),
    "muon": (MuonNS, {"lr": 0.05}),
    "muon library": (MuonNS.library, {"lr": 0.05}),
    "m3": (M3, {"lr": 0.05, "frequency": 2, "betas": (0.9, 1.0, 0.5)}),
    "projected": (projected, {"lr": 0.05}),
    "projected tokens": (projected, {"lr": 0.05, "order": "tokens"}),
}
every = pytest.mark.parametrize("name", OPTIMIZERS)
STATEFUL = [name for name in OPTIMIZERS if not name.startswith("projected")]
stateful = pytest.mark.parametrize("name", STATEFUL)


def model(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    torch.manual_seed(1)
    made = nn.Sequential(
        nn.Linear(4, 6, bias=False, dtype=dtype),
        nn.Tanh(),
        nn.Linear(6, 3, bias=False, dtype=dtype),
    )
    _MODELS.append(made)
    return made


def build(name: str, net: nn.Module, **options: Any) -> torch.optim.Optimizer:
    make, given = OPTIMIZERS[name]
    return make(net.parameters(), **given | options)


def loss_of(net: nn.Module, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    kind = next(net.parameters()).dtype
    x = torch.randn(5, 4, generator=generator).to(kind)
    loss: Tensor = (net(x) - torch.randn(5, 3, generator=generator).to(kind)).square().sum()
    return loss


def train(net: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        loss_of(net, step).backward()
        optimizer.step()


def weights(net: nn.Module) -> list[Tensor]:
    return [param.detach().clone() for param in net.parameters()]


def tensors(state: Any) -> list[Tensor]:
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, dict):
        return [item for value in state.values() for item in tensors(value)]
    return [item for value in state for item in tensors(value)] if isinstance(state, list) else []


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_state_dict_brings_the_same_bits_back(name: str, dtype: torch.dtype) -> None:
    net = model(dtype)
    optimizer = build(name, net)
    train(net, optimizer, range(3))
    file = io.BytesIO()
    torch.save([net.state_dict(), optimizer.state_dict()], file)
    train(net, optimizer, range(3, 6))

    other = model(dtype)
    restored = build(name, other)
    file.seek(0)
    saved_net, saved = torch.load(file, weights_only=True)
    other.load_state_dict(saved_net)
    restored.load_state_dict(saved)
    before, after = tensors(saved["state"]), tensors(restored.state_dict()["state"])
    assert [item.dtype for item in before] == [item.dtype for item in after]
    assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
    train(other, restored, range(3, 6))
    for one, two in zip(weights(net), weights(other), strict=True):
        assert torch.equal(one, two)


@stateful
def test_state_of_sixteen_bit_weights_is_kept_in_float32(name: str) -> None:
    net = model(torch.bfloat16)
    kept = tensors(build(name, net).state_dict()["state"])
    assert kept
    assert {item.dtype for item in kept} == {torch.float32}


@every
def test_groups_have_options_of_their_own(name: str) -> None:
    net, frozen = model(), model()
    frozen.load_state_dict(net.state_dict())
    _MODELS.append(net)
    first, second = net.parameters()
    make, options = OPTIMIZERS[name]
    optimizer = make([{"params": [first]}, {"params": [second], "lr": 0.0}], **options)
    if name == "muon library":
        optimizer.param_groups[1]["weight_decay"] = 0.0
    if name == "deep":
        optimizer.param_groups[1]["scale"] = 0.0
    train(net, optimizer, range(2))
    before = weights(frozen)
    assert not torch.equal(first, before[0])
    assert torch.equal(second, before[1])


@every
def test_a_closure_is_evaluated_with_gradients_and_its_loss_returned(name: str) -> None:
    net, plain = model(), model()
    expected = build(name, plain)
    _MODELS.append(net)
    optimizer = build(name, net)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(net)
        loss.backward()
        return loss

    before = loss_of(net).item()
    optimizer.zero_grad()
    assert optimizer.step(closure).item() == before
    train(plain, expected, range(1))
    for one, two in zip(weights(net), weights(plain), strict=True):
        assert torch.equal(one, two)


@stateful
def test_maximize_is_descent_on_the_negative(name: str) -> None:
    up, down = model(), model()
    climbing, descending = build(name, up, maximize=True), build(name, down)
    for step in range(3):
        up.zero_grad()
        loss_of(up, step).backward()
        climbing.step()
        down.zero_grad()
        (-loss_of(down, step)).backward()
        descending.step()
    for one, two in zip(weights(up), weights(down), strict=True):
        assert torch.equal(one, two)


@every
def test_the_learning_rate_may_be_a_tensor(name: str) -> None:
    net, other = model(torch.float64), model(torch.float64)
    numbers = build(name, other)
    _MODELS.append(net)
    rate = torch.tensor(0.05, dtype=torch.float64)
    train(net, build(name, net, lr=rate), range(3))
    train(other, numbers, range(3))
    for one, two in zip(weights(net), weights(other), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


@stateful
def test_foreach_computes_the_same(name: str) -> None:
    net, other = model(torch.float64), model(torch.float64)
    options: dict[str, Any] = {"narrow": False} if name.startswith("muon") else {}
    train(net, build(name, net, foreach=True, **options), range(4))
    train(other, build(name, other, **options), range(4))
    for one, two in zip(weights(net), weights(other), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-11, atol=1e-11)


@every
def test_a_grad_scaler_skips_a_step_with_inf_and_unscales_the_others(name: str) -> None:
    """Powers of two scale exactly: the scaled run has the bits of the plain one."""
    net, plain = model(), model()
    expected = build(name, plain)
    _MODELS.append(net)
    optimizer = build(name, net)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    for step in range(3):
        optimizer.zero_grad()
        scaler.scale(loss_of(net, step)).backward()
        if step == 1:
            next(net.parameters()).grad[0, 0] = float("inf")
        before = weights(net), copy.deepcopy(optimizer.state_dict()["state"])
        scaler.step(optimizer)
        scaler.update()
        if step == 1:
            after = tensors(optimizer.state_dict()["state"])
            assert all(map(torch.equal, before[0], weights(net)))
            assert all(map(torch.equal, tensors(before[1]), after))
    for step in (0, 2):
        train(plain, expected, range(step, step + 1))
    for one, two in zip(weights(net), weights(plain), strict=True):
        assert torch.equal(one, two)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*:FutureWarning")
@every
def test_a_compiled_step_is_one_graph_and_computes_the_same(name: str) -> None:
    torch._dynamo.reset()
    graphs: list[int] = []

    def counting(graph: Any, inputs: Any) -> Any:
        graphs.append(len(graph.graph.nodes))
        return aot_eager(graph, inputs)

    other = model()
    eager = build(name, other)
    net = model()
    compiled = build(name, net)
    step = torch.compile(compiled.step, fullgraph=True, backend=counting)
    for number in range(4):
        for one, optimizer, update in ((net, compiled, step), (other, eager, eager.step)):
            optimizer.zero_grad()
            loss_of(one, number).backward()
            update()
    # M3 has one with and one without its slow momentum, and learns at the second that steps change.
    assert 1 <= len(graphs) <= 3
    assert max(graphs) > 4
    for one, two in zip(weights(net), weights(other), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-6)


@every
def test_a_parameter_without_gradient_is_left_alone(name: str) -> None:
    net = model()
    optimizer = build(name, net)
    last = list(net.parameters())[1]
    last.requires_grad_(False)
    before = last.clone()
    train(net, optimizer, range(2))
    assert torch.equal(last, before)


@stateful
def test_sparse_gradients_are_rejected(name: str) -> None:
    table = nn.Embedding(6, 4, sparse=True)
    make, options = OPTIMIZERS[name]
    optimizer = make(table.parameters(), **options)
    table(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse=False"):
        optimizer.step()


@stateful
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_what_is_no_matrix_is_rejected(name: str, shape: tuple[int, ...]) -> None:
    make, options = OPTIMIZERS[name]
    with pytest.raises(ValueError, match="split_parameters tells them apart"):
        make([nn.Parameter(torch.zeros(shape))], **options)


@stateful
def test_complex_matrices_are_rejected(name: str) -> None:
    make, options = OPTIMIZERS[name]
    with pytest.raises(ValueError, match="real floating"):
        make([nn.Parameter(torch.zeros(2, 2, dtype=torch.complex64))], **options)


BAD = [
    ("delta", "lr", -1.0),
    ("delta", "lr", float("nan")),
    ("delta", "lr", float("inf")),
    ("delta", "lr", torch.ones(2)),
    ("delta", "momentum", 1.1),
    ("delta", "reading", "left"),
    ("delta", "reading", "literal_left"),
    ("deep", "inner", "dot"),
    ("deep", "hidden", 0),
    ("deep", "scale", -1.0),
    ("muon", "momentum", 1.0),
    ("muon", "weight_decay", -0.1),
    ("muon", "weight_decay", 0.1),
    ("muon", "nesterov", True),
    ("muon", "form", "both"),
    ("muon", "poly", "quintic"),
    ("muon", "poly", "cubic0"),
    ("muon", "eps_rule", "max"),
    ("muon", "shape_factor", "sqrt"),
    ("m3", "frequency", 0),
    ("m3", "betas", (1.0, 1.0)),
    ("m3", "eps", -1.0),
    ("projected", "order", "rows"),
    ("projected", "reading", "normalized"),
    ("projected", "batch", "median"),
]


@pytest.mark.parametrize(("name", "option", "value"), BAD)
def test_bad_hyper_parameters_are_rejected(name: str, option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"got|needs|defined"):
        build(name, model(), **{option: value})


def test_a_group_that_is_refused_leaves_the_optimizer_as_it_was() -> None:
    net = model()
    optimizer = build("delta", net)
    with pytest.raises(ValueError, match="momentum"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2, 2))], "momentum": 2.0})
    assert len(optimizer.param_groups) == 1
    train(net, optimizer, range(1))


def test_split_parameters_sends_matrices_here_and_the_rest_elsewhere() -> None:
    net = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3), nn.LayerNorm(3), nn.Conv1d(3, 2, 1))
    matrices, others = split_parameters(net, but=[net[0].weight])
    assert [tuple(item.shape) for item in matrices] == [(3, 4)]
    assert len(others) == 6
    DeltaMomentum(matrices)
