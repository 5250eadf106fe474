"""Runs of one configuration are told by their configuration, wherever that is written."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.closure.close import close
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.reruns import Identity, identity
from trueup.gates.profile.load import load_profile

CLOSURES = Path(__file__).parents[2] / "fixtures" / "closures"
sys.path.insert(0, str(CLOSURES))
import closing  # noqa: E402
import laid  # noqa: E402

NL = load_profile("nl")


def run(folder: Path, name: str, **files: Any) -> Path:
    made = folder / name
    for key, content in files.items():
        path = made / key.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return made


def told(folder: Path, name: str, **files: Any) -> Identity:
    found = identity(run(folder, name, **files), NL)
    assert found is not None
    return found


def rows(**config: Any) -> list[dict[str, Any]]:
    return [{"step": -1, **config}, {"step": 0, "loss": 1.0}]


def same(one: Identity, other: Identity) -> bool:
    return (one.settings, one.source) == (other.settings, other.source)


def test_rows_of_the_configuration_tell_it(tmp_path: Path) -> None:
    one = told(tmp_path, "a", telemetry_dot_json=rows(seed=1, lr=0.1, device="cpu"))
    two = told(tmp_path, "b", telemetry_dot_json=rows(seed=2, lr=0.1, device="cpu"))
    other = told(tmp_path, "c", telemetry_dot_json=rows(seed=2, lr=0.2, device="cpu"))
    assert same(one, two)
    assert not same(one, other)
    assert (one.seed, two.seed) == ("1", "2")


@pytest.mark.parametrize(
    "key", ["seed", "train.seed", "random_seed", "seeds[0]", "data.shuffle_seed"]
)
def test_a_seed_is_known_by_its_name(key: str, tmp_path: Path) -> None:
    one = told(tmp_path, "a", telemetry_dot_json=rows(**{key: 1, "lr": 0.1}))
    two = told(tmp_path, "b", telemetry_dot_json=rows(**{key: 2, "lr": 0.1}))
    assert same(one, two)
    assert one.seed == "1"


@pytest.mark.parametrize("key", ["seeded_fraction", "speed", "reseed_every", "seed_schedule"])
def test_what_only_sounds_like_a_seed_is_configuration(key: str, tmp_path: Path) -> None:
    one = told(tmp_path, "a", telemetry_dot_json=rows(**{key: 1}))
    two = told(tmp_path, "b", telemetry_dot_json=rows(**{key: 2}))
    assert not same(one, two)


def test_a_configuration_document_comes_first(tmp_path: Path) -> None:
    yaml = "train:\n  seed: {}\n  lr: 0.1\nout_dir: {}\n"
    one = told(tmp_path, "a", config_dot_yaml=yaml.format(1, "x"), telemetry_dot_json=rows(n=1))
    two = told(tmp_path, "b", config_dot_yaml=yaml.format(2, "y"), telemetry_dot_json=rows(n=2))
    assert same(one, two)
    assert (one.source, two.seed) == ("configuration document", "2")


def test_the_configuration_in_a_sidecar_tells_it(tmp_path: Path) -> None:
    def sidecar(seed: int) -> dict[str, Any]:
        return {"step": 5, "sha256": f"{seed}", "config": {"seed": seed, "model": {"dim": 4}}}

    one = told(tmp_path, "a", last_dot_meta_dot_json=sidecar(1), telemetry_dot_json=rows())
    two = told(tmp_path, "b", last_dot_meta_dot_json=sidecar(2), telemetry_dot_json=rows())
    assert same(one, two)
    assert one.source == "configuration document"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"notes_dot_txt": "seed 1"},
        {"telemetry_dot_json": [{"step": 0, "loss": 1.0}]},
        {"telemetry_dot_json": "not json"},
        {"config_dot_json": "[1, 2]"},
        {"config_dot_json": "{"},
        {"config_dot_yaml": "a: &x 1\nb: *x\n"},
    ],
)
def test_a_run_that_does_not_say_is_the_same_as_none(files: dict[str, Any], tmp_path: Path) -> None:
    folder = run(tmp_path, "a", keep_dot_me="", **files)
    assert identity(folder, NL) is None


def test_a_link_to_a_configuration_elsewhere_is_not_followed(tmp_path: Path) -> None:
    outside = run(tmp_path, "outside", config_dot_json={"lr": 1})
    inside = run(tmp_path, "inside", keep_dot_me="")
    (inside / "config.json").symlink_to(outside / "config.json")
    assert identity(inside, NL) is None


def ledger(*ends: tuple[str, str, str | None]) -> str:
    """A chained ledger: run, commit, outcome."""
    previous, out = "0" * 64, ""
    for number, (run_id, commit, outcome) in enumerate(ends, 1):
        record = {
            "seq": number, "prev": previous, "recorded_at": "2026-03-03T10:00:00Z",
            "event": "FINISHED" if outcome else "STARTED", "run_id": run_id, "stage": "smoke",
            "git_commit": commit, "config_sha256": "ab" * 32, "seeds": [3],
        }  # fmt: skip
        if outcome:
            record["outcome"] = outcome
        line = json.dumps(record)
        previous = hashlib.sha256(line.encode()).hexdigest()
        out += line + "\n"
    return out


HEAD = "51699b630da609520dee6aa6c8bff7cd06f01239"  # of the closing that passes
RERUN = '[[rerun]]\nrun = "run_seed1"\nreason = "The first try met a full disk."\n'


@pytest.mark.parametrize(
    ("text", "more", "found"),
    [
        (ledger(("run", HEAD, "PASS")), "", set()),
        (ledger(("x", "12" * 20, "FAIL"), ("run", HEAD, "PASS")), "", set()),
        (ledger(("v", HEAD, "VOID"), ("run", HEAD, "PASS")), "", set()),
        (ledger(("x", HEAD, "FAIL"), ("run", HEAD, "PASS")), "", {"CLO090"}),
        (ledger(("x", HEAD, None), ("run", HEAD, "PASS")), "", {"CLO090"}),
        (ledger(("run_seed1", HEAD, "FAIL"), ("run", HEAD, "PASS")), RERUN, {"CLO002"}),
        (ledger(("x", "12" * 20, "PASS")), "", {"CLO090"}),
        (ledger(("run", HEAD, "PASS")).replace('"seeds": [3]', '"seeds": [4, 3]', 1)
         + ledger(("run", HEAD, "PASS")), "", {"ledger_broken"}),
        ("not json\n", "", {"CLO090", "ledger_broken"}),
        (None, "", {"CLO002"}),
    ],
)  # fmt: skip
def test_the_ledger_holds_no_attempt_that_was_kept_quiet(
    text: str | None, more: str, found: set[str], tmp_path: Path
) -> None:
    ticket = laid.lay_out("passes", tmp_path)
    given = ticket.read_text().replace('run = "run"\n', 'run = "run"\nledger = "ledger.jsonl"\n')
    ticket.write_text(given + more)
    if text is not None:
        (tmp_path / "ledger.jsonl").write_text(text)
    closure = close(ticket, equations=["nl.delta_momentum"], now=datetime(2026, 3, 10, tzinfo=UTC))
    ids = {kind.id: kind.name for kind in kinds().values()}
    rules = {one.rule for one in closure.findings if not one.rule.startswith("DOC")}
    named = {rule if rule.startswith("CLO") else ids[rule] for rule in rules}
    assert named == found
    assert closure.passed == (not found)


def test_a_real_run_closes_by_the_built_in_profile(tmp_path: Path) -> None:
    """The log of a real training run; its last loss, 1.4283, stands in the record of that run."""
    ticket = laid.lay_out("passes", tmp_path)
    real = CLOSURES.parent / "runs" / "cms_small"
    shutil.copy(real / "telemetry.json", tmp_path / "run" / "telemetry.json")
    last = tomllib.loads((real / "run.toml").read_text())["result"]["loss_last"]
    data = tomllib.loads(ticket.read_text(), parse_float=Decimal)
    data["ticket"]["profile"] = "nl"
    for name in ("eval", "document"):
        del data[name]
    for name in ("evals/copy.json", "metrics.json"):
        (tmp_path / "run" / name).unlink()
    digest = hashlib.sha256((real / "telemetry.json").read_bytes()).hexdigest()
    data["telemetry"][0]["sha256"] = digest
    del data["criterion"][0]
    data["criterion"][0] |= {"comparison": "abs-within", "value": Decimal("0.00005")}
    data["criterion"][0]["baseline"] = Decimal(str(last))
    ticket.write_bytes(closing.toml(data))
    closure = close(ticket, equations=["nl.delta_momentum"], now=datetime(2026, 3, 10, tzinfo=UTC))
    assert [one.status for one in closure.criteria] == ["holds"]
    assert closure.passed, closure.all_findings
    assert "rule: TEL001" in json.loads(closure.statement)["predicate"]["passedTests"]


@pytest.mark.parametrize("name", ["/etc/hostname", "../outside", "passes", "nl\\n"])
def test_a_profile_is_built_in_or_below_the_root(name: str, tmp_path: Path) -> None:
    """Whatever its name ends with: a ticket from elsewhere must not have other files read."""
    (tmp_path / "outside").write_text("[profile]")
    root = tmp_path / "root"
    root.mkdir()
    ticket = laid.lay_out("passes", root)
    text = ticket.read_text().replace('profile = "profile.toml"', f'profile = "{name}"')
    ticket.write_text(text)
    with pytest.raises(ClosureError, match="there is no such profile") as caught:
        close(ticket, equations=["nl.delta_momentum"])
    assert "dqn, nl" in caught.value.expected
