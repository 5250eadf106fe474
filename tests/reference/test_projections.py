"""Eq. 12: three linear maps, and the transpose that rows and columns disagree about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference import NotApplicable
from trueup.reference.nl import projections


def drawn(d: int, d_k: int, d_v: int) -> Any:
    rng = np.random.default_rng([d, d_k, d_v])
    return (
        rng.standard_normal(d),
        rng.standard_normal((d, d_k)),
        rng.standard_normal((d, d_v)),
        rng.standard_normal((d, d_k)),
    )


@pytest.mark.parametrize("sizes", [(4, 3, 2), (3, 3, 3), (1, 4, 2), (5, 1, 7)])
def test_they_are_the_linear_layers_of_torch(sizes: tuple[int, int, int]) -> None:
    """torch's Linear stores (out, in): its weight is the transpose of W_k."""
    x, W_k, W_v, W_q = drawn(*sizes)
    for got, weight in zip(projections(x, W_k, W_v, W_q), (W_k, W_v, W_q), strict=True):
        want = torch.nn.functional.linear(torch.tensor(x), torch.tensor(weight.T))
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-13, atol=1e-14)


def test_e8_the_transpose_in_column_form() -> None:
    W, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones(2)
    assert projections(x, W, W, W)[0].tolist() == [4, 6]
    assert projections(x, W, W, W, reading="not_transposed")[0].tolist() == [3, 7]


def test_forgetting_the_transpose_shows_by_shape() -> None:
    with pytest.raises(NotApplicable, match="d = d_k = d_v"):
        projections(*drawn(4, 3, 2), reading="not_transposed")


def test_key_value_and_query_come_in_this_order() -> None:
    x, one = np.array([2.0]), np.array([[1.0]])
    got = projections(x, 3 * one, 5 * one, 7 * one)
    assert [float(part[0]) for part in got] == [6, 10, 14]
