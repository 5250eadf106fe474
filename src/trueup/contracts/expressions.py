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
_LONGEST = 400
_LANGUAGE = "integers, axes, + - * / // %, ceil(), min(), max()"


class ExpressionError(ValueError):
    """A text is no expression, or has no whole value; its parts are for a caller's own error."""

    def __init__(
        self,
        what: str,
        *,
        got: str | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ) -> None:
        """Keep the parts; the message joins those that are known."""
        self.what, self.got, self.expected, self.fix = what, got, expected, fix
        named = (("got", got), ("expected", expected), ("fix:", fix))
        told = ", ".join(f"{word} {part}" for word, part in named if part is not None)
        super().__init__(f"{what}: {told}" if told else what)


@dataclass(frozen=True)
class Expression:
    """One parsed expression; `names` are the axes and scalars it reads."""

    text: str
    tree: ast.expr
    names: frozenset[str]

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Evaluate to an integer; ExpressionError for a missing name, a fraction, n / 0."""
        missing = sorted(self.names - sizes.keys())
        if missing:
            raise ExpressionError(f"nothing gives `{self.text}` a {', '.join(missing)}")
        try:
            result = _walk(self.tree, sizes)
        except ZeroDivisionError:
            raise ExpressionError(
                f"`{self.text}` divides by zero", got=f"sizes {dict(sizes)}"
            ) from None
        if result.denominator != 1:
            raise ExpressionError(
                f"`{self.text}` is not a whole number",
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


@lru_cache(maxsize=4096)
def parse(text: str | int) -> Expression:
    """Parse a text; ExpressionError for anything that is not of the language."""
    source = str(text)
    if len(source) > _LONGEST:
        raise ExpressionError("the expression is too long", expected=f"<= {_LONGEST}")
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(
            f"cannot parse the expression `{source}`", expected=_LANGUAGE
        ) from None
    return Expression(source, tree, frozenset(_check(tree, source)))


def evaluate(text: str | int, sizes: Mapping[str, int]) -> int:
    """Parse and evaluate at once; a text is parsed the first time alone."""
    return parse(text).evaluate(sizes)


def _check(node: ast.AST, text: str) -> list[str]:
    """Return the names used, or raise for anything outside the little language."""
    match node:
        case ast.Constant(value=int()) if not isinstance(node.value, bool):
            return []
        case ast.Name(id=name):
            return [name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _check(inner, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _check(left, text) + _check(right, text)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS and args:
            if name == "ceil" and len(args) != 1:
                raise ExpressionError(f"`{text}`: ceil takes one argument")
            return [used for arg in args for used in _check(arg, text)]
        case _:
            raise ExpressionError(
                f"`{text}` holds something an expression may not", expected=_LANGUAGE
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
