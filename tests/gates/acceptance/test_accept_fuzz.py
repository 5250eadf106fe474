"""Whatever stands in one place of one file: an answer or a refusal, never a crash, never a pass by
the kind of value alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates.acceptance import judge as module
from trueup.gates.acceptance.expectations import Told
from trueup.gates.errors import GateError

# Text and lines of each fixture in which one value is replaced.
PLACES = [
    ("passes_bands", "results.json"), ("passes_smoke", "results.json"),
    ("passes_smoke", "smoke.json"), ("passes_smoke", "health.jsonl"),
    ("passes_hard_stop", "end.json"), ("passes_hard_stop", "evals.jsonl"),
    ("passes_final", "results.json"), ("passes_final", "manifest.json"),
    ("passes_final", "ledger.jsonl"), ("passes_ablation", "ablation.json"),
    ("passes_tests", "tests.json"), ("passes_tests", "before.json"),
]  # fmt: skip
VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
    | st.just([]) | st.just({}) | st.just([None]) | st.just("2026-01-01") | st.just("1" * 500)
    | st.just(10**400) | st.just(-(2**70)) | st.just({"seed": 1, "fold": 0}) | st.just("\ud800")
)  # fmt: skip


def holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, dict | list):
            yield from holders(inner)


@pytest.mark.parametrize(("name", "file"), PLACES)
def test_one_wrong_value_crashes_nothing(
    accepting: Any, name: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second engine is left out: it would take seconds for each of hundreds of values.
    monkeypatch.setattr(module, "ask", lambda *words: Told((), (), (), "none"))
    files = accepting.fixture(name)
    lines = file.endswith(".jsonl")
    whole = (
        [json.loads(line) for line in files[file].splitlines()]
        if lines
        else json.loads(files[file])
    )
    count = len(list(holders(whole)))

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(place=st.integers(0, count - 1), value=VALUES, gone=st.booleans())
    def replaced(place: int, value: Any, gone: bool) -> None:
        changed = copy.deepcopy(whole)
        holder, key = list(holders(changed))[place]
        if gone:
            del holder[key]
        else:
            holder[key] = value
        text = "".join(json.dumps(one) + "\n" for one in changed) if lines else json.dumps(changed)
        try:
            judgement = accepting.judged({**files, file: text})
        except GateError:
            return
        json.loads(judgement.to_json(), parse_constant=lambda token: pytest.fail(token))
        assert judgement.criteria

    replaced()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=60) | st.text(max_size=60).map(str.encode), at=st.integers(0, 400))
def test_bytes_in_a_table_of_kernels_crash_nothing(accepting: Any, data: bytes, at: int) -> None:
    from trueup.gates.acceptance.inputs import Folder
    from trueup.gates.acceptance.kernel_sums import read_kernels

    whole = accepting.fixture("passes_profile")["base.csv"].encode()
    (accepting.folder / "k.csv").write_bytes(whole[:at] + data + whole[at:])
    folder = Folder(accepting.folder, "", lambda name, fault: None)
    try:
        kernels = read_kernels(folder, "k.csv")
    except GateError:
        return
    assert kernels.by_name


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(min_size=1, max_size=40), at=st.integers(0, 500))
def test_no_byte_put_into_a_ledger_goes_unseen(accepting: Any, data: bytes, at: int) -> None:
    """Two records, so that the second holds the digest of the first."""
    from trueup.gates.acceptance.check_ledger import judge_ledger

    files = accepting.fixture("final_rerun")
    whole = files["ledger.jsonl"].encode()
    first = whole.index(b"\n") + 1
    path = accepting.folder / "ledger.jsonl"
    path.write_bytes(whole[: at % first] + data + whole[at % first :])
    try:
        judgement = judge_ledger(path)
    except GateError:
        return
    assert "ACC411" in accepting.rules(judgement)
