"""Boundary sizes of a contract's axes: where guards, tiles and warps end.

Each axis visits 1, the warp and its neighbours, every tile the launches mention and its
neighbours, twice the largest tile plus one, and primes, one of them beyond what a block can keep in
registers, while the other axes hold small ragged sizes that differ from one another. Where a
launch's geometry takes the smaller or larger of several axes, one case has all of them just beyond
the tile.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import replace

from trueup.oracle.contract import Contract, Limit

WARP = 32
# Beyond this many elements in the product of all axes a case costs seconds, not milliseconds.
# More than a 16-bit index holds, so that one shows.
_LARGEST_PRODUCT = 70_000
_LARGEST_BUFFER = 1 << 19
# Larger tiles than a block has threads are caps of a grid; the long size goes beyond them.
_LARGEST_TILE = 1024
# A row of this length fits neither the registers nor the shared memory of one block.
_LONG = 23_003  # times 3 it is beyond 65,536
_COMPANIONS = (5, 3, 7, 11, 2, 13)


def boundary_sizes(contract: Contract) -> list[dict[str, int]]:
    """List the sizes to test, the plain middling one first; every one legal and distinct."""
    axes = contract.axes
    if not axes:
        return [{}]
    limits = {axis: _sought(contract, axis) for axis in axes}
    found: list[dict[str, int]] = []

    def add(sizes: Mapping[str, int]) -> None:
        legal = {axis: nearest(limits[axis], sizes[axis]) for axis in axes}
        smallest = all(size <= nearest(limits[a], 1) + 2 for a, size in legal.items())
        if legal not in found and (not found or smallest or _affordable(contract, legal)):
            found.append(legal)

    add({axis: (9, 14, 6, 4, 3, 2)[i % 6] for i, axis in enumerate(axes)})
    add(dict.fromkeys(axes, 5))
    add({axis: (67, 35, 5, 3)[min(i, 3)] for i, axis in enumerate(axes)})
    add({axis: (35, 67, 3, 5)[min(i, 3)] for i, axis in enumerate(axes)})
    for turn, axis in enumerate(axes):
        for step, size in enumerate(_candidates(contract, axis)):
            others = {
                other: _COMPANIONS[(turn + step + i) % len(_COMPANIONS)]
                for i, other in enumerate(axes)
                if other != axis
            }
            add({name: size if name == axis else others[name] for name in axes})
        add({name: _LONG if name == axis else (3, 1)[i > 1] for i, name in _ranked(axes, axis)})
    for tile in sorted(_joint_tiles(contract))[:1]:
        add({axis: tile + 1 + i for i, axis in enumerate(axes)})
    add(dict.fromkeys(axes, 1))
    for axis in axes:  # one step above the least of an axis, where limits leave no small sizes
        least = {name: nearest(limits[name], 1) for name in axes}
        add(least | {axis: nearest(limits[axis], least[axis] + 1)})
    return found


def _sought(contract: Contract, axis: str) -> Limit:
    """Give the legal sizes of an axis up to the largest that the contract wants tried."""
    limit = contract.limits.get(axis, Limit())
    return replace(limit, high=min(limit.high, contract.tried.get(axis, limit.high)))


def _ranked(axes: tuple[str, ...], first: str) -> list[tuple[int, str]]:
    """Number the axes, the given one first: one companion of a long axis has several rows."""
    return list(enumerate(sorted(axes, key=lambda name: name != first)))


def _affordable(contract: Contract, sizes: Mapping[str, int]) -> bool:
    """Whether a case stays in milliseconds: the product of the axes, and every buffer."""
    if math.prod(sizes.values()) > _LARGEST_PRODUCT:
        return False
    buffers = [arg.sizes(sizes) for arg in contract.args if arg.is_buffer]
    return all(math.prod(shape) <= _LARGEST_BUFFER for shape in buffers)


def nearest(limit: Limit, size: int) -> int:
    """Return the legal size nearest to `size`, rounding multiples upwards where possible."""
    step = limit.multiple
    lowest = -(-limit.low // step) * step
    highest = limit.high // step * step
    return min(max(-(-size // step) * step, lowest), highest)


def _candidates(contract: Contract, axis: str) -> list[int]:
    tiles = sorted(_tiles(contract, axis))
    sizes = {1, WARP - 1, WARP, WARP + 1, 61}
    for tile in tiles:
        sizes |= {tile - 1, tile, tile + 1}
    sizes.add(2 * max(tiles, default=WARP) + 1)
    for threads in _strides(contract):
        sizes |= {threads, threads + 1, 2 * threads + 1}
    return sorted(size for size in sizes if size >= 1)


def _tiles(contract: Contract, axis: str) -> set[int]:
    """Find tile sizes: constants beside the axis in a launch, and constant block extents."""
    tiles: set[int] = set()
    for launch in contract.launches:
        for expression in (*launch.grid, *launch.block, launch.shared):
            if axis in expression.names:
                tiles |= set(expression.constants())
        constant = [e.value({}) for e in launch.block if not e.names]
        tiles |= set(constant)
        if len(constant) == len(launch.block):
            tiles.add(math.prod(constant))
    return {tile for tile in tiles if 1 < tile <= _LARGEST_TILE}


def _joint_tiles(contract: Contract) -> set[int]:
    """Find tiles of min(r, c) and its like: a second one takes every axis beyond the first."""
    tiles: set[int] = set()
    for launch in contract.launches:
        for expression in launch.grid:
            for node in ast.walk(expression.tree):
                if isinstance(node, ast.Call) and len(_axes_in(node, contract)) > 1:
                    tiles |= set(expression.constants())
    return {tile for tile in tiles if WARP <= tile <= _LARGEST_TILE}


def _axes_in(call: ast.Call, contract: Contract) -> set[str]:
    """Give the axes that min() or max() chooses from."""
    return {arg.id for arg in call.args if isinstance(arg, ast.Name) and arg.id in contract.axes}


def _strides(contract: Contract) -> set[int]:
    """Find the threads of fixed grids: beyond them a loop over the grid takes a second turn."""
    found = set()
    for launch in contract.launches:
        extents = [*launch.grid, *launch.block]
        if not any(e.names for e in extents):
            found.add(math.prod(e.value({}) for e in extents))
    return {threads for threads in found if 1 < threads < _LARGEST_PRODUCT // 2}
