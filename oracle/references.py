"""Finds the reference a contract names, and says whether the two fit.

A contract names an equation of the catalogue by id, or a function of the user's own as
`path/to/ref.py:function`, relative to the contract. The user's function may carry a declaration
(`@equation(..., register=False)`); without one it has one reading and no domains.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import trueup.reference
from trueup.oracle.backends.python.limit import TimeLimit, time_limit
from trueup.oracle.bounds import Evaluator
from trueup.oracle.bounds.digest import installed
from trueup.oracle.bounds.plain import plain_values
from trueup.oracle.contract import Contract
from trueup.oracle.errors import ContractError, OracleError
from trueup.reference import Equation, ReferenceError_, get

if TYPE_CHECKING:
    from trueup.oracle.inputs import Draw


@dataclass(frozen=True)
class Reference:
    """The expected side: a reading's formulas, and what else the equation declares."""

    id: str
    reading: str
    forms: tuple[Callable[..., Any], ...]
    equation: Equation | None
    digest: str

    def others(self) -> tuple[str, ...]:
        """Name every other reading and known wrong variant of the equation."""
        if self.equation is None:
            return ()
        return tuple(name for name in self.equation.known() if name != self.reading)

    def forms_of(self, reading: str) -> tuple[Callable[..., Any], ...]:
        """Return the formulas of another reading."""
        assert self.equation is not None
        return self.equation.form(reading)


def resolve(contract: Contract) -> Reference:
    """Return the reference a contract names.

    Raises ContractError for an unknown id or function, an unknown reading, and arguments that the
    reference does not take.
    """
    if ":" in contract.reference:
        function, digest = _load(contract)
        equation: Equation | None = getattr(function, "__equation__", None)
    else:
        try:
            equation = get(contract.reference)
        except ReferenceError_ as error:
            raise _as_contract_error(contract, "contract.reference", error) from None
        function, digest = equation.function, _digest(equation.function)
    reading = contract.reading or (equation.default_reading if equation else "default")
    if equation is None:
        if contract.reading is not None:
            raise ContractError(
                "the reference declares no readings",
                where=f"{contract.path}: contract.reading",
                got=contract.reading,
                fix="remove the key, or decorate the function with trueup.reference.equation",
            )
        forms: tuple[Callable[..., Any], ...] = (function,)
    else:
        try:
            forms = equation.form(reading)
        except ReferenceError_ as error:
            raise _as_contract_error(contract, "contract.reading", error) from None
        if reading not in equation.readings:
            raise ContractError(
                "this is a known wrong variant, not a reading",
                where=f"{contract.path}: contract.reading",
                got=reading,
                expected="one of " + ", ".join(equation.readings),
            )
    reference = Reference(contract.reference, reading, forms, equation, digest)
    _check_arguments(contract, function, equation)
    return reference


def check_values(contract: Contract, draw: Draw, evaluator: Evaluator, seconds: float) -> None:
    """Hold what a reference returns to the contract: in time, in shape, and the same twice.

    Raises OracleError naming the output and both shapes.
    """
    where = f"{contract.path}: reference {contract.reference}"
    try:
        with time_limit(seconds):
            values = evaluator.values()
    except TimeLimit:
        raise OracleError(
            f"the reference had not returned after {seconds:g} s",
            where=where,
            got=f"case {draw.case.id}",
            fix="correct its loops, or allow it more with --time-limit",
        ) from None
    for arg, value in zip(contract.outputs, values, strict=True):
        wanted = arg.sizes(draw.case.axes)
        if value.shape != wanted:
            raise OracleError(
                f"the reference returns another shape for `{arg.name}`",
                where=where,
                got=f"{value.shape} in case {draw.case.id}",
                expected=str(wanted),
                fix="return the out and inout arrays in the order of the contract's [[arg]] tables",
            )
    if ":" not in contract.reference:  # the catalogue's own are held by its tests
        return
    again = plain_values(evaluator.forms[0], evaluator.inputs, len(values))
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(values, again, strict=True)):
        raise OracleError(
            "the reference is not deterministic: called twice on the same inputs, it differs",
            where=where,
            got=f"case {draw.case.id}",
            fix="take every random number as an input",
        )


def _as_contract_error(contract: Contract, key: str, error: ReferenceError_) -> ContractError:
    return ContractError(
        error.what,
        where=f"{contract.path}: {key}",
        got=error.got or None,
        expected=error.expected or None,
        fix=error.fix or None,
    )


def _load(contract: Contract) -> tuple[Callable[..., Any], str]:
    """Import the user's file and return the function with a digest of the file."""
    name, _, function_name = contract.reference.rpartition(":")
    path = (contract.path.parent / name).resolve()
    where = f"{contract.path}: contract.reference"
    if not path.is_file():
        raise ContractError(
            "no such file", where=where, got=name, expected="path/to/file.py:function"
        )
    data = path.read_bytes()
    module = _import(path, hashlib.sha256(data).hexdigest(), where)
    function = getattr(module, function_name, None)
    if not callable(function):
        have = [n for n, v in vars(module).items() if inspect.isfunction(v)]
        raise ContractError(
            f"`{name}` has no function `{function_name}`",
            where=where,
            expected="one of " + (", ".join(have) or "(the file defines none)"),
        )
    return function, _with_helpers(module, data)


def _with_helpers(module: ModuleType, data: bytes) -> str:
    """Digest a reference file together with the user's own modules it takes names from."""
    files = set()
    for value in vars(module).values():
        source = value if isinstance(value, ModuleType) else inspect.getmodule(value)
        file = getattr(source, "__file__", None)
        if source is not None and file and not installed(source.__name__, file):
            files.add(file)
    digest = hashlib.sha256(data)
    for file in sorted(files - {module.__file__}):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def _import(path: Path, digest: str, where: str) -> ModuleType:
    """Import a file once per content, under a name that collides with nothing."""
    name = f"trueup_user_reference_{digest[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ContractError("not a Python file", where=where, got=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None) or _last_line(error, path)
        raise ContractError(
            f"the reference file does not import: {type(error).__name__}: {error}",
            where=f"{path}:{line}" if line else str(path),
        ) from None
    return module


def _last_line(error: BaseException, path: Path) -> int | None:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _digest(function: Callable[..., Any]) -> str:
    """Digest every source file of the catalogue: references share modules and helpers."""
    root = Path(trueup.reference.__file__).parent
    digest = hashlib.sha256(function.__qualname__.encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _check_arguments(
    contract: Contract, function: Callable[..., Any], equation: Equation | None
) -> None:
    """Hold the contract's argument names against the reference's parameters."""
    given = [arg.name for arg in contract.with_role("in", "inout", "scalar")]
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    takes = [name for name in parameters if name != "reading"]
    strange = [name for name in given if name not in takes]
    if strange:
        raise ContractError(
            f"the reference {contract.reference} takes no {', '.join(strange)}",
            where=f"{contract.path}: arg",
            expected="names among " + ", ".join(takes),
            fix="name arguments as the reference's symbols; the kernel's own names do not matter",
        )
    needed = [
        name
        for name, p in parameters.items()
        if name != "reading" and p.default is p.empty and p.kind is not p.VAR_POSITIONAL
    ]
    missing = [name for name in needed if name not in given]
    if missing:
        raise ContractError(
            f"the reference {contract.reference} needs {', '.join(missing)}",
            where=f"{contract.path}: arg",
            got=", ".join(given),
        )
    if equation is not None:
        _check_ranks(contract, equation)


def _check_ranks(contract: Contract, equation: Equation) -> None:
    """Hold each argument's number of dimensions against the symbol's."""
    symbols = {symbol.name: symbol for symbol in equation.inputs}
    for arg in contract.with_role("in", "inout", "scalar"):
        symbol = symbols.get(arg.name)
        if symbol is not None and len(symbol.shape) != len(arg.shape):
            raise ContractError(
                f"`{arg.name}` has {len(arg.shape)} dimensions",
                where=f"{contract.path}: arg ({arg.name}).shape",
                expected=f"{len(symbol.shape)}: ({', '.join(symbol.shape)})",
            )
