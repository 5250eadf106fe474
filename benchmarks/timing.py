"""Device time from CUDA-graph replay, the cost of issuing a call, and what the device can do."""

from __future__ import annotations

import datetime
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

REPLAYS = 25
GRAPH_US = 2000.0  # a graph this long hides what its own launch costs
CALLS = 200  # of which the issue cost is the median
Pass = Callable[[], object]


@dataclass(frozen=True)
class Ceiling:
    """What this device was measured to do: bytes a second, and operations a second by format."""

    copy: float
    rates: dict[str, float]

    def floor_us(self, least_bytes: int, operations: int, rate: str) -> float:
        """The least time: the bytes at the copy bandwidth or the operations at their rate."""
        return max(least_bytes / self.copy, operations / self.rates[rate]) * 1e6


def _between_events(call: Pass) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return 1000.0 * float(start.elapsed_time(end))


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
    times = [_between_events(graph.replay) / count for _ in range(REPLAYS)]
    return float(statistics.median(times[3:]))


def time_us(passes: Sequence[Pass]) -> float:
    """Time a pass in a graph long enough to be measured; every input set comes equally often."""
    rounds = math.ceil(GRAPH_US / replay_us(passes, len(passes)) / len(passes))
    return replay_us(passes, len(passes) * min(max(rounds, 1), 64))


def issue_us(call: Pass) -> float:
    """Return the median time in microseconds that the host takes to issue one call."""
    for _ in range(10):
        call()
    torch.cuda.synchronize()
    times = []
    for number in range(CALLS):
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1000.0)
        if number % 20 == 19:  # a full queue would make the host wait
            torch.cuda.synchronize()
    return float(statistics.median(times))


def _product_rate(dtype: torch.dtype, side: int = 8192) -> float:
    a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * side**3 / time_us([lambda: torch.mm(a, b, out=out)]) * 1e6


def measure_ceiling() -> Ceiling:
    """Measure a large copy on the device, and a large product in each format."""
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)

    def copy() -> object:
        return target.copy_(source)

    # Outside a graph too: as a graph's node the same copy took half as long again.
    plain = statistics.median([_between_events(copy) for _ in range(23)][3:])
    fastest = min(plain, time_us([copy]))
    rates = {"f32": _product_rate(torch.float32), "bf16": _product_rate(torch.bfloat16)}
    torch.backends.cuda.matmul.allow_tf32 = True
    rates["tf32"] = _product_rate(torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = False
    return Ceiling(2 * source.nbytes / fastest * 1e6, rates)


def heading(ceiling: Ceiling, command: str) -> list[str]:
    """Say where, when and how a table was made."""
    props: Any = torch.cuda.get_device_properties(0)
    rates = ", ".join(f"{name} {rate / 1e12:.0f}" for name, rate in ceiling.rates.items())
    return [
        f"# {props.name}",
        "",
        f"- command: `{command}`",
        f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        f"- device: {props.name}, {props.multi_processor_count} multiprocessors, "
        f"{props.L2_cache_size / 2**20:.0f} MiB of L2",
        f"- driver {_driver_version()}, CUDA {torch.version.cuda}, "
        f"torch {torch.__version__}, Python {sys.version.split()[0]}",
        f"- measured: copy on the device {ceiling.copy / 1e12:.2f} TB/s (read + written), "
        f"products in TFLOP/s: {rates}",
        f"- device time: median of {REPLAYS - 3} graph replays; inputs rotate beyond L2",
        "",
    ]


def _driver_version() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.split()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "unknown"
