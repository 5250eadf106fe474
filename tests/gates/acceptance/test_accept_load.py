"""Acceptance files: what is wrong with one is told in one line; nothing leads out of its folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from trueup.gates.acceptance.config import Config
from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.judge import judge_acceptance
from trueup.gates.acceptance.load import load_acceptance, schema, sets
from trueup.gates.errors import GateError, Unreadable

LIMIT = '[results]\nfiles = ["results.json"]\n[[limit]]\nid = "x"\npath = "x"\nat_least = 1\n'
BAND = '[[band]]\nid = "b"\npath = "x"\nrelative = 0.1\n'
BASE = '[[baseline]]\nfile = "b.toml"\n'


def load(folder: Path, text: str) -> Config:
    path = folder / "acceptance.toml"
    path.write_text(text)
    return load_acceptance(path, "acceptance.toml")[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "holds only blanks", id="nothing"),
        pytest.param("a = 1\n", "unknown key 'a'", id="another-file"),
        pytest.param('[acceptance]\nid = "a"\n', "asks for nothing", id="asks-nothing"),
        pytest.param('[acceptance]\nid = "a b"\n' + LIMIT, "acceptance.id", id="a-blank-in-an-id"),
        pytest.param('[acceptance]\nid = "a"\nidd = 1\n' + LIMIT, "did you mean id",
                     id="unknown-key"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT.replace("at_least", "atleast"),
                     "did you mean at_least", id="unknown-bound"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT.replace("at_least = 1\n", ""),
                     "needs at_least or at_most", id="no-bound"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT + 'ratio = ["a", "b"]\n',
                     "exactly one of path and ratio", id="two-ways"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT.replace('"x"\nat', '"x["\nat'),
                     r"no index, \* or key=value", id="a-path-that-is-none"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT + LIMIT[LIMIT.index("[[") :],
                     "an id is used twice", id="an-id-twice"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT[LIMIT.index("[[") :],
                     "a file of its own, or", id="no-results"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT + BAND, "names no baseline", id="no-base"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT + BASE + BAND + 'baseline = "c"\n',
                     "names no baseline", id="another-base"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT + BASE + BASE + BAND, "an id is used twice",
                     id="two-bases-without-ids"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT + BASE
                     + BAND.replace("relative = 0.1\n", ""), "needs relative or absolute",
                     id="a-band-without-width"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT + BASE + BAND.replace("0.1", "-0.1"),
                     "minimum", id="a-negative-width"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT.replace("= 1", "= nan"), "nan", id="nan"),
        pytest.param('[acceptance]\nid = "a"\n' + LIMIT.replace("= 1", '= "1"'), "a number",
                     id="a-bound-in-quotes"),
        pytest.param('[acceptance]\nid = "a"\ninclude = ["dqm"]\n' + LIMIT, "did you mean dqn",
                     id="unknown-set"),
        pytest.param('[acceptance]\nid = "a"\nid = "b"\n', "stands twice", id="a-key-twice"),
        pytest.param("[acceptance\n", "not TOML|syntax|Expected", id="no-toml"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(GateError, match=words) as refused:
        load(tmp_path, text)
    assert "acceptance.toml" in str(refused.value)


def test_every_proposed_number_is_a_parameter(tmp_path: Path) -> None:
    """The defaults are those of the programme, stated here by hand."""
    text = (
        '[acceptance]\nid = "a"\ninclude = ["dqn"]\n[results]\nfiles = ["r.json"]\n' + BASE
        + '[smoke]\npath = "cells[*].v"\n'
        '[final]\nmanifest = "m"\nledger = "l"\nsharpe = "s"\n'
        '[hard_stop]\nseries = ["s"]\ntermination = "t"\n[[hard_stop.metric]]\nname = "v"\n'
        '[profile]\nbase = { kernels = "a", about = "b" }\nnew = { kernels = "c", about = "d" }\n'
        '[[ablation]]\nid = "e"\nfile = "f"\nmetric = [{ name = "m", path = "m" }]\n'
        'outcome = [{ when = { m = "holds" }, decision = "KEEP" }]\n'
    )  # fmt: skip
    config = load(tmp_path, text)
    smoke, final, stop = config.smoke, config.final, config.hard_stop
    profile, ablation = config.profile, config.ablation[0]
    assert smoke is not None
    assert final is not None
    assert stop is not None
    assert profile is not None
    assert [float(n) for n in (smoke.retain, smoke.flags)] == [0.05, 48]
    assert (smoke.mono_mode, smoke.clamp_token) == ("both", "NaN-CLAMPED-TO-ZERO")
    assert (final.n_seeds, final.n_folds, final.ddof) == (5, 6, 1)
    assert [float(n) for n in (final.floor, final.worst, final.spread)] == [20, 0.5, 0.5]
    assert (stop.n_consec, stop.warn_resets, stop.reset_at) == (5, True, "fold")
    assert [float(n) for n in (profile.threshold, profile.min_share)] == [0.2, 0.01]
    assert (ablation.min_seeds, ablation.mixed_sign) == (3, "inconclusive")
    floors = {one.id: float(one.at_least) for one in config.limit if one.at_least is not None}
    assert floors == {"best_sharpe": 20, "F_Half": 0.05, "F_Full": 0.05, "cf_flip": 0.1}
    assert [float(one.at_most) for one in config.limit if one.at_most is not None] == [1.609]
    assert {one.id for one in config.limit if one.weight == "blocker"} == {
        "F_Half", "F_Full", "cf_flip",
    }  # fmt: skip
    assert [float(one.relative or 0) for one in config.band] == [0.15]
    assert {one.id: one.classes for one in config.mix} == {
        "mix_direction": 4, "mix_magnitude": 3, "mix_order": 3, "mix_urgency": 3,
    }  # fmt: skip


def test_a_file_changes_an_included_criterion_by_its_id(tmp_path: Path) -> None:
    text = '[acceptance]\nid = "a"\ninclude = ["dqn"]\n[results]\nfiles = ["r.json"]\n' + BASE
    config = load(tmp_path, text + '[[limit]]\nid = "best_sharpe"\nat_least = 25\n')
    (one,) = [one for one in config.limit if one.id == "best_sharpe"]
    assert (float(one.at_least or 0), one.path, one.tier) == (25, "metrics.best_sharpe", 1)


def test_the_shipped_sets_are_acceptances(tmp_path: Path) -> None:
    assert sets() == ["dqn"]


@pytest.mark.parametrize(
    "name", ["acceptance", "results", "baseline", "manifest", "ledger", "termination", "ablation",
             "tests", "about", "smoke", "void", "judgement"],
)  # fmt: skip
def test_the_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", ["passes_dqn_final", "fold_left_out", "ablation_mixed_sign"])
def test_the_judgement_fits_its_own_schema(accepting: Any, name: str) -> None:
    document = json.loads(accepting.like(name).to_json())
    Draft202012Validator(schema("judgement")).validate(document)


@pytest.mark.parametrize("file", ["../secret.json", "/etc/passwd", "link.json", "a\\u0000b", ""])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, file: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret.json").write_text('{"x": 1}')
    os.symlink(tmp_path / "secret.json", folder / "link.json")
    (folder / "acceptance.toml").write_text(
        f'[acceptance]\nid = "a"\n{LIMIT.replace("results.json", file)}'
    )
    with pytest.raises(GateError) as refused:
        judge_acceptance(folder)
    assert "secret" not in str(refused.value).replace("../secret.json", "")


def test_a_folder_of_the_run_may_be_another_one(tmp_path: Path) -> None:
    gate, run = tmp_path / "gate", tmp_path / "run"
    gate.mkdir()
    run.mkdir()
    (gate / "acceptance.toml").write_text(f'[acceptance]\nid = "a"\n{LIMIT}')
    (run / "results.json").write_text('{"x": 1}')
    judgement = judge_acceptance(gate / "acceptance.toml", run)
    assert judgement.passed
    assert [info.path for info in judgement.artifacts] == [str(run / "results.json")]
    with pytest.raises(Unreadable, match="is not there"):
        judge_acceptance(gate)
    with pytest.raises(AcceptanceError, match="is no folder"):
        judge_acceptance(gate, run / "results.json")


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\xff\xfe{\0}\0", b'{"x": "\xff"}', b"{"])
def test_results_that_are_no_document_cannot_be_judged(accepting: Any, data: bytes) -> None:
    with pytest.raises(Unreadable, match=r"results\.json"):
        accepting.judged({"acceptance.toml": LIMIT, "results.json": data})


def test_a_document_deeper_than_any_metric_is_refused(accepting: Any) -> None:
    with pytest.raises(Unreadable):
        accepting.judged({"acceptance.toml": LIMIT, "results.json": "[" * 5000})


def test_a_named_pipe_is_not_waited_for(accepting: Any) -> None:
    os.mkfifo(accepting.folder / "results.json")
    with pytest.raises(Unreadable):
        accepting.judged({"acceptance.toml": LIMIT})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["cells", "seed", "fold", "val", "metrics", "monitors", "run_id", "x"])
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=json_values)
def test_no_results_crash_it_and_none_pass_by_accident(accepting: Any, data: Any) -> None:
    """All blocks that read results, without a number to judge, so that no engine is started."""
    toml = (
        '[results]\nfiles = ["results.json"]\n[[mix]]\nid = "m"\npath = "cells[*].x"\n'
        '[[wired]]\nid = "w"\npath = "metrics"\nnames = ["never"]\n'
    )
    try:
        judgement = accepting.judged({"acceptance.toml": toml, "results.json": json.dumps(data)})
    except GateError:
        return
    assert not judgement.passed
    json.loads(judgement.to_json())
