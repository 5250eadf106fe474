"""One rank of a parity run: every scenario, its errors to a file.

    python worker.py --rank R --world N --backend gloo|nccl --meet FILE --out FILE

Started by `test_parallel_parity.py`, once for each rank.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path

import memories
import outer
import rules
import torch
import torch.distributed as dist
from setting import Setting

SCENARIOS = [*outer.SCENARIOS, *rules.SCENARIOS, *memories.SCENARIOS]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("rank", "world"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("backend", "meet", "out"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    cuda = given.backend == "nccl"
    device = torch.device("cuda", given.rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group(
        given.backend,
        init_method=f"file://{given.meet}",
        rank=given.rank,
        world_size=given.world,
        timeout=datetime.timedelta(seconds=180),
        device_id=device if cuda else None,
    )
    setting = Setting(given.rank, given.world, device)
    table = {scenario.__name__: scenario(setting) for scenario in SCENARIOS}
    Path(given.out).write_text(json.dumps(table))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
