"""A case: sizes, an input family and a seed; its id and seed replay it exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.contract import Arg, Contract
from trueup.oracle.errors import ContractError, OracleError
from trueup.oracle.inputs.draw import REAL, in_range, ordinary, rounded, widened
from trueup.oracle.inputs.families import GENERIC
from trueup.oracle.inputs.sizes import boundary_sizes
from trueup.oracle.references import Reference
from trueup.reference import Domain

# Sizes that each family visits beside the middling one, taken in turn from the whole list.
_SIZES_PER_FAMILY = 2
# The longest axis of families, and of lanes that repeat their runs many times.
_SHORT = 1100


@dataclass(frozen=True)
class Case:
    """One set of sizes with one family of inputs."""

    sizes: tuple[tuple[str, int], ...]
    family: str
    right_kernel_only: bool = False

    @property
    def id(self) -> str:
        """Name the case so that `--case` finds it again."""
        where = ",".join(f"{axis}={size}" for axis, size in self.sizes) or "scalar"
        return f"{where}/{self.family}"

    @property
    def axes(self) -> dict[str, int]:
        """The sizes as a mapping."""
        return dict(self.sizes)


@dataclass(frozen=True)
class Draw:
    """The inputs of one case: native for the kernel, widened for the reference."""

    case: Case
    seed: int
    native: Mapping[str, NDArray[Any]]  # in, inout and scalar arguments in the kernel's dtype
    wide: Mapping[str, Any]  # the same values: float64 arrays, floats, ints


def numeric_cases(contract: Contract, reference: Reference) -> list[Case]:
    """Every boundary size with ordinary inputs, and every family at several of the sizes."""
    every = boundary_sizes(contract)
    cases = [Case(tuple(entry.items()), "unit") for entry in every]
    sizes = [tuple(entry.items()) for entry in _short(every)]
    turn = 0
    for name, right_only in _families(reference):
        picked = sizes[:1] + [sizes[(turn + k) % len(sizes)] for k in range(_SIZES_PER_FAMILY)]
        turn += _SIZES_PER_FAMILY
        cases += [Case(entry, name, right_only) for entry in dict.fromkeys(picked)]
    return list(dict.fromkeys(cases))


def few_cases(contract: Contract, family: str = "unit", count: int = 8) -> list[Case]:
    """Spread a few cases over the boundary sizes, for lanes that run each of them many times."""
    sizes = [tuple(entry.items()) for entry in _short(boundary_sizes(contract))]
    step = max(1, len(sizes) // count)
    return [Case(entry, family) for entry in dict.fromkeys((*sizes[:3], *sizes[::step]))]


def long_cases(contract: Contract) -> list[Case]:
    """One case for each size beyond the short ones: loops over a grid take further turns there."""
    sizes = boundary_sizes(contract)
    short = _short(sizes)
    return [Case(tuple(entry.items()), "unit") for entry in sizes if entry not in short]


def _short(sizes: list[dict[str, int]]) -> list[dict[str, int]]:
    return [e for e in sizes if max(e.values(), default=1) <= _SHORT] or sizes[:1]


def all_sizes(contract: Contract, family: str = "unit") -> list[Case]:
    """One case for each boundary size."""
    return [Case(tuple(entry.items()), family) for entry in boundary_sizes(contract)]


def parse_case(contract: Contract, reference: Reference, text: str) -> Case:
    """Find the case of an id, of the listed ones or any other legal sizes and known family.

    Raises OracleError for an id that is malformed or names unknown axes or families.
    """
    where, _, family = text.rpartition("/")
    known = dict(_families(reference)) | {"unit": False}
    if family not in known:
        raise OracleError(
            "no such input family",
            where=f"case {text}",
            got=family,
            expected="one of " + ", ".join(known),
        )
    if where == "scalar" and not contract.axes:
        return Case((), family, known[family])
    try:
        sizes = {k: int(v) for k, v in (part.split("=") for part in where.split(","))}
    except ValueError:
        sizes = {}
    if list(sizes) != list(contract.axes):
        raise OracleError(
            "malformed case id",
            where=f"case {text}",
            expected=",".join(f"{axis}=N" for axis in contract.axes) + "/FAMILY",
        )
    for axis, size in sizes.items():
        limit = contract.limits.get(axis)
        if size < 0 or (limit is not None and not limit.admits(size)):
            raise OracleError(f"the contract does not admit {axis}={size}", where=f"case {text}")
    return Case(tuple(sizes.items()), family, known[family])


def draw(contract: Contract, reference: Reference, case: Case, seed: int) -> Draw:
    """Draw a case's inputs; the same case and seed give the same inputs on every machine."""
    label = f"{case.id}#{seed}".encode()
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(label).digest()[:16], "big"))
    inputs = contract.with_role("in", "inout", "scalar")
    shapes = {arg.name: arg.sizes(case.axes) for arg in inputs}
    domains = _domains(reference)
    sizes = _equation_sizes(contract, reference, case, shapes)
    values = {
        arg.name: _ordinary(arg, domains.get(arg.name), shapes[arg.name], rng, sizes)
        for arg in inputs
    }
    free = {arg.name for arg in inputs if _free(arg, domains.get(arg.name))}
    values = _apply_family(reference, case.family, rng, sizes, values, free)
    native = {
        arg.name: rounded(
            np.broadcast_to(values[arg.name], shapes[arg.name]), arg.numpy, domains.get(arg.name)
        )
        for arg in inputs
    }
    wide = {arg.name: _wide(arg, native[arg.name]) for arg in inputs}
    return Draw(case, seed, native, wide)


def with_native(source: Draw, contract: Contract, changes: Mapping[str, NDArray[Any]]) -> Draw:
    """Return the draw with some native arrays replaced (special values)."""
    native = {**source.native, **changes}
    wide = {name: _wide(contract.arg(name), array) for name, array in native.items()}
    return Draw(source.case, source.seed, native, wide)


def _families(reference: Reference) -> list[tuple[str, bool]]:
    own = reference.equation.families if reference.equation else ()
    taken = {family.name for family in own}
    generic = [(f.name, f.right_kernel_only) for f in GENERIC[1:] if f.name not in taken]
    return [(f.name, f.right_kernel_only) for f in own] + generic


def _domains(reference: Reference) -> dict[str, Domain]:
    if reference.equation is None:
        return {}
    return {symbol.name: symbol.domain for symbol in reference.equation.inputs}


def _equation_sizes(
    contract: Contract, reference: Reference, case: Case, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """Give the sizes under the equation's own axis names, read off the shapes."""
    sizes = dict(case.axes)
    if reference.equation is None:
        return sizes
    for symbol in reference.equation.inputs:
        for entry, size in zip(symbol.shape, shapes.get(symbol.name, ()), strict=False):
            if entry in reference.equation.axes and sizes.setdefault(entry, size) != size:
                raise ContractError(
                    f"axis {entry} of {reference.id} has two sizes: {sizes[entry]} and {size}",
                    where=f"{contract.path}: shape of {symbol.name}",
                    got=str(dict(case.axes)),
                )
    return sizes


def _ordinary(
    arg: Arg,
    domain: Domain | None,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    sizes: Mapping[str, int],
) -> NDArray[np.float64]:
    integer = arg.numpy.kind in "iu"
    if domain is not None:
        return np.asarray(ordinary(domain, shape, rng, sizes), dtype=np.float64)
    if arg.legal is not None:
        return np.asarray(in_range(arg.legal, integer, shape, rng), dtype=np.float64)
    if integer:
        low = 0.0 if arg.numpy.kind == "u" else -4.0
        return np.asarray(in_range((low, 5.0), True, shape, rng), dtype=np.float64)
    if arg.numpy.kind == "b":
        return rng.integers(0, 2, shape).astype(np.float64)
    return np.asarray(ordinary(REAL, shape, rng, sizes), dtype=np.float64)


def _free(arg: Arg, domain: Domain | None) -> bool:
    """Whether a family may change an array: floats that may be any number.

    The typical range of a declared domain is where values are usually drawn, not what is legal;
    a contract's `range` is what is legal, and integers may be indices.
    """
    if arg.numpy.kind in "iub" or (domain is None and arg.legal is not None):
        return False
    return domain is None or domain.kind == "real"


def _apply_family(
    reference: Reference,
    name: str,
    rng: np.random.Generator,
    sizes: Mapping[str, int],
    values: dict[str, Any],
    free: Container[str],
) -> dict[str, Any]:
    equation = reference.equation
    own = {family.name: family for family in equation.families} if equation else {}
    if name in own:
        values = dict(own[name].make(rng, sizes, values))
    else:
        family = next(family for family in GENERIC if family.name == name)
        for key, value in values.items():
            array = np.asarray(value, dtype=np.float64)
            if array.ndim and key in free:
                values[key] = family.change(rng, array)
    if equation is not None and equation.prepare is not None:
        values = dict(equation.prepare(rng, sizes, values))
    return values


def _wide(arg: Arg, native: NDArray[Any]) -> Any:
    value = widened(native)
    if arg.role != "scalar":
        return value
    return value.item()
