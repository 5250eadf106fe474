"""A digest that changes whenever the evaluation of a case could."""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueup.oracle.bounds.plain import Inputs
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.bounds.swap import is_user_function


class _Opaque(Exception):
    """A value whose content cannot be read, so that no digest would be safe."""


@functools.cache
def engine_digest() -> str:
    """The engine's own source, the versions under it and the machine."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    for text in (np.__version__, sys.version, platform.machine()):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def case_digest(
    forms: Sequence[Callable[..., Any]],
    inputs: Inputs,
    precision: Precision,
    dtypes: Sequence[str],
    effort: tuple[int, ...],
) -> str | None:
    """The key of a case; None where a reference uses something whose content cannot be read."""
    walk = _Walk()
    try:
        for form in forms:
            walk.value(form)
        walk.value(inputs)
    except _Opaque:
        return None
    walk.text(precision.key(), repr(tuple(dtypes)), repr(effort), engine_digest())
    return walk.digest.hexdigest()


class _Walk:
    """Feeds a digest with values and everything they are made of."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._keep: list[Any] = []

    def text(self, *parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            self.digest.update(str(len(data)).encode() + b":" + data)

    def value(self, value: Any) -> None:
        self.text(type(value).__name__)
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            self.text(repr(value))
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise _Opaque
            self.text(str(value.dtype), repr(value.shape))
            self.digest.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, (np.generic, np.dtype)):
            self.text(repr(value))
        elif isinstance(value, (tuple, list)):
            self.text(str(len(value)))
            for item in value:
                self.value(item)
        elif isinstance(value, (set, frozenset)):
            self.text(*sorted(repr(item) for item in value))
        elif isinstance(value, (dict, types.MappingProxyType)):
            self.text(str(len(value)))
            for name, item in value.items():
                self.value(name)
                self.value(item)
        else:
            self._object(value)

    def _object(self, value: Any) -> None:
        if id(value) in self._seen:
            self.text(f"seen {self._seen[id(value)]}")
            return
        self._seen[id(value)] = len(self._seen)
        self._keep.append(value)
        if isinstance(value, functools.partial):
            self.value(value.func)
            self.value(value.args)
            self.value(value.keywords)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif is_user_function(value):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, types.GenericAlias) or type(value).__module__ == "typing":
            self.text(repr(value))
        elif callable(value) and not hasattr(value, "__dict__"):
            self.text(getattr(value, "__module__", "") or "", getattr(value, "__qualname__", ""))
        elif isinstance(value, (np.ufunc, types.FunctionType, types.BuiltinFunctionType)):
            self.text(getattr(value, "__module__", "") or "", value.__name__)
        else:
            raise _Opaque

    def _module(self, module: types.ModuleType) -> None:
        """A library by its version; a module of the user's by its text, helpers included."""
        self.text(module.__name__, str(getattr(module, "__version__", "")))
        file = getattr(module, "__file__", None)
        if file is None or installed(module.__name__, file):
            return
        try:
            self.digest.update(Path(file).read_bytes())
        except OSError:
            raise _Opaque from None
        for name, inner in sorted(vars(module).items()):
            if isinstance(inner, types.ModuleType):
                self.text(name)
                self._object(inner)

    def _code(self, code: types.CodeType) -> None:
        self.digest.update(code.co_code)
        self.value(code.co_consts)
        self.value((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
        self.value((code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount))
        self.digest.update(code.co_exceptiontable)

    def _function(self, function: types.FunctionType) -> None:
        self._code(function.__code__)
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.value(cell.cell_contents)
            except ValueError:
                self.text("empty cell")
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                self.text(name)
                self.value(function.__globals__[name])

    def _class(self, cls: type) -> None:
        root = cls.__module__.partition(".")[0]
        self.text(cls.__module__, cls.__qualname__)
        if root in sys.stdlib_module_names or root == "numpy":
            return
        skipped = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")
        for name, member in sorted(vars(cls).items()):
            if name in skipped or isinstance(member, types.MemberDescriptorType):
                continue
            if isinstance(member, (staticmethod, classmethod)):
                member = member.__func__
            if isinstance(member, property):
                member = (member.fget, member.fset)
            self.text(name)
            self.value(member)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def installed(name: str, file: str) -> bool:
    """Whether a module is the standard library's or an installed package's, not the user's own."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    parts = Path(file).parts
    return "site-packages" in parts or "dist-packages" in parts
