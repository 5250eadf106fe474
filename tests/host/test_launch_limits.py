"""A launch that every device refuses is refused here too, with the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("shape", "shared", "said"),
    [
        ({"block": (1025,)}, 0, "block.x is 1025"),
        ({"block": (32, 64)}, 0, "threads of a block is 2048"),
        ({"block": (1, 1, 65)}, 0, "block.z is 65"),
        ({"grid": (0,)}, 0, "grid.x is 0"),
        ({"grid": (1, 65536)}, 0, "grid.y is 65536"),
        ({}, 232449, "232449 bytes of dynamic shared memory"),
    ],
)
def test_what_a_device_refuses_is_refused(bench: Any, shape: Any, shared: int, said: str) -> None:
    kernel = bench.load("faults.cu", "good")
    args = [bench.output("y", 8, np.float32), np.int32(8)]
    outcome = bench.result(kernel, "good", args, shared=shared, **shape)
    fault = bench.faults[0]
    assert fault.kind == "launch refused"
    assert said in fault.message
    assert outcome.launches == 0
