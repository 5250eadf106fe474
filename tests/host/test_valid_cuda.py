"""What the shim accepts is no dialect of its own: NVIDIA's compiler takes the same kernels."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(
    "file", sorted(path.name for path in (Path(__file__).parent / "cu").glob("*.cu"))
)
def test_the_test_kernels_are_valid_cuda(file: str, tmp_path: Path) -> None:
    source = Path(__file__).parent / "cu" / file
    flags = ["-arch=sm_80", "-std=c++17", "-ptx", "-o", str(tmp_path / "k.ptx")]
    done = subprocess.run(
        ["nvcc", *flags, str(source)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
