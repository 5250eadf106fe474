"""The arithmetic of contracts: shapes and launches as expressions over axes and integers.

The little language is that of `docs/contracts.md`: integers, names, `+ - * / // %`, unary minus,
`ceil`, `min`, `max`. Division is exact. A text is walked as a syntax tree, never evaluated by
Python.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

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


class ContractError(Exception):
    """A shipped contract cannot be read or does not fit its call; the message says where."""


def evaluate(text: str | int, sizes: Mapping[str, int]) -> int:
    """Evaluate an expression; raise ContractError for anything but a whole number."""
    value = _walk(_parsed(str(text)), sizes, str(text))
    if value.denominator != 1:
        raise ContractError(f"`{text}` is {value} at {dict(sizes)}, not a whole number")
    return int(value)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ContractError(f"cannot parse `{text}`: {error.msg}") from None


def _walk(node: ast.expr, sizes: Mapping[str, int], text: str) -> Fraction:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return Fraction(value)
        case ast.Name(id=name) if name in sizes:
            return Fraction(sizes[name])
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_walk(inner, sizes, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_walk(left, sizes, text), _walk(right, sizes, text))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
            return _CALLS[name](*(_walk(arg, sizes, text) for arg in args))
    raise ContractError(f"`{text}` holds `{ast.unparse(node)}`, which nothing gives a value")
