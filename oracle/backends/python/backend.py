"""PythonBackend: call the callable once on guarded arrays, and report like any other backend."""

from __future__ import annotations

import inspect
import platform
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from trueup.oracle.backends.base import (
    AnyArray,
    Buffer,
    Fault,
    Launch,
    Parameter,
    RunOptions,
    RunResult,
    Scalar,
)
from trueup.oracle.backends.guards import Guarded
from trueup.oracle.backends.python.arrays import Arrays, arrays
from trueup.oracle.backends.python.limit import TimeLimit, time_limit
from trueup.oracle.backends.python.source import PythonSource
from trueup.oracle.errors import ContractError


class PythonBackend:
    """Callables of this process."""

    name: Literal["python"] = "python"
    placements: ClassVar[tuple[str, ...]] = ("guard",)
    orders: ClassVar[tuple[int, ...]] = (0,)

    def __init__(self) -> None:
        """Nothing is imported before a source is loaded."""
        self.hung = False  # a CUDA kernel of a callable never returned: leave with os._exit

    @property
    def device(self) -> str:
        """The interpreter; PythonKernel.device adds what the callable runs on."""
        return f"Python {platform.python_version()}, NumPy {np.__version__}"

    def load(self, source: PythonSource, entries: Sequence[str] = ()) -> PythonKernel:
        """Import the callable; `entries` are of no use here."""
        made = arrays(source.call.kind, source.call.device)
        return PythonKernel(source, source.resolve(), made, self)


class PythonKernel:
    """One callable, ready to be called."""

    def __init__(
        self,
        source: PythonSource,
        function: Callable[..., Any],
        made: Arrays,
        backend: PythonBackend,
    ) -> None:
        """Keep what a run needs."""
        self._source, self._function, self._arrays = source, function, made
        self._backend = backend

    @property
    def device(self) -> str:
        """What the callable runs on, in one line."""
        return f"Python {platform.python_version()}, {self._arrays.device}"

    def signature(self, entry: str) -> tuple[Parameter, ...] | None:
        """Return None: a callable's parameters have no sizes."""
        return None

    def run(
        self, launches: Sequence[Launch], buffers: Sequence[Buffer], options: RunOptions
    ) -> RunResult:
        """Call once; the launches only bring the scalars' values. Counts as one launch."""
        if options.placement != "guard" or options.order != 0:
            raise ContractError(
                "the python backend has guard zones only, and no order of its own",
                got=f"placement {options.placement}, order {options.order}",
            )
        layouts = {buffer.name: Guarded.lay_out(buffer, options) for buffer in buffers}
        scalars = _scalars(launches)
        self._check_names(layouts, scalars)
        memory = {name: self._arrays.allocate(item.start) for name, item in layouts.items()}
        values: dict[str, Any] = {
            name: self._arrays.view(memory[name], item) for name, item in layouts.items()
        }
        returned, fault = self._call(values | scalars, options)
        if fault and self._backend.hung:
            memory = {}  # reading it back would wait for the kernel that does not return
        faults = [fault] if fault else []
        results: dict[str, AnyArray] = {}
        for name, item in layouts.items():
            whole = self._arrays.bytes_of(memory[name]) if name in memory else item.start
            inside = item.inside(whole).copy().view(item.buffer.dtype)
            results[name] = inside.reshape(item.buffer.shape)
            faults += item.faults(whole)
        if not fault:
            faults += self._take(returned, layouts, results)
        return RunResult(results, 1, tuple(faults))

    def _check_names(self, layouts: Mapping[str, Guarded], scalars: Mapping[str, object]) -> None:
        call = self._source.call
        known = {*layouts, *scalars}
        for name in call.names:
            if name not in known:
                raise _unknown("args", name, known)
        outputs = {n for n, item in layouts.items() if item.buffer.role in ("out", "inout")}
        for name in call.results or ():
            if name not in outputs:
                raise _unknown("results", name, outputs)
        written = {*call.names, *(call.results or ())}
        for name, item in layouts.items():
            if item.buffer.role == "out" and name not in written:
                raise ContractError(
                    f"nothing gives the output {name}",
                    where=self._source.text,
                    fix="list it in `results` of [call], or in `args` if it is written in place",
                )

    def _call(self, values: Mapping[str, Any], options: RunOptions) -> tuple[Any, Fault | None]:
        call = self._source.call
        args = [values[name] for name in call.args]
        keywords = {parameter: values[name] for parameter, name in call.keywords.items()}
        began = time.monotonic()
        try:
            # NaN and infinity among the inputs are meant: NumPy's warnings about them are not news.
            with time_limit(options.time_limit), np.errstate(all="ignore"):
                returned = self._function(*args, **keywords)
                self._arrays.finish()
        except TimeLimit:
            self._backend.hung = call.device == "cuda"
            return None, _too_slow(options)
        except (Exception, SystemExit) as error:
            return None, _crash(error, self._function)
        if time.monotonic() - began > options.time_limit:  # not the main thread, or one C call
            return None, _too_slow(options)
        return returned, None

    def _take(
        self, returned: Any, layouts: Mapping[str, Guarded], results: dict[str, AnyArray]
    ) -> list[Fault]:
        """Put returned values in their buffers' place; say which are not what was declared."""
        names = self._source.call.results
        if names is None:
            return []
        items = list(returned) if isinstance(returned, tuple | list) else [returned]
        if len(items) != len(names):
            got = f"{len(items)} values" if isinstance(returned, tuple | list) else "1 value"
            return [Fault("misuse", f"returned {got}, expected {len(names)}: {', '.join(names)}")]
        faults = []
        for name, item in zip(names, items, strict=True):
            buffer = layouts[name].buffer
            taken = self._arrays.result(item, buffer)
            if isinstance(taken, str):
                want = f"{buffer.dtype.name} {buffer.shape}"
                message = f"{name}: returned {taken}, expected {want}"
                faults.append(Fault("misuse", message, buffer=name))
            else:
                results[name] = taken
        return faults


def _scalars(launches: Sequence[Launch]) -> dict[str, Any]:
    scalars = {}
    for launch in launches:
        for arg in launch.args:
            if isinstance(arg, Scalar):
                scalars[arg.name] = _number(arg.value)
    return scalars


def _number(value: np.generic) -> Any:
    """Return a Python number, which leaves the arrays' dtypes alone; structs stay as they are."""
    kind = np.asarray(value).dtype
    if kind.kind == "b":
        return bool(value)
    if kind.kind in "iu":
        return int(value)
    return value if kind.names else float(value)


def _unknown(key: str, name: str, known: set[str]) -> ContractError:
    return ContractError(
        f"`{key}` of [call] names {name!r}",
        expected="one of " + ", ".join(sorted(known)),
        fix="name an [[arg]] of the contract",
    )


def _too_slow(options: RunOptions) -> Fault:
    return Fault("time limit", f"the callable did not return within {options.time_limit:g} s")


def _crash(error: BaseException, function: Callable[..., Any]) -> Fault:
    """Name the last line of the user's own file that the exception came through."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    message = f"{type(error).__name__}: {error}"
    if not frames:
        return Fault("crash", message)
    last = (own or frames)[-1]
    line = f" in `{last.line}`" if last.line else ""
    return Fault("crash", message + line, location=f"{last.filename}:{last.lineno}")
