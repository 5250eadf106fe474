"""Contracts as the torch layer reads them, against the oracle's own reading of them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import torch

import trueup.kernels
from trueup.kernels.torch.device import Kernel, contract_path, load_contract, why_not
from trueup.kernels.torch.device.compiler import compile_contract
from trueup.kernels.torch.device.contract import Contract, ContractError, Geometry
from trueup.oracle.contract import find_contracts
from trueup.oracle.contract import load_contract as oracle_contract

CONTRACTS = sorted(find_contracts([Path(trueup.kernels.__file__).resolve().parent / "nl"]))
PRIMES = (7, 130, 33, 65, 12, 5, 3, 17)


class Recorder:
    """Takes launches and keeps what it was given; the values are read while they are packed."""

    def __init__(self) -> None:
        self.seen: list[tuple[Geometry, list[int]]] = []

    def launch(self, geometry: Geometry, arguments: int, stream: int) -> None:
        pointers = (ctypes.c_void_p * len(geometry.args)).from_address(arguments)
        words = [ctypes.c_uint32.from_address(address or 0).value for address in pointers]
        self.seen.append((geometry, words))


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_geometry_is_what_the_oracle_evaluates(path: Path) -> None:
    ours, theirs = load_contract(path), oracle_contract(path)
    sizes = dict(zip(ours.axes, PRIMES, strict=False))
    assert ours.id == theirs.id
    assert ours.axes == tuple(theirs.axes)
    for mine, other in zip(ours.geometry(sizes), theirs.launches, strict=True):
        grid = [extent.value(sizes) for extent in other.grid]
        block = [extent.value(sizes) for extent in other.block]
        assert list(mine.grid) == grid + [1] * (3 - len(grid))
        assert list(mine.block) == block + [1] * (3 - len(block))
        assert mine.entry == other.entry
        assert mine.shared == other.shared.value(sizes)
        assert list(mine.args) == list(other.args)


@pytest.mark.parametrize("name", ["projected_descent", "projected_descent_batch", "cms_level"])
def test_nvrtc_compiles_every_entry(name: str) -> None:
    """One without CUDA's headers, one of several entries, one with cuda_bf16.h; all compile in
    tests/kernels."""
    pytest.importorskip("cuda.core", reason="the NVRTC wheels are not installed")
    contract = load_contract(contract_path(f"nl.{name}"))
    image = compile_contract(contract, "sm_90")
    assert image.code.startswith(b"\x7fELF")
    assert set(image.symbols) == {launch.entry for launch in contract.launches}


def test_parameters_are_packed_in_the_launch_s_order_and_again_at_each_call() -> None:
    recorder = Recorder()
    contract = load_contract(contract_path("nl.delta_momentum_rank1"))
    kernel = Kernel(contract, lambda *_: recorder)
    m, W, u, x = torch.ones(5, 7), torch.ones(5, 7), torch.ones(5), torch.ones(7)
    assert kernel.attempt(m, W, u, x, 0.5, 0.25) is None
    assert kernel.attempt(W, m, u, x, 1.0, 0.25) is None
    (geometry, first), (_, second) = recorder.seen
    assert geometry.args == ("m", "W", "u", "x", "alpha", "eta", "d_out", "d_in")
    low = [tensor.data_ptr() & 0xFFFFFFFF for tensor in (m, W, u, x)]
    half, quarter, one = 0x3F000000, 0x3E800000, 0x3F800000
    assert first == [*low, half, quarter, 5, 7]
    assert second == [low[1], low[0], *low[2:], one, quarter, 5, 7]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"x": torch.ones(7, dtype=torch.float64)}, "x is torch.float64", id="dtype"),
        pytest.param({"m": torch.ones(7, 5).T}, "m is not contiguous", id="layout"),
        pytest.param({"x": torch.ones(7, device="meta")}, "x is on meta", id="device"),
    ],
)
def test_a_kernel_says_what_it_cannot_take(change: dict[str, torch.Tensor], reason: str) -> None:
    kernel = Kernel(load_contract(contract_path("nl.delta_momentum_rank1")), lambda *_: Recorder())
    given = {"m": torch.ones(5, 7), "W": torch.ones(5, 7), "u": torch.ones(5), "x": torch.ones(7)}
    refused = kernel.attempt(*(given | change).values(), 0.5, 0.1)
    assert refused is not None
    assert reason in refused


def test_empty_sizes_are_refused_and_contradictions_raise() -> None:
    kernel = Kernel(load_contract(contract_path("nl.delta_momentum_rank1")), lambda *_: Recorder())
    empty = kernel.attempt(torch.ones(0, 7), torch.ones(0, 7), torch.ones(0), torch.ones(7), 1, 1)
    assert empty is not None
    assert "d_out = 0" in empty
    with pytest.raises(ValueError, match=r"u has shape \(4,\), expected \(d_out\) = \(5,\)"):
        kernel.attempt(torch.ones(5, 7), torch.ones(5, 7), torch.ones(4), torch.ones(7), 1.0, 1.0)


def test_a_machine_without_a_device_says_so() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a device")
    assert why_not() == "torch sees no CUDA device"


def test_a_contract_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="No such file"):
        load_contract(tmp_path / "none.toml")
    assert isinstance(load_contract(CONTRACTS[0]), Contract)


def test_an_axis_is_found_where_no_extent_is_it_alone() -> None:
    """A tree over C leaves has 2 * C nodes."""
    contract = load_contract(contract_path("dqn.sum_tree_sample"))
    shapes = {"tree": (134,), "u": (3,), "index": (3,), "probability": (3,)}
    assert contract.sizes(shapes) == {"C": 67, "B": 3}
    with pytest.raises(ContractError, match="no shape gives the axis C"):
        contract.sizes(shapes | {"tree": (135,)})
