"""Eq. 13-14 against token loops over rationals, the masked-matrix form, torch, and its laws."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference import NotApplicable, UnknownReading
from trueup.reference.nl import linear_attention

READINGS = ("post", "pre")
SHAPES = [(1, 1, 1, 1), (2, 5, 3, 2), (1, 4, 2, 3), (3, 7, 4, 7), (1, 6, 1, 4), (2, 3, 4, 1)]


def sample(shape: tuple[int, int, int, int], seed: int = 1) -> dict[str, Any]:
    n, t, d_k, d_v = shape
    rng = np.random.default_rng(seed)
    return {
        "q": rng.standard_normal((n, t, d_k)),
        "k": rng.standard_normal((n, t, d_k)),
        "v": rng.standard_normal((n, t, d_v)),
        "M_0": rng.standard_normal((n, d_v, d_k)),
        "mask": rng.integers(0, 2, (n, t)),
    }


def token_loop(case: dict[str, Any], reading: str) -> tuple[Any, Any]:
    """The equation one entry at a time, over whatever numbers the case holds."""
    q, k, v, M = case["q"], case["k"], case["v"], case["M_0"].copy()
    (n, t, d_k), d_v = q.shape, v.shape[2]
    y = np.empty((n, t, d_v), dtype=object)
    for s in range(n):
        for step in range(t):
            before = M[s].copy()
            if case["mask"][s, step]:
                for i in range(d_v):
                    for j in range(d_k):
                        M[s, i, j] += v[s, step, i] * k[s, step, j]
            held = before if reading == "pre" else M[s]
            for i in range(d_v):
                y[s, step, i] = sum(held[i, j] * q[s, step, j] for j in range(d_k))
    return y, M


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_token_loop_in_exact_rationals(shape: tuple[int, int, int, int], reading: str) -> None:
    """Third source: sums by index over rationals; integers make the float result exact too."""
    rng = np.random.default_rng(2)
    case = {name: rng.integers(-4, 5, array.shape) for name, array in sample(shape).items()}
    case["mask"] = rng.integers(0, 2, case["mask"].shape)
    exact = {n: np.vectorize(Fraction, otypes=[object])(a) for n, a in case.items()}
    want_y, want_M = token_loop(exact, reading)
    floats = {n: a.astype(np.float64) for n, a in case.items()}
    y, M = linear_attention(**floats, reading=reading)
    assert (y == want_y).all()
    assert (want_M == M).all()


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_q13_1_masked_matrix_form_by_torch(shape: tuple[int, int, int, int], reading: str) -> None:
    """Y = tril(Q K^T) V, inclusive for `post`, strict for `pre`."""
    case = sample(shape)
    q, k, v = (torch.tensor(case[name]) for name in "qkv")
    scores = torch.tril(q @ k.mT, diagonal=-1 if reading == "pre" else 0)
    y, M = linear_attention(case["q"], case["k"], case["v"], reading=reading)
    np.testing.assert_allclose(y, (scores @ v).numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(M, (v.mT @ k).numpy(), rtol=1e-12, atol=1e-12)


def test_q13_2_the_order_of_writes_does_not_matter_to_the_memory() -> None:
    case = sample((2, 6, 3, 4))
    turn = [4, 0, 5, 2, 1, 3]
    turned = {n: a if n == "M_0" else a[:, turn] for n, a in case.items()}
    y, M = linear_attention(**case)
    y_turned, M_turned = linear_attention(**turned)
    np.testing.assert_allclose(M_turned, M, rtol=1e-12, atol=1e-13)
    assert np.max(np.abs(y_turned - y[:, turn])) > 0.1  # what is read does depend on it


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("length", [1, 3, 4])
def test_q13_3_any_chunking_gives_the_same(length: int, reading: str) -> None:
    case = sample((2, 10, 3, 4))
    whole_y, whole_M = linear_attention(**case, reading=reading)
    M, parts = case["M_0"], []
    for start in range(0, 10, length):
        part = {n: case[n][:, start : start + length] for n in ("q", "k", "v", "mask")}
        y, M = linear_attention(**part, M_0=M, reading=reading)
        parts.append(y)
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole_y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(M, whole_M, rtol=1e-12, atol=1e-12)


def test_e11_witness_read_before_or_after_the_write() -> None:
    k = np.array([[[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]])
    v = np.array([[[1.0], [2.0], [-1.0]]])
    q = np.array([[[1.0, 1.0], [0.0, 1.0], [1.0, -1.0]]])
    for reading, want in (("post", [1.0, 2.0, 3.0]), ("pre", [0.0, 0.0, 1.0])):
        y, M = linear_attention(q, k, v, reading=reading)
        assert y[0, :, 0].tolist() == want
        assert M[0].tolist() == [[3.0, 0.0]]


@pytest.mark.parametrize(
    ("reading", "rows"),
    [
        pytest.param("post", [[4, 6, 1], [-1, -1, 0]], id="derived"),
        pytest.param("write_literal", [[-0.5, -3, 1], [0.5, 2, 0]], id="literal"),
        pytest.param("write_halved", [[2.5, 3, 1], [-0.5, 0, 0]], id="sign-only"),
        pytest.param("write_negative", [[-2, -6, 1], [1, 3, 0]], id="half-only"),
    ],
)
def test_e9_witness_of_the_write(reading: str, rows: Any) -> None:
    """What Eq. 15 gives as printed, with one repair, and with both."""
    M_0 = np.array([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]])
    k, v = np.array([[[1.0, 2.0, 0.0]]]), np.array([[[3.0, -1.0]]])
    _, M = linear_attention(np.zeros((1, 1, 3)), k, v, M_0, reading=reading)
    assert M[0].tolist() == [[float(entry) for entry in row] for row in rows]


def test_q15_1_the_write_is_one_descent_step_by_autograd() -> None:
    """Third source: torch differentiates -<M k, v>; the proximal step of weight 1/2 adds it."""
    rng = np.random.default_rng(3)
    M_0, k, v = (torch.tensor(rng.standard_normal(s)) for s in ((3, 4), 4, 3))
    leaf = M_0.clone().requires_grad_(True)
    (-(leaf @ k) @ v).backward()
    assert leaf.grad is not None
    _, M = linear_attention(
        np.zeros((1, 1, 4)), k.numpy()[None, None], v.numpy()[None, None], M_0.numpy()[None]
    )
    np.testing.assert_allclose(M[0], (M_0 - leaf.grad).numpy(), rtol=1e-14)


def test_public_convention_needs_scale_one_and_a_transposed_state() -> None:
    """Keeps S = M^T (d_k, d_v) and reads d_k^{-1/2} q: the same at scale 1, and S = M^T."""
    case = sample((1, 5, 4, 4))
    S, public = case["M_0"][0].T.copy(), []
    for t in range(5):
        S += np.outer(case["k"][0, t], case["v"][0, t])
        public.append((4**-0.5 * case["q"][0, t]) @ S)
    y, M = linear_attention(case["q"], case["k"], case["v"], case["M_0"], reading="scaled")
    np.testing.assert_allclose(y[0], public, rtol=1e-12)
    plain, _ = linear_attention(case["q"], case["k"], case["v"], case["M_0"])
    np.testing.assert_allclose(plain[0], 2.0 * np.array(public), rtol=1e-12)
    np.testing.assert_allclose(M[0], S.T, rtol=1e-12)


@pytest.mark.parametrize("reading", READINGS)
def test_a_masked_token_reads_and_does_not_write(reading: str) -> None:
    case = sample((1, 4, 3, 2))
    case["mask"] = np.array([[1, 0, 1, 0]])
    case["k"][0, 1] = np.nan  # whatever a skipped token holds
    y, M = linear_attention(**case, reading=reading)
    assert np.isfinite(y).all()
    kept = [0, 2]
    part = {n: case[n][:, kept] for n in ("q", "k", "v")}
    y_kept, M_kept = linear_attention(**part, M_0=case["M_0"], reading=reading)
    np.testing.assert_array_equal(M, M_kept)
    np.testing.assert_array_equal(y[:, kept], y_kept)
    np.testing.assert_allclose(y[0, 3], M[0] @ case["q"][0, 3], rtol=1e-13)


def test_zero_key_or_value_writes_nothing_and_no_token_leaves_the_memory() -> None:
    case = sample((2, 3, 3, 2))
    for name in ("k", "v"):
        _, M = linear_attention(**(case | {name: np.zeros_like(case[name])}))
        np.testing.assert_array_equal(M, case["M_0"])
    none = {n: a if n == "M_0" else a[:, :0] for n, a in case.items()}
    y, M = linear_attention(**none)
    assert y.shape == (2, 0, 2)
    np.testing.assert_array_equal(M, case["M_0"])


@pytest.mark.parametrize("reading", ["state_transposed", "roles_swapped"])
def test_what_needs_equal_widths_says_so(reading: str) -> None:
    case = sample((1, 2, 3, 2))
    with pytest.raises(NotApplicable, match="d_k = d_v, got 3 and 2"):
        linear_attention(**case, reading=reading)


def test_unknown_reading_is_refused() -> None:
    with pytest.raises(UnknownReading, match="during"):
        linear_attention(**sample((1, 1, 1, 1)), reading="during")
