"""The kernel of the eight norms has the bits of the fixed order, spread over blocks or not."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import trueup.kernels
from trueup.oracle.backends.base import RunOptions
from trueup.oracle.contract import load_contract
from trueup.oracle.inputs import Case, draw, with_native
from trueup.oracle.verify import open_session
from trueup.reference.dqn.fixed_tree import fixed_tree_norm, sequential_sum_of_squares

DQN = Path(trueup.kernels.__file__).resolve().parent / "dqn"
GOLDEN = {1000: 0x41121304, 3001: 0x417D1565}


def hashed(n: int, seed: int = 0) -> NDArray[np.float32]:
    i = np.arange(seed, n + seed, dtype=np.uint64)
    return ((i * np.uint64(2654435761) % 2**32).astype(np.float64) / 2**32 - 0.5).astype(np.float32)


def norms_of(
    g: NDArray[np.float32], slices: list[list[int]], order: int, kernel: str = "grad_norms"
) -> NDArray[np.float32]:
    """Run a shipped kernel on four gradients, threads and blocks in one order."""
    contract = load_contract(DQN / f"{kernel}.toml")
    session = open_session(contract, "host").session
    case = Case((("n", g.shape[1]),), "unit")
    drawn = draw(contract, session.reference, case, 0)
    inputs = with_native(drawn, contract, {"g": g, "slices": np.array(slices, dtype=np.int32)})
    result = session.run(inputs, RunOptions(order=order))
    assert result.faults == ()
    return np.asarray(result.buffers["norms"])


def bits(x: NDArray[np.float32]) -> list[int]:
    return [int(b) for b in x.view(np.uint32)]


@pytest.mark.parametrize("order", [0, 1, 7])
def test_golden_bits_at_aligned_and_ragged_places(order: int) -> None:
    """Both goldens in one vector, the second slice from an odd place on."""
    row = np.concatenate([hashed(1000), np.full(1, 9.0, np.float32), hashed(3001)])
    g = np.stack([row, 2 * row, np.zeros_like(row), -row])
    got = norms_of(g, [[0, 1000], [1001, 4002]], order)
    once, twice = [GOLDEN[1000], GOLDEN[3001]], [GOLDEN[1000] + (1 << 23), GOLDEN[3001] + (1 << 23)]
    assert bits(got) == [*once, *twice, 0, 0, *once]


def test_several_stages_keep_the_order() -> None:
    """More than 256 x 512 elements in a slice: the ring of stages goes round."""
    n = 600_003
    g = np.zeros((4, n), dtype=np.float32)
    g[0] = hashed(n)
    got = norms_of(g, [[0, n - 2], [n - 2, n]], 0)
    want = fixed_tree_norm(g[0, : n - 2])
    assert got[0].view(np.uint32) == want.view(np.uint32)
    assert np.sqrt(sequential_sum_of_squares(g[0, : n - 2])) != want
    assert got[1].view(np.uint32) == fixed_tree_norm(g[0, n - 2 :]).view(np.uint32)
    assert (got[2:] == 0.0).all()


def test_the_blocked_order_has_the_same_bits_wherever_a_slice_begins() -> None:
    """Aligned slices are read ahead in sixteen bytes, others one by one: one order all the same."""
    n = 600_000
    x = hashed(n - 8)
    g = np.zeros((4, n), dtype=np.float32)
    g[0, : n - 8], g[1, 3 : n - 5] = x, x
    first = norms_of(g, [[0, n - 8], [0, 0]], 0, "grad_norms_blocked")
    second = norms_of(g, [[3, n - 5], [0, 0]], 3, "grad_norms_blocked")
    assert first[0].view(np.uint32) == second[2].view(np.uint32)
    exact = np.sqrt(np.sum(x.astype(np.float64) ** 2))
    assert abs(float(first[0]) / float(exact) - 1.0) < 1e-6
