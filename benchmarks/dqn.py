"""Time the kernels of the distributional agent on a GPU, beside torch, against the least time.

    python benchmarks/dqn.py [--only WORD,WORD] [--modes eager,default] [--sweep]

Prints a Markdown table and writes it to benchmarks/results/dqn-<device>.md.
"""

from __future__ import annotations

import sys

from dqn_cases import CASES
from gpu import run

if __name__ == "__main__":
    sys.exit(run("dqn.py", __doc__.partition("\n")[0], CASES))
