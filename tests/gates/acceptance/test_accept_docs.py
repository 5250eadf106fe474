"""Data Docs as a local site: no script, no other host, whole or not there."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.acceptance import docs as module
from trueup.gates.acceptance.docs import MARK, localised
from trueup.gates.acceptance.errors import AcceptanceError


class Page(HTMLParser):
    """What a page would load, run or lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for key, value in attrs:
            if key in ("src", "href", "action"):
                self.addresses.append(value or "")
            if key.startswith("on"):
                self.handlers.append(key)


def made(accepting: Any, name: str = "passes_bands", **changes: Any) -> Path:
    target: Path = accepting.folder / "site"
    files = accepting.fixture(name, **changes)
    accepting.judged(files, docs=target)
    return target


def test_no_page_runs_or_loads_anything_from_elsewhere(accepting: Any) -> None:
    site = made(accepting)
    pages = list(site.rglob("*.html"))
    assert len(pages) == 3
    for path in pages:
        text = path.read_text()
        page = Page(text)
        assert "script" not in page.tags
        assert page.handlers == []
        assert "Content-Security-Policy" in text
        for address in page.addresses:
            assert re.match(r"(#|(\.\./)*[A-Za-z0-9_./-]+(\.html|\.css|\.ico)?$)", address), address
    for path in [*pages, *site.rglob("*.css")]:
        assert "://" not in path.read_text()


def test_every_link_of_the_first_page_leads_to_a_page(accepting: Any) -> None:
    site = made(accepting)
    links = Page((site / "index.html").read_text()).addresses
    assert len(links) == 2
    assert all((site / link).is_file() for link in links)


def test_the_pages_say_what_was_judged(accepting: Any) -> None:
    site = made(accepting, results_json={"cells": [{"fold": 0, "val": 0.5}], "sharpe": 20})
    index = (site / "index.html").read_text()
    assert "<h1>mine: fail</h1>" in index
    assert index.index("val[fold=0]") < index.index("baseline[baseline.toml]")  # the worst first
    (results,) = site.glob("validations/**/*.html")
    assert "val[fold=0]" in results.read_text()
    document = json.loads((site / "judgement.json").read_text())
    assert document["verdict"] == "fail"


@pytest.mark.parametrize(
    ("page", "kept"),
    [
        ("<p>a<script>x()</script>b</p>", "<p>ab</p>"),
        ("<p>a<SCRIPT src=//x>y</SCRIPT>b</p>", "<p>ab</p>"),
        ('<img src="https://x/p.png">', ""),
        ('<img src="//x/p.png">', ""),
        ('<img src=" hTTps://x/p.png">', ""),
        ('<img src="static/a.png" onerror="x()">', ""),
        ('<a href="javascript:x()">a</a>', "<a>a</a>"),
        ('<a href="../index.html" onclick="x()">a</a>', '<a href="../index.html">a</a>'),
        ('<link rel="stylesheet" href="https://x/a.css"/>', ""),
        ('<iframe src="a"><p>in</p></iframe>out', "out"),
        ('<base href="https://x/">', ""),
        ("<p>1 &lt; 2 &#38; &amp;</p><br/>", "<p>1 &lt; 2 &#38; &amp;</p><br>"),
        ("<style>a { background: url( 'https://x/y.png' ) no-repeat; }</style>",
         "<style>a { background: none no-repeat; }</style>"),
        ('<p title="a&quot;b">c</p>', '<p title="a&quot;b">c</p>'),
        ("<!DOCTYPE html>", "<!DOCTYPE html>"),
    ],
)  # fmt: skip
def test_what_leads_elsewhere_is_taken_out(page: str, kept: str) -> None:
    assert localised(page) == kept


def test_markup_in_the_data_is_text(accepting: Any) -> None:
    evil = '<img src=x onerror=alert(1)>"&'
    toml = (
        '[results]\nfiles = ["results.json"]\n'
        '[[limit]]\nid = "x"\npath = "cells[*].x"\nat_least = 1\n'
    )
    results = {"cells": [{"name": evil, "x": 0}, {"name": "b", "x": "<script>"}]}
    target: Path = accepting.folder / "site"
    accepting.judged({"acceptance.toml": toml, "results.json": results}, docs=target)
    for path in target.rglob("*.html"):
        page = Page(path.read_text())
        assert "img" not in page.tags
        assert page.handlers == []


def test_a_site_is_replaced_by_a_newer_one(accepting: Any) -> None:
    site = made(accepting)
    (site / "old.html").write_text("old")
    made(accepting, results_json={"cells": [], "sharpe": 1})
    assert not (site / "old.html").exists()
    assert "mine: fail" in (site / "index.html").read_text()
    assert not [path for path in accepting.folder.iterdir() if path.name.startswith(".site")]


@pytest.mark.parametrize("kind", ["file", "foreign", "link"])
def test_what_is_no_site_of_ours_is_not_touched(
    accepting: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target: Path = accepting.folder / "site"
    if kind == "file":
        target.write_text("mine")
    else:
        other = accepting.folder / "other" if kind == "link" else target
        other.mkdir()
        (other / "mine").write_text("mine")
        if kind == "link":
            target.symlink_to(other)
    monkeypatch.setattr("trueup.gates.acceptance.judge.ask", lambda *words: pytest.fail("judged"))
    with pytest.raises(AcceptanceError, match="is no site of trueup"):
        made(accepting)
    kept = {"file": target, "foreign": target / "mine", "link": accepting.folder / "other/mine"}
    assert kept[kind].read_text() == "mine"


def test_a_failure_on_the_way_leaves_no_half_site(
    accepting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = made(accepting)
    before = (site / "index.html").read_text()

    def fail(*words: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_index", fail)
    with pytest.raises(AcceptanceError, match="No space left"):
        made(accepting)
    assert (site / "index.html").read_text() == before
    assert not [path for path in accepting.folder.iterdir() if path.name.startswith(".site")]
    shutil.rmtree(site)
    with pytest.raises(AcceptanceError, match="No space left"):
        made(accepting)
    assert not site.exists()


def test_an_acceptance_without_numbers_has_no_docs(accepting: Any) -> None:
    with pytest.raises(AcceptanceError, match="there are no Data Docs"):
        made(accepting, "passes_hard_stop")
    assert not (accepting.folder / "site").exists()


def test_an_empty_folder_may_be_used(accepting: Any) -> None:
    (accepting.folder / "site").mkdir()
    assert (made(accepting) / MARK).is_file()
