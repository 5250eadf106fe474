"""The catalogue: every equation with its source, readings, symbols and input families.

An equation is one NumPy float64 function and a declaration beside it::

    @equation("nl.momentum", title="Momentum", source="...", axes=("d_out", "d_in"), ...)
    def momentum(m, W, g, alpha, eta, *, reading="i"): ...

The decorator returns the function unchanged and attaches the declaration as ``__equation__``.
With ``register=False`` that is all it does, so a reference outside this package can declare its
domains without entering the catalogue.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from trueup.reference.errata import Coincidence, Erratum
from trueup.reference.errors import BadDeclaration, BadInputs, UnknownEquation, UnknownReading
from trueup.reference.symbols import Family, Make, Symbol

Function: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Callable[..., Any])
Forms: TypeAlias = tuple[str, ...] | Mapping[str, str]
"""Names of forms, or each name with the formula that it computes."""


@dataclass(frozen=True, eq=False)
class Equation:
    """One numbered rule of a paper, or one stated rule of a programme, as code and data."""

    id: str
    title: str
    source: str
    numbers: tuple[str, ...]
    """The equation numbers of the source, such as ``("21", "22")``."""
    grade: str
    """How sure the source is: as printed, printed and corrected, derived, proposed."""
    formula: str
    axes: tuple[str, ...]
    inputs: tuple[Symbol, ...]
    outputs: tuple[Symbol, ...]
    function: Function
    readings: tuple[str, ...]
    """The legitimate readings; a contract claims one of them."""
    default_reading: str
    wrong: tuple[str, ...] = ()
    """Known wrong variants, which the same function also computes, so that a wrong kernel is
    recognised and the bounds can be shown to reject it."""
    forms: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    """Further formulas of a reading: equal in exact arithmetic, rounded differently."""
    families: tuple[Family, ...] = ()
    notes: str = ""
    prepare: Make | None = None
    """Applied to every draw of every family before rounding: restores what inputs must satisfy
    together (normalised rows and the scale that normalised them)."""
    formulas: Mapping[str, str] = field(default_factory=dict)
    """What readings and wrong variants compute, in words or symbols, as far as it is told."""
    errata: tuple[Erratum, ...] = ()
    """Where the source, taken literally, does not say what its algebra gives."""
    coincide: tuple[Coincidence, ...] = ()
    """Where readings give the same result, so that no test there tells them apart."""

    def __post_init__(self) -> None:
        """Freeze the mappings and refuse declarations that contradict themselves."""
        object.__setattr__(self, "forms", MappingProxyType(dict(self.forms)))
        object.__setattr__(self, "formulas", MappingProxyType(dict(self.formulas)))
        _check(self)

    @property
    def takes_reading(self) -> bool:
        """Tell whether the function has a ``reading`` keyword (one with one reading need not)."""
        return "reading" in inspect.signature(self.function).parameters

    def known(self) -> tuple[str, ...]:
        """Give every name the function computes: readings first, then wrong variants."""
        return self.readings + self.wrong

    def form(self, reading: str) -> tuple[Function, ...]:
        """Give the ways to compute a reading: the reference first, then its other forms."""
        if reading not in self.known():
            raise UnknownReading(self.id, reading, self.known())
        first = partial(self.function, reading=reading) if self.takes_reading else self.function
        return (first, *self.forms.get(reading, ()))

    def call(self, reading: str, **inputs: Any) -> Any:
        """Evaluate one reading; inputs by name, optional ones may be left out."""
        names = {symbol.name for symbol in self.inputs}
        needed = {symbol.name for symbol in self.inputs if not symbol.optional}
        if set(inputs) - names or needed - set(inputs):
            raise BadInputs(
                "inputs do not fit",
                where=self.id,
                got=", ".join(sorted(inputs)) or "none",
                expected=", ".join(f"[{s.name}]" if s.optional else s.name for s in self.inputs),
            )
        return self.form(reading)[0](**inputs)


_CATALOGUE: dict[str, Equation] = {}


def register(declared: Equation) -> Equation:
    """Enter an equation into the catalogue; an id is taken once."""
    if declared.id in _CATALOGUE:
        raise BadDeclaration(
            "this id is already in the catalogue",
            where=declared.id,
            got=f"{declared.function.__module__}.{declared.function.__qualname__}",
            fix="choose another id, or declare it with register=False",
        )
    _CATALOGUE[declared.id] = declared
    return declared


def get(id: str) -> Equation:
    """Find an equation by its id."""
    try:
        return _CATALOGUE[id]
    except KeyError:
        raise UnknownEquation(id, _CATALOGUE) from None


def catalogue() -> list[Equation]:
    """Give all equations, ordered by id."""
    return [_CATALOGUE[id] for id in sorted(_CATALOGUE)]


def equation(
    id: str,
    *,
    title: str,
    source: str,
    axes: tuple[str, ...],
    inputs: tuple[Symbol, ...],
    outputs: tuple[Symbol, ...],
    numbers: tuple[str, ...] = (),
    grade: str = "",
    formula: str = "",
    readings: Forms = ("default",),
    default_reading: str | None = None,
    wrong: Forms = (),
    forms: Mapping[str, tuple[Function, ...]] | None = None,
    families: tuple[Family, ...] = (),
    notes: str = "",
    prepare: Make | None = None,
    errata: tuple[Erratum, ...] = (),
    coincide: tuple[Coincidence, ...] = (),
    register: bool = True,
) -> Callable[[F], F]:
    """Declare the decorated function as an equation; the default reading is the first one.

    Readings and wrong variants are names, or a mapping of each name to what it computes.
    """

    names = tuple(readings)
    chosen = names[0] if default_reading is None else default_reading
    told = [named for named in (readings, wrong) if isinstance(named, Mapping)]

    def declare(function: F) -> F:
        described = partial(Equation, id, title, source, numbers, grade, formula, axes)
        declared = described(
            inputs,
            outputs,
            function,
            names,
            chosen,
            tuple(wrong),
            forms or {},
            families,
            notes,
            prepare,
            {name: formula for mapping in told for name, formula in mapping.items()},
            errata,
            coincide,
        )
        entered = _register(declared) if register else declared
        function.__equation__ = entered  # type: ignore[attr-defined]
        return function

    return declare


_register = register  # `equation` has a parameter of that name


def _check(declared: Equation) -> None:
    """Refuse a declaration whose names, shapes or signature do not fit together."""
    for what, names in (
        ("reading", list(declared.known())),
        ("symbol", [s.name for s in declared.inputs]),
        ("output", [s.name for s in declared.outputs]),
        ("axis", list(declared.axes)),
        ("family", [f.name for f in declared.families]),
        ("erratum", [e.id for e in declared.errata]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            _refuse(declared, f"a {what} is declared twice", got=", ".join(twice))
    if declared.default_reading not in declared.readings:
        _refuse(
            declared,
            "the default is not a reading",
            got=repr(declared.default_reading),
            expected=", ".join(declared.readings),
        )
    strangers = sorted(set(declared.forms) - set(declared.known()))
    if strangers:
        _refuse(declared, "forms of an undeclared reading", got=", ".join(strangers))
    _check_coincidences(declared)
    for symbol in declared.inputs + declared.outputs:
        missing = sorted(symbol.axes() - set(declared.axes))
        if missing:
            _refuse(
                declared, f"symbol {symbol.name!r} uses undeclared axes", got=", ".join(missing)
            )
    _check_signature(declared)


def _check_coincidences(declared: Equation) -> None:
    families = {family.name for family in declared.families}
    for entry in declared.coincide:
        strangers = sorted(set(entry.forms) - set(declared.known()))
        if strangers or len(entry.forms) < 2:
            _refuse(
                declared,
                f"a coincidence ({entry.where}) is of two known forms or more",
                got=", ".join(strangers or entry.forms) or "none",
            )
        if entry.family is not None and entry.family not in families:
            _refuse(declared, "a coincidence on an undeclared family", got=repr(entry.family))


def _check_signature(declared: Equation) -> None:
    parameters = inspect.signature(declared.function).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for symbol in declared.inputs:
        if symbol.name not in parameters and not open_ended:
            _refuse(
                declared,
                "an input is not a parameter of the function",
                got=repr(symbol.name),
                expected="one of " + ", ".join(parameters),
            )
    known = {symbol.name for symbol in declared.inputs} | {"reading"}
    for name, parameter in parameters.items():
        variadic = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if name not in known and not variadic and parameter.default is parameter.empty:
            _refuse(declared, "a parameter of the function is not declared", got=repr(name))
    if len(declared.known()) > 1 and "reading" not in parameters:
        _refuse(declared, "several readings, but the function takes no `reading` keyword")


def _refuse(declared: Equation, what: str, *, got: str = "", expected: str = "") -> None:
    raise BadDeclaration(what, where=declared.id, got=got, expected=expected)
