"""Adam for the weights of the atoms' shift."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.adam_w"
BETA1 = float(np.float32(0.9))
BETA2 = float(np.float32(0.999))
EPS = float(np.float32(1e-8))
LR = float(np.float32(1e-3))
WRONG = {
    "eps_inside": "sqrt(v_hat + eps)",
    "step_from_0": "t counted from 0: 1 - b^(t - 1), the first step left uncorrected",
    "weight_decay": "W decays: it is pulled away from its prior",
    "uncorrected": "m and v without bias correction",
    "ascent": "W + step",
    "absolute": "|g| in place of its square root of squares",
}


def _first(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    zero = np.zeros_like(values["m"])
    return values | {"m": zero, "v": zero.copy(), "t": np.full(1, 1.0)}


def _no_gradient(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return _first(rng, sizes, values) | {"g": np.zeros_like(values["g"])}


def _small(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    scale = {"g": 1e-7, "m": 1e-7, "v": 1e-14}
    return values | {name: k * np.asarray(values[name]) for name, k in scale.items()}


def _prepare(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"t": np.maximum(np.floor(np.asarray(values["t"])), 1.0)}


def adam_w_scaled(
    W: F64,
    m: F64,
    v: F64,
    g: F64,
    t: F64,
    beta1: float = BETA1,
    beta2: float = BETA2,
    eps: float = EPS,
    lr: float = LR,
) -> tuple[F64, F64, F64]:
    """Fold both corrections into the rate and eps: lr sqrt(c2)/c1 m / (sqrt(v) + eps sqrt(c2))."""
    m_next = m + (1.0 - beta1) * (g - m)
    v_next = v + (1.0 - beta2) * (g * g - v)
    c1, c2 = 1.0 - beta1**t, 1.0 - beta2**t
    rate = lr * np.sqrt(c2) / c1
    return W - rate * m_next / (np.sqrt(v_next) + eps * np.sqrt(c2)), m_next, v_next


@equation(
    ID,
    title="Adam for the weights of the atoms' shift",
    source="Adam, arXiv:1412.6980; DQN programme, 7.6",
    grade="as published; trained by Adam from its prior: fixed by the programme",
    formula="m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, W -= lr m_hat / (sqrt(v_hat) + eps)",
    axes=("n_actions",),
    inputs=(
        Symbol("W", ("n_actions",), Domain("real", -0.5, 0.5), "weights"),
        Symbol("m", ("n_actions",), Domain("real", -0.5, 0.5), "first moment"),
        Symbol("v", ("n_actions",), Domain("nonnegative", 0.1, 0.5), "second moment"),
        Symbol("g", ("n_actions",), Domain("real", -1.0, 1.0), "gradient"),
        Symbol("t", ("1",), Domain("positive", 1.0, 50.0), "number of this step, from 1"),
        Symbol("beta1", (), Domain("unit", 0.8, 0.95), "0.9", optional=True),
        Symbol("beta2", (), Domain("unit", 0.99, 0.9995), "0.999", optional=True),
        Symbol("eps", (), Domain("positive", 1e-9, 1e-7), "1e-8", optional=True),
        Symbol("lr", (), Domain("positive", 1e-4, 1e-2), "1e-3", optional=True),
    ),
    outputs=(
        Symbol("W_next", ("n_actions",), Domain("real"), "weights after the step"),
        Symbol("m_next", ("n_actions",), Domain("real"), "first moment after the step"),
        Symbol("v_next", ("n_actions",), Domain("nonnegative"), "second moment after the step"),
    ),
    wrong=WRONG,
    forms={"default": (adam_w_scaled,)},
    families=(
        Family("first_step", "from rest, t = 1: the step is lr whatever the gradient", _first),
        Family(
            "no_gradient",
            "no gradient from the start leaves W bit-identical",
            _no_gradient,
            right_kernel_only=True,
        ),
        Family("small", "gradients near eps: its place shows", _small),
    ),
    prepare=_prepare,
    notes="The step is about lr whatever the size of g, so rounding noise alone makes W walk: that "
    "W moved is no evidence that it is trained. 1 - b^t cancels in float32; form it in double.",
)
def adam_w(
    W: F64,
    m: F64,
    v: F64,
    g: F64,
    t: F64,
    beta1: float = BETA1,
    beta2: float = BETA2,
    eps: float = EPS,
    lr: float = LR,
    *,
    reading: str = "default",
) -> tuple[F64, F64, F64]:
    """Take one step of Adam.

    Equation: Adam (arXiv:1412.6980), Algorithm 1
        m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
        W = W - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
    Shapes: W, m, v, g (n_actions,); t (1,), the number of this step, from 1. The constants are by
    default the float32 nearest to the published ones. Returns (W, m, v).
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    m_next = beta1 * m + (1.0 - beta1) * g
    size = np.abs(g) if reading == "absolute" else g * g
    v_next = beta2 * v + (1.0 - beta2) * size
    power = t - 1.0 if reading == "step_from_0" else t
    c1, c2 = 1.0 - beta1**power, 1.0 - beta2**power
    if reading == "step_from_0":
        c1, c2 = np.where(power == 0.0, 1.0, c1), np.where(power == 0.0, 1.0, c2)
    elif reading == "uncorrected":
        c1 = c2 = 1.0 + 0.0 * t
    m_hat, v_hat = m_next / c1, v_next / c2
    step = lr * m_hat / (np.sqrt(v_hat) + eps)
    if reading == "eps_inside":
        step = lr * m_hat / np.sqrt(v_hat + eps)
    elif reading == "weight_decay":
        step = step + 0.01 * W
    return W + step if reading == "ascent" else W - step, m_next, v_next
