"""The monitor of an adaptive mechanism: it reads slots of the bus, and changes nothing.

Source: ISV programme, section 3. A monitor counts how often it observed its slots and how often
they had changed since the observation before; its fire rate is the second over the first, less
one: the first observation has no predecessor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.reference.errors import BadInputs

Bus = NDArray[np.float32]


def fires(last: float, value: float, rtol: float = 0.0, atol: float = 0.0) -> bool:
    """Whether a value counts as changed: |v - last| > rtol max(|v|, |last|) + atol.

    With both tolerances 0 any change of bits fires, except between -0 and +0; a NaN beside a number
    fires, a NaN beside a NaN does not.
    """
    if np.isnan(last) or np.isnan(value):
        return bool(np.isnan(last) != np.isnan(value))
    if last == value:
        return False
    if np.isinf(last) or np.isinf(value):  # no tolerance reaches from one to the other
        return True
    return bool(abs(value - last) > rtol * max(abs(value), abs(last)) + atol)


@dataclass
class Monitor:
    """Observes the words [index, index + length) of the bus under a name.

    The bus is taken read-only; nothing here keeps a reference to it.
    """

    name: str
    index: int
    length: int = 1
    rtol: float = 0.0
    atol: float = 0.0
    n_obs: int = field(default=0, init=False)
    n_fire: int = field(default=0, init=False)
    _last: tuple[float, ...] = field(default=(), init=False, repr=False)

    def read(self, isv: Bus) -> NDArray[np.float32]:
        """The monitored words as they are, copied. Raises `BadInputs` if the bus is too short."""
        if isv.ndim != 1 or isv.dtype != np.float32 or isv.size < self.index + self.length:
            raise BadInputs(
                "not the bus of this monitor", where=self.name, got=f"{isv.dtype}{list(isv.shape)}",
                expected=f"float32, {self.index + self.length} words or more",
            )  # fmt: skip
        return isv[self.index : self.index + self.length].copy()

    def observe(self, isv: Bus) -> bool:
        """Count an observation; true if any word changed since the one before."""
        values = tuple(float(value) for value in self.read(isv))
        fired = bool(self._last) and any(
            fires(last, value, self.rtol, self.atol)
            for last, value in zip(self._last, values, strict=True)
        )
        self.n_obs += 1
        self.n_fire += fired
        self._last = values
        return fired

    def fire_rate(self) -> float:
        """n_fire / max(1, n_obs - 1): 0 before the second observation."""
        return self.n_fire / max(1, self.n_obs - 1)

    def diagnose(self, isv: Bus) -> dict[str, Any]:
        """The monitor's part of a HEALTH_DIAG row. A value that is not finite is null."""
        values = [float(value) if np.isfinite(value) else None for value in self.read(isv)]
        value = values[0] if self.length == 1 else values
        return {"value": value, "fire_rate": self.fire_rate(), "n_obs": self.n_obs}
