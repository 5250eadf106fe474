"""Time every shipped kernel on a GPU, beside torch, against the measured copy bandwidth.

    python benchmarks/gpu.py [--sweep] [--no-compile] [--only TEXT] [--results FOLDER]

Needs torch and cuda-bindings. Times are device times: passes over several input sets, together
larger than the L2 cache, are captured in a CUDA graph, and the median replay is divided by its
passes. Each kernel's result is held to the equation in float64 first. Prints a Markdown table and
writes it to benchmarks/results/<device>.md.
"""

from __future__ import annotations

import argparse
import datetime
import math
import statistics
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from gpu_cases import CASES, EQUATIONS, SCALARS, Case, library, variants
from gpu_kernels import Kernel, Variant

HERE = Path(__file__).resolve().parent
REPLAYS = 25
GRAPH_US = 2000.0  # a graph this long hides what its own launch costs
Pass = Callable[[], object]


@dataclass(frozen=True)
class Ceiling:
    """What this device was measured to do: bytes per second, float32 operations per second."""

    copy: float
    matmul: float


def replay_us(passes: Sequence[Pass], count: int) -> float:
    """Return the median device time in microseconds of one of `count` passes, taken in turn."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for one in passes:
            one()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            passes[i % len(passes)]()
    times = []
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1000.0 * start.elapsed_time(end) / count)
    return float(statistics.median(times[3:]))


def time_us(passes: Sequence[Pass]) -> float:
    """Time a pass in a graph long enough to be measured; every input set comes equally often."""
    rounds = math.ceil(GRAPH_US / replay_us(passes, len(passes)) / len(passes))
    return replay_us(passes, len(passes) * min(max(rounds, 1), 64))


def eager_us(call: Pass) -> float:
    """Time one large call by events, without a graph."""
    times = []
    for _ in range(23):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(1000.0 * start.elapsed_time(end))
    return float(statistics.median(times[3:]))


def measure_ceiling() -> Ceiling:
    """Measure a large copy on the device, and a large float32 product without tf32."""
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    # Outside a graph: as a graph's node the same copy took half as long again.
    copy = min(eager_us(lambda: target.copy_(source)), time_us([lambda: target.copy_(source)]))
    side = 8192
    a, b = (torch.randn(side, side, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    product = time_us([lambda: torch.mm(a, b, out=out)])
    return Ceiling(2 * source.nbytes / copy * 1e6, 2 * side**3 / product * 1e6)


def make_inputs(kernel: Kernel, case: Case, sets: int) -> list[dict[str, torch.Tensor]]:
    """Draw `sets` sets of inputs, and poison outputs and workspaces."""
    made = []
    for _ in range(sets):
        tensors = kernel.buffers(case.sizes, ("in", "inout"))
        for name, tensor in tensors.items():
            tensor.normal_().mul_(case.scale(name))
            if name in ("rstd", "obs", "fast", "slow"):
                tensor.abs_().add_(0.5)
        made.append(tensors | kernel.buffers(case.sizes, ("out", "workspace")))
    return made


def error_of(kernel: Kernel, case: Case, tensors: dict[str, torch.Tensor]) -> float:
    """Run once; return the largest error against float64, relative (Frobenius) to the step made."""
    old = {name: t.double() for name, t in tensors.items() if t.is_floating_point()}
    expected = EQUATIONS[case.contract](old, SCALARS)
    kernel.bind(case.sizes, tensors, SCALARS)()
    torch.cuda.synchronize()
    errors = []
    outputs = [arg for arg in kernel.args if arg["role"] in ("out", "inout")]
    for arg, want in zip(outputs, expected, strict=True):
        step = want - old[arg["name"]] if arg["role"] == "inout" else want
        difference = tensors[arg["name"]].double() - want
        errors.append(float(torch.linalg.norm(difference) / torch.linalg.norm(step)))
    return max(errors, key=lambda e: math.inf if math.isnan(e) else e)


def sets_needed(case: Case) -> int:
    """Enough input sets to be three times the L2 cache, at least two, at most sixteen."""
    cache = int(torch.cuda.get_device_properties(0).L2_cache_size)
    return min(max(2, math.ceil(3 * cache / case.floor_bytes)), 16)


def run_kernel(case: Case, variant: Variant) -> tuple[float, float, list[dict[str, torch.Tensor]]]:
    """Return (device time in us, error, the input sets used)."""
    kernel = Kernel(case.contract, variant)
    inputs = make_inputs(kernel, case, sets_needed(case))
    error = error_of(kernel, case, inputs[0])
    return time_us([kernel.bind(case.sizes, one, SCALARS) for one in inputs]), error, inputs


def run_torch(case: Case, inputs: list[dict[str, torch.Tensor]], compile: bool) -> list[str]:
    """Time the equation in torch: eager, compiled, and torch's own operator where there is one."""
    equation = EQUATIONS[case.contract]
    functions: list[Any] = [equation]
    if compile:
        torch._dynamo.reset()
        functions.append(torch.compile(equation, dynamic=False))
    cells = []
    for function in functions:
        passes = [lambda f=function, one=one: f(one, SCALARS) for one in inputs]
        cells.append(guarded(lambda p=passes: f"{time_us(p):.1f}"))  # type: ignore[misc]
    cells += ["-"] * (2 - len(cells))
    own = [library(case.contract, one) for one in inputs]
    calls = [call for call in own if call is not None]
    cells.append(guarded(lambda: f"{time_us(calls):.1f}") if calls else "-")
    return cells


def guarded(work: Callable[[], str]) -> str:
    """Run one measurement; a failure becomes the cell's text and stops nothing else."""
    try:
        return work()
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        text = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {text[0][:80]}"


def row(case: Case, variant: Variant, ceiling: Ceiling, compile: bool) -> list[str]:
    """Measure one line of the table."""
    us, error, inputs = run_kernel(case, variant)
    floor = case.floor_bytes / ceiling.copy * 1e6
    work = f"{case.operations / us / 1e6:.1f} ({case.operations / us * 1e6 / ceiling.matmul:.0%})"
    label = case.label if variant.label == "as shipped" else f"{case.label}; {variant.label}"
    cells = [
        case.contract,
        label,
        f"{us:.1f}",
        f"{case.floor_bytes / 1e6:.1f}",
        f"{floor / us:.0%}",
        work if case.operations else "-",
        f"{error:.1e}",
    ]
    return cells + (run_torch(case, inputs, compile) if case.versus else ["-"] * 3)


HEAD = [
    "kernel",
    "shape",
    "us",
    "MB at least",
    "of copy bandwidth",
    "TFLOP/s (of matmul)",
    "error of the step",
    "torch eager us",
    "torch.compile us",
    "torch's operator us",
]


def table(args: argparse.Namespace, ceiling: Ceiling) -> list[str]:
    """Measure every case, a line each, printed as they come."""
    lines = []

    def put(cells: Sequence[str]) -> None:
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)

    put(HEAD)
    put(["---"] * len(HEAD))
    for case in CASES:
        if args.only not in case.contract:
            continue
        if args.sweep and not case.versus:
            continue
        tried = [Variant(), *(variants(case.contract) if args.sweep else [])]
        for variant in tried:
            compile = not args.no_compile and not args.sweep
            try:
                put(row(case, variant, ceiling, compile))
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                put([case.contract, f"{case.label}; {variant.label}", f"failed: {error!s:.120}"])
            torch.cuda.empty_cache()
    return lines


def heading(ceiling: Ceiling) -> list[str]:
    """Say where, when and how the table was made."""
    props = torch.cuda.get_device_properties(0)
    return [
        f"# {props.name}",
        "",
        f"- command: `{' '.join(['python', 'benchmarks/gpu.py', *sys.argv[1:]])}`",
        f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        f"- device: {props.name}, {props.multi_processor_count} multiprocessors, "
        f"{props.L2_cache_size / 2**20:.0f} MiB of L2",
        f"- driver {_driver_version()}, CUDA {torch.version.cuda}, "
        f"torch {torch.__version__}, Python {sys.version.split()[0]}",
        f"- measured: copy on the device {ceiling.copy / 1e12:.2f} TB/s (read + written), "
        f"float32 product {ceiling.matmul / 1e12:.1f} TFLOP/s (tf32 off)",
        f"- device time: median of {REPLAYS - 3} graph replays; inputs rotate beyond L2",
        "",
    ]


def _driver_version() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.split()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "unknown"


def main() -> int:
    """Run the benchmark; 2 where there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--sweep", action="store_true", help="try other launches; torch is left out"
    )
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--only", default="", help="only contracts whose id holds this text")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where to write")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device answers", file=sys.stderr)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    ceiling = measure_ceiling()
    torch.cuda.empty_cache()
    top = heading(ceiling)
    print("\n".join(top), flush=True)
    lines = table(args, ceiling)
    args.results.mkdir(parents=True, exist_ok=True)
    name = torch.cuda.get_device_name().lower().replace(" ", "-")
    path = args.results / f"{name}{'-sweep' if args.sweep else ''}.md"
    path.write_text("\n".join([*top, *lines]) + "\n")
    print(f"\nwritten to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
