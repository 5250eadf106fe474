"""Data Docs as a local site: whole or not there, without a script, without a call to the network.

The library's pages load styles, scripts and a logo from seven other hosts, and its index is filled
by one of those scripts. Here every script and every address of another host is taken out, a policy
forbids what might be left, and the index is a page of our own.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.model import Judgement

MARK = "made-by-trueup.txt"
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline' 'self' file:; img-src 'self' file: data:; font-src 'self' file:\">"
)
_STYLE = """<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; max-width: 70rem; }
table { border-collapse: collapse; }
td, th { border: 1px solid #bbb; padding: .3rem .6rem; text-align: left; vertical-align: top; }
.true, .text-success { color: #176f2c; }
.false, .undetermined, .text-danger { color: #b00020; font-weight: 600; }
.fa-check-circle::before { content: "holds"; } .fa-times::before { content: "does not hold"; }
footer, .navbar, .card, .cooltip .top, [data-toggle="collapse"] { display: none; }
</style>"""
_DROPPED = ("script", "iframe", "object", "embed", "base", "form")
_OUTSIDE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_SHEET = re.compile(r"""url\(\s*["']?\s*(?:[a-z][a-z0-9+.-]*:|//)[^)]*\)""", re.IGNORECASE)
_VOID = ("link", "img", "meta", "br", "hr", "input", "base", "embed")


class _Local(HTMLParser):
    """Writes a page again without what would leave it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.out: list[str] = []
        self._skipped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            if tag not in _VOID:
                self._skipped.append(tag)
            return
        if self._skipped:
            return
        kept = [(key, value) for key, value in attrs if _is_local(key, value)]
        if tag in ("link", "img") and len(kept) != len(attrs):
            return
        words = "".join(
            f" {key}" if value is None else f' {key}="{html.escape(value)}"' for key, value in kept
        )
        self.out.append(f"<{tag}{words}>")
        if tag == "head":
            self.out.append(_POLICY + _STYLE)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED:
            self.handle_starttag(tag, attrs)
            if tag not in _VOID:
                self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            if tag == self._skipped[-1]:
                self._skipped.pop()
            return
        if tag not in _DROPPED and tag not in _VOID:
            self.out.append(f"</{tag}>")

    def _keep(self, text: str) -> None:
        if not self._skipped:
            self.out.append(text)

    def handle_data(self, data: str) -> None:
        self._keep(data)

    def handle_entityref(self, name: str) -> None:
        self._keep(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._keep(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        self._keep(f"<!{decl}>")


def _is_local(key: str, value: str | None) -> bool:
    if key.startswith("on"):
        return False
    return key not in ("src", "href", "action", "srcset") or not _OUTSIDE.match(value or "")


def localised(page: str) -> str:
    """A page without scripts, handlers, and addresses of other hosts."""
    parser = _Local()
    parser.feed(page)
    parser.close()
    return _SHEET.sub("none", "".join(parser.out))


@contextmanager
def site(target: Path | None) -> Iterator[Path | None]:
    """A folder beside `target` to build in. It is gone afterwards, unless `publish` moved it."""
    if target is None:
        yield None
        return
    _free(target)
    try:
        parent = target.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=parent, prefix=f".{target.name}."))
    except OSError as error:
        raise _unwritable(target, error) from None
    try:
        yield building / "site"
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _unwritable(target: Path, error: OSError) -> AcceptanceError:
    return AcceptanceError(
        "cannot be written", where=str(target), got=str(error.strerror),
        fix="give --docs a folder that you may write to",
    )  # fmt: skip


def _free(target: Path) -> None:
    """Refuse a folder that holds something else than an earlier site."""
    if not os.path.lexists(target):
        return
    mine = target.is_dir() and not target.is_symlink()
    if not mine or (any(target.iterdir()) and not (target / MARK).is_file()):
        raise AcceptanceError(
            "is there already, and is no site of trueup", where=str(target),
            expected="a new or empty folder, or one that --docs made",
            fix="give --docs another folder",
        )  # fmt: skip


def publish(building: Path, target: Path, judgement: Judgement) -> None:
    """Make every page local, add our index, and put the whole site in place at once."""
    try:
        pages = sorted(path for path in building.rglob("*.html") if path.name != "index.html")
        for page in pages:
            page.write_text(localised(page.read_text("utf-8")), "utf-8")
        for sheet in building.rglob("*.css"):
            sheet.write_text(_SHEET.sub("none", sheet.read_text("utf-8")), "utf-8")
        links = [page.relative_to(building).as_posix() for page in pages]
        (building / "index.html").write_text(_index(judgement, links), "utf-8")
        (building / "judgement.json").write_text(judgement.to_json() + "\n", "utf-8")
        (building / MARK).write_text("A site of `trueup accept --docs`; it may be replaced.\n")
        _swap(building, target)
    except OSError as error:
        raise _unwritable(target, error) from None


def _swap(building: Path, target: Path) -> None:
    building.chmod(0o755)
    if not target.exists():
        building.rename(target)
        return
    _free(target)
    old = building.with_name("old")
    target.rename(old)
    try:
        building.rename(target)
    except OSError:
        old.rename(target)
        raise


def _index(judgement: Judgement, links: list[str]) -> str:
    """The first page: every criterion, and the way to the library's own pages."""
    worst_first = sorted(judgement.criteria, key=lambda one: one.held == "true")
    rows = "".join(
        f'<tr><td>{html.escape(one.name)}</td><td class="{one.held}">{one.held}</td>'
        f"<td>{html.escape(one.value)}</td><td>{html.escape(one.threshold)}</td>"
        f"<td>{html.escape(one.weight)}</td></tr>\n"
        for one in worst_first
    )
    names = {"expectations": "The suite", "validations": "Its results"}
    items = "".join(
        f'<li><a href="{html.escape(link)}">{names.get(link.split("/")[0], link)}</a></li>\n'
        for link in links
    )
    verdict = "pass" if judgement.passed else "fail"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{_POLICY}{_STYLE}'
        f"<title>{html.escape(judgement.id)}</title></head><body>\n"
        f"<h1>{html.escape(judgement.id)}: {verdict}</h1>\n<ul>{items}</ul>\n<table>\n<tr>"
        "<th>criterion</th><th>holds</th><th>value</th><th>bound</th><th>class</th></tr>\n"
        f"{rows}</table></body></html>\n"
    )
