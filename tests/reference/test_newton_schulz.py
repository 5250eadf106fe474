"""Newton-Schulz against the singular values in 50 digits, golden numbers and its symmetries."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trueup.reference import UnknownReading
from trueup.reference.nl import newton_schulz
from trueup.reference.nl.momentum import momentum

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
READINGS = newton_schulz.__equation__.readings  # type: ignore[attr-defined]
STEPS = {"quintic5": 5, "cubic3": 3, "cubic5": 5, "cubic15": 15}
EPS = 1e-7
# Elements whose squares are subnormal would test the range of float64, not the equation.
entry = st.floats(-4.0, 4.0).filter(lambda value: value == 0.0 or abs(value) > 1e-3)
matrices = arrays(np.float64, (3, 5), elements=entry).filter(lambda G: np.linalg.norm(G) > 0.1)


def rotation(size: int, seed: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0])


def polynomial(name: str, s: Any) -> Any:
    """Apply p(s) as often as the reading says, in whatever arithmetic s brings."""
    digits = ("3.4445", "-4.7750", "2.0315") if name == "quintic5" else ("1.5", "-0.5", "0")
    a, b, c = (mpmath.mpf(x) if isinstance(s, mpmath.mpf) else float(x) for x in digits)
    for _ in range(STEPS[name]):
        s = s * (a + s * s * (b + c * s * s))
    return s


def by_singular_values(G: np.ndarray, reading: str) -> np.ndarray:
    """Third source: U p(S / |S|) V^T from mpmath's SVD in 50 digits (N1)."""
    name = reading.removesuffix("_add")
    with mpmath.workdps(50):
        tall = G.shape[0] >= G.shape[1]
        U, S, V = mpmath.svd_r(mpmath.matrix((G if tall else G.T).tolist()))
        norm = mpmath.sqrt(sum(s * s for s in S))
        eps = mpmath.mpf(EPS)
        norm = norm + eps if reading.endswith("_add") else max(norm, eps)
        mapped = mpmath.diag([polynomial(name, s / norm) for s in S])
        result = np.array((U * mapped * V).tolist(), dtype=np.float64)
    return result if tall else result.T


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 5), (7, 4), (1, 4), (4, 1), (1, 1)])
@pytest.mark.parametrize("reading", READINGS)
def test_n1_polynomial_of_the_singular_values(shape: tuple[int, int], reading: str) -> None:
    for scale in (1.0, 0.7 * EPS, 5.0 * EPS):
        G = scale * np.random.default_rng(3).standard_normal(shape)
        got = newton_schulz(G, reading=reading)
        np.testing.assert_allclose(got, by_singular_values(G, reading), atol=1e-12)


@pytest.mark.parametrize(
    ("reading", "G", "want"),
    [
        pytest.param(
            "quintic5",
            [[1, 2], [3, 4]],
            [[-0.6806610001, 0.8255396075], [0.7412954095, 0.2594400100]],
            id="quintic",
        ),
        pytest.param(
            "quintic5", [[3, 0], [0, 4]], [[0.7228761686, 0], [0, 1.1192039299]], id="diagonal"
        ),
        pytest.param(
            "quintic5", [[3, 0], [4, 0]], [[0.4178618457, 0], [0.5571491276, 0]], id="rank-one"
        ),
        pytest.param(
            "cubic5",
            [[1, 2], [3, 4]],
            [[-0.1221450209, 0.5809958314], [0.6839287760, 0.6368097435]],
            id="cubic5",
        ),
        pytest.param(
            "cubic15",
            [[1, 2], [3, 4]],
            [[-0.5144957554, 0.8574929257], [0.8574929257, 0.5144957554]],
            id="cubic15",
        ),
    ],
)
def test_golden(reading: str, G: Any, want: Any) -> None:
    got = newton_schulz(np.array(G, dtype=np.float64), reading=reading)
    np.testing.assert_allclose(got, want, atol=6e-11)


def test_golden_singular_values_and_the_rank_one_value() -> None:
    got = newton_schulz(np.array([[1.0, 2.0], [3.0, 4.0]]))
    values = np.linalg.svd(got, compute_uv=False)
    np.testing.assert_allclose(values, [1.12839537, 0.69883256], atol=6e-9)
    one = newton_schulz(np.array([[5.0]]))
    assert one[0, 0] == pytest.approx(0.6964364094697522, rel=1e-14)


def test_facts_about_the_quintic() -> None:
    """Maximum, minimum, invariant interval and unstable fixed point, by mpmath."""

    def p(s: Any) -> Any:
        return s * (
            mpmath.mpf("3.4445") + s**2 * (mpmath.mpf("-4.7750") + mpmath.mpf("2.0315") * s**2)
        )

    peak = mpmath.findroot(lambda s: mpmath.diff(p, s), 0.55)
    low = mpmath.findroot(lambda s: mpmath.diff(p, s), 1.05)
    fixed = mpmath.findroot(lambda s: p(s) - s, 0.87)
    for got, want, digits in (
        (peak, 0.55453, 5),
        (p(peak), 1.20237, 5),
        (low, 1.05014, 5),
        (p(low), 0.681831, 6),
        (p(p(low)), 1.134357, 6),
        (fixed, 0.868026, 6),
        (mpmath.diff(p, fixed), -1.58, 2),
        (p(mpmath.mpf(1)), 0.701, 3),
    ):
        assert abs(float(got) - want) <= 0.5000001 * 10.0**-digits


@pytest.mark.parametrize(
    ("low", "high", "band"),
    [
        pytest.param(0.00519, 1.0, (0.6818, 1.1344), id="inside"),
        pytest.param(0.00151, 0.00519, (0.68, 1.2024), id="folklore"),
    ],
)
def test_band_of_the_quintic(low: float, high: float, band: tuple[float, float]) -> None:
    values = polynomial("quintic5", np.linspace(low, high, 20001))
    assert band[0] <= values.min()
    assert values.max() <= band[1]


def test_small_singular_values_stay_below_the_band() -> None:
    s = np.array([1e-6, 1e-4])
    np.testing.assert_allclose(polynomial("quintic5", s), 3.4445**5 * s, rtol=2e-2)
    G = np.random.default_rng(0).standard_normal((256, 256))
    values = np.linalg.svd(newton_schulz(G), compute_uv=False)
    assert 1 <= np.sum(values < 0.68) <= 10


@pytest.mark.parametrize(
    ("start", "steps"), [(0.3, 8), (0.1, 11), (0.01, 16), (0.001, 22)], ids=str
)
def test_steps_of_the_cubic_to_convergence(start: float, steps: int) -> None:
    s, count = start, 0
    while abs(1.0 - s) > 1e-12:
        s, count = s * (1.5 - 0.5 * s * s), count + 1
    assert count == steps


def test_cubic15_is_the_polar_factor_where_well_conditioned() -> None:
    """Third source: U V^T of LAPACK's SVD."""
    G = rotation(5, 1) @ np.diag([1.0, 0.9, 0.7, 0.5, 0.4]) @ rotation(5, 2)
    u, _, vt = np.linalg.svd(G)
    np.testing.assert_allclose(newton_schulz(G, reading="cubic15"), u @ vt, atol=1e-12)
    assert np.max(np.abs(newton_schulz(G, reading="cubic3") - u @ vt)) > 0.1


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (6, 6)])
def test_cubic_of_25_steps_is_the_polar_factor_down_to_a_thousandth(
    shape: tuple[int, int],
) -> None:
    """Section 10: 1e-10 from 25 steps on for s >= 1e-3; any number of steps may be asked for."""
    rank = min(shape)
    left = np.linalg.qr(np.random.default_rng(1).standard_normal((shape[0], rank)))[0]
    right = np.linalg.qr(np.random.default_rng(2).standard_normal((shape[1], rank)))[0]
    G = (left * np.geomspace(1.0, 2e-3, rank)) @ right.T
    u, _, vt = np.linalg.svd(G, full_matrices=False)
    np.testing.assert_allclose(newton_schulz(G, reading="cubic25"), u @ vt, atol=1e-10)


def test_cubic_is_one_descent_step_of_an_eighth_on_orthogonality() -> None:
    """Preprint Eq. 43: |O^T O - I|^2 has the gradient 4 O (O^T O - I), here by torch."""
    G = np.random.default_rng(4).standard_normal((5, 3))
    O = torch.tensor(G / np.linalg.norm(G), requires_grad=True)  # noqa: E741 - the paper's name
    ((O.T @ O - torch.eye(3, dtype=torch.float64)) ** 2).sum().backward()
    assert O.grad is not None
    want = (O - O.grad / 8.0).detach().numpy()
    np.testing.assert_allclose(newton_schulz(G, reading="cubic1"), want, atol=1e-15)


@pytest.mark.parametrize("reading", ["cubic0", "cubic100", "cubic", "cubic3.5", "quintic6"])
def test_a_number_of_steps_that_makes_no_sense_is_refused(reading: str) -> None:
    with pytest.raises(UnknownReading, match=reading):
        newton_schulz(np.eye(2), reading=reading)


def test_golden_single_step_of_the_quintic() -> None:
    """One step on the golden matrix, in exact rationals against the printed digits."""
    exact = np.vectorize(Fraction, otypes=[object])
    G: Any = exact([[1, 2], [3, 4]])
    a, b, c = (Fraction(x) for x in ("3.4445", "-4.7750", "2.0315"))
    A = G @ G.T / 30  # |G|^2 = 30
    X = (a * G + (b * A + c * (A @ A)) @ G).astype(float) / np.sqrt(30.0)
    want = [[-0.0072352121, 0.3528505802], [0.4457938239, 0.4719514303]]
    np.testing.assert_allclose(X, want, atol=6e-11)
    four: Any = newton_schulz(np.array([[1.0, 2.0], [3.0, 4.0]]), reading="steps_4")
    five = polynomial_matrix(four)
    np.testing.assert_allclose(newton_schulz(np.array([[1.0, 2.0], [3.0, 4.0]])), five, atol=1e-15)


def polynomial_matrix(X: np.ndarray) -> np.ndarray:
    A = X @ X.T
    return np.asarray(3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X)


@pytest.mark.parametrize("shape", [(160, 160), (320, 80)], ids=str)
def test_wrong_steps_and_coefficients_are_far_beyond_the_spread_of_bf16(
    shape: tuple[int, int],
) -> None:
    """Section 4.1: bf16 is within 0.02 (fused) or 0.04; 4 or 6 steps and polar from 0.16 on."""
    G = np.random.default_rng(shape[0]).standard_normal(shape)
    want = newton_schulz(G)
    for reading in ("steps_4", "steps_6", "polar", "a_3.5"):
        off = np.linalg.norm(newton_schulz(G, reading=reading) - want) / np.linalg.norm(want)
        assert off > (0.09 if reading == "a_3.5" else 0.16), reading


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_the_larger_gram_matrix_gives_the_same(shape: tuple[int, int]) -> None:
    """Never transposed, and multiplied from the right: the polynomial is the same."""
    G = np.random.default_rng(6).standard_normal(shape)
    left = right = G / np.linalg.norm(G)
    for _ in range(5):
        left = polynomial_matrix(left)
        B = right.T @ right
        right = 3.4445 * right + right @ (-4.7750 * B + 2.0315 * (B @ B))
    np.testing.assert_allclose(left, newton_schulz(G), atol=1e-13)
    np.testing.assert_allclose(right, newton_schulz(G), atol=1e-13)


@PROFILE
@given(G=matrices)
def test_n3_transpose_and_n4_rotations(G: Any) -> None:
    left, right = rotation(3, 1), rotation(5, 2)
    for reading in ("quintic5", "cubic5"):
        want = newton_schulz(G, reading=reading)
        np.testing.assert_array_equal(newton_schulz(G.T, reading=reading), want.T)
        turned = newton_schulz(left @ G @ right, reading=reading)
        np.testing.assert_allclose(turned, left @ want @ right, atol=1e-12)


def test_n4_kills_the_elementwise_tanh() -> None:
    """The largest entry of its defect on the witness is 0.41."""
    G, Q = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[0.6, -0.8], [0.8, 0.6]])
    defect = newton_schulz(Q @ G, reading="tanh") - Q @ newton_schulz(G, reading="tanh")
    assert np.max(np.abs(defect)) == pytest.approx(0.41, abs=0.005)


def test_n5_not_additive_and_not_by_shards() -> None:
    G = np.random.default_rng(5).standard_normal((4, 6))
    H = np.random.default_rng(6).standard_normal((4, 6))
    whole = newton_schulz(G)
    assert np.max(np.abs(newton_schulz(G + H) - whole - newton_schulz(H))) > 0.1
    assert np.max(np.abs(newton_schulz(G[:2]) - whole[:2])) > 0.05


@pytest.mark.parametrize("eta", [1e-3, 1e-1])
def test_q24_1_and_e17_a_constant_rate_cancels(eta: float) -> None:
    """Literal Eq. 24 (eta inside m): the witness after the third gradient."""
    gradients = (
        [[1, -1, 2], [-2, 2, -4]],
        [[0, 1, 0], [1, 0, -1]],
        [[1, 0, 1], [0, -1, 2]],
    )
    m: Any = np.zeros((2, 3))
    for g in gradients:
        m, _ = momentum(m, m, np.array(g, dtype=np.float64), 0.9, eta)
    got = newton_schulz(m)
    want = [
        [-0.5941977850, -0.3232346404, -0.3684836940],
        [-0.2264372380, -0.5433136263, 0.5628708627],
    ]
    np.testing.assert_allclose(got, want, atol=6e-11)
    values = np.linalg.svd(got, compute_uv=False)
    np.testing.assert_allclose(values, [0.8584037239, 0.7209452457], atol=6e-11)


@pytest.mark.parametrize("shape", [(96, 64), (64, 128)])
def test_library_newton_schulz_in_bf16_lies_within_its_own_rounding(
    shape: tuple[int, int],
) -> None:
    """Third source: torch's Muon orthogonalises in bf16; 0.012-0.016 relative were measured."""
    function = getattr(torch.optim._muon, "_zeropower_via_newtonschulz")  # noqa: B009
    G = np.random.default_rng(8).standard_normal(shape)
    theirs = function(torch.tensor(G), (3.4445, -4.7750, 2.0315), 5, EPS).to(torch.float64).numpy()
    ours = newton_schulz(G)
    relative = np.linalg.norm(theirs - ours) / np.linalg.norm(ours)
    assert 0.001 < relative < 0.02
