"""The arithmetic of contracts: shapes and launches as expressions over axes and scalars.

Integers, names, `+ - * / // %`, unary minus, and the calls `ceil`, `min` and `max`. An expression
is parsed into Python's syntax tree and walked; nothing is ever evaluated by Python itself.
Division is exact (rational), so that `ceil(n / 32)` has no rounding of its own.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from trueup.oracle.errors import ContractError

_BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}
_CALLS: dict[str, Callable[..., Fraction]] = {
    "ceil": lambda a: Fraction(math.ceil(a)),
    "min": min,
    "max": max,
}
_LONGEST = 400


@dataclass(frozen=True)
class Expression:
    """One parsed expression; `names` are the axes and scalars it reads."""

    text: str
    tree: ast.expr
    names: frozenset[str]

    def value(self, sizes: Mapping[str, int], where: str = "expression") -> int:
        """Evaluate to an integer; a name that is missing or a fraction raises ContractError."""
        try:
            result = _walk(self.tree, sizes)
        except ZeroDivisionError:
            raise ContractError(
                f"`{self.text}` divides by zero", where=where, got=f"sizes {dict(sizes)}"
            ) from None
        if result.denominator != 1:
            raise ContractError(
                f"`{self.text}` is not a whole number",
                where=where,
                got=f"{result} at {dict(sizes)}",
                fix="wrap the division in ceil(...) or use //",
            )
        return int(result)

    def constants(self) -> list[int]:
        """Return the integers of the expression: tile sizes, where boundary shapes lie."""
        return [
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, int)
        ]


def parse(text: str | int, names: frozenset[str], where: str) -> Expression:
    """Parse `text`, allowing only `names`; anything else raises ContractError naming `where`."""
    source = str(text)
    if len(source) > _LONGEST:
        raise ContractError("the expression is too long", where=where, expected=f"<= {_LONGEST}")
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ContractError(
            f"cannot parse the expression `{source}`",
            where=where,
            expected="integers, axes, + - * / // %, ceil(), min(), max()",
        ) from None
    used = frozenset(_check(tree, source, where))
    unknown = sorted(used - names)
    if unknown:
        raise ContractError(
            f"`{source}` uses {', '.join(unknown)}, which no axis or scalar is called",
            where=where,
            expected="one of " + (", ".join(sorted(names)) or "no names at all"),
            fix="add the name to [contract] axes, or correct the spelling",
        )
    return Expression(source, tree, used)


def _check(node: ast.AST, text: str, where: str) -> list[str]:
    """Return the names used, or raise for anything outside the little language."""
    match node:
        case ast.Constant(value=int()) if not isinstance(node.value, bool):
            return []
        case ast.Name(id=name):
            return [name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _check(inner, text, where)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _check(left, text, where) + _check(right, text, where)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS and args:
            if name == "ceil" and len(args) != 1:
                raise ContractError(f"`{text}`: ceil takes one argument", where=where)
            return [used for arg in args for used in _check(arg, text, where)]
        case _:
            raise ContractError(
                f"`{text}` holds something an expression may not",
                where=where,
                expected="integers, axes, + - * / // %, ceil(), min(), max()",
            )


def _walk(node: ast.expr, sizes: Mapping[str, int]) -> Fraction:
    match node:
        case ast.Constant(value=int(value)):
            return Fraction(value)
        case ast.Name(id=name):
            return Fraction(sizes[name])
        case ast.UnaryOp(operand=inner):
            return -_walk(inner, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_walk(left, sizes), _walk(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _CALLS[name](*(_walk(arg, sizes) for arg in args))
    raise AssertionError(f"unchecked node {ast.dump(node)}")
