"""Reading gradient norms back: a value or an error, and never after the buffer was wiped.

Source: DQN programme, gradient decomposition. Two failures are on record. (A) The readback buffer
had another size than the gradient buffer; the failed check was turned into 0.0. (B) An evaluation
at the end of an epoch replayed the forward graph, which zeroes the gradients; what was read after
it was all zeros. So an accessor gives norms or the reason why there are none, and the snapshot is
the first thing that the end of an epoch does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trueup.reference.dqn.fixed_tree import fixed_tree_norm

F32 = NDArray[np.float32]
Slices = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Norms:
    """Eight norms, mag and dir of four components in turn."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class Unavailable:
    """No norms, and why: telemetry writes null with this reason, never 0.0."""

    reason: str


class GradientBuffer:
    """Gradients of four components in one buffer with slack behind each; a replay zeroes it."""

    def __init__(self, params: int, pad: int) -> None:
        """Hold 4 (params + pad) float32 numbers, all 0."""
        self.params, self.pad = params, pad
        self.data = np.zeros((4, params + pad), dtype=np.float32)

    def replay(self) -> None:
        """Do what the forward graph does first."""
        self.data[:] = 0.0


class Readback:
    """A snapshot on the device, taken before anything else may touch the gradients."""

    def __init__(self, floats: int) -> None:
        """Allocate for components of ``floats`` numbers: parameters and slack."""
        self.floats = floats
        self._copy: F32 | None = None

    def snapshot(self, buffer: GradientBuffer) -> Unavailable | None:
        """Copy the gradients; a buffer of another size is an error that stays told."""
        self._copy = None
        if buffer.data.shape[1] != self.floats:
            return Unavailable(
                f"the readback holds {self.floats} floats a component, the gradient buffer "
                f"{buffer.data.shape[1]} ({buffer.params} parameters and {buffer.pad} of slack)"
            )
        self._copy = buffer.data.copy()
        return None

    def norms(self, slices: Slices) -> Norms | Unavailable:
        """Give the norms of the snapshot over the mag and the dir slice."""
        if self._copy is None:
            return Unavailable("no snapshot was taken since the last one failed or was read")
        copy, self._copy = self._copy, None
        return Norms(
            tuple(float(fixed_tree_norm(row[start:end])) for row in copy for start, end in slices)
        )


def end_of_epoch(
    buffer: GradientBuffer, readback: Readback, slices: Slices, evaluate: Callable[[], None]
) -> Norms | Unavailable:
    """Snapshot first, then evaluate, which replays the graph; then read the snapshot."""
    failed = readback.snapshot(buffer)
    evaluate()
    return failed or readback.norms(slices)


def coerced_to_zero(buffer: GradientBuffer, readback: Readback, slices: Slices) -> Norms:
    """Failure (A): whatever goes wrong is read as 0.0."""
    if readback.snapshot(buffer) is not None:
        return Norms((0.0,) * 8)
    got = readback.norms(slices)
    return got if isinstance(got, Norms) else Norms((0.0,) * 8)


def read_after_wipe(
    buffer: GradientBuffer, readback: Readback, slices: Slices, evaluate: Callable[[], None]
) -> Norms | Unavailable:
    """Failure (B): evaluate first, and read what the replay left."""
    evaluate()
    return readback.snapshot(buffer) or readback.norms(slices)


def ratio(norms: Norms, component: int) -> float | None:
    """Give mag / dir of a component; None where dir is 0 or either is not finite."""
    mag, dir_ = norms.values[2 * component : 2 * component + 2]
    return mag / dir_ if dir_ != 0.0 and np.isfinite(mag) and np.isfinite(dir_) else None


def suspicious(history: Sequence[Norms | Unavailable], losses: Sequence[float]) -> bool:
    """Tell whether a norm was exactly 0 in two epochs running while the loss was not."""
    zero = [
        isinstance(one, Norms) and loss != 0.0 and any(value == 0.0 for value in one.values)
        for one, loss in zip(history, losses, strict=True)
    ]
    return any(a and b for a, b in pairwise(zero))
