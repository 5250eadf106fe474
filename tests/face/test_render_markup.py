"""HTML and JUnit: well-formed whatever the names hold, and nothing fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from trueup.oracle.verdict import CaseScore, Verification
from trueup.render.html import verify_page
from trueup.render.junit import verify_junit
from trueup.render.plots import strip_plot


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def _tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Tags()
    parser.feed(page)
    return parser.tags


@pytest.mark.parametrize("name", ["failed", "passed"])
def test_the_page_holds_no_script_and_fetches_nothing(
    name: str, request: pytest.FixtureRequest
) -> None:
    page = verify_page(request.getfixturevalue(name))
    page.encode("utf-8")
    tags = _tags(page)
    assert {tag for tag, _ in tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
    } == set()
    for _, attributes in tags:
        assert "src" not in attributes
        assert not any(key.startswith("on") for key in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import", page)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)


def test_the_page_shows_verdicts_findings_and_plots(failed: Verification) -> None:
    page = verify_page(failed)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "m_next[3, 5]" in page
    assert "broken.toml: not valid TOML" in page
    assert "host evidence is not GPU evidence" in page
    assert "runs on cuda only" in page
    assert page.count("<svg") == 2


def test_a_strip_plot_is_well_formed_and_marks_what_is_beyond() -> None:
    scores = [
        CaseScore("a", "f<1>", 0.0),
        CaseScore("b", "f<1>", 1.0),
        CaseScore("c", "g", 1.01),
        CaseScore("d", "g", float("nan")),
        CaseScore("e", "g", float("inf")),
        CaseScore("f", "g", 1e-30),
        CaseScore("g", "g", 1e30),
    ]
    root = ET.fromstring(strip_plot(scores, "<t>"))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{space}circle")) == 3
    assert len(root.findall(f".//{space}path")) == 4
    for circle in root.iter(f"{space}circle"):
        assert 0 <= float(circle.attrib["cx"]) <= 860


@pytest.mark.parametrize(
    "ratios",
    [[0.5], [1.0], [0.0], [1e30], [1e-3, 1e3], [1.2, 0.9], [9.9], [1e-4, 3e7], [1e300], [150.0]],
    ids=str,
)
def test_the_words_under_a_strip_plot_do_not_run_into_each_other(ratios: list[float]) -> None:
    scores = [CaseScore(str(ratio), "f", ratio) for ratio in ratios]
    texts = list(ET.fromstring(strip_plot(scores, "t")).iter("{http://www.w3.org/2000/svg}text"))
    low = max(float(text.attrib["y"]) for text in texts) - 16  # the axis, without its name below
    ticks = [t for t in texts if float(t.attrib["y"]) == low and t.attrib["class"] != "label"]
    # 11 px letters of a usual sans-serif are 6 px wide on average.
    spans = sorted((float(t.attrib["x"]), 3.0 * len(t.text or "")) for t in ticks)
    assert {"1 = bound", "exact", "beyond"} <= {t.text for t in ticks}
    for (x1, half1), (x2, half2) in pairwise(spans):
        assert x2 - half2 - (x1 + half1) >= 4
    assert spans[-1][0] + spans[-1][1] <= 860


def test_a_strip_plot_of_nothing_is_nothing() -> None:
    assert strip_plot([], "t") == ""


def test_junit_is_well_formed_and_counts_what_happened(failed: Verification) -> None:
    text = verify_junit(failed)
    suite = ET.fromstring(text.encode("utf-8"))[0]
    counts = {key: int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped")}
    # four lanes and an evil one, its minimum, one skip of no lane shown, two errors
    assert counts == {"tests": 9, "failures": 5, "errors": 2, "skipped": 2}
    names = [(case.attrib["classname"], case.attrib["name"]) for case in suite]
    assert ("nl.delta_momentum", "host-numeric") in names
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "trueup verify 'kernels/nl/delta momentum.toml'" in (failure.text or "")


def test_an_inconclusive_lane_is_a_junit_failure(failed: Verification) -> None:
    suite = ET.fromstring(verify_junit(failed).encode("utf-8"))[0]
    case = next(c for c in suite if c.attrib["name"] == "host-special")
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "INCONCLUSIVE: no signal"
