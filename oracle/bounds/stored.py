"""Named intermediates of a contract: every binding of the name is followed by its rounding.

The source of the form and of the functions it calls is parsed, and after each statement that binds
a stored name (assignment, also to tuples, augmented assignment, loop target, walrus) the name is
rounded.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types

from trueup.oracle.bounds.errors import BoundsError

HOOK = "__stored__"


@functools.lru_cache(maxsize=256)
def rewritten(
    function: types.FunctionType, names: tuple[str, ...]
) -> tuple[types.CodeType, frozenset[str]]:
    """The function's code with the stored names rounded at every binding, and which it binds."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError) as error:
        raise BoundsError(
            f"precision.stored needs the source of {function.__qualname__}, which cannot be read "
            f"({error}); declare compute instead, or keep the function in a file"
        ) from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise BoundsError(
            f"precision.stored: {function.__qualname__} is not a plain function definition"
        )
    definition.decorator_list = []
    definition.returns = None
    for argument in _arguments(definition.args):
        argument.annotation = None
    count = len(definition.args.defaults)
    definition.args.defaults = [ast.Constant(None) for _ in range(count)]
    definition.args.kw_defaults = [
        None if d is None else ast.Constant(None) for d in definition.args.kw_defaults
    ]
    store = _Store(names)
    definition.body = store.block(definition.body)
    return _compiled(tree, function), frozenset(store.found)


def unbound(function: types.FunctionType, missing: set[str]) -> BoundsError:
    """The error of stored names that neither a form nor any function it calls assigns."""
    return BoundsError(
        f"precision.stored names {', '.join(sorted(missing))}, which {function.__qualname__} never "
        "assigns; use the name of an intermediate of the reference"
    )


def _arguments(args: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


def _compiled(tree: ast.Module, function: types.FunctionType) -> types.CodeType:
    """Compile inside a function that has the closure's names, so that they stay free variables."""
    free = function.__code__.co_freevars
    if free:
        outer = ast.parse(f"def __outer__({', '.join(free)}):\n    pass").body[0]
        if isinstance(outer, ast.FunctionDef):
            outer.body = list(tree.body)
            tree.body = [outer]
    ast.fix_missing_locations(tree)
    code = compile(tree, function.__code__.co_filename, "exec")
    found = _find(code, function.__code__.co_name)
    if found is None:
        raise BoundsError(f"precision.stored: {function.__qualname__} could not be compiled again")
    return found


def _find(code: types.CodeType, name: str) -> types.CodeType | None:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name:
                return constant
            inner = _find(constant, name)
            if inner is not None:
                return inner
    return None


class _Store(ast.NodeTransformer):
    """Adds `t = __stored__("t", t)` after everything that binds a stored name `t`."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        self.found: set[str] = set()

    def _bound(self, *targets: ast.AST | None) -> list[str]:
        names = [
            node.id
            for target in targets
            if target is not None
            for node in ast.walk(target)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and node.id in self.names
        ]
        names += [
            base.id
            for target in targets
            if isinstance(target, ast.Subscript)
            for base in [target.value]
            if isinstance(base, ast.Name) and base.id in self.names
        ]
        self.found.update(names)
        return list(dict.fromkeys(names))

    def _rounding(self, names: list[str]) -> list[ast.stmt]:
        return [
            ast.Assign(
                targets=[ast.Name(name, ast.Store())],
                value=_call(name, ast.Name(name, ast.Load())),
            )
            for name in names
        ]

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, each followed by the roundings it calls for."""
        out: list[ast.stmt] = []
        for statement in body:
            visited = self.visit(statement)
            out.append(visited)
            if isinstance(visited, ast.Assign):
                out += self._rounding(self._bound(*visited.targets))
            elif isinstance(visited, (ast.AugAssign, ast.AnnAssign)) and visited.value:
                out += self._rounding(self._bound(visited.target))
        return out

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Blocks are lists of statements; everything else is visited as usual."""
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, field, self.block(block))
        if isinstance(node, (ast.For, ast.AsyncFor)):
            node.body[:0] = self._rounding(self._bound(node.target))
        if isinstance(node, (ast.With, ast.AsyncWith)):
            node.body[:0] = self._rounding(
                self._bound(*(item.optional_vars for item in node.items))
            )
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self.visit(value))
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                setattr(node, name, [self.visit(v) for v in value])
            elif isinstance(value, list) and value and isinstance(value[0], ast.excepthandler):
                for handler in value:
                    self.generic_visit(handler)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        """`(t := x)` becomes `(t := rounded x)`."""
        node.value = self.visit(node.value)
        if node.target.id in self.names:
            self.found.add(node.target.id)
            node.value = _call(node.target.id, node.value)
        return node


def _call(name: str, value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(HOOK, ast.Load()), [ast.Constant(name), value], [])
