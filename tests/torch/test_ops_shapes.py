"""Every operator refuses tensors that do not fit one another, also where they would broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from trueup.kernels.torch import (
    adam_memory_,
    cms_level,
    cms_level_update_,
    deep_momentum_,
    delta_momentum_,
    delta_momentum_rank1_,
    m3_,
    m3_slow_,
    muon_,
    muon_library_,
    online_write,
    preconditioned_momentum_,
    projected_descent_,
    projected_descent_batch_,
    projected_descent_chunk_,
)

Shape = tuple[int, ...]
M, IN, OUT = (3, 4), (4,), (3,)


def hadamard(*tensors: Any) -> None:
    preconditioned_momentum_(*tensors, reading="hadamard")


ETA = torch.tensor(0.1)
CASES: dict[str, tuple[Callable[..., Any], list[Shape], list[Any]]] = {
    "delta_momentum_": (
        lambda *t: delta_momentum_(*t[:3], *t[4:], P=t[3]),
        [M, M, M, (3, 3)],
        [0.9, 0.1],
    ),
    "delta_momentum_rank1_": (delta_momentum_rank1_, [M, M, OUT, IN], [0.9, 0.1]),
    "preconditioned_momentum_": (preconditioned_momentum_, [M, M, M, (3, 3)], [0.9, 0.1]),
    "preconditioned_momentum_ ": (hadamard, [M, M, M, M], [0.9, 0.1]),
    "adam_memory_": (adam_memory_, [M, M, M], []),
    "deep_momentum_": (deep_momentum_, [(4, 2), (2, 4), M, M], [0.9, 0.1]),
    "muon_": (muon_, [M, M, M], [0.9, 0.1]),
    "muon_library_": (muon_library_, [M, M, M], [0.9, 0.1, 0.0]),
    "m3_": (m3_, [M] * 6, [(1.0, 1.0), 1.0, 0.1, 0.1]),
    "m3_slow_": (m3_slow_, [M] * 3, [1.0]),
    "projected_descent_": (projected_descent_, [M, IN, OUT], [0.1]),
    "projected_descent_batch_": (projected_descent_batch_, [M, (5, 4), (5, 3)], [0.1]),
    "projected_descent_chunk_": (projected_descent_chunk_, [M, (5, 4), (5, 3), (5,), (5,)], []),
    "cms_level": (cms_level, [(5, 4), (2, 4), (4, 2)], []),
    "cms_level_update_": (cms_level_update_, [(2, 4), (4, 2), (5, 4), (5, 4), (5,)], [0.1]),
    "online_write": (online_write, [(2, 3, 4), (2, 5, 4), (2, 5, 3)], [ETA]),
}
WRONG = [
    (name, place, change)
    for name, (_, shapes, _) in CASES.items()
    for place in range(len(shapes))
    for change in ("one", "axis")
]


@pytest.mark.parametrize("name", CASES)
def test_what_fits_is_taken(name: str) -> None:
    run, shapes, rest = CASES[name]
    run(*(torch.rand(shape) for shape in shapes), *rest)


@pytest.mark.parametrize(("name", "place", "change"), WRONG)
def test_what_does_not_fit_is_told_before_anything_is_written(
    name: str, place: int, change: str
) -> None:
    """A last axis of size 1, which would broadcast, and an axis too many."""
    run, shapes, rest = CASES[name]
    wrong = (*shapes[place][:-1], 1) if change == "one" else (1, *shapes[place])
    given = [torch.rand(shape) for shape in [*shapes[:place], wrong, *shapes[place + 1 :]]]
    before = [item.clone() for item in given]
    with pytest.raises(ValueError, match=rf"^{name.strip()}: got .*, expected "):
        run(*given, *rest)
    assert all(map(torch.equal, given, before))


def test_the_message_names_every_tensor_and_its_axes() -> None:
    told = (
        r"got W \(3, 4\), x \(3,\), u \(3,\), expected W \(d_out, d_in\), x \(d_in\), u \(d_out\)"
    )
    with pytest.raises(ValueError, match=told):
        projected_descent_(torch.ones(3, 4), torch.ones(3), torch.ones(3), 0.1)
