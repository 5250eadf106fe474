"""A reference run on numbers that are really rounded after every operation, in a given order.

Such a run is a right kernel that needs no compiler and no device: what the allowed errors are
tried on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError
from trueup.oracle.bounds.orders import ORDERS
from trueup.oracle.bounds.plain import checked, copied, flattened
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.bounds.sampled import Sampled
from trueup.oracle.bounds.swap import rebuild
from trueup.oracle.bounds.tape import Tape

Array = NDArray[Any]


def machine(
    form: Callable[..., Any],
    inputs: Mapping[str, Any],
    precision: Precision,
    order: str,
    *,
    seed: int = 0,
) -> tuple[Array, ...]:
    """The outputs of `form` computed in the declared precision, sums taken in `order`."""
    if order not in ORDERS:
        raise BoundsError(f"order {order!r} is not known; use one of {', '.join(ORDERS)}")
    model = Sampled(precision, Tape(0), samples=0, seed=(seed,), orders=(order,), plain=False)
    function = rebuild(form, model, precision.stored)
    given = {
        name: model.lift(v) if isinstance(v, (float, np.ndarray)) else v
        for name, v in copied(checked(inputs)).items()
    }
    with np.errstate(all="ignore"):
        result = flattened(function(**given))
        return tuple(np.array(model.lift(x).v) for x in result)
