"""Mutated documents: never a crash, and never a pass where an independent reader refuses."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates.artifacts import find_artifacts
from trueup.gates.collector import Collector
from trueup.gates.documents.judge import judge_rules, read_all
from trueup.gates.documents.run import Run
from trueup.gates.errors import GateError
from trueup.gates.findings import Finding, Where
from trueup.gates.profile.load import load_profile
from trueup.gates.read.documents.read import load_document
from trueup.gates.read.limits import Fault, Limits

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "checkpoints"
PROFILE = load_profile(str(FIXTURES / "profile.toml"))
JSON = (FIXTURES / "passes/checkpoints/step_001000.meta.json").read_bytes()
YAML = (
    b'train:\n  lr: 1.0e-3\n  fast: true\n  steps: [1, -3]\nname: "a: b"\ntext: |\n  two\n  lines\n'
)
TOML = b'a = 1\nb = [1.5, "x"]\n[t]\nx.y = true\nd = 2026-03-01T12:00:00Z\n[[u]]\nz = {k = 1}\n'
TOKENS = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"'", b"\\", b"\n", b"\t", b" ", b"#", b"-", b"=",
    b".", b"on: ", b"&a ", b"*a", b"!!x ", b"<<: ", b"---\n", b"NaN", b"1e999", b".inf", b"inf",
    b"true", b"null", b"9" * 20, b"0x1f", b"0", b"\\ud800", b"\xff", b"\0", b"\xef\xbb\xbf",
    b"\r", b'"""', b"[[a]]\n",
]  # fmt: skip


@st.composite
def mutants(draw: st.DrawFn, seed: bytes) -> bytes:
    data = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 10)))
        match draw(st.sampled_from(["cut", "copy", "put", "flip"])):
            case "cut":
                del data[at:end]
            case "copy":
                data[at:at] = data[at:end]
            case "put":
                data[at:at] = draw(st.sampled_from(TOKENS))
            case _:
                if at < len(data):
                    data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


def load(content: bytes, name: str, folder: Path) -> tuple[Any, list[Fault]] | None:
    path = folder / name
    path.write_bytes(content)
    try:
        document, faults = load_document(path)
    except GateError:
        return None
    return document.data, faults


def strict_json(content: bytes) -> Any:
    """The standard library with every switch on strict."""

    def pairs(found: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in found:
            assert key not in out
            out[key] = value
        return out

    def refuse(text: str) -> NoReturn:
        raise AssertionError(text)

    return json.loads(content.decode(), object_pairs_hook=pairs, parse_constant=refuse)


def plain(value: Any) -> Any:
    """Times as texts."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime | date | time) else value


@settings(max_examples=500, deadline=None)
@given(content=mutants(JSON))
def test_json(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = load(content, "a.json", tmp_path_factory.getbasetemp())
    if found is not None and not found[1]:
        assert strict_json(content) == found[0]


@settings(max_examples=500, deadline=None)
@given(content=mutants(YAML))
def test_yaml(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = load(content, "a.yaml", tmp_path_factory.getbasetemp())
    if found is not None and not found[1]:
        times = {"tag:yaml.org,2002:timestamp"}
        loader = type("NoTimes", (yaml.SafeLoader,), {})
        loader.yaml_implicit_resolvers = {
            first: [pair for pair in pairs if pair[0] not in times]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }
        assert yaml.load(content.decode(), loader) == found[0]


@settings(max_examples=500, deadline=None)
@given(content=mutants(TOML))
def test_toml(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = load(content, "a.toml", tmp_path_factory.getbasetemp())
    if found is not None and not found[1]:
        assert plain(tomllib.loads(content.decode())) == found[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text("abé.", max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(value=VALUES, indent=st.sampled_from([None, 2]), ascii=st.booleans())
def test_every_value_comes_back_and_stands_where_it_is_said_to(
    value: Any, indent: int | None, ascii: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "a.json"
    content = json.dumps(value, indent=indent, ensure_ascii=ascii).encode()
    path.write_bytes(content)
    document, faults = load_document(path)
    assert faults == []
    assert document.data == value
    decoder = json.JSONDecoder()
    for pointer in document.places:
        line, byte = document.places[pointer]
        there, _ = decoder.raw_decode(content[byte:].decode())
        inner = value
        for part in pointer:
            inner = inner[part]
        assert there == inner
        assert line == content.count(b"\n", 0, byte) + 1


@settings(max_examples=60, deadline=None)
@given(content=mutants(JSON))
def test_a_mutated_sidecar_passes_only_where_it_says_the_same(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Judged with its checkpoint: no crash, and no pass with other values."""
    run = tmp_path_factory.getbasetemp() / "sidecar"
    if not run.exists():
        shutil.copytree(FIXTURES / "passes", run)
        (run / "telemetry.jsonl").unlink()
    (run / "checkpoints/step_001000.meta.json").write_bytes(content)
    found = findings(run)
    if not any(finding.severity == "error" for finding in found):
        data, before = strict_json(content), json.loads(JSON)
        for key in ("step", "checkpoint_sha256", "config_sha256", "tokenizer_hash"):
            assert data[key] == before[key]
        # These may be left out: no rule asks for the size, and the configuration has the others.
        for key in ("size_bytes", "online_updates", "use_fast_state", "algorithm_mode"):
            assert data.get(key, before[key]) == before[key]


def findings(run: Path) -> tuple[Finding, ...]:
    """As `judge` finds them, without reading the profile anew each time."""
    collector = Collector()
    found = find_artifacts(run, str(run), PROFILE, collector)
    whole = Run(run, str(run), PROFILE, found)
    _, refused = read_all(found, whole, collector, Limits())
    assert all(artifact.name.endswith(".meta.json") for artifact, _ in refused)
    for artifact, error in refused:
        collector.of_kind("unreadable_artifact", artifact.name, Where(), error.what)
    judge_rules(whole, collector)
    return collector.findings()
