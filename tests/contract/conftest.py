"""A contract to break: complete and right, so that each test changes one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

GOOD = """\
[contract]
id = "user.scale"
reference = "ref.py:scale"
source = "scale.cu"
axes = ["n"]

[[arg]]
name = "x"
role = "in"
dtype = "f32"
shape = ["n"]

[[arg]]
name = "y"
role = "out"
dtype = "f32"
shape = ["n"]

[[arg]]
name = "a"
role = "scalar"
dtype = "f32"

[[arg]]
name = "n"
role = "axis"

[[launch]]
entry = "scale"
grid = "ceil(n / 128)"
block = 128
args = ["x", "y", "a", "n"]
"""

KERNEL = """\
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""

REFERENCE = """\
def scale(x, a):
    return a * x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a kernel, a user's reference and their contract."""
    (tmp_path / "scale.cu").write_text(KERNEL)
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "scale.toml").write_text(GOOD)
    return tmp_path
