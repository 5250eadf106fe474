"""The argument, launch and call tables of a contract, checked against one another."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueup.oracle.contract.expressions import Expression, parse
from trueup.oracle.contract.formats import FLOATS
from trueup.oracle.contract.model import Arg, Call, LaunchPlan
from trueup.oracle.errors import ContractError


def read_args(
    path: Path, axes: tuple[str, ...], tables: Sequence[Mapping[str, Any]]
) -> tuple[Arg, ...]:
    """Turn the `[[arg]]` tables into arguments."""
    args: list[Arg] = []
    for index, table in enumerate(tables):
        where = f"{path}: arg[{index}] ({table['name']})"
        if any(arg.name == table["name"] for arg in args):
            raise ContractError("two arguments have this name", where=where)
        args.append(_read_arg(where, frozenset(axes), table))
    if not any(arg.role in ("out", "inout") for arg in args):
        raise ContractError(
            "no argument is an output", where=f"{path}: arg", expected="role out or inout"
        )
    return tuple(args)


def _read_arg(where: str, axes: frozenset[str], table: Mapping[str, Any]) -> Arg:
    name, role = table["name"], table["role"]
    if role == "axis":
        if name not in axes:
            raise ContractError(
                "an axis argument must be called like its axis",
                where=where,
                expected="one of " + ", ".join(sorted(axes)),
            )
        if table.get("dtype", "i32") != "i32" or "shape" in table:
            raise ContractError("an axis argument is a 32-bit int and has no shape", where=where)
        return Arg(name, role, "i32")
    if "dtype" not in table:
        raise ContractError("missing key `dtype`", where=where, expected="such as f32")
    legal = tuple(map(float, table["range"])) if "range" in table else None
    if role == "scalar":
        if "shape" in table or "strides" in table:
            raise ContractError("a scalar has no shape", where=where)
        return Arg(name, role, table["dtype"], legal=legal)  # type: ignore[arg-type]
    if "shape" not in table:
        raise ContractError(
            "missing key `shape`", where=where, expected="a list of expressions in axes"
        )
    shape = tuple(parse(text, axes, f"{where}.shape") for text in table["shape"])
    return Arg(
        name,
        role,
        table["dtype"],
        shape,
        _strides(where, axes, shape, table.get("strides")),
        legal,  # type: ignore[arg-type]
        _written(where, axes, shape, role, table.get("written")),
        table.get("slot"),
    )


def _strides(
    where: str, axes: frozenset[str], shape: tuple[Expression, ...], given: list[Any] | None
) -> tuple[Expression, ...] | None:
    if given is None:
        return None
    if len(given) != len(shape):
        raise ContractError(
            "strides and shape differ in length",
            where=where,
            got=str(len(given)),
            expected=str(len(shape)),
        )
    return tuple(parse(text, axes, f"{where}.strides") for text in given)


def _written(
    where: str,
    axes: frozenset[str],
    shape: tuple[Expression, ...],
    role: str,
    given: list[str] | None,
) -> tuple[tuple[Expression | None, Expression | None], ...] | None:
    if given is None:
        return None
    if role not in ("out", "inout"):
        raise ContractError("only an output can say what is written", where=where)
    if len(given) != len(shape):
        raise ContractError(
            "written and shape differ in length",
            where=where,
            got=str(len(given)),
            expected=str(len(shape)),
        )
    result = []
    for text in given:
        start, stop = (part.strip() for part in text.split(":"))
        result.append(
            (
                parse(start, axes, f"{where}.written") if start else None,
                parse(stop, axes, f"{where}.written") if stop else None,
            )
        )
    return tuple(result)


def read_launches(
    path: Path,
    axes: tuple[str, ...],
    args: tuple[Arg, ...],
    tables: Sequence[Mapping[str, Any]] | None,
    python: bool,
    bus: str | None = None,
) -> tuple[LaunchPlan, ...]:
    """Turn the `[[launch]]` tables into launch plans over known arguments and the bus."""
    if python or tables is None:
        if python and tables is not None:
            raise ContractError(
                "a Python kernel is called, not launched",
                where=f"{path}: launch",
                fix="give a [call] table instead",
            )
        if not python:
            raise ContractError("missing table [[launch]]", where=str(path))
        return ()
    known = _passed(args, bus)
    # Sizes may depend on axes, and on scalars where they are whole numbers.
    integers = {arg.name for arg in args if arg.role == "scalar" and arg.dtype not in FLOATS}
    names = frozenset(axes) | integers
    plans = []
    for index, table in enumerate(tables):
        where = f"{path}: launch[{index}] ({table['entry']})"
        for name in table["args"]:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                raise ContractError(
                    f"`{name}` is no argument of this contract",
                    where=where,
                    expected="one of " + ", ".join(known),
                    fix=f"did you mean `{close[0]}`?" if close else None,
                )
        plans.append(
            LaunchPlan(
                table["entry"],
                _extent(table["grid"], names, f"{where}.grid"),
                _extent(table["block"], names, f"{where}.block"),
                parse(table.get("shared", 0), names, f"{where}.shared"),
                tuple(table["args"]),
            )
        )
    optional = {arg.name for arg in args if arg.role in ("axis", "scalar")}
    unused = sorted(
        name for name in known if name not in optional and not any(name in p.args for p in plans)
    )
    if unused:
        raise ContractError(
            f"no launch uses {', '.join(unused)}",
            where=f"{path}: launch",
            fix="pass it to a launch, or remove the argument",
        )
    return tuple(plans)


def _passed(args: tuple[Arg, ...], bus: str | None) -> list[str]:
    """What a launch or a call can pass: slots go by their bus."""
    return [arg.name for arg in args if arg.slot is None] + ([] if bus is None else [bus])


def _extent(given: Any, names: frozenset[str], where: str) -> tuple[Expression, ...]:
    parts = given if isinstance(given, list) else [given]
    return tuple(parse(part, names, where) for part in parts)


def read_call(
    path: Path,
    args: tuple[Arg, ...],
    table: Mapping[str, Any] | None,
    python: bool,
    bus: str | None = None,
) -> Call | None:
    """Turn the `[call]` table of a Python kernel into a call over known arguments."""
    if not python:
        if table is not None:
            raise ContractError(
                "[call] belongs to a Python kernel",
                where=f"{path}: call",
                fix='remove it, or name the callable with `python = "module:function"`',
            )
        return None
    if table is None:
        raise ContractError(
            "missing table [call]",
            where=str(path),
            expected="args and results of the Python callable",
        )
    known = {arg.name: str(arg.role) for arg in args if arg.slot is None}
    known |= {} if bus is None else {bus: "bus"}
    for key in ("args", "results"):
        for name in table.get(key, ()):
            if name not in known:
                raise ContractError(
                    f"`{name}` is no argument of this contract",
                    where=f"{path}: call.{key}",
                    expected="one of " + ", ".join(known),
                )
    for name in table.get("results", ()):
        if known[name] not in ("out", "inout"):
            raise ContractError(f"`{name}` is not an output", where=f"{path}: call.results")
    return Call(
        tuple(table["args"]),
        tuple(table["results"]) if "results" in table else None,
        table.get("kind", "numpy"),
        table.get("device", "cpu"),
    )
