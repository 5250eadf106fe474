"""What the GPU benchmark runs: shapes, least bytes and operations, and the equations in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from gpu_kernels import Variant

Arrays = Mapping[str, torch.Tensor]
Equation = Callable[[Arrays, Mapping[str, float]], tuple[torch.Tensor, ...]]

SCALARS = {"alpha": 0.9, "eta": 0.1}


@dataclass(frozen=True)
class Case:
    """One kernel at one shape. `versus` says whether torch runs beside it."""

    contract: str
    sizes: Mapping[str, int]
    versus: bool = False

    @property
    def label(self) -> str:
        """The shape in words."""
        return " ".join(f"{axis}={size}" for axis, size in self.sizes.items()) or "scalar"

    @property
    def floor_bytes(self) -> int:
        """The fewest bytes: each input read once, each output written once."""
        s = self.sizes
        match self.contract:
            case "nl/delta_momentum_rank1":
                return 4 * (4 * s["d_out"] * s["d_in"] + s["d_out"] + s["d_in"])
            case "nl/projected_descent":
                return 4 * (2 * s["d_out"] * s["d_in"] + s["d_out"] + s["d_in"])
            case "nl/projected_descent_batch":
                vectors = s["B"] * (s["d_out"] + s["d_in"])
                return 4 * (2 * s["d_out"] * s["d_in"] + vectors)
            case "nl/delta_momentum":
                return 4 * (5 * s["d_out"] * s["d_in"] + s["d_out"] ** 2)
            case "dqn/layer_norm_backward":
                return 4 * (3 * s["B"] * s["D"] + s["B"] + 3 * s["D"])
        return 20

    @property
    def operations(self) -> int:
        """Floating-point operations of the matrix products; 0 where bytes alone bind."""
        s = self.sizes
        match self.contract:
            case "nl/projected_descent_batch":
                return 4 * s["B"] * s["d_out"] * s["d_in"]
            case "nl/delta_momentum":
                return 4 * s["d_out"] ** 2 * s["d_in"]
        return 0

    def scale(self, name: str) -> float:
        """Standard deviation of an input: the steps stay stable however often they are repeated."""
        s = self.sizes
        if name in ("x", "X"):
            return float(s["d_in"] ** -0.5 / max(1.0, s.get("B", 1) ** 0.5 / 2))
        if name in ("u", "U", "P"):
            return float(s["d_out"] ** -0.5)
        if name == "g":
            return float(1.0 / (s["d_out"] ** 0.5 + s["d_in"] ** 0.5))
        return 1.0


def _square(contract: str, side: int, versus: bool = False) -> Case:
    return Case(contract, {"d_out": side, "d_in": side}, versus)


CASES = [
    _square("nl/delta_momentum_rank1", 4096, versus=True),
    _square("nl/delta_momentum_rank1", 8192),
    Case("nl/delta_momentum_rank1", {"d_out": 16384, "d_in": 1024}),
    Case("nl/delta_momentum_rank1", {"d_out": 4095, "d_in": 4097}),
    _square("nl/projected_descent", 4096, versus=True),
    _square("nl/projected_descent", 8192),
    Case("nl/projected_descent", {"d_out": 16384, "d_in": 1024}),
    Case("nl/projected_descent", {"d_out": 4095, "d_in": 4097}),
    Case("dqn/layer_norm_backward", {"B": 65536, "D": 256}, versus=True),
    Case("dqn/layer_norm_backward", {"B": 131072, "D": 128}),
    Case("dqn/layer_norm_backward", {"B": 16384, "D": 1024}),
    Case("dqn/layer_norm_backward", {"B": 8192, "D": 4096}),
    Case("dqn/layer_norm_backward", {"B": 65536, "D": 255}),
    Case("nl/projected_descent_batch", {"B": 64, "d_out": 4096, "d_in": 4096}, versus=True),
    Case("nl/projected_descent_batch", {"B": 256, "d_out": 4096, "d_in": 4096}),
    _square("nl/delta_momentum", 4096, versus=True),
    _square("nl/delta_momentum", 1024),
    Case("isv/grad_norm_emas", {}, versus=True),
]


def _rank1(a: Arrays, s: Mapping[str, float]) -> tuple[torch.Tensor, ...]:
    step = s["eta"] * ((a["u"] @ a["u"]) * (a["m"] @ a["x"]) + a["u"])
    m = s["alpha"] * a["m"] - step[:, None] * a["x"]
    return m, a["W"] + m


def _descent(a: Arrays, s: Mapping[str, float]) -> tuple[torch.Tensor, ...]:
    step = s["eta"] * (a["W"] @ a["x"] + a["u"])
    return (a["W"] - step[:, None] * a["x"],)


def _descent_batch(a: Arrays, s: Mapping[str, float]) -> tuple[torch.Tensor, ...]:
    residual = a["W"] @ a["X"].T + a["U"].T
    return (torch.addmm(a["W"], residual, a["X"], alpha=-s["eta"]),)


def _momentum(a: Arrays, s: Mapping[str, float]) -> tuple[torch.Tensor, ...]:
    residual = torch.addmm(a["P"], a["m"], a["g"].T)
    m = torch.addmm(a["m"], residual, a["g"], beta=s["alpha"], alpha=-s["eta"])
    return m, a["W"] + m


def _layer_norm(a: Arrays, s: Mapping[str, float]) -> tuple[torch.Tensor, ...]:
    g = a["d_out"] * a["gamma"]
    projection = (g * a["xhat"]).mean(1, keepdim=True)
    dy = a["rstd"][:, None] * (g - g.mean(1, keepdim=True) - a["xhat"] * projection)
    return dy, (a["d_out"] * a["xhat"]).sum(0), a["d_out"].sum(0)


def _averages(a: Arrays, s: Mapping[str, float]) -> tuple[torch.Tensor, ...]:
    obs = a["obs"]
    fast = torch.where(a["fast"] <= 0, obs, 0.9 * a["fast"] + 0.1 * obs)
    slow = torch.where(a["slow"] <= 0, obs, 0.999 * a["slow"] + 0.001 * obs)
    return fast, slow


EQUATIONS: dict[str, Equation] = {
    "nl/delta_momentum_rank1": _rank1,
    "nl/projected_descent": _descent,
    "nl/projected_descent_batch": _descent_batch,
    "nl/delta_momentum": _momentum,
    "dqn/layer_norm_backward": _layer_norm,
    "isv/grad_norm_emas": _averages,
}


def library(contract: str, a: Arrays) -> Callable[[], object] | None:
    """Return a call to torch's own operator for the same work, where there is one."""
    if contract != "dqn/layer_norm_backward":
        return None
    rows, columns = a["d_out"].shape
    mean = torch.zeros(rows, 1, device="cuda")
    rstd = a["rstd"][:, None].contiguous()
    bias = torch.zeros(columns, device="cuda")
    backward = torch.ops.aten.native_layer_norm_backward
    return lambda: backward(
        a["d_out"], a["xhat"], [columns], mean, rstd, a["gamma"], bias, [True, True, True]
    )


def _one(entry: str, grid: str, block: str) -> Variant:
    return Variant(f"grid {grid}, block {block}", {entry: {"grid": grid, "block": block}})


def variants(contract: str) -> list[Variant]:
    """List what `--sweep` tries for a contract."""
    if contract in ("nl/delta_momentum_rank1", "nl/projected_descent"):
        entry = contract.partition("/")[2]
        return [
            *(_one(entry, f"min(d_out, {n})", "256") for n in (264, 396, 528, 792, 1056, 2112)),
            _one(entry, "d_out", "256"),
            *(_one(entry, f"min(d_out, {n})", "512") for n in (264, 528, 1056)),
            _one(entry, "d_out", "512"),
            _one(entry, "min(d_out, 1056)", "1024"),
            Variant(
                "8 quads, grid d_out, block 128",
                {entry: {"grid": "d_out", "block": "128"}},
                [
                    ("kQuads = 4;", "kQuads = 8;"),
                    ("__launch_bounds__(1024)", "__launch_bounds__(512)"),
                ],
            ),
            Variant(
                "2 quads, grid min(d_out, 1056), block 512",
                {entry: {"grid": "min(d_out, 1056)", "block": "512"}},
                [("kQuads = 4;", "kQuads = 2;")],
            ),
        ]
    if contract == "dqn/layer_norm_backward":
        rows, columns = "layer_norm_backward_rows", "layer_norm_backward_columns"
        return [
            *(_one(rows, f"min(B, {n})", "256") for n in (264, 396, 528, 792, 1056)),
            *(_one(rows, f"min(B, {n})", "512") for n in (132, 264, 528)),
            _one(rows, "min(B, 132)", "1024"),
            _one(columns, "ceil(D / 8)", "1024"),
            _one(columns, "ceil(D / 8)", "512"),
            Variant("1 quad a thread", {}, [("kVector ? 2 : 1", "kVector ? 1 : 1")]),
        ]
    if contract in ("nl/delta_momentum", "nl/projected_descent_batch"):
        return [Variant("k tiles of 8", {}, [("kDepth = 16", "kDepth = 8")])]
    return []
