"""How long `trueup lint` takes on a large tree, and the fingerprint of a large layout.

    python benchmarks/lint.py [--lines 300000] [--jobs 0]

The tree is made of generated CUDA, Rust and Python files, a third of the lines each, with comments,
strings that look like findings, macros and launches; one file in twenty holds something to find.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

CUDA = """// Adds two rows; atomicAdd would lose the order.
#define SQUARE_{i}(x) ((x) * (x))
extern "C" __global__ void add_{i}(const float* __restrict__ a, const float* __restrict__ b,
                                   float* __restrict__ c, int n) {{
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < 4; ++k) {{
    sum = fmaf(a[at], SQUARE_{i}(b[at]), sum);
  }}
  c[at] = sum + isv[SLOT_TAU_EFF];
}}

"""
RUST = """/// Reads one slot by its name.
pub fn read_{i}(isv: &[f32], names: &[&str]) -> Option<f32> {{
    let label = "unimplemented! TODO";
    let mut total = 0.0_f32;
    for (index, name) in names.iter().enumerate() {{
        if name.contains(label) || index > {i} {{
            total += isv.get(index).copied().unwrap_or(0.0);
        }}
    }}
    stream.memcpy_dtod(&source, &mut target).ok()?;
    Some(total)
}}

"""
PYTHON = """def mean_{i}(values: list[float], weights: dict[str, float]) -> float:
    \"\"\"The weighted mean of some values.\"\"\"
    total = 0.0  # a comment without a marker
    for index, value in enumerate(values):
        if value > {i} and str(index) in weights:
            total += value * weights[str(index)]
    names = [name for name in weights if name.startswith("FIXME")]
    return total / max(1, len(values) + len(names))


"""
BAD = {
    ".cu": "__global__ void bad(float* p) {{ atomicAdd(p, 1.0f); }}\n",
    ".rs": "fn bad() -> u8 {{ todo!() }}\n",
    ".py": "x = 1  # TODO: the rest\n",
}


def make(folder: Path, lines: int) -> tuple[int, int]:
    """Write the tree; give its lines and how many things there are to find."""
    rng = random.Random(7)
    written = planted = 0
    for suffix, text in ((".cu", CUDA), (".rs", RUST), (".py", PYTHON)):
        each, done, number = text.count("\n"), 0, 0
        while done < lines // 3:
            count = rng.randint(10, 60)
            parts = [text.format(i=number * 100 + k) for k in range(count)]
            if number % 20 == 0:
                parts.append(BAD[suffix].format())
                planted += 1
            path = folder / f"part_{number % 40}" / f"file_{number}{suffix}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(parts))
            done += each * count
            number += 1
        written += done
    return written, planted


def main() -> None:
    """Make the tree, judge it, and print one line for each measure."""
    from trueup.gates.source.config import Config
    from trueup.gates.source.judge import lint
    from trueup.reference.isv.layout import Layout, Slot, Tensor, fingerprint

    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=300_000)
    parser.add_argument("--jobs", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines, planted = make(Path(folder), args.lines)
        start = time.perf_counter()
        verdict = lint([folder], Config(Path(folder).resolve()), jobs=args.jobs)
        took = time.perf_counter() - start
    found = len(verdict.findings)
    print(
        f"lint: {lines:,} lines in {len(verdict.artifacts):,} files, {took:.1f} s, "
        f"{lines / took:,.0f} lines/s; {found} of {planted} planted findings"
    )
    named = tuple(Tensor(f"layer{k}.block.weight_{k}", 64 * k) for k in range(5_000))
    layout = Layout((Slot(0, 85, "STATE"), Slot(85, 2, "LAYOUT_FINGERPRINT")), named)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        fingerprint(layout)
        times.append(time.perf_counter() - start)
    print(f"fingerprint: 5,000 tensors, {1000 * sorted(times)[2]:.1f} ms (median of 5)")


if __name__ == "__main__":
    main()
