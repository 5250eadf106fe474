"""A short way to write one launch: arrays by role, everything else a scalar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.oracle.backends.base import (
    AnyArray,
    Buffer,
    Fault,
    Launch,
    Role,
    RunOptions,
    RunResult,
    Scalar,
    Source,
)
from trueup.oracle.backends.host import HostBackend, HostKernel

CU = Path(__file__).parent / "cu"


@dataclass
class Bench:
    """Loads the test kernels and runs them; keeps every fault of the last run."""

    cu: Path = CU
    faults: tuple[Fault, ...] = ()
    kernels: dict[str, HostKernel] = field(default_factory=dict)

    def load(self, file: str, *entries: str, **defines: str) -> HostKernel:
        return HostBackend().load(Source(self.cu / file, "cu", defines=defines), entries)

    def input(self, name: str, values: Any, dtype: Any) -> Buffer:
        array = np.ascontiguousarray(values, dtype)
        return Buffer(name, "in", array.dtype, array.shape, array)

    def inout(self, name: str, values: Any, dtype: Any) -> Buffer:
        array = np.ascontiguousarray(values, dtype)
        return Buffer(name, "inout", array.dtype, array.shape, array)

    def output(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> Buffer:
        role: Role = "out"
        return Buffer(name, role, np.dtype(dtype), (shape,) if isinstance(shape, int) else shape)

    def result(
        self,
        kernel: HostKernel,
        entry: str,
        args: Sequence[Buffer | np.generic],
        *,
        grid: tuple[int, ...] = (1,),
        block: tuple[int, ...] = (32,),
        shared: int = 0,
        options: RunOptions | None = None,
    ) -> RunResult:
        passed = tuple(
            a.name if isinstance(a, Buffer) else Scalar(f"s{i}", a) for i, a in enumerate(args)
        )
        launch = Launch(entry, _three(grid), _three(block), shared, passed)
        buffers = [a for a in args if isinstance(a, Buffer)]
        outcome = kernel.run([launch], buffers, options or RunOptions())
        self.faults = outcome.faults
        return outcome

    def clean(self, *args: Any, **options: Any) -> dict[str, AnyArray]:
        """Run and demand that nothing is wrong."""
        outcome = self.result(*args, **options)
        assert outcome.faults == ()
        assert outcome.launches == 1
        return dict(outcome.buffers)

    def line(self, file: str, mark: str) -> int:
        lines = (self.cu / file).read_text().splitlines()
        (found,) = [n for n, text in enumerate(lines, 1) if text.rstrip().endswith(f"// {mark}")]
        return found

    def at(self, fault: Fault, file: str, mark: str) -> bool:
        """Tell whether a fault lies at the marked line of that file."""
        expected = f"{self.cu / file}:{self.line(file, mark)}"
        return fault.location is not None and (fault.location + ":").startswith(expected + ":")


def _three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return (x, y, z)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the builds of these tests away from the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUEUP_CACHE", str(folder))
        yield folder


@pytest.fixture
def bench() -> Bench:
    return Bench()
