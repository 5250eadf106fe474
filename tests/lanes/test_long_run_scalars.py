"""Every average of the state bus over hundreds of steps: a bounded bias, then it stands still.

As of the gradient norm's (test_long_run.py): each step rounds three times at most, so that a
float32 average ends within 3 u / alpha of what float64 says, and stops short of what it follows.
The bits of the fingerprint beside the averages are what they were.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import trueup.kernels
from trueup.oracle.backends.base import AnyArray, Buffer, Launch, RunOptions, Scalar, Source
from trueup.oracle.backends.host import HostBackend
from trueup.oracle.contract import load_contract

KERNELS = Path(trueup.kernels.__file__).resolve().parent
ISV = KERNELS / "isv"
LAYOUT = tomllib.loads((ISV / "layout.toml").read_text())
SLOTS = {slot["name"]: slot["index"] for slot in LAYOUT["slot"]}
LANES = np.array([0x7FA00001, 0x00000001], np.uint32)  # a signalling NaN and a subnormal number
F32 = np.dtype(np.float32)
ALPHA = float(np.float32(0.05))
UNIT = 2.0**-24
READ = ("h", "reward", "mean", "var", "mean_ref", "var_ref", "readiness", "w", "retention",
        "online", "init", "kappa")  # fmt: skip
STEPS = 450  # (1 - alpha)^450 is 1e-10: nothing is left of the start


@cache
def kernel() -> object:
    """All of them in one source, which is compiled once."""
    names = ("isv/rms_ema", "isv/reward_emas", "isv/state_kl", "isv/plan_threshold", "isv/polyak",
             "isv/soft_reset", "dqn/attention_focus", "dqn/attention_summary")  # fmt: skip
    path = Path(__file__).parent / "cu" / "long_run_scalars.cu"
    entries = ("rms_parts", *(name.partition("/")[2] for name in names))
    return HostBackend().load(Source(path, "cu", include=(KERNELS, ISV)), entries)


def launched(launches: list[Launch], buffers: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """The buffers after these launches; on the bus, the lanes are untouched."""
    read = (*READ, "isv") if launches[0].entry == "polyak" else READ
    given = [
        Buffer(name, "in" if name in read else "inout", a.dtype, a.shape, a)
        for name, a in buffers.items()
    ]
    result = kernel().run(launches, given, RunOptions(time_limit=60.0))  # type: ignore[attr-defined]
    assert not result.faults
    if "isv" in buffers:
        assert result.buffers["isv"][-2:].view(np.uint32).tolist() == LANES.tolist()
    return dict(result.buffers)


def bus(**slots: AnyArray | float) -> AnyArray:
    """The bus with these slots, the others zero, the lanes at its end."""
    words = np.zeros(SLOTS["LAYOUT_FINGERPRINT"] + 2, F32)
    for name, value in slots.items():
        values = np.atleast_1d(np.asarray(value, F32))
        words[SLOTS[name] : SLOTS[name] + values.size] = values
    words[-2:] = LANES.view(F32)
    return words


def one(entry: str, *args: str | int, block: int = 32) -> Launch:
    given = (arg if isinstance(arg, str) else Scalar("n", np.int32(arg)) for arg in args)
    return Launch(entry, (1, 1, 1), (block, 1, 1), 0, tuple(given))


@dataclass(frozen=True)
class Average:
    """A kernel that keeps an average of what never changes here."""

    launches: list[Launch]
    inputs: dict[str, AnyArray]
    state: str  # the slot it begins at, or the buffer
    size: int = 1
    counted: bool = True  # else a state of 0 is none yet
    outputs: dict[str, AnyArray] = field(default_factory=dict)

    def after(self, steps: int, start: AnyArray, seen: int = 1) -> AnyArray:
        """The averages after so many steps."""
        on_bus = self.state in SLOTS
        buffers = {**self.inputs, **self.outputs}
        if self.counted:
            buffers["count"] = np.full(1, seen, np.int32)
        if on_bus or any("isv" in launch.args for launch in self.launches):
            buffers["isv"] = bus(**{self.state: start}) if on_bus else bus()
        if not on_bus:
            buffers[self.state] = start.astype(F32)
        done = launched(self.launches * steps, buffers)
        if not on_bus:
            return done[self.state]
        return done["isv"][SLOTS[self.state] : SLOTS[self.state] + self.size]


def exact(steps: int, observed: AnyArray, start: AnyArray, alpha: float) -> AnyArray:
    """The closed form observed + (1 - alpha)^t (start - observed), in float64."""
    wide, begin = observed.astype(np.float64), start.astype(np.float64)
    return wide + (1.0 - alpha) ** steps * (begin - wide)


def allowed(observed: AnyArray, start: AnyArray, alpha: float, roundings: int = 3) -> AnyArray:
    size = np.maximum(np.abs(observed), np.abs(start)).astype(np.float64)
    return roundings * UNIT / alpha * size


WEIGHTS = np.array([[0.5, 0.2, 0.1, 0.1, 0.05, 0.05], [0.1, 0.3, 0.2, 0.2, 0.1, 0.1]], F32)
ONE = np.zeros(1, F32)
AVERAGES = {
    "rms_ema": Average(
        [one("rms_parts", "h", "parts", 3, 7), one("rms_ema", "parts", "isv", 3, 7)],
        {"h": np.linspace(-3.0, 4.1, 21, dtype=F32).reshape(3, 7)}, "H_S2_RMS_EMA",
        counted=False, outputs={"parts": ONE},
    ),
    # Rewards of both signs: an average that took `<= 0` for "none yet" would follow at once.
    "reward_emas": Average(
        [one("reward_emas", "reward", "count", "isv")],
        {"reward": np.array([-1.7, 0.3, 1.9999, -1e-3, 7.7e4, -1.3], F32)},
        "REWARD_TRAIL_EMA", 6,
    ),
    "state_kl": Average(
        [one("state_kl", "mean", "var", "mean_ref", "var_ref", "trail", "count", "isv", 3)],
        {"mean": np.array([0.1, -0.4, 2.0], F32), "var": np.array([1.0, 0.5, 2.5], F32),
         "mean_ref": np.array([0.0, 0.1, 1.5], F32), "var_ref": np.array([1.5, 0.6, 2.0], F32)},
        "trail",
    ),
    "plan_threshold": Average(
        [one("plan_threshold", "readiness", "fires", "count", "isv", block=1)],
        {"readiness": np.array([0.37], F32)}, "READINESS_EMA",
        outputs={"fires": np.zeros(1, np.int32)},
    ),
    "attention_focus": Average(
        [one("attention_focus", "w", "retention", "ema", "count", 2)],
        {"w": WEIGHTS, "retention": np.array([0.83], F32)}, "ema", 7,
    ),
    "attention_summary": Average(
        [one("attention_summary", "w", "retention", "ema", "count", 2)],
        {"w": WEIGHTS, "retention": np.array([0.83], F32)}, "ema", 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AVERAGES)
def test_bias_and_dead_band_of_an_average(name: str) -> None:
    average = AVERAGES[name]
    observed = average.after(1, np.zeros(average.size, F32), seen=0)  # the first one is taken as is
    short = 0
    for factor in (0.5, 2.0):
        start = (observed * np.float32(factor)).astype(F32)
        got = average.after(STEPS, start)
        bound = allowed(observed, start, ALPHA)
        assert (np.abs(got - exact(STEPS, observed, start, ALPHA)) <= bound).all()
        assert (average.after(2, got) == got).all()  # it moves no more ...
        short += int(np.count_nonzero(got != observed))
    assert short  # ... and has not arrived


@pytest.mark.parametrize("name", AVERAGES)
def test_a_wrong_rate_is_far_outside_the_bias(name: str) -> None:
    average, steps = AVERAGES[name], 20
    observed = average.after(1, np.zeros(average.size, F32), seen=0)
    start = (observed * np.float32(2.0)).astype(F32)
    got = average.after(steps, start)
    bound = allowed(observed, start, ALPHA)
    assert (np.abs(got - exact(steps, observed, start, ALPHA)) <= bound).all()
    assert (np.abs(got - exact(steps, observed, start, 0.051)) > 100 * bound).all()


def test_a_divergence_that_stays_amplifies_nothing_but_its_bias() -> None:
    """Constant KL gives the factor 1: in float32, 1 and what the trailing average lacks."""
    average = AVERAGES["state_kl"]
    buffers = {**average.inputs, "trail": ONE, "count": np.zeros(1, np.int32), "isv": bus()}
    done = launched(average.launches * STEPS, buffers)
    amp = float(done["isv"][SLOTS["STATE_KL_AMP"]])
    assert 1.0 <= amp <= 1.0 + 4 * UNIT / ALPHA
    assert done["count"][0] == STEPS


def test_averages_of_rewards_add_up_to_the_average_of_their_sum() -> None:
    average = AVERAGES["reward_emas"]
    reward = average.inputs["reward"]
    start = np.linspace(-2.0, 3.0, 6, dtype=F32)
    total = average.after(200, start).astype(np.float64).sum()
    want = exact(200, np.asarray(reward.astype(np.float64).sum()),
                 np.asarray(start.astype(np.float64).sum()), ALPHA)  # fmt: skip
    assert abs(total - want) <= allowed(reward, start, ALPHA).sum()


def _polyak(tau: float, steps: int, start: AnyArray, online: AnyArray) -> AnyArray:
    buffers = {"target": start, "online": online, "isv": bus(TAU_EFF=tau)}
    return launched([one("polyak", "target", "online", "isv", start.size)] * steps, buffers)[
        "target"
    ]


def _soft_reset(kappa: float, steps: int, start: AnyArray, initial: AnyArray) -> AnyArray:
    buffers = {"state": start, "init": initial, "kappa": np.full(start.size, kappa, F32)}
    return launched([one("soft_reset", "state", "init", "kappa", start.size)] * steps, buffers)[
        "state"
    ]


Towards = Callable[[float, int, AnyArray, AnyArray], AnyArray]


@pytest.mark.parametrize(
    ("towards", "share", "alpha", "steps"),
    [
        pytest.param(_polyak, 0.01, 0.01, 2_000, id="target-network-fast"),
        pytest.param(_polyak, 0.001, 0.001, 3_000, id="target-network-slow"),
        pytest.param(_soft_reset, 0.9, 0.1, 250, id="soft-reset"),
    ],
)
def test_what_is_drawn_towards_something_stops_short_of_it(
    towards: Towards, share: float, alpha: float, steps: int
) -> None:
    """`share` is the kernel's: what a target takes of the other side, what a reset keeps."""
    rounded = float(np.float32(share))
    rate = rounded if share == alpha else 1.0 - rounded
    goal = np.array([1.3, -1.9999, 1.0, 3.7e-4], F32)
    start = (goal * np.array([0.5, 2.0, 1.0 + 2.0**-15, -1.0], F32)).astype(F32)
    bound = allowed(goal, start, rate)
    got = towards(rounded, steps, start, goal)
    assert (np.abs(got - exact(steps, goal, start, rate)) <= bound).all()
    early = round(1.0 / rate)
    off = np.abs(towards(rounded, early, start, goal) - exact(early, goal, start, 1.1 * rate))
    assert (off[:2] > 10 * bound[:2]).all()  # another rate is far away
    if steps * rate > 15:  # nothing is left of the start
        assert (towards(rounded, 2, got, goal) == got).all()
        assert (got != goal).any()


# Arrays that are changed in place and follow nothing: no error of theirs is carried on.
ONE_STEP = {"adaptive_clip": "gradients, scaled once a step and made anew"}
ELSEWHERE = ("grad_norm_emas",)  # test_long_run.py
HERE = {*AVERAGES, "polyak", "soft_reset"}


def test_every_recurrence_of_the_bus_is_looked_at() -> None:
    kept = {
        path.stem
        for path in sorted(ISV.glob("*.toml"))
        if path.stem != "layout"
        and any(arg.role == "inout" and arg.dtype != "i32" for arg in load_contract(path).args)
    }
    assert kept - HERE - set(ELSEWHERE) == set(ONE_STEP)
