"""Quantile regression of the branches: targets, Huber loss and gradient, value at risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID, CVAR_ID = "dqn.iqn_loss", "dqn.cvar"
TAUS = (0.05, 0.25, 0.5, 0.75, 0.95)
EDGES = (0.0, 0.15, 0.375, 0.625, 0.85, 1.0)
KAPPA = 1.0
WRONG = {
    "tau_flipped": "1 - tau: the indicator of theta - T",
    "indicator_times_sign": "|tau - 1{u<0}| with the sign of u in the loss",
    "no_huber": "|tau - 1{u<0}| |u|",
    "squared": "u^2 / 2 everywhere",
    "mean_of_both": "the mean over i as well",
    "sum_of_both": "the sum over j as well",
    "quarter_in_heads": "the gradient of a head times 1/4",
    "batch_missing": "the gradient not divided by the batch",
    "weight_missing": "the importance weight left out",
    "sign_flipped": "the gradient with the other sign",
    "neighbour_tau": "the levels of the next quantile",
}
WRONG_CVAR = {
    "plain_mean": "the mean of the quantiles",
    "upper_tail": "the best share in place of the worst",
    "level_missing": "not divided by the level",
    "cells_of_taus": "cell edges at the taus themselves",
    "nearest_cell": "whole cells only",
}


def _ties(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Differences of exactly 0 and exactly kappa."""
    kappa = float(np.asarray(values.get("kappa", KAPPA)))
    changed: Values = {}
    for name in ("theta", "target"):
        steps = rng.integers(-2, 3, np.shape(values[name])).astype(np.float64)
        changed[name] = kappa * steps
    return values | changed


def _near(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {name: 0.1 * np.asarray(values[name]) for name in ("theta", "target")}


def _wide(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {name: 10.0 * np.asarray(values[name]) for name in ("theta", "target")}


def iqn_loss_by_clip(
    theta: F64, target: F64, tau: F64, weight: F64, kappa: float = KAPPA
) -> tuple[F64, F64]:
    """Write Huber as c (|u| - c / 2) with c = min(|u|, kappa)."""
    u = target[..., np.newaxis, :] - theta[..., :, np.newaxis]
    size = np.abs(u)
    inner = np.minimum(size, kappa)
    level = np.where(u < 0.0, 1.0 - tau[:, np.newaxis], tau[:, np.newaxis])
    clipped = np.where(u < 0.0, -inner, inner) * level
    rho = np.abs(clipped) * (size - 0.5 * inner)
    count = np.asarray(float(target.shape[-1]))
    omega = weight / weight.shape[0]
    loss = np.sum(np.sum(rho, axis=-1), axis=-1) / count / kappa
    slope = np.sum(clipped, axis=-1) / count / kappa
    return loss, -(omega[:, np.newaxis, np.newaxis] * slope)


def iqn_loss_published_plain(
    theta: F64, target: F64, tau: F64, weight: F64, kappa: float = KAPPA
) -> tuple[F64, F64]:
    """Give the reading without the division: kappa times the divided one."""
    loss, gradient = iqn_loss_by_clip(theta, target, tau, weight, kappa)
    return kappa * loss, kappa * gradient


@equation(
    ID,
    title="Quantile Huber loss of the branches, with its gradient",
    source="IQN, arXiv:1806.06923; QR-DQN, arXiv:1710.10044",
    grade="as published; fixed levels by the programme",
    formula="L = sum_i mean_j |tau_i - 1{u<0}| H(u_ij)/kappa,  u_ij = T_j - theta_i",
    axes=("B", "n_tau", "n_target"),
    inputs=(
        Symbol("theta", ("B", "4", "n_tau"), Domain("real", -2.0, 2.0), "online quantiles"),
        Symbol("target", ("B", "4", "n_target"), Domain("real", -2.0, 2.0), "target quantiles"),
        Symbol("tau", ("n_tau",), Domain("unit", 0.05, 0.95), "levels of the online quantiles"),
        Symbol("weight", ("B",), Domain("positive", 0.3, 1.0), "importance weight"),
        Symbol("kappa", (), Domain("positive", 0.5, 2.0), "where Huber turns linear, 1", True),
    ),
    outputs=(
        Symbol("loss", ("B", "4"), Domain("nonnegative"), "loss of every branch, unweighted"),
        Symbol("d_theta", ("B", "4", "n_tau"), Domain("real"), "gradient, weighted"),
    ),
    readings={
        "divided": "H(u) / kappa, as IQN prints",
        "undivided": "H(u), as QR-DQN prints; the same at kappa = 1",
    },
    wrong=WRONG,
    forms={"divided": (iqn_loss_by_clip,), "undivided": (iqn_loss_published_plain,)},
    families=(
        Family("ties", "differences of exactly 0 and kappa", _ties),
        Family("near", "all differences within kappa", _near),
        Family("wide", "nearly all beyond kappa", _wide),
    ),
    notes="The sum over the online quantiles, the mean over the targets. The heads receive exactly "
    "this; the trunk a quarter of the sum over the branches (dqn.trunk_gradient).",
)
def iqn_loss(
    theta: F64,
    target: F64,
    tau: F64,
    weight: F64,
    kappa: float = KAPPA,
    *,
    reading: str = "divided",
) -> tuple[F64, F64]:
    """Give the quantile Huber loss of every branch and the gradient of its quantiles.

    Equation: IQN, u_ij = T_j - theta_i, H(u) = u^2/2 where |u| <= kappa else kappa (|u| - kappa/2)
        L_b = sum_i (1/N') sum_j |tau_i - 1{u_ij < 0}| H(u_ij) / kappa
        dtheta_i = -(w_b / B) (1/N') sum_j |tau_i - 1{u_ij < 0}| clip(u_ij, -kappa, kappa) / kappa
    Shapes: theta (B, 4, n_tau); target (B, 4, n_target); tau (n_tau,); weight (B,).
    Readings: ``divided`` by kappa; ``undivided``. Returns (loss (B, 4), d_theta).
    """
    known = ("divided", "undivided", *WRONG)
    if reading not in known:
        raise UnknownReading(ID, reading, known)
    if reading == "neighbour_tau":
        tau = np.roll(tau, -1)
    u = target[..., np.newaxis, :] - theta[..., :, np.newaxis]
    below = np.where(u < 0.0, 1.0, 0.0)
    level = np.abs(tau[:, np.newaxis] - below)
    if reading == "tau_flipped":
        level = np.abs(1.0 - tau[:, np.newaxis] - below)
    size = np.abs(u)
    huber = np.where(size <= kappa, 0.5 * u * u, kappa * (size - 0.5 * kappa))
    slope = np.minimum(np.maximum(u, -kappa), kappa)
    if reading == "squared":
        huber, slope = 0.5 * u * u, u
    elif reading == "no_huber":
        huber, slope = kappa * size, kappa * np.where(u < 0.0, -1.0, np.where(u > 0.0, 1.0, 0.0))
    elif reading == "indicator_times_sign":
        huber = (1.0 - 2.0 * below) * huber
    if reading != "undivided":
        huber, slope = huber / kappa, slope / kappa
    loss, gradient = np.mean(level * huber, axis=-1), np.mean(level * slope, axis=-1)
    if reading == "sum_of_both":
        loss, gradient = target.shape[-1] * loss, target.shape[-1] * gradient
    return np.sum(loss, axis=-1) / (theta.shape[-1] if reading == "mean_of_both" else 1), _weighted(
        gradient, weight, theta.shape[-1], reading
    )


def _weighted(gradient: F64, weight: F64, n_tau: int, reading: str) -> F64:
    count = 1 if reading == "batch_missing" else weight.shape[0]
    omega = weight / count
    if reading == "weight_missing":
        omega = 0.0 * omega + 1.0 / count
    if reading == "mean_of_both":
        gradient = gradient / n_tau
    elif reading == "quarter_in_heads":
        gradient = 0.25 * gradient
    out = omega[:, np.newaxis, np.newaxis] * gradient
    return out if reading == "sign_flipped" else -out


def cvar_by_cells(theta: F64, level: F64) -> F64:
    """Add the cells below the level one after the other."""
    total, used = 0.0 * theta[..., 0], 0.0 * level[0]
    for i in range(5):
        upper = np.minimum(level[0], EDGES[i + 1])
        share = np.maximum(upper - used, 0.0)
        total = total + share * theta[..., i]
        used = np.maximum(used, upper)
    result: F64 = total / level[0]
    return result


def _low_level(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"level": np.full(1, 0.05)}


def _whole(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"level": np.ones(1)}


@equation(
    CVAR_ID,
    title="Value at risk of the quantiles",
    source="DQN programme, 10",
    grade="proposed by the programme",
    formula="CVaR_a = (1/a) sum_i max(0, min(e_{i+1}, a) - e_i) theta_i",
    axes=("n",),
    inputs=(
        Symbol("theta", ("n", "5"), Domain("real", -2.0, 2.0), "quantiles at the fixed levels"),
        Symbol("level", ("1",), Domain("unit", 0.1, 0.9), "share of the worst outcomes"),
    ),
    outputs=(Symbol("cvar", ("n",), Domain("real"), "mean of the worst share"),),
    wrong=WRONG_CVAR,
    forms={"default": (cvar_by_cells,)},
    families=(
        Family("low_level", "the first cell alone", _low_level),
        Family("whole", "the cell-weighted mean, the value of these heads", _whole),
    ),
    notes="Crossing quantiles are counted, not sorted. At level 1 it is the action value.",
)
def cvar(theta: F64, level: F64, *, reading: str = "default") -> F64:
    """Give the mean over the worst share of outcomes.

    Equation: with cell edges e = 0, .15, .375, .625, .85, 1 (between the levels)
        CVaR_a = (1/a) sum_i max(0, min(e_{i+1}, a) - e_i) theta_i
    Shapes: theta (n, 5); level (1,), above 0. Returns (n,).
    """
    if reading not in ("default", *WRONG_CVAR):
        raise UnknownReading(CVAR_ID, reading, ("default", *WRONG_CVAR))
    if reading == "plain_mean":
        mean: F64 = np.mean(theta, axis=-1)
        return mean
    edges = EDGES
    if reading == "cells_of_taus":
        edges = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
    if reading == "upper_tail":
        theta = theta[..., ::-1]
    shares = []
    for i in range(5):
        share = np.maximum(np.minimum(level[0], edges[i + 1]) - edges[i], 0.0)
        if reading == "nearest_cell":
            share = np.where(level[0] > edges[i], edges[i + 1] - edges[i], 0.0) + 0.0 * share
        shares.append(share)
    total = np.sum(np.stack(shares) * theta, axis=-1)
    result: F64 = total if reading == "level_missing" else total / level[0]
    return result


def crossings(theta: F64) -> Any:
    """Count the neighbouring quantiles of each row that are out of order; shape (..., n_tau)."""
    return np.sum(theta[..., 1:] < theta[..., :-1], axis=-1)
