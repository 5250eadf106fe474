"""Finds the open rows of an audit document: a Markdown page with tables, one row for each item."""

from __future__ import annotations

from trueup.gates.acceptance.config import Smoke
from trueup.gates.errors import Unreadable


def open_rows(raw: bytes, smoke: Smoke) -> tuple[int, list[tuple[int, str]]]:
    """How many rows there are, and each open one with its line.

    A row is open if a cell is one of the words for "not yet", or if its status is not closed.
    """
    from markdown_it import MarkdownIt

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(
            "is not UTF-8", where="the audit document", got=str(error.reason)
        ) from None
    words = {word.casefold() for word in smoke.audit_open_words}
    closed = {word.casefold() for word in smoke.audit_closed}
    count, found = 0, []
    status: int | None = None
    for line, cells, is_head in _rows(MarkdownIt("commonmark").enable("table").parse(text)):
        if is_head:
            heads = [cell.casefold() for cell in cells]
            name = smoke.audit_status.casefold()
            status = heads.index(name) if name in heads else None
            continue
        count += 1
        flat = [cell.casefold() for cell in cells]
        if status is not None and (status >= len(flat) or flat[status] not in closed):
            got = cells[status] if status < len(cells) else "nothing"
            found.append((line, f"{cells[0]}: {smoke.audit_status} is {got or 'blank'}"))
        elif any(cell in words for cell in flat):
            cell = next(cell for cell in cells if cell.casefold() in words)
            found.append((line, f"{cells[0]}: a cell is {cell or 'blank'}"))
    return count, found


def _rows(tokens: list) -> list[tuple[int, list[str], bool]]:  # type: ignore[type-arg]
    """Line, cells, and whether it is a header, of every row of every table."""
    rows: list[tuple[int, list[str], bool]] = []
    in_head = False
    for token in tokens:
        if token.type in ("thead_open", "thead_close"):
            in_head = token.type == "thead_open"
        elif token.type == "tr_open":
            rows.append(((token.map or [0])[0] + 1, [], in_head))
        elif token.type == "inline" and rows and token.level >= 3:
            rows[-1][1].append(_plain(token))
    return rows


def _plain(token: object) -> str:
    """A cell's text without its marks."""
    children = getattr(token, "children", None) or []
    return "".join(child.content for child in children).strip()
