"""References run on array types other than ndarray, as the bounds need, and never leave them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from trueup.reference import Equation, NotApplicable, catalogue

EQUATIONS = catalogue()


class Watched(NDArrayOperatorsMixin):
    """An array that follows NumPy's protocols and refuses to be turned into a plain one."""

    def __init__(self, plain: Any) -> None:
        self.plain = np.asarray(plain)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.plain.shape

    @property
    def T(self) -> Watched:
        return Watched(self.plain.T)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the reference left the array type")

    def __float__(self) -> float:
        raise AssertionError("the reference turned an array into a float")

    def __getitem__(self, key: Any) -> Watched:
        return Watched(self.plain[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.plain[key] = _plain(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _wrapped(getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs)))

    def __array_function__(
        self, function: Callable[..., Any], _: Any, args: Any, kwargs: Any
    ) -> Any:
        return _wrapped(function(*_plain(args), **_plain(kwargs)))


def _plain(value: Any) -> Any:
    if isinstance(value, Watched):
        return value.plain
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(entry) for entry in value)
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return value


def _wrapped(value: Any) -> Any:
    return tuple(Watched(entry) for entry in value) if isinstance(value, tuple) else Watched(value)


@pytest.mark.parametrize("entry", EQUATIONS, ids=[entry.id for entry in EQUATIONS])
def test_every_reading_and_form_stays_within_its_array_type(entry: Equation, draw: Any) -> None:
    """Scalars are arrays too there, or their rounding would go unseen."""
    ran = 0
    for size in (3, 4):
        sizes = {axis: size + place for place, axis in enumerate(entry.axes)}
        for square in (sizes, dict.fromkeys(entry.axes, size)):
            values = draw(entry, square, np.random.default_rng(size))
            watched = {name: Watched(value) for name, value in values.items()}
            for reading in entry.known():
                for function in entry.form(reading):
                    try:
                        want = function(**values)
                    except NotApplicable:
                        continue
                    got = function(**watched)
                    ran += 1
                    parts = got if isinstance(got, tuple) else (got,)
                    wants = want if isinstance(want, tuple) else (want,)
                    for part, right in zip(parts, wants, strict=True):
                        assert isinstance(part, Watched), reading
                        np.testing.assert_array_equal(part.plain, right, err_msg=reading)
    assert ran >= 2 * len(entry.known())


@pytest.mark.parametrize("entry", EQUATIONS, ids=[entry.id for entry in EQUATIONS])
def test_longdouble_stays_longdouble(entry: Equation, draw: Any) -> None:
    """No constant or intermediate forces float64 on wider arrays (LAPACK solvers apart)."""
    values = draw(entry, dict.fromkeys(entry.axes, 3), np.random.default_rng(1))
    wide = {name: np.longdouble(value) for name, value in values.items()}
    for reading in entry.readings:
        result = entry.call(reading, **wide)
        for part in result if isinstance(result, tuple) else (result,):
            assert part.dtype == np.longdouble or part.dtype.kind in "iub"  # flags, choices
