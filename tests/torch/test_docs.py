"""The examples of docs/torch.md run, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import trueup.kernels.torch as layer

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks), str(PAGE), "exec"), names)
    assert names["row"]["layer0.cms.fast.chunk_tokens"] == 12


def test_every_public_name_of_nested_learning_is_told_about() -> None:
    text = PAGE.read_text()
    short = {"projected_descent_batch_": "…_batch_", "projected_descent_chunk_": "…_chunk_"}
    nested = [name for name in layer.__all__ if ".dqn" not in getattr(layer, name).__module__]
    untold = [name for name in nested if short.get(name, name) not in text]
    assert not untold
