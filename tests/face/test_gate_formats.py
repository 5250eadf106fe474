"""A gate's verdict in every format: what was found is there, what artifacts hold does nothing."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from markdown_it import MarkdownIt

from trueup.gates.catalogue.rules import built_in_entries
from trueup.gates.findings import Finding, RuleOutcome, Verdict, WaiverUse, Where
from trueup.render.console import console
from trueup.render.gate_html import gate_page, index_page
from trueup.render.gate_json import gate_json
from trueup.render.gate_text import show_gate, show_gates
from trueup.render.github import gate_annotations
from trueup.render.groups import grouped
from trueup.render.json import load_schema
from trueup.render.junit import gate_junit
from trueup.render.markdown import LARGEST, code, gate_markdown
from trueup.render.sarif import gate_sarif

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")
PASS = Verdict("pass", "mine", 4, 9, (), profile_digest="sha256:" + "0" * 64)


def text_of(verdict: Verdict) -> str:
    stream = io.StringIO()
    show_gate(verdict, console(stream))
    return stream.getvalue()


def github_of(*judged: tuple[str, Verdict | str]) -> list[str]:
    return list(gate_annotations(judged))


def sarif_of(*judged: tuple[str, Verdict | str], code: int = 1) -> dict[str, Any]:
    entries = {entry.id: entry for entry in built_in_entries()}
    document: dict[str, Any] = json.loads(gate_sarif(judged, entries, code))
    return document


def suites_of(*judged: tuple[str, Verdict | str]) -> list[ET.Element]:
    return list(ET.fromstring(gate_junit(judged).encode()))


# Grouping


def test_layers_with_the_same_fault_are_one_place(large_verdict: Verdict) -> None:
    groups = grouped(large_verdict.findings)
    assert [group.rule for group in groups] == [f"OWN{n:03}" for n in range(30)]
    layers, loss = groups[0].places
    assert (len(layers.findings), layers.count, layers.steps) == (48, 288, (3, 8))
    assert layers.extent() == "48 keys like layer*.cms.fast.grad_norm, 288 times, steps 3..8"
    assert len(layers.further()) == 3
    assert (loss.extent(), loss.further()) == ("", [])
    assert (groups[0].count, groups[0].findings) == (289, 49)


def test_names_that_differ_in_more_than_numbers_are_told_apart() -> None:
    keys = ("layer0.fast", "layer1.fast", "layer0.slow", None)
    made = [Finding("OWN001", "error", "a.json", Where(key=key), "g", "e", "f") for key in keys]
    other = replace(made[0], artifact="b.json")
    many = [replace(made[0], artifact=f"step_{n:06}.json") for n in range(3)]
    warning = replace(made[0], severity="warning")
    groups = grouped([*made, other, *many, warning])
    assert [(one.severity, len(one.places)) for one in groups] == [("error", 5), ("warning", 1)]
    assert groups[0].places[-1].extent() == "3 artifacts like step_*.json, 3 times"


def test_the_text_of_a_thousand_findings_can_be_read(large_verdict: Verdict) -> None:
    lines = text_of(large_verdict).splitlines()
    assert len(lines) < 30 * 9 + 10
    assert lines[0] == "OWN000 error: rule 0"
    assert lines[1] == (
        "  runs/a/telemetry.jsonl:9::layer0.cms.fast.grad_norm (steps 3..8): got 0.0"
    )
    assert lines[-1] == "fail: profile mine, 60 rows, 900 checks, 1,441 findings of 30 rules"


def test_places_beyond_the_first_are_counted() -> None:
    letters = "abcdefghijklmnop"
    made = [Finding("OWN001", "note", "a", Where(key=c), "g", "e", "f", "", 2) for c in letters]
    text = text_of(replace(PASS, findings=tuple(made)))
    assert "  … and 4 more places, 8 times; --format json has all" in text
    assert ": got g" in text
    assert text.count("a: l: got") == 1
    assert "a: m: got" not in text


# Text


def test_text_holds_no_control_and_no_command(hostile_verdict: Verdict) -> None:
    text = text_of(hostile_verdict)
    assert not _CONTROL.search(text)
    assert "##[" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


def test_text_tells_what_was_waived_and_changed(hostile_verdict: Verdict) -> None:
    use = replace(hostile_verdict.waivers[0], reason="known", place="waiver[0]", ticket="T-1")
    use = replace(use, approved_by="A")
    verdict = replace(hostile_verdict, waivers=(use,), findings=(), verdict="pass")
    text = text_of(verdict)
    assert (
        "OWN900 waived until 2026-12-31: 1 finding, 3 times: known "
        "(approved by A, T-1, waiver[0])" in text.splitlines()
    )
    assert "OWN901 is a note instead of an error: 1 finding" in text
    assert text.splitlines()[-1] == (
        "pass: profile mine, 5 rows, 5 documents, 9 checks, 0 findings, 1 waived, "
        "5 severity changes"
    )


def test_many_artifacts_are_told_by_their_kind(hostile_verdict: Verdict) -> None:
    info = hostile_verdict.artifacts[0]
    infos = [replace(info, path=f"run/step_{n:06}.meta.json") for n in range(40)]
    table = replace(info, path="run/log.jsonl", kind="telemetry", rows=3, document=False)
    text = text_of(replace(PASS, artifacts=(*infos, table)))
    assert "read 40 files like run/step_*.meta.json: metadata, JSON, 200 bytes" in text
    assert "read run/log.jsonl: telemetry, JSON, 3 rows, 0 columns, 5 bytes" in text


def test_several_runs_have_a_heading_each_and_a_last_line() -> None:
    stream = io.StringIO()
    show_gates([("a", PASS), ("b", "no such file")], console(stream), several=True)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "== a"
    assert "== b" in lines
    assert lines[-1] == "2 runs: 1 not judged, 1 pass"


# GitHub

_COMMAND = re.compile(r"::(error|warning|notice) ([^\n\r]*?)::([^\n\r]*)")


def test_every_command_is_one_of_ours(hostile_verdict: Verdict) -> None:
    lines = github_of(("run", hostile_verdict), ("::x", "refused\n::error::y"))
    assert len(lines) >= 12
    for line in lines:
        assert not _CONTROL.search(line)
        assert "\n" not in line
        assert "##[" not in line
        if line.lstrip().startswith("::"):
            match = _COMMAND.fullmatch(line)
            assert match is not None, line
            names = [part.partition("=")[0] for part in match[2].split(",")]
            assert set(names) <= {"file", "line", "title"}
            assert len(names) == len(set(names))


def test_a_command_says_place_and_all(large_verdict: Verdict) -> None:
    first = github_of(("run", large_verdict))[0]
    match = _COMMAND.fullmatch(first)
    assert match is not None
    assert match[1] == "error"
    assert match[2] == "file=runs/a/telemetry.jsonl,line=9,title=OWN000 error%3A rule 0"
    assert match[3].split("%0A") == [
        "runs/a/telemetry.jsonl:9::layer0.cms.fast.grad_norm (steps 3..8): got 0.0",
        "48 keys like layer*.cms.fast.grad_norm, 288 times, steps 3..8",
        "expected above 0",
        "fix: look at the gradient",
    ]


def test_no_more_commands_than_github_shows_and_the_rest_is_there(large_verdict: Verdict) -> None:
    notes = [replace(one, severity="note") for one in large_verdict.findings[::48]]
    both = replace(large_verdict, findings=(*large_verdict.findings, *notes))
    lines = github_of(("a", both), ("b", both))
    kinds = Counter(match[1] for match in map(_COMMAND.fullmatch, lines) if match)
    assert kinds == {"error": 10, "notice": 10}
    assert len([line for line in lines if line.startswith("error: OWN")]) == 2 * 31 - 10
    assert "above without an annotation" in " ".join(lines)


def test_a_path_is_told_from_the_root_of_the_checkout(
    large_verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/checkout")
    one = replace(large_verdict.findings[0], artifact="/checkout/sub/x.jsonl")
    (line, _) = github_of(("a", replace(large_verdict, findings=(one,))))
    assert line.startswith("::error file=sub/x.jsonl,line=9,")


def test_an_artifact_behind_a_url_has_no_place_in_the_checkout() -> None:
    one = Finding("OWN001", "error", "s3://b/x.jsonl", Where(line=2), "g", "e", "f", "s")
    (line, _) = github_of(("s3://b", replace(PASS, findings=(one,))))
    assert line.startswith("::error title=OWN001 error%3A s::s3://b/x.jsonl:2: got g")


def test_percent_signs_and_commas_are_escaped() -> None:
    one = Finding("OWN001", "warning", "a,b:c%.json", Where(line=2), "100%", "e", "f", "x, y")
    (line, _) = github_of(("a", replace(PASS, findings=(one,))))
    assert line.startswith("::warning file=a%2Cb%3Ac%25.json,line=2,title=OWN001 warning%3A x%2C y")
    assert "got 100%25%0A" in line


# Markdown


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.tags or self.tags[-1] != "code":
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")


def rendered(text: str) -> _Tags:
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tags = _Tags()
    tags.feed(html)
    return tags


def test_markdown_of_a_hostile_run_is_only_our_markup(hostile_verdict: Verdict) -> None:
    text = gate_markdown("``<b>@x", hostile_verdict)
    assert not _CONTROL.search(text)
    tags = rendered(text)
    opened = {tag for tag in tags.tags if tag[0] != "/"}
    assert opened <= {"h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li",
                      "code", "strong", "details", "summary"}  # fmt: skip
    words = "".join(tags.words)
    assert "@s" not in words
    assert "#12" not in words
    assert "://" not in words
    assert "www." not in words
    assert tags.tags.count("details") == tags.tags.count("/details") == 5


def test_markdown_stays_below_what_a_comment_may_hold(large_verdict: Verdict) -> None:
    long = "x" * 3_000
    found = [
        replace(one, rule=f"OWN{n:03}", got=long, summary=long, expected=long, fix=long)
        for n, one in enumerate(large_verdict.findings[:900])
    ]
    text = gate_markdown("run", replace(large_verdict, findings=tuple(found)))
    assert len(text) <= LARGEST + 200
    assert re.search(r"… and the findings of \d+ more rules", text)
    assert "… | | 850 more rules" in text


def test_markdown_has_a_table_of_rules_and_one_of_waivers(hostile_verdict: Verdict) -> None:
    use = replace(hostile_verdict.waivers[0], reason="known", approved_by="A", ticket="T-1")
    text = gate_markdown("runs/a", replace(hostile_verdict, waivers=(use,)))
    assert text.startswith("## ❌ trueup gate `runs/a`: fail\n")
    assert "| `OWN900` | 1 | 3 | 2026-12-31 | known | A, T-1 |" in text
    assert gate_markdown("a", "gone").endswith("`gone`")


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("`a", "`` `a ``"), ("a``b", "```a``b```"), ("", "`  `"), ("x\ny", "`x y`")],
)
def test_a_code_span_holds_anything(text: str, span: str) -> None:
    assert code(text) == span


# SARIF: the parts of the 2.1.0 schema that are used here, written from the standard

_TEXT = {"type": "object", "required": ["text"], "additionalProperties": False,
         "properties": {"text": {"type": "string", "minLength": 1},
                        "markdown": {"type": "string", "minLength": 1}}}  # fmt: skip
_LOCATION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "additionalProperties": False,
                    "properties": {"uri": {"type": "string", "pattern": "^[!-~]+$"}},
                },
                "region": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": False,
                    "anyOf": [{"required": ["startLine"]}, {"required": ["byteOffset"]}],
                    "properties": {
                        "startLine": {"type": "integer", "minimum": 1},
                        "byteOffset": {"type": "integer", "minimum": 0},
                        "byteLength": {"type": "integer", "minimum": 0},
                    },
                },
            },
        },
        "logicalLocations": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "fullyQualifiedName": {"type": "string"},
                    "kind": {"const": "member"},
                },
            },
        },
        "message": _TEXT,
    },
}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": _LEVEL,
        "message": _TEXT,
        "locations": {"type": "array", "minItems": 1, "items": _LOCATION},
        "relatedLocations": {"type": "array", "uniqueItems": True, "items": _LOCATION},
        "occurrenceCount": {"type": "integer", "minimum": 1},
        "partialFingerprints": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "string"},
        },
        "suppressions": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {
                "type": "object",
                "required": ["kind", "status", "justification"],
                "additionalProperties": False,
                "properties": {
                    "kind": {"enum": ["inSource", "external"]},
                    "status": {"enum": ["accepted", "underReview", "rejected"]},
                    "justification": {"type": "string", "minLength": 1},
                    "properties": {"type": "object"},
                },
            },
        },
        "properties": {"type": "object"},
    },
}
_RULE = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*$"},
        "shortDescription": _TEXT,
        "fullDescription": _TEXT,
        "help": _TEXT,
        "defaultConfiguration": {"type": "object", "properties": {"level": _LEVEL}},
    },
}
_SARIF = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "pattern": "sarif-schema-2.1.0.json$"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "invocations", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": _RULE,
                                    },
                                },
                            }
                        },
                    },
                    "automationDetails": {"type": "object"},
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful", "exitCode"],
                            "additionalProperties": False,
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "exitCode": {"type": "integer"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message"],
                                        "additionalProperties": False,
                                        "properties": {
                                            "level": _LEVEL,
                                            "message": _TEXT,
                                            "locations": {"type": "array", "items": _LOCATION},
                                        },
                                    },
                                },
                            },
                        },
                    },
                    "artifacts": {
                        "type": "array",
                        "uniqueItems": True,
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "location": {"type": "object", "required": ["uri"]},
                                "length": {"type": "integer", "minimum": -1},
                                "roles": {
                                    "type": "array",
                                    "uniqueItems": True,
                                    "items": {"enum": ["analysisTarget"]},
                                },
                                "properties": {"type": "object"},
                            },
                        },
                    },
                    "results": {"type": "array", "items": _RESULT},
                    "properties": {"type": "object"},
                },
            },
        },
    },
}


def test_sarif_has_the_form_of_the_standard(
    hostile_verdict: Verdict, large_verdict: Verdict
) -> None:
    document = sarif_of(("a", hostile_verdict), ("b", large_verdict), ("c", "gone"), code=2)
    jsonschema.Draft202012Validator.check_schema(_SARIF)
    jsonschema.validate(document, _SARIF)
    hostile, large, refused = document["runs"]
    assert [len(run["results"]) for run in document["runs"]] == [10, 1441, 0]
    assert [run["invocations"][0]["exitCode"] for run in document["runs"]] == [2, 2, 2]
    assert refused["invocations"][0]["executionSuccessful"] is False
    for run in (hostile, large):
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(rules) == len(set(rules))
        assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in run["results"])
    prints = [one["partialFingerprints"]["trueup/v1"] for one in large["results"]]
    assert len(prints) == len(set(prints))


def test_sarif_holds_no_control_no_link_and_only_uris(hostile_verdict: Verdict) -> None:
    (run,) = sarif_of(("a", hostile_verdict))["runs"]
    for result in run["results"]:
        assert not _CONTROL.search(result["message"]["text"])
        assert "](" not in result["message"]["text"]
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert urlsplit(uri).scheme == ""
            assert uri.isascii()


def test_sarif_says_what_was_waived(hostile_verdict: Verdict) -> None:
    (run,) = sarif_of(("a", hostile_verdict))["runs"]
    suppressed = [one for one in run["results"] if "suppressions" in one]
    assert [one["ruleId"] for one in suppressed] == ["OWN900"] * 5
    (first,) = suppressed[0]["suppressions"]
    assert first["status"] == "accepted"
    assert first["properties"]["expires"] == "2026-12-31"


def test_sarif_tells_of_a_rule_what_the_catalogue_does() -> None:
    where = Where(line=4, byte=77, key="loss", step=3, steps=(3, 3))
    one = Finding("RDR008", "warning", "runs/a b/x.jsonl", where, "NaN", "finite", "f", "s",
                  severity_was="error")  # fmt: skip
    (run,) = sarif_of(("a", replace(PASS, findings=(one,))), code=0)["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["name"], rule["defaultConfiguration"]) == ("NonFiniteLiteral", {"level": "error"})
    assert "loss: NaN" not in rule["help"]["text"]
    assert '"loss": NaN' in rule["help"]["text"]
    (result,) = run["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert unquote(physical["artifactLocation"]["uri"]) == "runs/a b/x.jsonl"
    assert physical["region"] == {"startLine": 4, "byteOffset": 77, "byteLength": 0}
    assert result["level"] == "warning"
    assert result["properties"] == {
        "expected": "finite", "steps": [3, 3], "severityByProfile": "error"
    }  # fmt: skip


# JUnit


def outcome(rule: str, status: Any, reason: str = "") -> RuleOutcome:
    return RuleOutcome(rule, status, 1, 1, reason)


def test_junit_fails_where_the_verdict_does(hostile_verdict: Verdict) -> None:
    one = Finding("OWN001", "error", "a", Where(), "g", "e", "f")
    warned = replace(one, severity="warning")
    waiver = WaiverUse("OWN001", "known", "2026-12-31", "used", "waiver[0]", findings=(one,))
    rules = (outcome("OWN001", "false"),)
    for verdict, failures, skipped in (
        (replace(PASS, rules=rules, findings=(one,), verdict="fail"), 1, 0),
        (replace(PASS, rules=rules, findings=(warned,)), 0, 0),
        (replace(PASS, rules=rules, waivers=(waiver,)), 0, 1),
        (replace(PASS, rules=(outcome("OWN001", "not_applied", "r"),)), 0, 1),
        (replace(PASS, rules=(outcome("OWN001", "undetermined", "r"),), verdict="fail"), 1, 0),
        (replace(PASS, rules=(outcome("OWN001", "undetermined", "r"),)), 0, 1),
    ):
        (suite,) = suites_of(("a", verdict))
        counts = (int(suite.attrib["failures"]), int(suite.attrib["skipped"]))
        assert counts == (failures, skipped), verdict


def test_junit_shows_the_waiver_and_every_path(hostile_verdict: Verdict) -> None:
    suites = suites_of(("a", hostile_verdict), ("b", "gone"))
    assert [suite.attrib["errors"] for suite in suites] == ["0", "1"]
    skips = [one.attrib["message"] for one in suites[0].iter("skipped")]
    assert len(skips) == 1
    assert skips[0].count("waived until 2026-12-31") == 5


# JSON


def test_json_of_several_runs_fits_its_schema(hostile_verdict: Verdict) -> None:
    from referencing import Registry, Resource

    document = json.loads(gate_json([("a", PASS), ("b", "gone")], several=True))
    registry = Registry().with_resource(
        "urn:trueup:gate-verdict", Resource.from_contents(load_schema("gate"))
    )
    schema = load_schema("gates")
    validator = jsonschema.Draft202012Validator(schema, registry=registry)
    cases: list[tuple[list[tuple[str, Verdict | str]], str]] = [
        ([("a", PASS)], "pass"),
        ([("a", PASS), ("b", hostile_verdict)], "fail"),
        ([("a", hostile_verdict), ("b", "gone")], "refused"),
    ]
    for runs, worst in cases:
        document = json.loads(gate_json(runs, several=True))
        validator.validate(document)
        assert document["verdict"] == worst
    assert gate_json([("a", "gone")], several=False) == ""
    del document["runs"][0]["judgement"]["waived"]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(document)


# The page


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_runs_nothing_and_fetches_nothing(hostile_verdict: Verdict) -> None:
    entries = {entry.id: entry for entry in built_in_entries()}
    for page in (gate_page(hostile_verdict, entries), index_page([("<a>", hostile_verdict, "x")])):
        page.encode("utf-8")
        assert not _CONTROL.search(page)
        for tag, attributes in _Page(page).tags:
            assert tag not in {"script", "link", "img", "iframe", "object", "embed", "form"}
            assert "src" not in attributes
            assert not any(name.startswith("on") for name in attributes)
            assert not (attributes.get("href") or "").startswith(("http", "javascript", "//"))


def test_the_page_shows_waivers_documents_and_outcomes(hostile_verdict: Verdict) -> None:
    use = replace(hostile_verdict.waivers[0], reason="a known spike", key="loss", steps=(3, 9))
    idle = replace(use, status="elsewhere", findings=(), reason="another run")
    rules = (
        outcome("RDR008", "true"),
        outcome("OWN002", "undetermined", "no column has 50 rows"),
        outcome("OWN900", "false"),
        outcome("OWN003", "not_applied", "applies when x is true"),
    )
    verdict = replace(hostile_verdict, waivers=(use, idle), rules=rules)
    entries = {entry.id: entry for entry in built_in_entries()}
    page = gate_page(verdict, entries)
    for words in (
        "a known spike", "another run", "2026-12-31", "loss steps 3..9", "<th>document</th>",
        "no column has 50 rows", "applies when x is true", "1 waived", ">undetermined<",
        ">not applied<", entries["RDR008"].why, "instead of",
    ):  # fmt: skip
        assert words in page, words


def test_a_page_of_a_thousand_findings_begins_with_a_table_and_stays_small(
    large_verdict: Verdict,
) -> None:
    page = gate_page(large_verdict, {})
    assert page.count('<a href="#g') == 30
    assert page.count('class="place"') == 31
    assert "48 keys like layer*.cms.fast.grad_norm" in page
    assert len(page) < 100_000


def test_the_index_links_the_pages_and_tells_what_was_refused(hostile_verdict: Verdict) -> None:
    page = index_page([("a", PASS, "gate-1-a.html"), ("b", "no such file", "gate-2-b.html")])
    links = [attributes["href"] for tag, attributes in _Page(page).tags if tag == "a"]
    assert links == ["gate-1-a.html"]
    assert "no such file" in page
    assert ">refused<" in page
