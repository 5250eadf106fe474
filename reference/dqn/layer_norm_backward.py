"""Backward pass of layer normalisation, with the full Jacobian."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.layer_norm_backward"
EPS = 1e-5
READINGS = ("full",)
WRONG_FORMULAS = {
    "elementwise": "dy = d_out gamma rstd",
    "mean_missing": "without sum(g)",
    "projection_missing": "without xhat sum(g xhat)",
    "gamma_missing_in_sums": "the sums run over d_out",
    "gamma_missing": "g = d_out everywhere",
    "rstd_missing": "dy is not scaled back",
    "unbiased": "the projection divided by D - 1",
    "sums_not_averaged": "g - sum(g) - xhat sum(g xhat)",
    "xhat_of_next_row": "another row's saved tensor",
    "dgamma_without_xhat": "dgamma = sum_b d_out",
    "dgamma_from_y": "dgamma from the centred y, not from xhat",
    "dgamma_with_gamma": "dgamma = sum_b d_out gamma xhat",
    "dbeta_averaged": "divided by B",
    "last_row_missing": "dgamma and dbeta stop one row early",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Take the drawn xhat as y: normalise its rows, and derive rstd from the same rows."""
    y = np.asarray(values["xhat"], dtype=np.float64)
    centred = y - y.mean(axis=1, keepdims=True)
    rstd = 1.0 / np.sqrt((centred * centred).mean(axis=1) + EPS)
    return values | {"xhat": centred * rstd[:, np.newaxis], "rstd": rstd}


def _offset_gradient(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"d_out": 30.0 + np.asarray(values["d_out"])}


def _aligned_gradient(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    noise = 0.1 * np.asarray(values["d_out"])
    return values | {"d_out": np.asarray(values["xhat"]) + noise}


def _uneven_gamma(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    gamma = np.asarray(values["gamma"])
    return values | {"gamma": gamma * 10.0 ** rng.uniform(-1.0, 1.0, size=gamma.shape)}


def _near_eps(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"xhat": np.sqrt(EPS) * np.asarray(values["xhat"])}


def _one_hot(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    d_out = np.zeros_like(values["d_out"])
    rows = np.arange(d_out.shape[0])
    d_out[rows, rng.integers(d_out.shape[1], size=rows.size)] = 1.0
    return values | {"d_out": d_out}


def _duplicate_rows(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {
        name: np.repeat(np.asarray(values[name])[:1], sizes["B"], axis=0)
        for name in ("d_out", "xhat")
    }


FAMILIES = (
    Family(
        "offset_gradient", "mean of d_out far above its spread: sum(g) matters", _offset_gradient
    ),
    Family("aligned_gradient", "d_out along xhat: sum(g xhat) matters", _aligned_gradient),
    Family("uneven_gamma", "gamma over two decades: a sum without it stands out", _uneven_gamma),
    Family("near_eps", "variance near eps: rows of xhat are shorter than sqrt(D)", _near_eps),
    Family("one_hot", "one gradient element per row, as from an index", _one_hot),
    Family(
        "duplicate_rows",
        "equal rows: sums over the batch round systematically",
        _duplicate_rows,
        right_kernel_only=True,
    ),
)


def layer_norm_backward_by_means(
    d_out: F64, xhat: F64, rstd: F64, gamma: F64
) -> tuple[F64, F64, F64]:
    """Write dy with means: rstd (g - mean(g) - xhat mean(g xhat))."""
    g = d_out * gamma
    g_mean = np.mean(g, axis=1, keepdims=True)
    projection = np.mean(g * xhat, axis=1, keepdims=True)
    dy = rstd[:, np.newaxis] * (g - g_mean - xhat * projection)
    return dy, np.sum(d_out * xhat, axis=0), np.sum(d_out, axis=0)


def layer_norm_backward_by_reciprocal(
    d_out: F64, xhat: F64, rstd: F64, gamma: F64
) -> tuple[F64, F64, F64]:
    """Write the means as sums times the rounded 1 / D, as a kernel does that divides once."""
    g = d_out * gamma
    per_column = 1.0 / np.asarray(float(xhat.shape[1]))
    g_mean = np.sum(g, axis=1, keepdims=True) * per_column
    projection = np.sum(g * xhat, axis=1, keepdims=True) * per_column
    dy = rstd[:, np.newaxis] * (g - g_mean - xhat * projection)
    return dy, np.sum(d_out * xhat, axis=0), np.sum(d_out, axis=0)


def layer_norm_backward_affine(
    d_out: F64, xhat: F64, rstd: F64, gamma: F64
) -> tuple[F64, F64, F64]:
    """Write dy as rstd g + (a xhat + c) with two coefficients of the row."""
    g, scale = d_out * gamma, rstd[:, np.newaxis]
    a = -(scale / xhat.shape[1]) * np.sum(g * xhat, axis=1, keepdims=True)
    c = -(scale / xhat.shape[1]) * np.sum(g, axis=1, keepdims=True)
    return scale * g + (a * xhat + c), np.sum(d_out * xhat, axis=0), np.sum(d_out, axis=0)


_ROWS = ("B", "D")


@equation(
    ID,
    title="Layer normalisation, backward",
    source="DQN programme, GRN block; layer normalisation, arXiv:1607.06450",
    grade="fixed by the programme",
    formula="dy = rstd/D (D g - sum(g) - xhat sum(g xhat)),  g = d_out gamma",
    axes=("B", "D"),
    inputs=(
        Symbol("d_out", _ROWS, Domain("real", -2.0, 2.0), "gradient at the output"),
        Symbol("xhat", _ROWS, Domain("real", -2.0, 2.0), "saved normalised rows"),
        Symbol("rstd", ("B",), Domain("positive", 0.2, 5.0), "saved 1 / sqrt(var + eps)"),
        Symbol("gamma", ("D",), Domain("real", -2.0, 2.0), "scale of the affine part"),
    ),
    outputs=(
        Symbol("dy", _ROWS, Domain("real"), "gradient at the input of the normalisation"),
        Symbol("dgamma", ("D",), Domain("real"), "gradient of gamma"),
        Symbol("dbeta", ("D",), Domain("real"), "gradient of beta"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={
        "full": (
            layer_norm_backward_by_means,
            layer_norm_backward_by_reciprocal,
            layer_norm_backward_affine,
        )
    },
    families=FAMILIES,
    notes="The elementwise variant (dy = d_out gamma rstd) is the known defect. gamma = 0 hides "
    "every mistake in dy.",
    prepare=_prepare,
)
def layer_norm_backward(
    d_out: F64, xhat: F64, rstd: F64, gamma: F64, *, reading: str = "full"
) -> tuple[F64, F64, F64]:
    """Take a gradient back through layer normalisation.

    Equation: DQN programme, GRN block (forward: xhat = (y - mean) rstd,
    rstd = 1 / sqrt(var + eps) with the biased variance, out = gamma xhat + beta)
        g      = d_out gamma
        dy     = (rstd / D) (D g - sum_d g - xhat sum_d (g xhat))
        dgamma = sum_b d_out xhat
        dbeta  = sum_b d_out
    Shapes: d_out, xhat (B, D); rstd (B,); gamma (D,). eps enters through xhat and rstd only.
    Returns (dy, dgamma, dbeta).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "xhat_of_next_row":
        xhat = np.concatenate([xhat[1:], xhat[:1]])
    g = d_out if reading == "gamma_missing" else d_out * gamma
    size = g.shape[1]
    summed = d_out if reading == "gamma_missing_in_sums" else g
    g_sum = np.sum(summed, axis=1, keepdims=True)
    projection = np.sum(summed * xhat, axis=1, keepdims=True)
    inner = size * g - g_sum - xhat * projection
    if reading != "full":
        inner = _wrong_inner(inner, g, g_sum, xhat, projection, reading)
    scale = rstd[:, np.newaxis] / size
    dy = inner / size if reading == "rstd_missing" else scale * inner
    if reading == "full":
        return dy, np.sum(d_out * xhat, axis=0), np.sum(d_out, axis=0)
    return dy, *_wrong_parameters(d_out, xhat, rstd, gamma, reading)


def _wrong_inner(inner: F64, g: F64, g_sum: F64, xhat: F64, projection: F64, reading: str) -> F64:
    """Give the bracket of dy under the wrong variants that change it."""
    size = g.shape[1]
    if reading == "elementwise":
        inner = size * g
    elif reading == "mean_missing":
        inner = size * g - xhat * projection
    elif reading == "projection_missing":
        inner = size * g - g_sum
    elif reading == "sums_not_averaged":
        inner = size * (g - g_sum - xhat * projection)
    elif reading == "unbiased":
        if size < 2:
            raise NotApplicable(ID, reading, "D of at least 2")
        inner = size * g - g_sum - xhat * projection * (size / (size - 1))
    return inner


def _wrong_parameters(
    d_out: F64, xhat: F64, rstd: F64, gamma: F64, reading: str
) -> tuple[F64, F64]:
    """Give (dgamma, dbeta) under the wrong variants, right where they leave them alone."""
    product, rows = d_out * xhat, d_out
    if reading == "dgamma_without_xhat":
        product = d_out
    elif reading == "dgamma_from_y":
        product = product / rstd[:, np.newaxis]
    elif reading == "dgamma_with_gamma":
        product = product * gamma
    elif reading == "last_row_missing":
        product, rows = product[:-1], rows[:-1]
    dbeta = np.sum(rows, axis=0)
    return np.sum(product, axis=0), dbeta / d_out.shape[0] if reading == "dbeta_averaged" else dbeta
