"""The page on checkpoints says what the code does."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trueup.gates import judge
from trueup.gates.documents.schema import breaks, built_in_schema

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "checkpoints.md").read_text("utf-8")
PROFILE = str(ROOT / "fixtures" / "checkpoints" / "profile.toml")
PICKLE = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01."
CONFIG = """\
train: {algorithm_mode: two_pass_stopgrad_updates, online_updates: true, use_fast_state: false}
"""


def test_the_table_of_keys_is_that_of_the_schema() -> None:
    path = ROOT / "docs" / "checkpoint_keys.py"
    spec = importlib.util.spec_from_file_location("checkpoint_keys", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.filled(PAGE) == PAGE, "run: python docs/checkpoint_keys.py"
    with pytest.raises(ValueError, match="0 places"):
        module.filled("# nothing")


@pytest.mark.parametrize("name", ["checkpoint/sidecar", "checkpoint/dqn"])
def test_every_key_of_a_schema_is_described(name: str) -> None:
    for key, one in built_in_schema(name)["properties"].items():
        assert one.get("description"), key


def write_sidecar() -> Any:
    """The function that the page shows."""
    found = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(compile(found[1], "docs/checkpoints.md", "exec"), names)
    return names["write_sidecar"]


def test_what_the_page_shows_writes_a_sidecar_that_holds(tmp_path: Path) -> None:
    checkpoint = tmp_path / "step_000010.pt"
    checkpoint.write_bytes(PICKLE)
    commit = "0123456789abcdef0123456789abcdef01234567"
    write_sidecar()(checkpoint, CONFIG, step=10, git_commit=commit, tokenizer_hash=None)
    sidecar = json.loads((tmp_path / "step_000010.meta.json").read_text())
    assert breaks(sidecar, "checkpoint/sidecar") == []
    found = {finding.rule for finding in judge(tmp_path, PROFILE).findings}
    # The page's function knows of no torch: its version and its random state are missing.
    assert found == {"META014", "META016"}
    write_sidecar()(
        checkpoint, CONFIG, step=10, git_commit=commit, tokenizer_hash=None,
        libraries={"python": "3.11.7", "numpy": "2.4.6", "torch": "2.13.0"},
        rng_states={"python": "x", "numpy": "y", "torch": "z"},
    )  # fmt: skip
    assert judge(tmp_path, PROFILE).findings == ()
