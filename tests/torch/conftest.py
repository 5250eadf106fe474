"""What the torch tests share: the shipped kernels on CPU tensors, through the host backend."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from trueup.kernels.torch.device import Kernel, contract_path, load_contract
from trueup.kernels.torch.device.contract import Contract, Geometry
from trueup.kernels.torch.ops import registry
from trueup.oracle.backends.base import Launch, Source
from trueup.oracle.backends.host import HostKernel
from trueup.oracle.backends.host.memory import Region


class HostFunctions:
    """The driver's place taken by the host backend: the same packed parameters, on the CPU."""

    def __init__(self, contract: Contract) -> None:
        entries = list(dict.fromkeys(launch.entry for launch in contract.launches))
        source = Source(contract.source, "cu", contract.include, dict(contract.defines))
        self._kernel = HostKernel(source, entries)
        self.launched: list[str] = []

    def launch(self, geometry: Geometry, arguments: int, stream: int) -> None:
        count = len(geometry.args)
        addresses = list((ctypes.c_void_p * count).from_address(arguments))
        launch = Launch(geometry.entry, geometry.grid, geometry.block, geometry.shared, ())
        dynamic = Region("dynamic shared memory", geometry.shared, 0x7FF5, "page_end", 16)
        try:
            complete, reports = self._kernel._library.launch(
                launch, addresses, dynamic, fill=0x7FF5, order=0, seconds=20.0
            )
        finally:
            dynamic.close()
        assert complete, [report.message for report in reports]
        assert not reports, [report.message for report in reports]
        self.launched.append(geometry.entry)


def host_kernel(name: str) -> Kernel:
    return Kernel(load_contract(contract_path(name)), lambda contract, _: HostFunctions(contract))


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Run an operator's CUDA function on CPU tensors, its kernels compiled for the host."""
    kernels: dict[str, Kernel] = {}

    def get(name: str) -> Kernel:
        return kernels.setdefault(name, host_kernel(name))

    monkeypatch.setattr(registry, "kernel", get)
    monkeypatch.setattr(registry, "why_not", lambda: None)
    return get


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Tensors this small are no work to share: on two busy cores waiting doubled the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def one_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def a_device_where_one_is_needed(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
