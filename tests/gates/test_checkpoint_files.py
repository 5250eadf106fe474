"""Checkpoints on a disk: links, files that change, paths from elsewhere, one file by itself."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from trueup.gates import ProfileError, Verdict, judge
from trueup.gates.checkpoint.files import sidecar_names, stem_of
from trueup.gates.documents import run as run_module
from trueup.gates.documents.registry import document_checks
from trueup.gates.documents.run import Digest
from trueup.gates.documents.schema import breaks
from trueup.gates.profile.load import parse_profile

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "checkpoints"
PROFILE = str(FIXTURES / "profile.toml")
STEM = "checkpoints/step_001000"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The run whose checkpoints have no fault."""
    shutil.copytree(FIXTURES / "passes", tmp_path / "run")
    return tmp_path / "run"


def ids(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def got(verdict: Verdict, rule: str) -> str:
    return next(finding.got for finding in verdict.findings if finding.rule == rule)


def status(verdict: Verdict, rule: str) -> str:
    return next(one.status for one in verdict.rules if one.id == rule)


def change(path: Path, **keys: Any) -> None:
    """Change a sidecar; `...` takes a key away."""
    data = {**json.loads(path.read_text()), **keys}
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))


def move_out(run: Path, name: str) -> None:
    """Put a file of the run elsewhere, and a link in its place."""
    target = run.parent / Path(name).name
    (run / name).rename(target)
    (run / name).symlink_to(target)


def test_a_checkpoint_behind_a_link_out_is_not_followed(run: Path) -> None:
    move_out(run, f"{STEM}.safetensors")
    verdict = judge(run, PROFILE)
    assert {"GAT005", "META004"} <= ids(verdict)
    # The list of digests names the link: the file behind it was not read.
    assert "a link that leads out" in got(verdict, "DIG002")


def test_paths_of_a_sidecar_that_lead_out_by_a_link_are_told(run: Path) -> None:
    move_out(run, "tokenizer.model")
    (run / "checkpoints" / "tokenizer.model").symlink_to(run.parent / "tokenizer.model")
    verdict = judge(run, PROFILE)
    assert "a link that leads out" in got(verdict, "META005")


def test_a_link_inside_the_run_is_a_file_like_any_other(run: Path) -> None:
    (run / "store").mkdir()
    (run / f"{STEM}.safetensors").rename(run / "store" / "weights")
    (run / f"{STEM}.safetensors").symlink_to("../store/weights")
    assert "META006" not in ids(judge(run, PROFILE))


def test_a_file_that_changes_while_it_is_hashed_is_undetermined(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "digest", lambda path: Digest("0" * 64, 1, steady=False))
    verdict = judge(run, PROFILE)
    assert verdict.verdict == "fail"
    for rule in ("META006", "DIG004", "META008", "META015"):
        assert status(verdict, rule) == "undetermined"
        assert "changed while it was read" in got(verdict, rule)


def test_a_file_that_cannot_be_read_is_undetermined(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path) -> Digest:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(run_module, "digest", fails)
    verdict = judge(run, PROFILE)
    assert status(verdict, "META006") == "undetermined"
    assert "cannot be read: Input/output error" in got(verdict, "META006")


def test_a_digest_is_computed_once_for_all_rules(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, seen = run_module.digest, []

    def counted(path: Path) -> Digest:
        seen.append(path)
        return digest(path)

    monkeypatch.setattr(run_module, "digest", counted)
    judge(run, PROFILE)
    assert len(seen) == len(set(seen)) > 3


def test_digest_watches_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert run_module.digest(path) == Digest(hashlib.sha256(b"abc").hexdigest(), 3, True)
    stat, calls = run_module.os.fstat, []

    def grown(fd: int) -> Any:
        calls.append(fd)
        if len(calls) == 2:
            path.write_bytes(b"abcd")
        return stat(fd)

    monkeypatch.setattr(run_module.os, "fstat", grown)
    assert not run_module.digest(path).steady


@pytest.mark.parametrize("name", [f"{STEM}.meta.json", f"{STEM}.safetensors", f"{STEM}.sha256"])
def test_one_file_is_judged_with_what_stands_beside_it(name: str, run: Path) -> None:
    verdict = judge(run / name, PROFILE)
    assert ids(verdict) == set()
    assert verdict.checks


def test_one_sidecar_alone_finds_a_changed_checkpoint(run: Path) -> None:
    path = run / f"{STEM}.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    assert "META006" in ids(judge(run / f"{STEM}.meta.json", PROFILE))


def test_a_sidecar_may_be_yaml(run: Path) -> None:
    data = json.loads((run / f"{STEM}.meta.json").read_text())
    (run / f"{STEM}.meta.json").unlink()
    (run / f"{STEM}.meta.yaml").write_text(json.dumps(data))
    assert ids(judge(run, PROFILE)) == set()


def test_a_configuration_is_read_strictly_and_judged_as_no_sidecar(run: Path) -> None:
    (run / f"{STEM}.yaml").write_text("train: {lr: 1}\ntrain: {lr: 2}\n")
    verdict = judge(run, PROFILE)
    assert {"DOC006", "META008"} <= ids(verdict)
    assert "META001" not in ids(verdict)


def test_a_configuration_outside_the_patterns_is_read_strictly_as_well(run: Path) -> None:
    text = "train: {lr: 1}\ntrain: {lr: 2}\n"
    (run / "conf.yml").write_text(text)
    change(
        run / f"{STEM}.meta.json", config_path="conf.yml",
        config_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )  # fmt: skip
    assert "without faults" in got(judge(run, PROFILE), "META008")


def test_random_states_are_never_decoded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return exec, ("raise SystemExit(9)",)

    def refuse(*args: Any, **keys: Any) -> Any:
        raise AssertionError("decoded")

    state = base64.b64encode(pickle.dumps(Bomb())).decode()
    states = {"python": state, "numpy": state, "torch": "00"}
    for path in run.glob("checkpoints/*.meta.json"):
        change(path, rng_states=states)
    for module, name in ((pickle, "loads"), (pickle, "load"), (base64, "b64decode")):
        monkeypatch.setattr(module, name, refuse)
    assert ids(judge(run, PROFILE)) == set()


@pytest.mark.parametrize(
    "states",
    [{"python": []}, {"python": [[], {"a": ""}]}, {"python": True}, {"python": " "}, [], "x", None],
)
def test_empty_states_are_no_states(states: Any, run: Path) -> None:
    change(run / f"{STEM}.meta.json", rng_states=states)
    assert "META014" in ids(judge(run, PROFILE))


def test_states_may_be_lists_of_numbers(run: Path) -> None:
    states = {"python": [3, [1, 2, 3], None], "numpy": {"state": [1]}, "torch": [0, 255]}
    change(run / f"{STEM}.meta.json", rng_states=states)
    assert ids(judge(run, PROFILE)) == set()


def test_a_shard_has_the_sidecar_of_the_whole() -> None:
    assert "step_10.meta.json" in sidecar_names(Path("step_10-00001-of-00004.safetensors"))


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("step_10.safetensors", "step_10"), ("step_10.meta.json", "step_10"),
        ("step_10.safetensors.meta.json", "step_10"), ("step_10.pt.sha256", "step_10"),
        ("step_10.yaml", "step_10"), ("a.b.pt", "a.b"), (".sha256", ".sha256"), ("x", "x"),
    ],
)  # fmt: skip
def test_stems(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_the_interval_of_telemetry_is_its_own(run: Path) -> None:
    """A checkpoint between the last row and where the next would be belongs to the run."""
    log = run / "telemetry.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))  # ends at 950
    assert "META010" not in ids(judge(run, PROFILE))
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))  # ends at 900
    assert "META010" in ids(judge(run, PROFILE))


def test_short_telemetry_shows_nothing_yet(run: Path) -> None:
    log = run / "telemetry.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps({**row, "layer0.cms.fast.gate_hit": 0}) + "\n"
                           for row in (rows[0], *rows[-5:])))  # fmt: skip
    verdict = judge(run, PROFILE)
    assert "META013" not in ids(verdict)
    (outcome,) = [one for one in verdict.rules if one.id == "META013"]
    assert "at least 20 are needed" in outcome.reason


def test_a_rule_on_documents_applies_under_a_configuration_alone(tmp_path: Path, run: Path) -> None:
    profile = tmp_path / "mine.toml"
    rule = """
[profile]
id = "mine"
summary = "one rule"
include = ["checkpoint"]
[[artifact]]
kind = "telemetry"
patterns = ["telemetry.jsonl"]
[[rule]]
id = "META014"
on = "metadata"
severity = "error"
summary = "states"
why = "because"
check = "rng_states"
params = { names = ["nothing"] }
expected = "a state"
fix = "write it"
when = { key = "device", equals = "DEVICE" }
"""
    profile.write_text(rule.replace("DEVICE", "cuda"))
    assert status(judge(run, str(profile)), "META014") == "not_applied"
    profile.write_text(rule.replace("DEVICE", "cpu"))
    assert status(judge(run, str(profile)), "META014") == "false"


@pytest.mark.parametrize(
    ("check", "params", "message"),
    [
        ("sidecar_states", "{ keys = [] }", "list of names"),
        ("rng_states", '{ names = ["a"], with_gpu = [1] }', "list of names"),
        ("features_stated", "{ features = [] }", "is empty"),
        ("features_stated", '{ features = ["x"] }', "expected a table"),
        ("features_stated", '{ features = [{ row = "x" }] }', "lacks key"),
        ("features_agree", '{ features = [{ key = "x", config = "a..b" }] }', "no way into"),
        ("features_agree", '{ features = [{ key = "x", colums = "a" }] }', "unknown"),
        ("features_show", '{ min_rows = 1, signs = [{ key = "x", is = true, columns = "(" }] }',
         "missing"),
        ("features_show", '{ min_rows = 1, signs = [{ key = "x", is = [], columns = "a" }] }',
         "is is"),
    ],
)  # fmt: skip
def test_parameters_that_mean_nothing_are_refused(check: str, params: str, message: str) -> None:
    profile = f"""
[profile]
id = "mine"
summary = "one rule"
[[artifact]]
kind = "metadata"
patterns = ["*"]
[[rule]]
id = "OWN001"
on = "metadata"
severity = "error"
summary = "s"
why = "w"
check = "{check}"
params = {params}
expected = "e"
fix = "f"
"""
    with pytest.raises(ProfileError, match=message):
        parse_profile(profile.encode(), "mine.toml")


def test_metadata_inside_can_be_asked_for(run: Path, tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text("""
[profile]
id = "mine"
summary = "one rule"
[[artifact]]
kind = "weights"
patterns = ["*.safetensors"]
[[rule]]
id = "OWN001"
on = "weights"
severity = "error"
summary = "s"
why = "w"
check = "metadata_states"
params = { keys = ["step", "format"] }
expected = "e"
fix = "f"
""")
    verdict = judge(run, str(profile))
    assert [(one.where.key, one.got) for one in verdict.findings][:1] == [
        ("__metadata__.format", "format: absent")
    ]


DQN = {
    "layout_fingerprint": "0x00f190210cb100d7", "isv_total": 87, "n_param_tensors": 2,
    "total_params": 9, "total_padded_bytes": 2304, "tile_pad_floats": 0, "align_bytes": 256,
    "state_dim": 128, "branch_sizes": [4, 3, 3, 3], "n_atoms": 51, "step": 0, "epoch": 0, "fold": 0,
    "git_commit": "0123456789abcdef0123456789abcdef01234567", "param_sha256": "a" * 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("edit", "key"),
    [
        ({}, None),
        ({"layout_fingerprint": "0xf190210cb100d7"}, "layout_fingerprint"),  # 14 digits
        ({"state_dim": 127}, "state_dim"),
        ({"branch_sizes": [4, 3, 3]}, "branch_sizes"),
        ({"schema_version": 2}, "schema_version"),
        ({"step": True}, "step"),
        ({"param_sha256": "A" * 64}, "param_sha256"),
    ],
)
def test_the_sidecar_of_a_dqn_run(edit: dict[str, Any], key: str | None) -> None:
    found = breaks({**DQN, **edit}, "checkpoint/dqn")
    assert [one.pointer[0] for one in found] == ([key] if key else [])


def test_every_check_says_what_it_asks() -> None:
    for check in document_checks().values():
        assert check.summary
        assert set(check.optional) <= set(check.params)
