"""The part of a kernel's contract that a launch needs, and its evaluation for given sizes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import trueup.kernels
from trueup.contracts.expressions import evaluate, parse

KERNELS = Path(trueup.kernels.__file__).resolve().parent
BUFFERS = ("in", "out", "inout", "workspace")


class ContractError(Exception):
    """A shipped contract cannot be read or does not fit its call; the message says where."""


@dataclass(frozen=True)
class Argument:
    """One parameter: a buffer with its shape, a scalar, or the size of an axis."""

    name: str
    role: str
    dtype: str
    shape: tuple[str, ...] = ()

    def extents(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Evaluate the shape."""
        return tuple(evaluate(extent, sizes) for extent in self.shape)


@dataclass(frozen=True)
class Launch:
    """One launch: expressions of its geometry, and its arguments by position."""

    entry: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class Geometry:
    """A launch at given sizes."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    args: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Contract:
    """What a kernel takes and how it is launched; one object for each file."""

    id: str
    source: Path
    include: tuple[Path, ...]
    defines: tuple[tuple[str, str], ...]
    axes: tuple[str, ...]
    limits: Mapping[str, Mapping[str, int]]
    args: tuple[Argument, ...]
    launches: tuple[Launch, ...]

    def given(self) -> tuple[Argument, ...]:
        """Return what a caller hands over, in order: all but axes and workspace."""
        return tuple(arg for arg in self.args if arg.role not in ("axis", "workspace"))

    def sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Read the axes off the buffers' shapes; ValueError where they contradict each other."""
        sizes: dict[str, int] = {}
        buffers = [arg for arg in self.given() if arg.role in BUFFERS]
        for arg in buffers:
            shape = shapes[arg.name]
            if len(shape) != len(arg.shape):
                raise ValueError(
                    f"{self.id}: {arg.name} has shape {tuple(shape)}, expected {_show(arg)}"
                )
            for extent, size in zip(arg.shape, shape, strict=True):
                if extent in self.axes:
                    sizes.setdefault(extent, int(size))
        self._solve(sizes, shapes)
        missing = [axis for axis in self.axes if axis not in sizes]
        if missing:
            raise ContractError(f"{self.id}: no shape gives the axis {', '.join(missing)}")
        for arg in buffers:
            expected = arg.extents(sizes)
            if tuple(shapes[arg.name]) != expected:
                raise ValueError(
                    f"{self.id}: {arg.name} has shape {tuple(shapes[arg.name])}, "
                    f"expected {_show(arg)} = {expected}"
                )
        return sizes

    def _solve(self, sizes: dict[str, int], shapes: Mapping[str, Sequence[int]]) -> None:
        """Find the axes that no extent is by itself, from extents linear in one, such as 2 * C."""
        for axis in (axis for axis in self.axes if axis not in sizes):
            for arg in (arg for arg in self.given() if arg.role in BUFFERS):
                for extent, size in zip(arg.shape, shapes[arg.name], strict=True):
                    if parse(extent).names != {axis}:
                        continue
                    base = evaluate(extent, {axis: 0})
                    step = evaluate(extent, {axis: 1}) - base
                    if step and (size - base) % step == 0:
                        sizes.setdefault(axis, (size - base) // step)

    def outside(self, sizes: Mapping[str, int]) -> str | None:
        """Say which size the contract does not allow, or None."""
        for axis in self.axes:
            limit = self.limits.get(axis, {})
            size, low = sizes[axis], limit.get("min", 1)
            high, multiple = limit.get("max", 2**31 - 1), limit.get("multiple", 1)
            if not low <= size <= high or size % multiple:
                return f"{axis} = {size} is outside the kernel's {dict(limit) or {'min': 1}}"
        return None

    def geometry(self, sizes: Mapping[str, int]) -> tuple[Geometry, ...]:
        """Evaluate every launch at these sizes (axes, and integer scalars where used)."""
        return tuple(
            Geometry(
                launch.entry,
                _three(launch.grid, sizes),
                _three(launch.block, sizes),
                evaluate(launch.shared, sizes),
                launch.args,
            )
            for launch in self.launches
        )


def contract_path(name: str) -> Path:
    """Return the file of a shipped contract by its id, such as "nl.delta_momentum"."""
    return KERNELS.joinpath(*name.split(".")).with_suffix(".toml")


@cache
def load_contract(path: Path) -> Contract:
    """Read a contract; ContractError where there is none or it lacks a table."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        table = document["contract"]
        return Contract(
            id=table["id"],
            source=path.parent / table["source"],
            include=tuple((path.parent / item).resolve() for item in table.get("include", [])),
            defines=tuple((key, str(value)) for key, value in table.get("defines", {}).items()),
            axes=tuple(table["axes"]),
            limits=table.get("limits", {}),
            args=tuple(_argument(row) for row in document["arg"]),
            launches=tuple(_launch(row) for row in document["launch"]),
        )
    except OSError as error:
        raise ContractError(f"{path}: {error.strerror}") from None
    except KeyError as error:
        raise ContractError(f"{path}: the key {error} is missing") from None


def _argument(row: Mapping[str, Any]) -> Argument:
    shape = tuple(str(extent) for extent in row.get("shape", ()))
    return Argument(row["name"], row["role"], row.get("dtype", "i32"), shape)


def _launch(row: Mapping[str, Any]) -> Launch:
    return Launch(
        row["entry"],
        _listed(row["grid"]),
        _listed(row["block"]),
        str(row.get("shared", 0)),
        tuple(row["args"]),
    )


def _listed(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else (str(value),)


def _three(extents: Sequence[str], sizes: Mapping[str, int]) -> tuple[int, int, int]:
    values = [evaluate(extent, sizes) for extent in extents]
    x, y, z = values + [1] * (3 - len(values))
    return x, y, z


def _show(arg: Argument) -> str:
    return f"({', '.join(arg.shape)})"
