"""Preprint Eq. 83-93 against the golden table, rationals, autograd and the affine scan."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from trueup.reference import NotApplicable
from trueup.reference.nl import projected_descent_chunk, self_modifying, self_modifying_dot

READINGS = self_modifying.__equation__.readings  # type: ignore[attr-defined]
DOT_FORMS = self_modifying_dot.__equation__.form  # type: ignore[attr-defined]


def fractions(text: str) -> list[Fraction]:
    return [Fraction(entry) for entry in text.split()]


def exact(rows: Any) -> Any:
    return np.vectorize(lambda entry: Fraction(str(entry)), otypes=[object])(np.array(rows))


M_0 = exact([[1, 1], [0, 1]])
KEYS, VALUES = exact([["1", "0"], [".6", ".8"]]), exact([[2, -1], [0, 1]])
ALPHA, ETA = exact([".9", "1"]), exact([".1", ".2"])


def golden(reading: str) -> list[Fraction]:
    tokens = (KEYS[None], KEYS[None], VALUES[None], ETA[None], ALPHA[None])
    _, M = self_modifying(M_0, *tokens, reading=reading)
    return [Fraction(entry) for entry in M.flat]


@pytest.mark.parametrize(
    ("reading", "row_major"),
    [
        pytest.param("sequential_given", ".5976 .4968 -.1384 .8488", id="sequential-1-given"),
        pytest.param("sequential_self", ".62 .66 -.1504 .8328", id="sequential-1-self"),
        pytest.param("sequential_given_2", ".5248 .2664 -.176 .932", id="sequential-2-given"),
        pytest.param("sequential_self_2", ".584 .612 -.2 .9", id="sequential-2-self"),
        pytest.param("chunk_given", ".5808 .4744 -.1552 .8264", id="chunk-1-given"),
        pytest.param("chunk_self", ".608 .644 -.1552 .8264", id="chunk-1-self"),
        pytest.param("chunk_given_2", ".5056 .2408 -.224 .868", id="chunk-2-given"),
        pytest.param("chunk_self_2", ".56 .58 -.224 .868", id="chunk-2-self"),
        pytest.param("no_decay", ".8568 .8424 -.0712 .9384", id="no-decay"),
        pytest.param("left_decay", ".7136 .6048 -.1352 .7464", id="left-decay"),
    ],
)
def test_golden_table_of_eq_88_93_in_exact_rationals(reading: str, row_major: str) -> None:
    assert golden(reading) == fractions(row_major)


@pytest.mark.parametrize(
    ("reading", "row_major"),
    [
        pytest.param("plus", ".8416 .6888 -.0592 .9544", id="plus"),
        pytest.param("minus", ".4704 .7272 -.1136 .6152", id="as-transcribed"),
    ],
)
def test_s_b_golden_numbers_of_eq_92_in_exact_rationals(reading: str, row_major: str) -> None:
    loop, scan = (function(M_0, KEYS, VALUES, ETA, ALPHA) for function in DOT_FORMS(reading))
    assert list(loop.flat) == fractions(row_major)
    assert [float(entry) for entry in scan.flat] == pytest.approx(
        [float(entry) for entry in fractions(row_major)], rel=1e-14
    )


def sample(chunks: int, length: int, d: int, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    tokens = (chunks, length, d)
    return {
        "M": rng.standard_normal((d, d)),
        "q": rng.standard_normal(tokens),
        "k": rng.standard_normal(tokens) / np.sqrt(d),
        "v": rng.standard_normal(tokens),
        "eta": rng.uniform(0.05, 0.3, (chunks, length)),
        "alpha": rng.uniform(0.7, 1.0, (chunks, length)),
    }


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(("chunks", "length", "d"), [(2, 3, 4), (3, 1, 2), (1, 4, 5), (2, 2, 1)])
def test_the_gradient_of_eq_88_by_autograd(chunks: int, length: int, d: int, reading: str) -> None:
    """Third source: torch differentiates |M k - v^|^2 (halved for factor 1), v^ held fixed."""
    case = sample(chunks, length, d)
    M, reads = torch.tensor(case["M"]), []
    half = 1.0 if reading.endswith("_2") else 0.5
    q, k, v = (torch.tensor(case[n]) for n in ("q", "k", "v"))
    for c in range(chunks):
        anchor = M
        for t in range(length):
            at = anchor if reading.startswith("chunk") else M
            leaf = at.clone().requires_grad_(True)
            target = v[c, t] if "given" in reading else at @ v[c, t]
            (half * ((leaf @ k[c, t] - target) ** 2).sum()).backward()
            assert leaf.grad is not None
            reads.append(at @ q[c, t])
            decay = case["alpha"][c, t] * torch.eye(d, dtype=torch.float64) - case["eta"][
                c, t
            ] * torch.outer(k[c, t], k[c, t])
            M = M @ decay - case["eta"][c, t] * leaf.grad
    y, last = self_modifying(**case, reading=reading)
    np.testing.assert_allclose(last, M.numpy(), rtol=1e-12, atol=1e-13)
    want = torch.stack(reads).reshape(q.shape).numpy()
    np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-13)


def test_s_a_reads_and_writes_of_a_chunk_depend_on_earlier_chunks_only() -> None:
    """Anchored at C ceil(t / C), the end of the current chunk, the first token sees the last."""
    case = sample(2, 3, 4)
    other = case | {"v": case["v"].copy()}
    other["v"][1, 2] += 1.0  # the last token of the second chunk
    for reading in READINGS:
        y, _ = self_modifying(**case, reading=reading)
        y_other, _ = self_modifying(**other, reading=reading)
        np.testing.assert_array_equal(y[:1], y_other[:1])
        np.testing.assert_array_equal(y[1, 0], y_other[1, 0])
    y, _ = self_modifying(**case, reading="anchor_late")
    y_other, _ = self_modifying(**other, reading="anchor_late")
    assert np.max(np.abs(y[1, 0] - y_other[1, 0])) > 1e-3


def repeated(reading: str, alpha: float, eta: float, steps: int = 4000) -> float:
    """Repeat one pair (unit key, fixed value 3) and read it."""
    k = np.tile([[[0.6, 0.8]]], (steps, 1, 1))
    v = np.tile([[[3.0, 0.0]]], (steps, 1, 1))
    gates = np.full((steps, 1), eta), np.full((steps, 1), alpha)
    _, M = self_modifying(np.eye(2), k, k, v, *gates, reading=reading)
    return float((M @ k[0, 0])[0])


@pytest.mark.parametrize(
    ("reading", "alpha", "fraction"),
    [
        pytest.param("sequential_given", 1.0, 1 / 2, id="factor-1"),
        pytest.param("sequential_given_2", 1.0, 2 / 3, id="factor-2"),
        pytest.param("sequential_given", 0.9, 0.1 / (0.1 + 0.2), id="retention"),
    ],
)
def test_s_d_double_subtraction_and_e21_fixed_points(
    reading: str, alpha: float, fraction: float
) -> None:
    """Not v^: the decay and the error both subtract M k; eta / (1 - alpha + 2 eta) of it."""
    assert repeated(reading, alpha, 0.1) == pytest.approx(3.0 * fraction, rel=1e-10)


def test_s_c_factor_two_is_twice_the_rate_on_the_gradient_only() -> None:
    case = sample(1, 1, 3)
    one, two = (self_modifying(**case, reading=f"sequential_given{e}")[1] for e in ("", "_2"))
    k, eta = case["k"][0, 0], case["eta"][0, 0]
    gradient = np.outer(case["M"] @ k - case["v"][0, 0], k)
    np.testing.assert_allclose(two, one - eta * gradient, rtol=1e-13)


def test_s_g_public_gated_delta_rule_puts_alpha_on_the_decay_too() -> None:
    case = sample(2, 3, 4)
    apart = self_modifying(**case)[1] - self_modifying(**case, reading="alpha_on_decay")[1]
    assert np.max(np.abs(apart)) > 1e-3
    open_gate = case | {"alpha": np.ones((2, 3))}
    np.testing.assert_allclose(
        self_modifying(**open_gate)[1],
        self_modifying(**open_gate, reading="alpha_on_decay")[1],
        rtol=1e-13,
    )


@pytest.mark.parametrize("factor", [1, 2])
def test_l2_chunked_equals_sequential_only_for_chunks_of_one(factor: int) -> None:
    ending = "" if factor == 1 else "_2"
    case = sample(2, 3, 4)
    by_one = {n: a if n == "M" else a.reshape(6, 1, *a.shape[2:]) for n, a in case.items()}
    for value in ("self", "given"):
        sequential = self_modifying(**case, reading=f"sequential_{value}{ending}")[1]
        single = self_modifying(**by_one, reading=f"chunk_{value}{ending}")[1]
        np.testing.assert_allclose(single, sequential, rtol=1e-13)
        chunked = self_modifying(**case, reading=f"chunk_{value}{ending}")[1]
        assert np.max(np.abs(chunked - sequential)) > 1e-3


@pytest.mark.parametrize("length", [1, 2, 3, 6])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_dot_objective_chunked_equals_sequential_for_any_chunk(length: int, sign: float) -> None:
    """The gradient of -<M k, v> does not depend on M: the anchor does not matter."""
    rng = np.random.default_rng(5)
    M, k, v = (rng.standard_normal(s) for s in ((3, 4), (6, 4), (6, 3)))
    eta, alpha = rng.uniform(0.05, 0.3, 6), rng.uniform(0.7, 1.0, 6)
    chunked = M
    for start in range(0, 6, length):
        anchor = torch.tensor(chunked)
        for t in range(start, start + length):
            leaf = anchor.clone().requires_grad_(True)
            (-sign * (leaf @ torch.tensor(k[t])) @ torch.tensor(v[t])).backward()
            assert leaf.grad is not None
            decay = alpha[t] * np.eye(4) - eta[t] * np.outer(k[t], k[t])
            chunked = chunked @ decay - eta[t] * leaf.grad.numpy()
    reading = "plus" if sign > 0 else "minus"
    got = self_modifying_dot(M, k, v, eta, alpha, reading=reading)
    np.testing.assert_allclose(got, chunked, rtol=1e-12, atol=1e-13)


def test_affine_maps_compose_as_told() -> None:
    """(A, B) then (A', B') is (A A', B A' + B'): any grouping of the tokens gives the same."""
    rng = np.random.default_rng(6)
    M, k, v = (rng.standard_normal(s) for s in ((3, 4), (5, 4), (5, 3)))
    eta, alpha = rng.uniform(0.05, 0.3, 5), rng.uniform(0.7, 1.0, 5)
    maps = [
        (a * np.eye(4) - e * np.outer(key, key), e * np.outer(value, key))
        for key, value, e, a in zip(k, v, eta, alpha, strict=True)
    ]

    def then(one: Any, two: Any) -> Any:
        return one[0] @ two[0], one[1] @ two[0] + two[1]

    left = then(then(then(then(maps[0], maps[1]), maps[2]), maps[3]), maps[4])
    tree = then(then(maps[0], maps[1]), then(maps[2], then(maps[3], maps[4])))
    want = self_modifying_dot(M, k, v, eta, alpha)
    for A, B in (left, tree):
        np.testing.assert_allclose(M @ A + B, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("factor", [1, 2])
def test_given_values_are_a_chunk_of_projected_descent(factor: int) -> None:
    """Section 12: c = (1 + f) eta and b u = -f eta v, with retention alpha."""
    case = sample(2, 3, 4)
    reading = "sequential_given" if factor == 1 else "sequential_given_2"
    M = self_modifying(**case, reading=reading)[1]
    k, v = (case[n].reshape(6, 4) for n in ("k", "v"))
    eta, alpha = case["eta"].reshape(6), case["alpha"].reshape(6)
    c = (1 + factor) * eta
    derived = projected_descent_chunk(case["M"], k, -factor / (1 + factor) * v, c, alpha)
    np.testing.assert_allclose(M, derived, rtol=1e-12, atol=1e-13)


def test_self_values_of_an_identity_memory_are_the_values() -> None:
    case = sample(1, 1, 3) | {"M": np.eye(3)}
    np.testing.assert_allclose(
        self_modifying(**case, reading="sequential_self")[1],
        self_modifying(**case, reading="sequential_given")[1],
        rtol=1e-14,
    )


def test_left_decay_needs_equal_widths() -> None:
    with pytest.raises(NotApplicable, match="d_v = d_k, got 2 and 3"):
        self_modifying_dot(
            np.ones((2, 3)),
            np.ones((1, 3)),
            np.ones((1, 2)),
            np.ones(1),
            np.ones(1),
            reading="left_decay",
        )
