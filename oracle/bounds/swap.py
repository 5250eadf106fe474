"""Running a reference on rows: its functions copied with other globals.

Nothing is patched in place, so threads and other tests are safe. The function, its helpers of
the user's modules, its closures and what its decorators wrap are copied along; `numpy`, `math`,
`float`, `max` and `min` are replaced by identity, however they were imported. Numbers that are
Python floats (arguments, defaults, closures, globals) become rows, since arithmetic among plain
floats would carry no rounding.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sysconfig
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.oracle.bounds.namespace import Swap
from trueup.oracle.bounds.stored import HOOK, rewritten, unbound

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

_FOREIGN = frozenset({"numpy", "scipy", "ml_dtypes", "torch"})
_PYTHON = sysconfig.get_path("stdlib") + os.sep


def is_user_function(value: Any) -> bool:
    """True for functions whose code is the user's and not a library's."""
    if not isinstance(value, types.FunctionType):
        return False
    if (value.__module__ or "").partition(".")[0] in _FOREIGN:
        return False
    file = value.__code__.co_filename  # a user's module may share its name with one of Python's
    if file.startswith("<frozen"):
        return False
    return not file.startswith(_PYTHON) or "site-packages" in file


class Rebuilder:
    """Copies of functions that compute with the rows of one model."""

    def __init__(self, model: Model, stored: Mapping[str, str]) -> None:
        """Copy functions for one model; `stored` names rounded intermediates."""
        self.model = model
        self.swap = Swap(model)
        self.stored = stored
        self._functions: dict[int, Any] = {}
        self._globals: dict[int, dict[str, Any]] = {}
        self._keep: list[Any] = []
        self._bound: set[str] = set()
        self._innermost: types.FunctionType | None = None

    def form(self, form: Callable[..., Any]) -> Callable[..., Any]:
        """The reference itself, with its named intermediates stored."""
        if isinstance(form, functools.partial):
            inner = self.form(form.func)
            args = [self.value(a) for a in form.args]
            return functools.partial(inner, *args, **self._values(form.keywords))
        if isinstance(form, types.MethodType):
            return types.MethodType(self.form(form.__func__), form.__self__)
        if self.stored:
            innermost = form
            while hasattr(innermost, "__wrapped__"):
                innermost = innermost.__wrapped__
            if isinstance(innermost, types.FunctionType):
                self._copy(innermost, self._storing(innermost))
                self._innermost = innermost
        rebuilt: Callable[..., Any] = self.value(form)
        return rebuilt

    def check(self) -> None:
        """Refuse stored names that nothing binds; to be asked when the form is rebuilt."""
        missing = set(self.stored) - self._bound
        if missing and self._innermost is not None:
            raise unbound(self._innermost, missing)

    def _storing(self, function: types.FunctionType) -> types.CodeType:
        code, bound = rewritten(function, tuple(self.stored))
        self._bound |= bound
        return code

    def _values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {k: self.value(v) for k, v in values.items()}

    def value(self, value: Any) -> Any:
        """What a name of the reference means in the copy."""
        if isinstance(value, float):
            return self.model.lift(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fbiu":
            return self.model.lift(value)
        if isinstance(value, functools.partial):
            return self.form(value)
        if is_user_function(value):
            return self._function(value)
        if type(value) in (tuple, list) and value and len(value) <= 64:
            return type(value)(self.value(v) for v in value)
        return self.swap.replacement(value)

    def _function(self, function: types.FunctionType) -> Any:
        known = self._functions.get(id(function))
        if known is not None:
            return known
        code = function.__code__
        if any(name in code.co_varnames + code.co_cellvars for name in self.stored):
            code = self._storing(function)
        return self._copy(function, code)

    def _copy(self, function: types.FunctionType, code: types.CodeType) -> types.FunctionType:
        cells = {name: types.CellType() for name in function.__code__.co_freevars}
        closure = tuple(cells[name] for name in code.co_freevars)
        environment = self._environment(function.__globals__)
        copy = types.FunctionType(code, environment, function.__name__, None, closure or None)
        self._functions[id(function)] = copy  # before the rest: functions may call each other
        self._keep.append(function)
        self._fill(environment, function.__globals__, _names_of(function.__code__))
        if function.__defaults__:
            copy.__defaults__ = tuple(self.value(v) for v in function.__defaults__)
        if function.__kwdefaults__:
            copy.__kwdefaults__ = self._values(function.__kwdefaults__)
        for name, cell in zip(cells, function.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell stays empty
                cells[name].cell_contents = self.value(cell.cell_contents)
        return copy

    def _environment(self, names: dict[str, Any]) -> dict[str, Any]:
        """The globals of one module as its copied functions see them; filled name by name."""
        known = self._globals.get(id(names))
        if known is None:
            kept = ("__name__", "__builtins__", "__package__", "__file__")
            known = {k: names[k] for k in kept if k in names}
            known.update(self.swap.builtins)
            known[HOOK] = self._store
            self._globals[id(names)] = known
        return known

    def _fill(self, known: dict[str, Any], names: dict[str, Any], wanted: set[str]) -> None:
        for name in wanted:
            shadows = name in self.swap.builtins and known.get(name) is self.swap.builtins[name]
            if name in names and (name not in known or shadows):
                known[name] = names[name]
                known[name] = self.value(names[name])

    def _store(self, name: str, value: Any) -> Any:
        return self.model.stored(self.model.floats(value), self.stored[name])


def _names_of(code: types.CodeType) -> set[str]:
    """The names a function may look up, including those of functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_of(constant)
    return names


def rebuild(
    form: Callable[..., Any], model: Model, stored: Mapping[str, str]
) -> Callable[..., Any]:
    """`form` as a function that computes with the rows of `model`."""
    rebuilder = Rebuilder(model, stored)
    rebuilt = rebuilder.form(form)
    rebuilder.check()
    return rebuilt
