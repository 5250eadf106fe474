"""What a contract's `python =` and `[call]` say, and finding the callable they name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol, cast

from trueup.oracle.errors import BackendUnavailable, CompileError, ContractError, OracleError

Kind = Literal["numpy", "torch"]
DeviceName = Literal["cpu", "cuda"]


class Call(Protocol):
    """A contract's `[call]` table, as read: no `results` for a callable that works in place."""

    @property
    def args(self) -> tuple[str, ...]:
        """Argument names in order."""
        ...

    @property
    def results(self) -> tuple[str, ...] | None:
        """Names of what is returned, in order."""
        ...

    @property
    def kind(self) -> Kind:
        """What arrays are passed as."""
        ...

    @property
    def device(self) -> DeviceName:
        """Where torch tensors lie."""
        ...


@dataclass(frozen=True)
class PythonCall:
    """How to call: argument names in order or by keyword, and the names of what it returns.

    `results` None means that the callable changes its arguments in place and returns nothing of
    interest. Scalars arrive as Python numbers, of the value their dtype holds.
    """

    args: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)  # parameter -> argument's name
    results: tuple[str, ...] | None = None
    kind: Kind = "numpy"
    device: DeviceName = "cpu"

    @property
    def names(self) -> tuple[str, ...]:
        """Every argument name passed."""
        return (*self.args, *self.keywords.values())


@dataclass(frozen=True)
class PythonSource:
    """A callable: a module's or a file's function, and how to call it."""

    path_or_module: str
    function: str
    call: PythonCall
    folder: Path = Path()  # that a relative file path starts from

    @classmethod
    def of(cls, python: str, contract: Path, call: Call) -> PythonSource:
        """Read `module:function` or `file.py:function`, from the folder of the contract's file."""
        head, colon, function = python.rpartition(":")
        if not colon or not head or not function:
            raise ContractError(
                "`python` names no callable",
                where=str(contract),
                got=repr(python),
                expected="module:function or file.py:function",
                fix='write for example python = "my_kernels.py:softmax"',
            )
        taken = PythonCall(
            args=call.args,
            keywords=dict(getattr(call, "keywords", {})),
            results=call.results or None,
            kind=call.kind,
            device=call.device,
        )
        return cls(head, function, taken, contract.parent)

    @property
    def text(self) -> str:
        """Return it as the contract writes it."""
        return f"{self.path_or_module}:{self.function}"

    @property
    def path(self) -> Path | None:
        """The file, where one is named; None for a module."""
        if self.path_or_module.endswith(".py"):
            return self.folder / self.path_or_module
        return None

    def resolve(self) -> Callable[..., Any]:
        """Import and return the callable."""
        module = _from_file(self.path) if self.path else _from_name(self.path_or_module)
        found: Any = module
        for part in self.function.split("."):
            found = getattr(found, part, None)
        if not callable(found):
            there = [name for name, value in vars(module).items() if _is_offer(name, value)]
            raise ContractError(
                f"no function {self.function}",
                where=self.path_or_module,
                expected="one of " + ", ".join(sorted(there)) if there else None,
                fix="correct the part of `python` after the colon",
            )
        return cast("Callable[..., Any]", found)


def _is_offer(name: str, value: object) -> bool:
    return callable(value) and not name.startswith("_") and not isinstance(value, type)


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # "a.b" is missing if "a" is; anything else is missing from within.
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise ContractError(
                f"no module {name}",
                got=str(error),
                fix="install it, or name a file as in path/to/file.py:function",
            ) from error
        raise _failed(error, name, None) from error
    except (Exception, SystemExit) as error:
        raise _failed(error, name, None) from error


def _from_file(path: Path) -> ModuleType:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ContractError(
            f"cannot read the Python file: {error}",
            where=str(path),
            fix="correct `python`: its path starts from the contract's folder",
        ) from error
    # One module per content: loading again keeps what registers itself from doing so twice.
    digest = hashlib.sha256(str(path.resolve()).encode() + b"\0" + text).hexdigest()[:16]
    name = f"_trueup_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ContractError("not a Python file", where=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _failed(error, str(path), str(path)) from error
    return module


def _failed(error: BaseException, name: str, path: str | None) -> OracleError:
    """Say what went wrong while the user's module was imported, at its line."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return BackendUnavailable(
            f"needs the module {error.name}", where=name, fix="install it beside trueup"
        )
    if isinstance(error, SyntaxError) and error.filename:
        return CompileError(f"SyntaxError: {error.msg}", where=f"{error.filename}:{error.lineno}")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == path] or list(frames)
    where = f"{own[-1].filename}:{own[-1].lineno}" if own else name
    return CompileError(f"{type(error).__name__}: {error}", where=where)
