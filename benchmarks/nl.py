"""Time the kernels of Nested Learning on a GPU, beside torch, against the least time possible.

    python benchmarks/nl.py [--only WORD,WORD] [--modes eager,default] [--sweep]

Prints a Markdown table and writes it to benchmarks/results/nl-<device>.md.
"""

from __future__ import annotations

import sys

from gpu import run
from nl_cases import CASES

if __name__ == "__main__":
    sys.exit(run("nl.py", __doc__.partition("\n")[0], CASES))
